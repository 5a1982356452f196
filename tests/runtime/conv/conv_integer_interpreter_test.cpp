// SPDX-License-Identifier: Apache-2.0
// What conv_integer computes: the interpreter against the oracle of tests/support, examples, and
// values that wrap around.
#include <algorithm>

#include "ir/text/text.hpp"
#include "tests/support/convolution_cases.hpp"
#include "tests/support/on_every_engine.hpp"

namespace castor::test {
namespace {

using enum ElementType;

Patterns filled(ElementType type, const Dims& shape, uint64_t bits) {
  const auto count = static_cast<size_t>(element_count(shape).value());
  return {type, shape, std::vector<uint64_t>(count, bits)};
}

Patterns listed(ElementType type, const Dims& shape, std::vector<uint64_t> elements) {
  return {type, shape, std::move(elements)};
}

Patterns scalar(ElementType type, uint64_t bits) { return listed(type, {}, {bits}); }

/// 0, 1, 2, ... modulo 256.
Patterns counted(ElementType type, const Dims& shape) {
  Patterns tensor = filled(type, shape, 0);
  for (size_t i = 0; i < tensor.elements.size(); ++i) tensor.elements[i] = i & 0xff;
  return tensor;
}

Patterns result_of(const ConvolutionCase& row) {
  const FunctionPtr function = function_of(row);
  return function ? interpreted(*function, row.operands()) : Patterns{};
}

std::vector<int32_t> numbers_of(const Patterns& tensor) {
  std::vector<int32_t> numbers;
  for (uint64_t bits : tensor.elements) numbers.push_back(static_cast<int32_t>(bits));
  return numbers;
}

/// Both examples of the specification.
TEST(ConvInteger, ExamplesOfTheSpecification) {
  const Patterns x = listed(u8, {1, 1, 3, 3}, {2, 3, 4, 5, 6, 7, 8, 9, 10});
  const Patterns w = filled(u8, {1, 1, 2, 2}, 1);
  ConvolutionCase row{.options = {}, .x = x, .w = w, .x_zero_point = scalar(u8, 1)};
  EXPECT_EQ(numbers_of(result_of(row)), (std::vector<int32_t>{12, 16, 24, 28}));
  row.options.pads = {1, 1, 1, 1};
  EXPECT_EQ(numbers_of(result_of(row)),
            (std::vector<int32_t>{1, 3, 5, 3, 5, 12, 16, 9, 11, 24, 28, 15, 7, 15, 17, 9}));
}

struct SignRow {
  ElementType x_type, w_type;
  uint64_t x, w;
  int64_t x_zero, w_zero;
  int32_t expected;  ///< (x - x_zero) * (w - w_zero)
};

TEST(ConvInteger, SignsAndZeroPointsAtTheirExtremes) {
  const SignRow rows[] = {
      {u8, u8, 255, 255, 0, 0, 65025},
      {u8, i8, 255, 0x80, 0, 0, -32640},
      {i8, u8, 0x80, 255, 0, 0, -32640},
      {i8, i8, 0x80, 0x80, 0, 0, 16384},
      {u8, u8, 0, 0, 255, 255, 65025},
      {u8, u8, 0, 255, 255, 0, -65025},
      {i8, i8, 0x80, 0x7f, 127, -128, -65025},
      {i8, i8, 0x7f, 0x7f, -128, -128, 65025},
      {i8, u8, 0xff, 3, 0, 5, 2},
      {u8, i8, 7, 0xfe, 9, 1, 6},
  };
  for (const SignRow& row : rows) {
    const ConvolutionCase one{
        .options = {},
        .x = filled(row.x_type, {1, 1, 1}, row.x),
        .w = filled(row.w_type, {1, 1, 1}, row.w),
        .x_zero_point = scalar(row.x_type, static_cast<uint8_t>(row.x_zero)),
        .w_zero_point = scalar(row.w_type, static_cast<uint8_t>(row.w_zero)),
    };
    EXPECT_EQ(numbers_of(result_of(one)), std::vector<int32_t>{row.expected});
    EXPECT_EQ(numbers_of(direct_convolution(one)), std::vector<int32_t>{row.expected});
  }
}

TEST(ConvInteger, PaddingAddsNothingWhateverTheZeroPoints) {
  const ConvolutionCase row{.options = {.pads = {2, 2}},
                            .x = filled(u8, {1, 1, 1}, 10),
                            .w = listed(i8, {1, 1, 3}, {1, 2, 3}),
                            .x_zero_point = scalar(u8, 200),
                            .w_zero_point = scalar(i8, 100)};
  EXPECT_EQ(numbers_of(result_of(row)), (std::vector<int32_t>{-190 * -97, -190 * -98, -190 * -99}));
}

TEST(ConvInteger, AZeroPointForEachOutputChannel) {
  const ConvolutionCase row{.options = {.group = 2},
                            .x = listed(u8, {1, 2, 1}, {10, 20}),
                            .w = listed(u8, {4, 1, 1}, {1, 2, 3, 4}),
                            .w_zero_point = listed(u8, {4}, {0, 1, 2, 255})};
  EXPECT_EQ(numbers_of(result_of(row)), (std::vector<int32_t>{10, 10, 20, 20 * -251}));
}

TEST(ConvInteger, SumsWrapAround) {
  // 33,025 * 255 * 255 is below 2^31; 33,026 is the first count that is not.
  for (const int64_t channels : {33'025, 33'026, 40'000}) {
    const ConvolutionCase row{.options = {},
                              .x = filled(u8, {1, channels, 1}, 255),
                              .w = filled(u8, {1, channels, 1}, 255)};
    const auto wrapped = static_cast<int32_t>(static_cast<uint32_t>(channels * 65025));
    EXPECT_EQ(wrapped<0, channels> 33'025);
    EXPECT_EQ(numbers_of(result_of(row)), std::vector<int32_t>{wrapped});
    EXPECT_EQ(numbers_of(direct_convolution(row)), std::vector<int32_t>{wrapped});
  }
  const ConvolutionCase lowest{
      .options = {}, .x = filled(u8, {1, 140'000, 1}, 255), .w = filled(i8, {1, 140'000, 1}, 0x80)};
  const auto wrapped = static_cast<int32_t>(static_cast<uint32_t>(140'000 * int64_t{-32640}));
  EXPECT_EQ(numbers_of(result_of(lowest)), std::vector<int32_t>{wrapped});
  EXPECT_EQ(wrapped, -274'632'704);
}

TEST(ConvInteger, ZeroSizedTensors) {
  const auto row = [](const Dims& x, const Dims& w, ConvolutionOptions options = {}) {
    return ConvolutionCase{.options = std::move(options),
                           .x = counted(u8, x),
                           .w = counted(i8, w),
                           .x_zero_point = scalar(u8, 3),
                           .w_zero_point = filled(i8, {w[0]}, 5)};
  };
  const ConvolutionCase cases[] = {
      row({2, 0, 5}, {3, 0, 2}),
      row({2, 0, 5}, {4, 0, 2}, {.group = 2}),
      row({0, 2, 5}, {3, 2, 2}),
      row({2, 2, 5}, {0, 2, 2}),
      row({2, 2, 0}, {3, 2, 2}, {.pads = {2, 1}}),
      row({2, 2, 0, 4}, {3, 2, 2, 2}, {.auto_pad = AutoPad::same_lower}),
  };
  for (const ConvolutionCase& zero : cases) {
    const Patterns expected = direct_convolution(zero);
    EXPECT_TRUE(std::ranges::all_of(expected.elements, [](uint64_t bits) { return bits == 0; }));
    for (const bool open : {false, true}) {
      EXPECT_EQ(mistake_anywhere(function_of(zero, open), zero.operands(), expected), "");
    }
  }
  // Without channels there are zeros at once, however many taps a kernel has.
  const int64_t many = int64_t{1} << 40;
  const FunctionPtr function = function_of(row({1, 0, many + 1, many}, {1, 0, many, many}));
  ASSERT_TRUE(function);
  EXPECT_EQ(interpreted(*function, row({1, 0, many + 1, many}, {1, 0, many, many}).operands()),
            filled(i32, {1, 1, 2, 1}, 0));
}

/// Random geometries; `min` of them must have each property that is counted.
TEST(ConvInteger, RandomGeometriesAgreeWithTheOracle) {
  std::mt19937_64 random(20261);
  constexpr int cases = 1500;
  int grouped = 0, depthwise = 0, last = 0, same = 0, zeros = 0, per_channel = 0, dilated = 0;
  std::array<int, 5> axes{};
  std::array<int, 4> types{};
  for (int i = 0; i < cases; ++i) {
    const ConvolutionCase row = random_convolution(random);
    const FunctionPtr function = function_of(row, i % 2 == 1);
    ASSERT_TRUE(function);
    const Patterns expected = direct_convolution(row);
    ASSERT_EQ(first_difference(expected, interpreted(*function, row.operands())), "")
        << i << "\n"
        << print(*function);
    const ConvolutionOptions& options = row.options;
    grouped += options.group > 1;
    depthwise += options.group > 1 && row.w.shape[1] == 1 && row.w.shape[0] > options.group;
    last += options.layout == ConvolutionLayout::nhwc;
    same += options.auto_pad == AutoPad::same_upper || options.auto_pad == AutoPad::same_lower;
    zeros += row.x_zero_point.has_value() && row.w_zero_point.has_value();
    per_channel += row.w_zero_point.has_value() && row.w_zero_point->elements.size() > 1;
    dilated += std::ranges::any_of(options.dilations, [](int64_t d) { return d > 1; });
    ++axes[static_cast<size_t>(row.x.shape.rank() - 2)];
    ++types[(row.x.type == i8 ? 2u : 0u) + (row.w.type == i8 ? 1u : 0u)];
  }
  for (int count : {grouped, depthwise, last, same, zeros, per_channel, dilated, axes[1], axes[2],
                    axes[3], axes[4], types[0], types[1], types[2], types[3]}) {
    EXPECT_GT(count, cases / 25);
  }
}

TEST(ConvInteger, SixSpatialAxes) {
  std::mt19937_64 random(6);
  std::array<int, 7> axes{};
  for (int i = 0; i < 100; ++i) {
    const ConvolutionCase row =
        random_convolution(random, {.max_spatial_axes = 6, .max_products = 400'000});
    ++axes[static_cast<size_t>(row.x.shape.rank() - 2)];
    ASSERT_EQ(first_difference(direct_convolution(row), result_of(row)), "") << i;
  }
  EXPECT_GT(axes[5], 0);
  EXPECT_GT(axes[6], 0);
}

/// Through a runtime of every tier, with operands against guard pages.
TEST(ConvInteger, RandomGeometriesOnEveryTier) {
  std::mt19937_64 random(77);
  for (int i = 0; i < 200; ++i) {
    const ConvolutionCase row = random_convolution(random);
    const FunctionPtr function = function_of(row, i % 2 == 1);
    ASSERT_TRUE(function);
    ASSERT_EQ(mistake_anywhere(function, row.operands(), direct_convolution(row)), "")
        << i << "\n"
        << print(*function);
  }
}

TEST(ConvInteger, LayoutsAreTransposesOfEachOther) {
  const ConvolutionCase first{.options = {.group = 2, .pads = {1, 0, 2, 1}, .strides = {2, 1}},
                              .x = counted(u8, {2, 4, 5, 6}),
                              .w = counted(i8, {6, 2, 3, 2}),
                              .x_zero_point = scalar(u8, 121),
                              .w_zero_point = counted(i8, {6})};
  const auto channels_last = [](const Patterns& tensor) {
    const Dims& from = tensor.shape;
    Patterns moved{tensor.type, {from[0], from[2], from[3], from[1]}, {}};
    const int64_t positions = from[2] * from[3];
    for (int64_t n = 0; n < from[0]; ++n) {
      for (int64_t position = 0; position < positions; ++position) {
        for (int64_t c = 0; c < from[1]; ++c) {
          const int64_t at = (n * from[1] + c) * positions + position;
          moved.elements.push_back(tensor.elements[static_cast<size_t>(at)]);
        }
      }
    }
    return moved;
  };
  ConvolutionCase last = first;
  last.options.layout = ConvolutionLayout::nhwc;
  last.x = channels_last(first.x);
  EXPECT_EQ(result_of(last), channels_last(result_of(first)));
}

/// A chain around it: other ops convert its operands and its result.
TEST(ConvInteger, InsideAFunction) {
  const auto function = parse_function(
      "func @f(%x: f32[1, 2, 4], %s: f32[3, 1]) -> (f32[1, 3, 3]) {\n"
      "  %q = convert %x {overflow = saturate, rounding = nearest_even} : u8\n"
      "  %w = constant [1, -2, 3, -4, 5, -6, 7, -8, 9, -10, 11, -12] : i8[3, 2, 2]\n"
      "  %z = constant 2 : u8[]\n"
      "  %y = conv_integer %q, %w, %z\n"
      "  %f = convert %y : f32\n"
      "  %r = mul %f, %s\n"
      "  return %r\n}\n");
  ASSERT_TRUE(function) << function.error().to_string();
  const auto floats = [](const Dims& shape, std::vector<float> values) {
    Patterns tensor{f32, shape, {}};
    for (float value : values) tensor.elements.push_back(std::bit_cast<uint32_t>(value));
    return tensor;
  };
  // x - 2: 0 1 2 3 and -2 0 2 253.
  const std::vector<Patterns> operands = {floats({1, 2, 4}, {2, 3, 4, 5, -7, 2.4f, 4.5f, 900}),
                                          floats({3, 1}, {1, 0.5f, -1})};
  const Patterns expected = floats(
      {1, 3, 3}, {-2 - 6, -3 - 8, -4 + 6 - 1012, (-6 - 14) * 0.5f, (5 - 12 - 16) * 0.5f,
                  (10 - 18 + 14 - 2024) * 0.5f, 10 + 22, -(9 - 20 - 24), -(18 - 30 + 22 - 3036)});
  EXPECT_EQ(mistake_anywhere(*function, operands, expected), "");
}

}  // namespace
}  // namespace castor::test
