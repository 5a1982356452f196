// SPDX-License-Identifier: Apache-2.0
// Every message about a convolution that is not one.
#include "tests/support/convolution_rows.hpp"

namespace castor::test {
namespace {

TEST(ConvIntegerErrors, RanksAndChannels) {
  const std::string lowest = "x has rank 2, expected 3 or more: batch, channels and spatial axes";
  expect_rows({
      {{1, 2}, {3, 2}, "", lowest},
      {{1, 2}, {3, 2, 1}, "layout = nhwc", lowest},
      {{1, 1, 1, 1, 1, 1, 1, 1, 1},
       {1, 1, 1, 1, 1, 1, 1, 1, 1},
       "",
       "x has 7 spatial axes, expected 6 at most"},
      {{1, 2, 5, 5}, {3, 2, 3}, "", "w has rank 3, expected 4: as many spatial axes as x has"},
      {{1, 2, 5}, {3, 2, 3, 3}, "", "w has rank 4, expected 3: as many spatial axes as x has"},
      {{1, 2, 5}, {}, "", "w has rank 0, expected 3: as many spatial axes as x has"},
      {{1, 5, 5}, {3, 2, 3}, "", "x has 5 channels, expected 2 (w's axis 1) times 1 (group)"},
      {{1, 5, 4},
       {3, 5, 3},
       "layout = nhwc",
       "x has 4 channels, expected 5 (w's axis 1) times 1 (group)"},
      {{1, 6, 5},
       {4, 6, 3},
       "group = 2",
       "x has 6 channels, expected 6 (w's axis 1) times 2 (group)"},
      {{1, 6, 5}, {4, 0, 3}, "", "x has 6 channels, expected 0 (w's axis 1) times 1 (group)"},
      {{1, 6, 5},
       {4, 2, 3},
       "group = 4",
       "group = 4, expected a divisor of x's channels, which are 6"},
      {{1, 6, 5},
       {4, 2, 3},
       "group = 3",
       "group = 3, expected a divisor of w's axis 0, which is 4"},
      {{1, 6, 5}, {4, 2, 3}, "group = 0", "group = 0, expected 1 or more"},
      {{1, 6, 5}, {4, 2, 3}, "group = -2", "group = -2, expected 1 or more"},
      {{1, 6, 0},
       {4, huge_extent, 0},
       "group = 2",
       fmt::format("x has 6 channels, expected {} (w's axis 1) times 2 (group)", huge_extent)},
  });
}

TEST(ConvIntegerErrors, Lists) {
  const Dims x = {1, 2, 5, 6};
  const Dims w = {3, 2, 2, 3};
  std::vector<ConvolutionRow> rows;
  for (const std::string name : {"dilations", "kernel_shape", "strides"}) {
    rows.push_back(
        {x, w, name + " = [1]", name + " has 1 entries, expected 2: one for each spatial axis"});
    rows.push_back(
        {x, w, name + " = []", name + " has 0 entries, expected 2: one for each spatial axis"});
    rows.push_back({x, w, name + " = [1, 1, 1]",
                    name + " has 3 entries, expected 2: one for each spatial axis"});
    rows.push_back({x, w, name + " = [1, 0]", name + "[1] = 0, expected 1 or more"});
    rows.push_back({x, w, name + " = [-3, 1]", name + "[0] = -3, expected 1 or more"});
    rows.push_back(
        {x, w, name + " = [1, 2.0]", name + "[1] = 2.0 is a float, expected an integer"});
  }
  rows.push_back(
      {x, w, "pads = [1, 1]", "pads has 2 entries, expected 4: two for each spatial axis"});
  rows.push_back({x, w, "pads = [0, 0, 0, -1]", "pads[3] = -1, expected 0 or more"});
  rows.push_back({x, w, "pads = [0, [1], 0, 1]", "pads[1] = [1] is a list, expected an integer"});
  rows.push_back({x, w, "kernel_shape = [2, 2]", "kernel_shape[1] = 2, expected 3 as w's axis 3"});
  rows.push_back({x, w, "kernel_shape = [3, 3]", "kernel_shape[0] = 3, expected 2 as w's axis 2"});
  for (const std::string mode : {"same_upper", "same_lower", "valid"}) {
    for (const std::string pads : {"[0, 0, 0, 0]", "[1, 1, 1, 1]"}) {
      rows.push_back(
          {x, w, "auto_pad = " + mode + ", pads = " + pads,
           "found pads with auto_pad = " + mode + ", expected it with auto_pad = notset only"});
    }
  }
  expect_rows(rows);
}

TEST(ConvIntegerErrors, KindsAndChoices) {
  const Dims x = {1, 2, 5};
  const Dims w = {3, 2, 3};
  expect_rows({
      {x, w, "auto_pad = SAME_UPPER",
       "auto_pad = SAME_UPPER, expected notset, same_upper, same_lower, valid"},
      {x, w, "auto_pad = \"valid\"", "auto_pad = \"valid\" is a string, expected an identifier"},
      {x, w, "layout = nwc", "layout = nwc, expected nchw, nhwc"},
      {x, w, "layout = 1", "layout = 1 is an integer, expected an identifier"},
      {x, w, "group = 1.0", "group = 1.0 is a float, expected an integer"},
      {x, w, "strides = 1", "strides = 1 is an integer, expected a list of integers"},
      {x, w, "pads = valid", "pads = valid is an identifier, expected a list of integers"},
  });
}

TEST(ConvIntegerErrors, WindowsAndSums) {
  const int64_t max = INT64_MAX;
  const auto too_small = [](int axis, int window, int dilation, int padded, int input, int begin,
                            int end, int stride = 1) {
    return fmt::format(
        "spatial axis {}: the kernel takes {} positions, with dilations[{}] = {}, expected at most "
        "{}, the input of {} padded by {} and {}, plus strides[{}] = {}",
        axis, window, axis, dilation, padded, input, begin, end, axis, stride);
  };
  expect_rows({
      {{1, 1, 1}, {1, 1, 3}, "", too_small(0, 3, 1, 1, 1, 0, 0)},
      {{1, 1, 9, 4}, {1, 1, 3, 4}, "dilations = [1, 2]", too_small(1, 7, 2, 4, 4, 0, 0)},
      {{1, 1, 9, 4}, {1, 1, 3, 9}, "pads = [0, 1, 0, 2]", too_small(1, 9, 1, 7, 4, 1, 2)},
      {{1, 1, 4}, {1, 1, 8}, "strides = [3]", too_small(0, 8, 1, 4, 4, 0, 0, 3)},
      {{1, 1, 2}, {1, 1, 4}, "auto_pad = valid", too_small(0, 4, 1, 2, 2, 0, 0)},
      {{1, 1, 0}, {1, 1, 2}, "", too_small(0, 2, 1, 0, 0, 0, 0)},
      {{0, 1, 2}, {1, 1, 4}, "", too_small(0, 4, 1, 2, 2, 0, 0)},
      {{1, 1, 5}, {1, 1, 0}, "", "w's axis 2 is 0, expected a kernel of 1 or more"},
      {{1, 1, 5, 5}, {0, 1, 1, 0}, "", "w's axis 3 is 0, expected a kernel of 1 or more"},
      {{1, 1, 5, 5},
       {0, 1, 1, 0},
       "kernel_shape = [1, 1]",
       "w's axis 3 is 0, expected a kernel of 1 or more"},
      {{1, 1, 5},
       {1, 1, 3},
       fmt::format("pads = [{}, 0]", max),
       fmt::format("spatial axis 0: an input of 5 padded by {} and 0 exceeds 2^63 - 1", max)},
      {{1, 1, 5},
       {1, 1, 3},
       fmt::format("pads = [{}, {}]", huge_extent, huge_extent),
       fmt::format("spatial axis 0: an input of 5 padded by {} and {} exceeds 2^63 - 1",
                   huge_extent, huge_extent)},
      {{1, 1, 5},
       {1, 1, 3},
       fmt::format("dilations = [{}]", huge_extent),
       fmt::format("dilations[0] = {} makes a kernel of 3 exceed 2^63 - 1, expected less",
                   huge_extent)},
      {{1, 1, 5},
       {1, 1, 2},
       fmt::format("auto_pad = same_upper, dilations = [{}]", max - 1),
       fmt::format("spatial axis 0: an input of 5 padded by {} and {} exceeds 2^63 - 1",
                   (max - 1) / 2, (max - 1) / 2)},
      {{1, 1, 5},
       {1, 1, 2},
       fmt::format("dilations = [{}]", max),
       fmt::format("dilations[0] = {} makes a kernel of 2 exceed 2^63 - 1, expected less", max)},
  });
}

TEST(ConvIntegerErrors, TypesAndCounts) {
  const Inference rows[] = {
      {{"f32[1, 1, 3]", "u8[1, 1, 1]"}, "%x0, %x1", "x is f32, expected i8 or u8"},
      {{"u8[1, 1, 3]", "i16[1, 1, 1]"}, "%x0, %x1", "w is i16, expected i8 or u8"},
      {{"u4[1, 1, 3]", "i8[1, 1, 1]"}, "%x0, %x1", "x is u4, expected i8 or u8"},
      {{"u8[1, 1, 3]", "i8[1, 1, 1]", "i8[]"},
       "%x0, %x1, %x2",
       "x_zero_point is i8, expected u8 as x is"},
      {{"u8[1, 1, 3]", "i8[1, 1, 1]", "u8[]"},
       "%x0, %x1, none, %x2",
       "w_zero_point is u8, expected i8 as w is"},
      {{"i8[1, 1, 3]", "i8[1, 1, 1]", "i32[]"},
       "%x0, %x1, none, %x2",
       "w_zero_point is i32, expected i8 as w is"},
      {{"u8[1, 1, 3]"}, "%x0", "found 1 operands, expected 2 to 4"},
      {{"u8[1, 1, 3]"}, "%x0, %x0, none, none, none", "found 5 operands, expected 2 to 4"},
      {{"u8[1, 1, 3]"}, "none, %x0", "operand 0 is none, but it is not optional"},
      {{"u8[1, 1, 3]"}, "%x0, none", "operand 1 is none, but it is not optional"},
      {{"u8[1, 1, 3]", "u8[1, 1, 1]"},
       "%x0, %x1 : i16[1, 1, 3]",
       "%y has type i32[1, 1, 3], but i16[1, 1, 3] is written"},
  };
  for (const Inference& row : rows) {
    const std::string operation = "%y = conv_integer " + row.operation;
    EXPECT_EQ(inferred(function_text(row.types, operation)), "conv_integer: " + row.result)
        << operation;
  }
}

/// Every pair of types; zero points are of their operand's type.
TEST(ConvIntegerErrors, XAndWAreBytesIndependently) {
  const auto is_byte = [](ElementType type) {
    return type == ElementType::i8 || type == ElementType::u8;
  };
  int admitted = 0;
  for (const ElementInfo& x : element_table) {
    for (const ElementInfo& w : element_table) {
      const TensorType types[] = {
          {x.type, {1, 2, 3}}, {w.type, {4, 2, 3}}, {x.type, {}}, {w.type, {4}}};
      const TensorType* operands[] = {&types[0], &types[1], &types[2], &types[3]};
      const auto result = infer_types({.op = OpKind::conv_integer}, operands, {});
      ASSERT_EQ(result.ok(), is_byte(x.type) && is_byte(w.type)) << x.name << ' ' << w.name;
      if (!result) continue;
      EXPECT_EQ(result->front(), (TensorType{ElementType::i32, {1, 4, 1}}));
      ++admitted;
    }
  }
  EXPECT_EQ(admitted, 4);
}

}  // namespace
}  // namespace castor::test
