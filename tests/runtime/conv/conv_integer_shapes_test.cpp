// SPDX-License-Identifier: Apache-2.0
// Shapes of convolutions: all of ONNX's formulas, zero sizes, unknown extents.
#include <cmath>

#include "ir/shape/convolution.hpp"
#include "tests/support/convolution_rows.hpp"

namespace castor::test {
namespace {

TEST(ConvIntegerShapes, RanksLayoutsAndZeroSizes) {
  expect_rows({
      {{1, 1, 3, 3}, {1, 1, 2, 2}, "", "[1, 1, 2, 2]"},
      {{1, 1, 3, 3}, {1, 1, 2, 2}, "pads = [1, 1, 1, 1]", "[1, 1, 4, 4]"},
      {{2, 3, 10}, {4, 3, 3}, "", "[2, 4, 8]"},
      {{2, 10, 3}, {4, 3, 3}, "layout = nhwc", "[2, 8, 4]"},
      {{2, 8, 9, 3}, {4, 3, 3, 2}, "layout = nhwc", "[2, 6, 8, 4]"},
      {{2, 8, 9, 3}, {4, 8, 3, 2}, "layout = nchw", "[2, 4, 7, 2]"},
      {{1, 2, 3, 4, 5, 6, 7, 8}, {9, 2, 1, 2, 3, 1, 2, 3}, "", "[1, 9, 3, 3, 3, 6, 6, 6]"},
      {{1, 6, 5}, {6, 1, 3}, "group = 6", "[1, 6, 3]"},
      {{1, 6, 5}, {12, 1, 3}, "group = 6", "[1, 12, 3]"},
      {{1, 6, 5}, {4, 3, 3}, "group = 2", "[1, 4, 3]"},
      {{0, 6, 5}, {4, 6, 3}, "", "[0, 4, 3]"},
      {{2, 6, 5}, {0, 6, 3}, "", "[2, 0, 3]"},
      {{2, 0, 5}, {4, 0, 3}, "", "[2, 4, 3]"},
      {{2, 0, 5}, {4, 0, 3}, "group = 2", "[2, 4, 3]"},
      {{2, 6, 0}, {4, 6, 3}, "pads = [1, 2]", "[2, 4, 1]"},
      {{2, 6, 0}, {4, 6, 3}, "auto_pad = same_upper", "[2, 4, 0]"},
      {{1, 1, 5, 5}, {1, 1, 3, 3}, "pads = [0, 1, 2, 0]", "[1, 1, 5, 4]"},
      {{1, 1, 7}, {1, 1, 3}, "strides = [2], dilations = [3]", "[1, 1, 1]"},
      {{1, 1, 7}, {1, 1, 3}, "kernel_shape = [3]", "[1, 1, 5]"},
      {{1, 1, 7}, {1, 1, 3}, "auto_pad = notset, pads = [1, 1]", "[1, 1, 7]"},
      // A kernel that exceeds the padded input by up to a stride leaves nothing.
      {{1, 1, 2}, {1, 1, 3}, "", "[1, 1, 0]"},
      {{1, 1, 0}, {1, 1, 1}, "", "[1, 1, 0]"},
      {{2, 1, 4, 5}, {3, 1, 8, 2}, "strides = [4, 1]", "[2, 3, 0, 4]"},
      {{1, 5, 2},
       {3, 2, 3},
       "layout = nhwc, auto_pad = valid, dilations = [3], strides = [2]",
       "[1, 0, 3]"},
      {{1, 3, 2},
       {3, 2, 3},
       "layout = nhwc, pads = [1, 0], dilations = [2], strides = [2]",
       "[1, 0, 3]"},
      {{1, 1, 1}, {1, 1, 9}, "strides = [9223372036854775807]", "[1, 1, 0]"},
      {{1, 1, 0},
       {1, 1, 2},
       "dilations = [9223372036854775806], strides = [9223372036854775807]",
       "[1, 1, 0]"},
      {{1, 1, huge_extent}, {1, 1, 1}, "strides = [9223372036854775807]", "[1, 1, 1]"},
  });
}

TEST(ConvIntegerShapes, ZeroPoints) {
  const Dims x = {1, 2, 5};
  const Dims w = {3, 2, 3};
  expect_rows({
      {x, w, "", "[1, 3, 3]", Dims{}, {}},
      {x, w, "", "[1, 3, 3]", Dims{1}, {}},
      {x, w, "", "[1, 3, 3]", {}, Dims{}},
      {x, w, "", "[1, 3, 3]", {}, Dims{1}},
      {x, w, "", "[1, 3, 3]", Dims{}, Dims{3}},
      {x, {0, 2, 3}, "", "[1, 0, 3]", Dims{}, Dims{0}},
      {x, {0, 2, 3}, "", "[1, 0, 3]", Dims{}, Dims{1}},
      {x, w, "", "x_zero_point has 3 entries, expected 1", Dims{3}, Dims{3}},
      {x, w, "", "x_zero_point has 0 entries, expected 1", Dims{0}, {}},
      {x, w, "", "x_zero_point has rank 2, expected 0 or 1", Dims{1, 1}, {}},
      {x, w, "", "w_zero_point has 2 entries, expected 1, or 3 as w's axis 0", {}, Dims{2}},
      {x, w, "", "w_zero_point has 0 entries, expected 1, or 3 as w's axis 0", {}, Dims{0}},
      {x, w, "", "w_zero_point has rank 2, expected 0 or 1", {}, Dims{3, 1}},
  });
}

/// One spatial axis, or nothing where the numbers do not fit.
std::optional<ConvolutionAxis> axis_of(const ConvolutionOptions& options, int64_t input,
                                       int64_t kernel) {
  const Operation operation{.op = OpKind::conv_integer, .attributes = attributes_of(options)};
  const auto found =
      convolution_geometry(operation, {1, 1, input}, {1, 1, kernel}, nullptr, nullptr);
  return found ? std::optional(found->axes[0]) : std::nullopt;
}

/// Calls visit(options, input, kernel, window) for small numbers of every kind, without padding.
template <class Visit>
void for_each_small_axis(Visit visit) {
  for (int64_t input = 0; input <= 12; ++input) {
    for (int64_t kernel = 1; kernel <= 5; ++kernel) {
      for (int64_t stride = 1; stride <= 5; ++stride) {
        for (int64_t dilation = 1; dilation <= 3; ++dilation) {
          const ConvolutionOptions options{.dilations = {dilation}, .strides = {stride}};
          visit(options, input, kernel, kernel + (kernel - 1) * (dilation - 1));
        }
      }
    }
  }
}

TEST(ConvIntegerShapes, GivenPaddingFollowsTheFormula) {
  int fitting = 0;
  for_each_small_axis(
      [&](ConvolutionOptions options, int64_t input, int64_t kernel, int64_t window) {
        const auto expect_output = [&](int64_t begin, int64_t end) {
          const auto axis = axis_of(options, input, kernel);
          const int64_t padded = begin + input + end;
          const double places = std::floor(static_cast<double>(padded - window) /
                                           static_cast<double>(options.strides[0])) +
                                1;
          ASSERT_EQ(axis.has_value(), places >= 0);
          if (!axis) return;
          EXPECT_EQ(static_cast<double>(axis->output), places);
          EXPECT_EQ(axis->pad_begin, begin);
          EXPECT_EQ(axis->pad_end, end);
          ++fitting;
        };
        expect_output(0, 0);
        for (int64_t begin = 0; begin <= 3; ++begin) {
          options.pads = {begin, 3 - begin};
          expect_output(begin, 3 - begin);
        }
        options.pads = {};
        options.auto_pad = AutoPad::valid;
        expect_output(0, 0);
      });
  EXPECT_GT(fitting, 3000);
}

/// ONNX: r = input mod stride, total = max(0, window - (r == 0 ? stride : r)).
TEST(ConvIntegerShapes, SamePaddingFollowsTheFormula) {
  for_each_small_axis(
      [&](ConvolutionOptions options, int64_t input, int64_t kernel, int64_t window) {
        const int64_t stride = options.strides[0];
        const int64_t rest = input % stride;
        const int64_t total = std::max<int64_t>(0, window - (rest == 0 ? stride : rest));
        for (const AutoPad mode : {AutoPad::same_upper, AutoPad::same_lower}) {
          options.auto_pad = mode;
          const auto axis = axis_of(options, input, kernel);
          ASSERT_TRUE(axis);
          EXPECT_EQ(axis->output, (input + stride - 1) / stride);
          EXPECT_EQ(axis->pad_begin + axis->pad_end, total);
          const int64_t more_at_end = axis->pad_end - axis->pad_begin;
          EXPECT_EQ(more_at_end, mode == AutoPad::same_upper ? total % 2 : -(total % 2));
        }
      });
}

TEST(ConvIntegerShapes, UnknownExtentsOfTypes) {
  const Inference rows[] = {
      {{"u8[?, 3, ?, ?]", "i8[4, 3, 3, 3]"}, "", "[?, 4, ?, ?]"},
      {{"u8[?n, 3, ?h, 7]", "i8[4, 3, 3, 3]"}, "", "[?n, 4, ?, 5]"},
      {{"u8[?n, ?, ?h, ?w]", "i8[?m, ?, 3, 5]"}, "pads = [1, 2, 1, 2]", "[?n, ?m, ?h, ?w]"},
      {{"u8[?n, ?h, ?w, ?c]", "i8[4, ?c, 1, 1]"}, "layout = nhwc", "[?n, ?h, ?w, 4]"},
      {{"u8[?n, 8, ?l]", "i8[4, 8, ?]"}, "auto_pad = same_lower", "[?n, 4, ?l]"},
      {{"u8[?n, 8, 9]", "i8[4, 8, ?]"}, "auto_pad = same_lower, strides = [2]", "[?n, 4, 5]"},
      {{"u8[?n, 8, ?l]", "i8[4, 8, 3]"}, "auto_pad = same_lower, strides = [2]", "[?n, 4, ?]"},
      {{"u8[?n, 8, 9]", "i8[4, 8, ?]"}, "kernel_shape = [3]", "[?n, 4, 7]"},
      {{"u8[?n, 8, 9]", "i8[4, 8, ?k]"}, "", "[?n, 4, ?]"},
      {{"u8[?n, 8, ?l]", "i8[4, 8, 3]"}, "pads = [1, 1], strides = [2]", "[?n, 4, ?]"},
      {{"u8[?n, 8, ?l]", "i8[4, 8, 3]"}, "pads = [1, 2]", "[?n, 4, ?]"},
      // What is known is checked.
      {{"u8[?, 6, ?]", "i8[?, ?, ?]"},
       "group = 4",
       "conv_integer: group = 4, expected a divisor of x's channels, which are 6"},
      {{"u8[?, ?, ?]", "i8[6, 2, ?]"},
       "group = 4",
       "conv_integer: group = 4, expected a divisor of w's axis 0, which is 6"},
      {{"u8[?, ?, ?]", "i8[6, 2, 3]"},
       "kernel_shape = [2]",
       "conv_integer: kernel_shape[0] = 2, expected 3 as w's axis 2"},
      {{"u8[?, ?, ?]", "i8[?, ?, ?]"},
       "kernel_shape = [3], dilations = [9223372036854775807]",
       "conv_integer: dilations[0] = 9223372036854775807 makes a kernel of 3 exceed 2^63 - 1, "
       "expected less"},
  };
  for (const Inference& row : rows) {
    const std::string operation = "%y = conv_integer %x0, %x1" + in_braces(row.operation);
    EXPECT_EQ(inferred(function_text(row.types, operation)), row.result) << operation;
  }
}

TEST(ConvIntegerShapes, DeclaredAndLaterExtentsAreChecked) {
  const auto function = parse_function(
      "func @f(%x: u8[?n, 3, ?h, ?w], %w: i8[4, 3, 3, 3]) -> (i32[?n, 4, ?h, 5]) {\n"
      "  %y = conv_integer %x, %w {pads = [1, 0, 1, 0]}\n  return %y }");
  ASSERT_TRUE(function) << function.error().to_string();
  const auto message = [&](const Dims& x) {
    const auto shapes = bind_shapes(**function, std::vector<Dims>{x, {4, 3, 3, 3}});
    return shapes ? "" : shapes.error().to_string();
  };
  EXPECT_EQ(message({2, 3, 8, 7}), "");
  EXPECT_EQ(message({2, 3, 8, 8}),
            "result 0 (%y), axis 3: found 6, expected 5 as in i32[?n, 4, ?h, 5]");
  EXPECT_EQ(message({2, 3, 8, 1}),
            "line 2, column 3: conv_integer: spatial axis 1: the kernel takes 3 positions, with "
            "dilations[1] = 1, expected at most 1, the input of 1 padded by 0 and 0, plus "
            "strides[1] = 1");
}

}  // namespace
}  // namespace castor::test
