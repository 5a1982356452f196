// SPDX-License-Identifier: Apache-2.0
// conv_integer as it is bound: extents of zero, results in place of inputs, refusals of what only
// bound extents show, positions close to 2^63.
#include <map>

#include "ir/text/text.hpp"
#include "tests/support/convolution_cases.hpp"
#include "tests/support/convolution_rows.hpp"
#include "tests/support/on_every_engine.hpp"
#include "tests/support/placed_tensors.hpp"

namespace castor::test {
namespace {

using enum ElementType;

/// Empty extents bound to `?`: nothing, or zeros.
TEST(ConvIntegerBound, ExtentsOfZero) {
  const std::string text =
      "func @f(%x: u8[?, ?, ?], %w: i8[?, ?, ?], %z: u8[]) -> (i32[?, ?, ?]) {\n"
      "  %y = conv_integer %x, %w, %z {pads = [1, 2]}\n  return %y\n}\n";
  const auto function = parse_function(text);
  ASSERT_TRUE(function) << function.error().to_string();
  struct Row {
    Dims x, w;
  };
  for (const Row& row : {Row{{0, 2, 5}, {3, 2, 2}},
                         {{2, 0, 5}, {3, 0, 2}},
                         {{2, 2, 5}, {0, 2, 2}},
                         {{2, 2, 0}, {3, 2, 3}},
                         {{0, 0, 0}, {0, 0, 1}}}) {
    const auto filled = [](ElementType type, const Dims& shape) {
      return Patterns{type, shape,
                      std::vector<uint64_t>(static_cast<size_t>(element_count(shape).value()), 9)};
    };
    const std::vector<Placed> operands = {
        {filled(u8, row.x)}, {filled(i8, row.w)}, {filled(u8, {})}};
    std::vector<Patterns> tensors;
    for (const Placed& operand : operands) tensors.push_back(operand.tensor);
    std::vector<Placed> expected = {{interpreted_results(**function, tensors)[0]}};
    for (int placing = 0; placing < placings; ++placing) {
      expected[0].placing = static_cast<Placing>(placing);
      EXPECT_EQ(mistake_on_tiers(*function, operands, expected), "") << to_string(row.x);
    }
  }
}

/// y, or what is computed from it, in the memory of an input that is read before.
TEST(ConvIntegerBound, InPlaceOfAnInput) {
  const std::string texts[] = {
      "func @f(%b: i32[1, 4, 8], %x: u8[1, 3, 9], %w: u8[4, 3, 2]) -> (i32[1, 4, 8]) {\n"
      "  %y = conv_integer %x, %w\n  %z = sub %y, %b\n  return %z\n}\n",
      "func @f(%b: i32[1, 4, 8], %x: u8[1, 3, 9], %w: u8[4, 3, 2]) -> (i32[1, 4, 8]) {\n"
      "  %y = conv_integer %x, %w\n  return %y\n}\n",
      "func @f(%b: f32[1, 4, 8], %w: u8[4, 4, 3]) -> (i32[1, 4, 8]) {\n"
      "  %x = convert %b {overflow = saturate} : u8\n"
      "  %y = conv_integer %x, %w {pads = [1, 1]}\n  return %y\n}\n"};
  for (const std::string& text : texts) {
    const auto function = parse_function(text);
    ASSERT_TRUE(function) << function.error().to_string();
    std::vector<Patterns> tensors;
    std::mt19937_64 random(3);
    for (ValueId value : (*function)->parameters) {
      const TensorType& type = (*function)->type_of(value);
      Dims shape;
      for (const Dim& dim : type.shape) shape.push_back(dim.extent);
      Patterns tensor = random_bytes(random, u8, shape);
      tensor.type = type.element;
      if (type.element == f32) {
        for (uint64_t& bits : tensor.elements) bits = numerics::convert(bits, u8, f32, {});
      }
      tensors.push_back(std::move(tensor));
    }
    const Patterns expected = interpreted_results(**function, tensors)[0];
    for (const auto& [tier, runtime] : tier_runtimes()) {
      std::vector<PlacedTensor> sources;
      std::vector<ConstView> inputs;
      for (const Patterns& tensor : tensors) {
        inputs.emplace_back(sources.emplace_back(Placed{tensor}).view());
      }
      View y = sources[0].view();
      y.element = i32;
      const std::vector<View> outputs = {y};
      const auto kernel = runtime.compile(*function);
      ASSERT_TRUE(kernel) << kernel.error().to_string();
      const auto bound = kernel->bind(inputs, outputs);
      ASSERT_TRUE(bound) << bound.error().to_string();
      const Status status = bound->run(inputs, outputs);
      ASSERT_TRUE(status) << status.error().to_string() << "\n" << text;
      Patterns found = sources[0].take();
      found.type = i32;
      EXPECT_EQ(first_difference(expected, found), "") << name_of(tier) << "\n" << text;
    }
  }
}

/// Zero points are operands of the call: nothing of those of an earlier one is kept.
TEST(ConvIntegerBound, OtherZeroPointsInLaterCalls) {
  std::mt19937_64 random(17);
  for (const auto layout : {ConvolutionLayout::nchw, ConvolutionLayout::nhwc}) {
    for (const Dims& zeros : {Dims{}, Dims{19}}) {
      for (const auto& [x_type, w_type] : {std::pair{u8, i8}, {i8, u8}, {u8, u8}, {i8, i8}}) {
        const Dims x = layout == ConvolutionLayout::nchw ? Dims{2, 12, 7, 9} : Dims{2, 7, 9, 12};
        ConvolutionCase row{.options = {.layout = layout, .pads = {1, 1, 1, 0}},
                            .x = random_bytes(random, x_type, x),
                            .w = random_bytes(random, w_type, {19, 12, 3, 2}),
                            .x_zero_point = random_bytes(random, x_type, {}),
                            .w_zero_point = random_bytes(random, w_type, zeros)};
        const ConvolutionForm form = {.constant_weights = true};
        const FunctionPtr function = function_of(row, form);
        std::map<Tier, BoundKernel> bound;
        for (int call = 0; call < 3; ++call) {
          row.x_zero_point = random_bytes(random, x_type, {});
          row.w_zero_point = random_bytes(random, w_type, zeros);
          const std::vector<Patterns> operands = parameters_of(row, form);
          const Patterns expected = interpreted_results(*function, operands)[0];
          for (const auto& [tier, runtime] : tier_runtimes()) {
            std::vector<PlacedTensor> sources;
            std::vector<ConstView> inputs;
            for (const Patterns& operand : operands) {
              inputs.emplace_back(sources.emplace_back(Placed{operand}).view());
            }
            PlacedTensor y(i32, expected.shape, Placing::at_end);
            const std::vector<View> outputs = {y.view()};
            if (call == 0) bound.emplace(tier, *runtime.compile(function)->bind(inputs, outputs));
            ASSERT_TRUE(bound.at(tier).run(inputs, outputs));
            ASSERT_EQ(first_difference(expected, y.take()), "")
                << name_of(tier) << " call " << call << "\n"
                << print(*function);
          }
        }
      }
    }
  }
}

/// y in the memory of an input that is read after it: refused, or what the inputs were gives.
TEST(ConvIntegerBound, InPlaceOfWhatIsReadLater) {
  const std::string head =
      "func @f(%b: i32[1, 4, 8], %x: u8[1, 3, 9], %w: u8[4, 3, 2]) -> (i32[1, 4, 8], i32[1, 4, 8]) "
      "{\n  %y = conv_integer %x, %w\n";
  const std::string texts[] = {
      head + "  %z = sub %y, %b\n  return %y, %z\n}\n",
      head +
          "  %q = convert %b : u8\n  %v = constant [1, 2, 3, 4] : u8[1, 4, 1]\n"
          "  %c = conv_integer %q, %v\n  %z = add %c, %b\n  return %y, %z\n}\n"};
  for (const std::string& text : texts) {
    const auto function = parse_function(text);
    ASSERT_TRUE(function) << function.error().to_string();
    std::mt19937_64 random(9);
    Patterns b = random_bytes(random, u8, {1, 4, 8});
    b.type = i32;
    const std::vector<Patterns> tensors = {b, random_bytes(random, u8, {1, 3, 9}),
                                           random_bytes(random, u8, {4, 3, 2})};
    const std::vector<Patterns> expected = interpreted_results(**function, tensors);
    for (const auto& [tier, runtime] : tier_runtimes()) {
      PlacedTensor first(Placed{tensors[0]}), x(Placed{tensors[1]}), w(Placed{tensors[2]});
      PlacedTensor z(i32, {1, 4, 8}, Placing::at_end);
      const std::vector<ConstView> inputs = {first.view(), x.view(), w.view()};
      const std::vector<View> outputs = {first.view(), z.view()};
      const auto bound = runtime.compile(*function)->bind(inputs, outputs);
      ASSERT_TRUE(bound) << bound.error().to_string();
      const Status status = bound->run(inputs, outputs);
      if (status) {
        EXPECT_EQ(first_difference(expected[0], first.take()), "") << name_of(tier) << "\n" << text;
        EXPECT_EQ(first_difference(expected[1], z.take()), "") << name_of(tier) << "\n" << text;
      } else {
        EXPECT_EQ(status.error().code, ErrorCode::invalid_argument);
        EXPECT_EQ(first_difference(b, first.take()), "") << name_of(tier) << "\n" << text;
      }
    }
  }
}

/// Every engine refuses in the words of the verifier what only bound extents show.
TEST(ConvIntegerBound, RefusalsOfBoundExtents) {
  const std::vector<ConvolutionRow> rows = {
      {{1, 5, 5}, {3, 2, 3}, "", ""},
      {{1, 6, 5}, {4, 2, 3}, "group = 4", ""},
      {{1, 6, 5}, {4, 2, 3}, "group = 3", ""},
      {{1, 2, 5, 6}, {3, 2, 2, 3}, "kernel_shape = [2, 2]", ""},
      {{1, 1, 2}, {1, 1, 4}, "", ""},
      {{1, 1, 9, 4}, {1, 1, 3, 4}, "dilations = [1, 2]", ""},
      {{1, 1, 5}, {1, 1, 0}, "", ""},
      {{1, 1, 5}, {1, 1, 3}, fmt::format("pads = [{}, 0]", INT64_MAX), ""},
      {{1, 1, 5}, {1, 1, 3}, fmt::format("dilations = [{}]", huge_extent), ""},
      {{1, 2, 5}, {3, 2, 3}, "", "", Dims{2}},
      {{1, 2, 5}, {3, 2, 3}, "", "", {}, Dims{2}},
  };
  RuntimeOptions options;
  options.interpret = true;
  const Runtime interpreting = *Runtime::create(options);
  for (const ConvolutionRow& row : rows) {
    std::vector<Dims> extents = {row.x, row.w};
    if (row.x_zero_point) extents.push_back(*row.x_zero_point);
    if (row.w_zero_point) extents.push_back(*row.w_zero_point);
    const std::string expected = inferred(text_of(row, false));
    ASSERT_TRUE(expected.starts_with("conv_integer: ")) << expected;
    std::string open = text_of(row, true);
    const auto parsed = parse_function(open);
    ASSERT_TRUE(parsed) << parsed.error().to_string();
    const auto check = [&](const Runtime& runtime) {
      const auto kernel = runtime.compile(*parsed);
      ASSERT_TRUE(kernel) << kernel.error().to_string();
      const auto bound = kernel->bind(extents);
      ASSERT_FALSE(bound) << open;
      EXPECT_EQ(bound.error().code, ErrorCode::invalid_argument);
      EXPECT_EQ(bound.error().message, expected);
    };
    check(interpreting);
    for (const auto& [tier, runtime] : tier_runtimes()) check(runtime);
  }
}

/// Taps far apart, and positions close to 2^63.
TEST(ConvIntegerBound, HugeDilationsStridesAndPads) {
  struct Row {
    Dims x, w;
    ConvolutionOptions options;
  };
  constexpr int64_t huge = int64_t{1} << 61;
  const Row rows[] = {
      {{1, 1, 2}, {1, 1, 2}, {.dilations = {huge}, .pads = {huge, 0}}},
      {{1, 1, 2}, {1, 1, 2}, {.dilations = {huge}, .pads = {huge, 0}, .strides = {huge}}},
      {{1, 4, 3}, {2, 4, 1}, {.pads = {huge, huge}, .strides = {huge}}},
      {{1, 1, 2}, {1, 1, 2}, {.dilations = {1 << 20}, .pads = {1 << 20, 0}}},
      {{1, 1, 2}, {1, 1, 2}, {.dilations = {int64_t{1} << 30}, .pads = {int64_t{1} << 30, 0}}},
      {{1, 9, 2, 3}, {2, 9, 2, 3}, {.dilations = {4000, 1}, .pads = {4000, 0, 0, 0}}},
      {{1, 1, 2, 2}, {1, 1, 3, 2}, {.dilations = {huge / 2, 1}, .pads = {huge, 1, 0, 0}}},
      {{1, 1, 2, 1, 2},
       {1, 1, 2, 1, 2},
       {.dilations = {huge, 1, 1}, .pads = {huge, 0, 0, 0, 0, 0}}},
      {{1, 1, 3}, {1, 1, 3}, {.strides = {INT64_MAX}}},
      {{1, 93, 2},  // a second pixel would be beyond all addresses (found by libFuzzer)
       {6, 1, 3},
       {.group = 2,
        .layout = ConvolutionLayout::nhwc,
        .dilations = {1125899906842623},
        .pads = {9223372036854774692, 0},
        .strides = {9221120237041089536}}},
      {{1, 64, 9000}, {2, 64, 3}, {.dilations = {4000}}},
      {{1, 256, 33, 33}, {2, 256, 3, 3}, {.dilations = {12, 12}, .pads = {12, 12, 12, 12}}},
  };
  for (const Row& row : rows) {
    std::mt19937_64 random(1);
    const ConvolutionCase made{.options = row.options,
                               .x = random_bytes(random, u8, row.x),
                               .w = random_bytes(random, i8, row.w),
                               .x_zero_point = Patterns{u8, {}, {3}}};
    const FunctionPtr function = function_of(made);
    ASSERT_TRUE(function);
    std::vector<Placed> operands;
    for (const Patterns& operand : made.operands()) operands.push_back({operand});
    const std::vector<Placed> expected = {{interpreted(*function, made.operands())}};
    EXPECT_EQ(mistake_on_tiers(function, operands, expected), "") << print(*function);
  }
}

}  // namespace
}  // namespace castor::test
