// SPDX-License-Identifier: Apache-2.0
// conv_integer by machine code on every tier, against loops straight from the formula: every way
// to pad and to stride, signs, zero points, sums that wrap around, offsets in memory.
#include <algorithm>

#include "ir/text/text.hpp"
#include "tests/support/convolution_loops.hpp"
#include "tests/support/on_every_engine.hpp"
#include "tests/support/placed_tensors.hpp"

namespace castor::test {
namespace {

using enum ElementType;

constexpr std::array byte_types = {u8, i8};

Patterns filled(ElementType type, const Dims& shape, uint64_t bits) {
  const auto count = static_cast<size_t>(element_count(shape).value());
  return {type, shape, std::vector<uint64_t>(count, bits)};
}

/// Runs a convolution whose parameters are stored as `placings` says, one after the other, y last.
std::string mistake_of(const ConvolutionCase& row, const ConvolutionForm& form = {},
                       const std::vector<Placing>& placings = {}) {
  const FunctionPtr function = function_of(row, form);
  if (!function) return "no function";
  std::vector<Placed> operands;
  const auto placing = [&](size_t i) {
    return placings.empty() ? Placing::at_end : placings[i % placings.size()];
  };
  for (const Patterns& tensor : parameters_of(row, form)) {
    operands.push_back({tensor, placing(operands.size())});
  }
  const std::vector<Placed> expected = {
      {ConvolutionLoops(row).all(), placings.empty() ? Placing::at_end : placings.back()}};
  const std::string mistake = mistake_on_tiers(function, operands, expected);
  return mistake.empty() ? "" : mistake + "\n" + print(*function);
}

class ConvKernels : public testing::Test {
 protected:
  int64_t draw(int64_t min, int64_t max) {
    return min + static_cast<int64_t>(random_() % static_cast<uint64_t>(max - min + 1));
  }
  bool percent(int64_t chance) { return draw(1, 100) <= chance; }
  Placing draw_placing() { return static_cast<Placing>(draw(0, placings - 1)); }
  ConvolutionForm draw_form() {
    return {.unknown_extents = percent(50),
            .constant_weights = percent(50),
            .constant_zero_points = percent(50)};
  }
  std::vector<Placing> draw_placings() {
    std::vector<Placing> drawn;
    for (int i = 0; i < 5; ++i) drawn.push_back(draw_placing());
    return drawn;
  }

  /// Full-range data for these extents, with all zero points.
  ConvolutionCase drawn(const Dims& x, const Dims& w, ConvolutionOptions options = {}) {
    const ElementType x_type = byte_types[static_cast<size_t>(draw(0, 1))];
    const ElementType w_type = byte_types[static_cast<size_t>(draw(0, 1))];
    return {.options = std::move(options),
            .x = random_bytes(random_, x_type, x),
            .w = random_bytes(random_, w_type, w),
            .x_zero_point = random_bytes(random_, x_type, {}),
            .w_zero_point = random_bytes(random_, w_type, {w[0]})};
  }

  std::mt19937_64 random_{20};
};

/// The two oracles share nothing but the cases.
TEST_F(ConvKernels, LoopsAgreeWithTheOtherOracle) {
  for (int i = 0; i < 300; ++i) {
    const ConvolutionCase row = random_convolution(random_, {.max_spatial_axes = 5});
    if (std::ranges::count(row.w.shape, 0) > 0) continue;
    ASSERT_EQ(first_difference(direct_convolution(row), ConvolutionLoops(row).all()), "") << i;
  }
}

/// Every stride, dilation and padding of both axes' kinds; paddings larger than the kernel, and
/// unequal ones.
TEST_F(ConvKernels, StridesDilationsAndPads) {
  struct Pads {
    int64_t begin, end;
  };
  constexpr std::array pads = {Pads{0, 0}, Pads{1, 1}, Pads{2, 0}, Pads{0, 3}, Pads{9, 4}};
  for (int64_t stride = 1; stride <= 4; ++stride) {
    for (int64_t dilation = 1; dilation <= 3; ++dilation) {
      for (const Pads& pad : pads) {
        for (int64_t kernel : {1, 2, 3, 5}) {
          const Pads& other = pads[static_cast<size_t>(draw(0, 4))];
          const int64_t window = (kernel - 1) * dilation + 1;
          const int64_t channels = draw(1, 9);
          const ConvolutionCase row =
              drawn({1, channels, window + draw(0, 7), window + draw(0, 30)},
                    {draw(1, 5), channels, kernel, kernel},
                    {.dilations = {dilation, draw(1, dilation)},
                     .pads = {other.begin, pad.begin, other.end, pad.end},
                     .strides = {draw(1, 4), stride}});
          ASSERT_EQ(mistake_of(row, draw_form()), "");
        }
      }
    }
  }
}

/// Channels that fill k groups partly, and output channels that fill tiles partly.
TEST_F(ConvKernels, ChannelsAndOutputChannels) {
  for (int64_t channels = 1; channels <= 9; ++channels) {
    for (int64_t outputs : {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 16, 17, 23, 31}) {
      const ConvolutionLayout layout =
          percent(50) ? ConvolutionLayout::nchw : ConvolutionLayout::nhwc;
      const Dims x =
          layout == ConvolutionLayout::nchw ? Dims{2, channels, 5, 9} : Dims{2, 5, 9, channels};
      ASSERT_EQ(
          mistake_of(drawn(x, {outputs, channels, 3, 2}, {.layout = layout, .pads = {1, 0, 1, 1}}),
                     draw_form()),
          "");
    }
  }
}

/// Rows of every length, so that vectors end anywhere in a line.
TEST_F(ConvKernels, RowsOfAnyLength) {
  for (int64_t columns = 1; columns <= 70; ++columns) {
    const int64_t pad = draw(0, 2);
    const Dims x = {1, draw(1, 5), draw(1, 6), columns};
    ASSERT_EQ(mistake_of(drawn(x, {draw(1, 9), x[1], 1, std::min<int64_t>(3, columns)},
                               {.pads = {0, pad, 0, draw(0, 2)}}),
                         draw_form()),
              "");
    ASSERT_EQ(mistake_of(drawn({1, 4, 3 * columns}, {2, 4, 3}, {.strides = {draw(1, 4)}})), "");
  }
}

/// All types, with zero points of every kind, known when the kernel is made or not.
TEST_F(ConvKernels, SignsAndZeroPoints) {
  enum Zero { none, scalar, one, per_channel };
  for (ElementType x_type : byte_types) {
    for (ElementType w_type : byte_types) {
      for (Zero x_zero : {none, scalar, one}) {
        for (Zero w_zero : {none, scalar, one, per_channel}) {
          for (int forms = 0; forms < 8; ++forms) {
            ConvolutionCase row =
                drawn({2, 6, 5, 7}, {6, 3, 3, 3}, {.group = 2, .pads = {1, 1, 1, 1}});
            row.x.type = x_type;
            row.w.type = w_type;
            const auto shape = [](Zero zero) {
              return zero == scalar ? Dims{} : zero == one ? Dims{1} : Dims{6};
            };
            row.x_zero_point.reset();
            row.w_zero_point.reset();
            if (x_zero != none) row.x_zero_point = random_bytes(random_, x_type, shape(x_zero));
            if (w_zero != none) row.w_zero_point = random_bytes(random_, w_type, shape(w_zero));
            const ConvolutionForm form = {.unknown_extents = (forms & 4) != 0,
                                          .constant_weights = (forms & 2) != 0,
                                          .constant_zero_points = (forms & 1) != 0};
            ASSERT_EQ(mistake_of(row, form), "");
          }
        }
      }
    }
  }
}

/// The extreme bytes everywhere, over enough products that sums wrap around.
TEST_F(ConvKernels, ExtremesAndWrapAround) {
  struct Extremes {
    ElementType x_type, w_type;
    uint64_t x, w, x_zero, w_zero;
  };
  const Extremes rows[] = {
      {u8, i8, 255, 0x80, 0, 0},        {u8, i8, 255, 0x80, 0, 0x7f},
      {u8, i8, 0, 0x7f, 255, 0x80},     {u8, u8, 255, 255, 0, 0},
      {u8, u8, 0, 255, 255, 0},         {u8, u8, 0, 0, 255, 255},
      {i8, i8, 0x80, 0x80, 0, 0},       {i8, i8, 0x80, 0x7f, 0x7f, 0x80},
      {i8, i8, 0x7f, 0x80, 0x80, 0x7f}, {i8, u8, 0x80, 255, 0x7f, 0},
      {i8, u8, 0x7f, 0, 0x80, 255},
  };
  for (const Extremes& row : rows) {
    for (const auto& [x, w] : {std::pair<Dims, Dims>{{1, 40'000, 17}, {2, 40'000, 1}},
                               {{1, 1200, 7, 7}, {3, 1200, 6, 6}},
                               {{1, 5000, 3, 3}, {2, 5000, 3, 3}}}) {
      ConvolutionCase one{.options = {},
                          .x = filled(row.x_type, x, row.x),
                          .w = filled(row.w_type, w, row.w),
                          .x_zero_point = filled(row.x_type, {}, row.x_zero),
                          .w_zero_point = filled(row.w_type, {w[0]}, row.w_zero)};
      if (w.rank() == 4) one.options.pads = {1, 0, 0, 2};
      ASSERT_EQ(mistake_of(one, {.constant_weights = w[0] == 2}), "");
    }
  }
}

/// Everything drawn at once: geometries of one to five axes, groups, layouts, forms and offsets.
TEST_F(ConvKernels, RandomGeometriesAnywhere) {
  std::array<int, 8> ranks{};
  for (int i = 0; i < 1500; ++i) {
    const ConvolutionCase row = random_convolution(random_, {.max_spatial_axes = 5});
    if (std::ranges::count(row.w.shape, 0) > 0) continue;
    ++ranks[static_cast<size_t>(row.x.shape.rank())];
    ASSERT_EQ(mistake_of(row, draw_form(), draw_placings()), "") << i;
  }
  for (int rank = 3; rank <= 7; ++rank) EXPECT_GT(ranks[static_cast<size_t>(rank)], 40);
}

TEST_F(ConvKernels, SixSpatialAxes) {
  for (int i = 0; i < 60; ++i) {
    const ConvolutionCase row =
        random_convolution(random_, {.max_spatial_axes = 6, .max_products = 400'000});
    if (row.x.shape.rank() < 8 || std::ranges::count(row.w.shape, 0) > 0) continue;
    ASSERT_EQ(mistake_of(row, draw_form(), draw_placings()), "") << i;
  }
}

/// x, w and y each at each offset, in either layout.
TEST_F(ConvKernels, PlacesInMemory) {
  for (int x = 0; x < placings; ++x) {
    for (int w = 0; w < placings; ++w) {
      for (int y = 0; y < placings; ++y) {
        const bool last = percent(50);
        const ConvolutionOptions options = {
            .layout = last ? ConvolutionLayout::nhwc : ConvolutionLayout::nchw,
            .pads = {1, 0, 1, 2},
            .strides = {1, 2}};
        const ConvolutionCase row =
            drawn(last ? Dims{2, 6, 11, 5} : Dims{2, 5, 6, 11}, {7, 5, 3, 3}, options);
        ASSERT_EQ(mistake_of(row, {.unknown_extents = percent(50)},
                             {static_cast<Placing>(x), static_cast<Placing>(w), draw_placing(),
                              draw_placing(), static_cast<Placing>(y)}),
                  "");
      }
    }
  }
}

/// As many groups as channels, each with several output channels.
TEST_F(ConvKernels, GroupsAndDepthwise) {
  for (int64_t groups : {2, 3, 8, 32, 40}) {
    for (int64_t channels : {1, 2, 4, 5}) {
      for (int64_t outputs : {1, 2, 3, 9}) {
        const bool last = percent(50);
        const int64_t all = groups * channels;
        ConvolutionOptions options = {.group = groups, .pads = {1, 1, 1, 1}, .strides = {2, 1}};
        if (last) options.layout = ConvolutionLayout::nhwc;
        ASSERT_EQ(mistake_of(drawn(last ? Dims{1, 7, 8, all} : Dims{1, all, 7, 8},
                                   {groups * outputs, channels, 3, 3}, options),
                             draw_form()),
                  "");
      }
    }
  }
}

/// One bound kernel serves other data after the first: nothing of a call stays in its scratch.
TEST_F(ConvKernels, CallsLeaveNothingBehind) {
  const ConvolutionForm form = {.unknown_extents = true};
  ConvolutionCase row = drawn({2, 5, 9, 9}, {6, 5, 3, 3}, {.pads = {1, 1, 1, 1}});
  for (const auto& [tier, runtime] : tier_runtimes()) {
    const auto kernel = runtime.compile(function_of(row, form));
    ASSERT_TRUE(kernel) << kernel.error().to_string();
    std::vector<Dims> shapes;
    for (const Patterns& operand : parameters_of(row, form)) shapes.push_back(operand.shape);
    const auto bound = kernel->bind(shapes);
    ASSERT_TRUE(bound) << bound.error().to_string();
    for (int call = 0; call < 4; ++call) {
      row.x = random_bytes(random_, row.x.type, row.x.shape);
      row.w = random_bytes(random_, row.w.type, row.w.shape);
      row.x_zero_point = random_bytes(random_, row.x.type, {});
      row.w_zero_point = random_bytes(random_, row.w.type, {6});
      std::vector<PlacedTensor> sources;
      std::vector<ConstView> inputs;
      for (const Patterns& operand : parameters_of(row, form)) {
        inputs.emplace_back(sources.emplace_back(Placed{operand}).view());
      }
      PlacedTensor y(i32, bound->output_shapes()[0], Placing::at_end);
      const std::vector<View> outputs = {y.view()};
      ASSERT_TRUE(bound->run(inputs, outputs));
      ASSERT_EQ(first_difference(ConvolutionLoops(row).all(), y.take()), "") << name_of(tier);
    }
  }
}

}  // namespace
}  // namespace castor::test
