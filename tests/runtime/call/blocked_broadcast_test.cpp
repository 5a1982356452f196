// SPDX-License-Identifier: Apache-2.0
// Functions with blocked broadcasts on every tier, with every tensor between guard pages: blocks
// that divide their axis and blocks that do not, on one axis and two, blocks of blocks, strided
// views, narrow elements.
#include <fmt/format.h>

#include "jit/plan/split_space.hpp"
#include "tests/support/function_case.hpp"

namespace castor::test {
namespace {

Dims ceil_divided(Dims extents, const Dims& blocks) {
  for (int axis = 0; axis < extents.rank(); ++axis) {
    extents[axis] = (extents[axis] + blocks[axis] - 1) / blocks[axis];
  }
  return extents;
}

/// x scaled by blocks over all axes, as f32.
FunctionCase scaled(const std::string& element, const std::string& scale, const Dims& extents,
                    const Dims& blocks) {
  const Dims scales = ceil_divided(extents, blocks);
  std::string axes;
  for (int axis = 0; axis < extents.rank(); ++axis) {
    axes += (axis == 0 ? "" : ", ") + std::to_string(axis);
  }
  return {fmt::format("func @f(%x: {}{}, %s: {}{}) -> f32{} {{ %f = convert %x : f32 %g = convert "
                      "%s : f32 %y = mul %f, %g {{broadcast = blocked, axes = [{}], block = {}}} "
                      "return %y }}",
                      element, to_string(extents), scale, to_string(scales), to_string(extents),
                      axes, to_string(blocks)),
          {{extents}, {scales}}};
}

TEST(BlockedBroadcast, BlocksOfTheLastAxis) {
  for (const int64_t block : {2, 3, 16, 32, 100, 128}) {
    for (const int64_t columns : {block * 5, block * 4 + 1, block - 1, int64_t{300}}) {
      check_function(scaled("i8", "f32", {9, columns}, {1, block}));
      check_function(scaled("i4", "f16", {9, columns}, {1, block}));
    }
  }
}

TEST(BlockedBroadcast, BlocksOfAnOuterAxis) {
  for (const int64_t block : {2, 7, 32}) {
    for (const int64_t rows : {block * 3, block * 2 + 1, block - 1}) {
      check_function(scaled("u8", "f32", {rows, 37}, {block, 1}));
      check_function(scaled("u4", "bf16", {rows, 37}, {block, 1}));
      check_function(scaled("f4e2m1", "f8e8m0", {rows, 64}, {block, 1}));
    }
  }
}

TEST(BlockedBroadcast, BlocksOfTwoAxes) {
  for (const Dims& extents : {Dims{12, 48}, Dims{13, 48}, Dims{12, 50}, Dims{15, 47}, Dims{3, 5}}) {
    check_function(scaled("f8e4m3", "f32", extents, {4, 16}));
    check_function(scaled("u2", "f8e4m3", extents, {4, 16}));
  }
}

TEST(BlockedBroadcast, BlocksOfEveryAxis) {
  check_function(scaled("i16", "f32", {4, 6, 8, 10}, {2, 3, 4, 5}));
  check_function(scaled("i16", "f32", {5, 7, 9, 11}, {2, 3, 4, 5}));
  Dims extents = Dims::filled(15, 2);
  Dims blocks = Dims::filled(15, 1);
  blocks[14] = blocks[3] = 2;
  check_function(scaled("i16", "f32", extents, blocks));
  extents[14] = extents[3] = 3;
  check_function(scaled("i16", "f32", extents, blocks));
}

/// Codes less zero points by blocks, both narrower than bytes, times scales by other blocks.
TEST(BlockedBroadcast, SeveralBlockedOperands) {
  for (const auto& [columns, first, second] :
       {std::array<int64_t, 3>{96, 32, 16}, {96, 12, 8}, {90, 32, 16}, {64, 32, 64}}) {
    const int64_t zeros = (columns + first - 1) / first;
    const int64_t scales = (columns + second - 1) / second;
    check_function(
        {fmt::format("func @f(%x: u4[7, {0}], %z: u4[7, {1}], %s: f16[7, {2}]) -> f16[7, {0}] {{\n"
                     "  %a = convert %x : f16  %b = convert %z : f16\n"
                     "  %c = sub %a, %b {{broadcast = blocked, axes = [1], block = [{3}]}}\n"
                     "  %y = mul %c, %s {{broadcast = blocked, axes = [1], block = [{4}]}}\n"
                     "  return %y }}",
                     columns, zeros, scales, first, second),
         {{{7, columns}}, {{7, zeros}}, {{7, scales}}}});
  }
}

/// A computed operand is computed block by block: blocks of blocks, and of what is broadcast.
TEST(BlockedBroadcast, BlocksOfBlocks) {
  check_function(
      {"func @f(%s: f32[3], %t: f32[1], %x: f32[2, 24]) -> (f32[2, 24], f32[2, 24]) {\n"
       "  %a = broadcast %s {mode = blocked, axes = [0], block = [2]} : [6]\n"
       "  %b = add %a, %t\n"
       "  %c = broadcast %b {mode = blocked, axes = [0], block = [4]} : [24]\n"
       "  %y = mul %x, %c\n"
       "  %d = broadcast %t : [5]\n"
       "  %e = broadcast %d {mode = blocked, axes = [0], block = [5]} : [24]\n"
       "  %z = sub %x, %e\n"
       "  return %y, %z }",
       {{{3}}, {{1}}, {{2, 24}}}});
  check_function(
      {"func @f(%s: f32[3], %x: f32[2, 23]) -> f32[2, 23] {\n"
       "  %a = broadcast %s {mode = blocked, axes = [0], block = [2]} : [6]\n"
       "  %c = broadcast %a {mode = blocked, axes = [0], block = [4]} : [23]\n"
       "  %y = mul %x, %c\n"
       "  return %y }",
       {{{3}}, {{2, 23}}}});
}

/// A broadcast alone; reshaped operands; the operand of a convolution's epilogue.
TEST(BlockedBroadcast, OfOtherNests) {
  for (const auto& element : {"u1", "i4", "f6e3m2", "u8", "f16", "f64"}) {
    for (const auto& [rows, columns] : {std::pair{6, 40}, {5, 37}}) {
      check_function({fmt::format("func @f(%s: {0}[3, 5]) -> {0}[{1}, {2}] {{ %b = broadcast %s "
                                  "{{mode = blocked, axes = [0, 1], block = [2, 8]}} : [{1}, {2}] "
                                  "return %b }}",
                                  element, rows, columns),
                      {{{3, 5}}}});
    }
  }
  check_function(
      {"func @f(%s: f32[6], %x: f32[4, 21]) -> f32[84] {\n"
       "  %m = reshape %s : [2, 3]\n"
       "  %y = mul %x, %m {broadcast = blocked, axes = [0, 1], block = [2, 8]}\n"
       "  %r = reshape %y : [84]\n"
       "  return %r }",
       {{{6}}, {{4, 21}}}});
  check_function(
      {"func @f(%x: u8[1, 4, 6, 6], %w: i8[8, 4, 1, 1], %s: f32[1, 8, 3, 2]) -> f32[1, 8, 6, 6] {\n"
       "  %c = conv_integer %x, %w\n"
       "  %f = convert %c : f32\n"
       "  %y = mul %f, %s {broadcast = blocked, axes = [2, 3], block = [2, 4]}\n"
       "  return %y }",
       {{{1, 4, 6, 6}}, {{8, 4, 1, 1}}, {{1, 8, 3, 2}}}});
  check_function(
      {"func @f(%x: u8[1, 4, 6, 6], %w: i8[8, 4, 1, 1]) -> i32[1, 8, 12, 18] {\n"
       "  %c = conv_integer %x, %w\n"
       "  %y = broadcast %c {mode = blocked, axes = [2, 3], block = [2, 3]} : [1, 8, 12, 18]\n"
       "  return %y }",
       {{{1, 4, 6, 6}}, {{8, 4, 1, 1}}}});
}

TEST(BlockedBroadcast, StridedViews) {
  for (const int64_t columns : {64, 70}) {
    FunctionCase row = scaled("i16", "f32", {6, columns}, {2, 16});
    const int64_t scales = (columns + 15) / 16;
    row.inputs = {{{6, columns}, {columns + 5, 1}, 3}, {{3, scales}, {1, 3}, 2}};
    row.outputs = {{{6, columns}, {columns + 1, 1}, 1}};
    check_function(row);
    row.outputs = {{{6, columns}, {1, 7}}};
    check_function(row);
    row = scaled("i4", "f32", {6, columns}, {2, 16});
    row.inputs[0] = {{6, columns}, {columns + 3, 1}, 5};
    check_function(row);
  }
}

TEST(BlockedBroadcast, UnknownExtents) {
  const std::string text =
      "func @f(%x: u8[?, ?n], %s: f32[?, ?]) -> f32[?, ?n] { %f = convert %x : f32 %y = mul %f, %s "
      "{broadcast = blocked, axes = [0, 1], block = [2, 16]} return %y }";
  for (const Dims& extents : {Dims{4, 64}, Dims{5, 60}, Dims{1, 16}, Dims{2, 1}, Dims{0, 32}}) {
    check_function({text, {{extents}, {ceil_divided(extents, {2, 16})}}});
  }
}

/// Blocks that divide the axis and each other split it; others are copies.
TEST(SplitSpace, SplitsWhatDivides) {
  using jit::NestInput;
  jit::SplitSpace space({4, 96});
  const NestInput rows(0, {0, 1}, {1, 32});
  const NestInput shorter(0, {1}, {8});
  const NestInput unlike(0, {1}, {12});
  for (const NestInput& input : {rows, shorter, unlike}) {
    space.admit(input, input.axes.rank() == 2 ? Dims{4, 3} : Dims{12});
  }
  EXPECT_EQ(space.extents(), (Dims{4, 3, 4, 8}));
  EXPECT_EQ(space.strides({96, 1}), (Dims{96, 32, 8, 1}));
  EXPECT_EQ(space.strides_of(rows, {4, 3}, {3, 1}), (Dims{3, 1, 0, 0}));
  EXPECT_EQ(space.strides_of(shorter, {12}, {1}), (Dims{0, 4, 1, 0}));
  EXPECT_FALSE(space.has_strides(unlike, {8}));
  EXPECT_TRUE(space.has_strides(unlike, {1}));
  const jit::ExpandedCopy copy = jit::expanded_copy(unlike, {8}, {5});
  EXPECT_EQ(copy.extents, (Dims{96}));
  EXPECT_EQ(copy.space, (Dims{8, 12}));
  EXPECT_EQ(copy.strides, (Dims{5, 0}));
  EXPECT_TRUE(space.has_strides(copy.input, copy.extents));
}

}  // namespace
}  // namespace castor::test
