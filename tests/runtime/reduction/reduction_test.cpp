// SPDX-License-Identifier: Apache-2.0
// Reductions: the interpreter's bits on every tier, for all types, layouts and axes, with operands
// that are computed where they are folded, and results that others read.
#include <fmt/format.h>

#include "tests/support/function_case.hpp"

namespace castor::test {
namespace {

constexpr const char* ops[] = {"reduce_min", "reduce_max", "reduce_max_abs", "reduce_sum"};

/// "%r = reduce_max %x {axes = [1]}" of each op.
std::string all_ops(std::string_view type, std::string_view axes) {
  std::string operations;
  std::string results;
  for (size_t i = 0; i < std::size(ops); ++i) {
    operations += fmt::format("  %r{} = {} %x {{axes = {}, keep_dims = true}}\n", i, ops[i], axes);
    results += fmt::format("{}%r{}", i == 0 ? "" : ", ", i);
  }
  return fmt::format(
      "func @all(%x: {0}[?a, ?b, ?c]) -> ({0}[?, ?, ?], {0}[?, ?, ?], {0}[?, ?, ?], "
      "{0}[?, ?, ?]) {{\n{1}  return {2}\n}}\n",
      type, operations, results);
}

constexpr const char* all_axes[] = {"[2]",    "[1]",    "[0]",       "[1, 2]",
                                    "[0, 1]", "[0, 2]", "[0, 1, 2]", "[]"};

/// Small extents of every remainder, and views that are strided and transposed.
std::vector<Layout> small_layouts() {
  return {
      {{3, 5, 67}},
      {{2, 66, 3}},
      {{70, 1, 2}},
      {{1, 1, 1}},
      {{3, 4, 17}, {200, 40, 2}, 3},
      {{5, 33, 6}, {1, 5, 165}, 1},
      {{4, 3, 9}, {1, 44, 4}, 2},
      {{2, 3, 0}},
      {{0, 3, 4}},
  };
}

TEST(Reduction, OfEveryTypeHasTheInterpretersBits) {
  const std::vector<Layout> layouts = small_layouts();
  uint64_t seed = 1;
  for (const ElementInfo& row : element_table) {
    if (!admits(OperandClass::numeric, row.type)) continue;
    for (const char* axes : all_axes) {
      for (int i = 0; i < 3; ++i) {  // every layout with some axes of some type
        const Layout& layout = layouts[++seed % layouts.size()];
        ASSERT_NO_FATAL_FAILURE(check_function({all_ops(row.name, axes), {layout}}, seed));
      }
    }
  }
}

/// Blocks of rows, and rows that are left.
TEST(Reduction, OfDenseShortRows) {
  uint64_t seed = 1;
  for (const std::string_view type : {"f32", "bf16", "f16", "f64", "f8e4m3", "i8", "u16", "i64"}) {
    for (const int64_t row : {2, 4, 8, 16, 32, 64, 128}) {
      for (const int64_t rows : {15, 16, 33, 64, 131}) {
        const Layout layout = {{1, rows, row}};
        ASSERT_NO_FATAL_FAILURE(check_function({all_ops(type, "[2]"), {layout}}, ++seed));
      }
    }
  }
}

TEST(Reduction, OfShortRowsThatAreComputed) {
  for (const int64_t row : {8, 16, 32}) {
    for (const int64_t rows : {16, 47, 100}) {
      check_function(
          {"func @f(%x: bf16[?n, ?c], %s: f32[]) -> (f32[?n], f32[?n]) {\n"
           "  %w = convert %x : f32\n  %p = mul %w, %s\n"
           "  %lo = reduce_min %p {axes = [1]}\n  %hi = reduce_max %p {axes = [1]}\n"
           "  return %lo, %hi\n}\n",
           {{{rows, row}}, {{}}}});
    }
  }
}

/// Numbers alone: most random tensors have a NaN, and then every extreme is one.
std::string of_numbers(std::string_view type, std::string_view axes) {
  return fmt::format(
      "func @numbers(%x: {0}[?a, ?b, ?c]) -> ({0}[?, ?, ?], {0}[?, ?, ?], {0}[?, ?, ?], "
      "{0}[?, ?, ?]) {{\n"
      "  %zero = constant 0.0 : {0}[]\n  %n = is_nan %x\n  %y = select %n, %zero, %x\n"
      "  %z = clamp %y {{lo = -1000.0, hi = 1000.0}}\n"
      "  %a = reduce_min %y {{axes = {1}, keep_dims = true}}\n"
      "  %b = reduce_max %y {{axes = {1}, keep_dims = true}}\n"
      "  %c = reduce_max_abs %y {{axes = {1}, keep_dims = true}}\n"
      "  %d = reduce_sum %z {{axes = {1}, keep_dims = true}}\n  return %a, %b, %c, %d\n}}\n",
      type, axes);
}

TEST(Reduction, OfNumbersHasTheInterpretersBits) {
  const std::vector<Layout> layouts = small_layouts();
  uint64_t seed = 1;
  for (const char* type : {"f32", "f64", "f16", "bf16", "f8e4m3", "f8e5m2fnuz", "f4e2m1"}) {
    for (const char* axes : all_axes) {
      for (int i = 0; i < 5; ++i) {
        const Layout& layout = layouts[++seed % layouts.size()];
        ASSERT_NO_FATAL_FAILURE(check_function({of_numbers(type, axes), {layout}}, seed));
      }
    }
  }
}

/// Rows of more than a block, and of more than a part; columns of more than a tile.
TEST(Reduction, OfLongAxesHasTheInterpretersBits) {
  const Layout layouts[] = {
      {{1, 2, 70001}},  {{1, 9001, 2}},  {{2, 3, 5000}},
      {{130, 1, 4200}}, {{1, 4097, 33}}, {{1, 4100, 3}, {1, 3, 12300}},
      {{2, 130, 75}},   {{1, 9001, 35}},
  };
  uint64_t seed = 1;
  constexpr const char* types[] = {"f32", "f64", "f16"};
  for (const char* axes : {"[2]", "[1]", "[0, 2]", "[0, 1, 2]"}) {
    for (const Layout& layout : layouts) {
      const std::string text = of_numbers(types[++seed % 3], axes);
      ASSERT_NO_FATAL_FAILURE(check_function({text, {layout}}, seed));
    }
  }
  constexpr const char* integers[] = {"u8", "i64", "u4"};
  for (const Layout& layout : layouts) {
    const std::string text = all_ops(integers[++seed % 3], "[1, 2]");
    ASSERT_NO_FATAL_FAILURE(check_function({text, {layout}}, seed));
  }
}

/// Functions in which reductions stand between other operations.
const FunctionCase functions[] = {
    {"func @weighted(%x: f32[?a, ?b, ?c], %w: f16[?b, 1], %v: u4[?c], %u: f32[?a, 1, 1]) -> "
     "(f32[?a, ?c], f64[?a, ?c]) {\n"
     "  %f = convert %w : f32\n  %g = convert %v : f32\n  %p = mul %x, %f\n"
     "  %q = add %p, %u\n  %s = reduce_sum %q {axes = [1]}\n  %r = mul %q, %g\n"
     "  %d = convert %r : f64\n  %t = reduce_sum %d {axes = [1]}\n  return %s, %t\n}\n",
     {{{2, 133, 41}}, {{133, 1}}, {{41}}, {{2, 1, 1}}}},
    {"func @quantize(%x: f32[?n, ?m]) -> (u8[?n, ?m], f32[], u8[]) {\n"
     "  %zero = constant 0.0 : f32[]\n  %255 = constant 255.0 : f32[]\n"
     "  %nan = is_nan %x\n  %y = select %nan, %zero, %x\n"
     "  %c = clamp %y {lo = -3.0, hi = 70.0}\n"
     "  %lo = reduce_min %c\n  %hi = reduce_max %c\n  %l = min %lo, %zero\n  %h = max %hi, %zero\n"
     "  %range = sub %h, %l\n  %s = div %range, %255\n  %a = div %l, %s\n  %b = sub %zero, %a\n"
     "  %r = round_even %b\n  %z = convert %r : u8\n  %q = div %c, %s\n  %t = round_even %q\n"
     "  %f = convert %z : f32\n  %u = add %t, %f\n  %v = convert %u : u8\n  return %v, %s, %z\n}\n",
     {{{7, 301}}}},
    {"func @rows(%x: bf16[?n, ?m]) -> (i8[?n, ?m], f32[?n, 1]) {\n"
     "  %w = convert %x : f32\n  %m = reduce_max_abs %w {axes = [1], keep_dims = true}\n"
     "  %127 = constant 127.0 : f32[]\n  %s = div %m, %127\n  %q = div %w, %s\n"
     "  %y = convert %q {rounding = nearest_even} : i8\n  return %y, %s\n}\n",
     {{{5, 129}}}},
    {"func @normalise(%x: f32[?n, ?m], %g: f32[?m]) -> f32[?n, ?m] {\n"
     "  %q = mul %x, %x\n  %s = reduce_sum %q {axes = [1], keep_dims = true}\n"
     "  %count = constant 0.01 : f32[]\n  %v = mul %s, %count\n  %r = sqrt %v\n  %d = div %x, %r\n"
     "  %y = mul %d, %g\n  return %y\n}\n",
     {{{4, 100}}, {{100}}}},
    {"func @of_reductions(%x: i16[?n, ?m, ?k]) -> (i16[], i16[?k, ?n], i32[]) {\n"
     "  %a = reduce_max %x {axes = [1]}\n  %b = reduce_min %a {axes = [1], keep_dims = true}\n"
     "  %c = reduce_max_abs %b\n  %d = reshape %a : [?k, ?n]\n"
     "  %e = reduce_sum %a {accumulator = i32}\n  return %c, %d, %e\n}\n",
     {{{3, 20, 4}}}},
    {"func @convolved(%x: u8[1, 8, 9, 9], %w: i8[4, 8, 3, 3]) -> (i32[4], f32[]) {\n"
     "  %y = conv_integer %x, %w\n  %m = reduce_max %y {axes = [0, 2, 3]}\n"
     "  %f = convert %y : f32\n  %a = reduce_max_abs %f\n  return %m, %a\n}\n",
     {{{1, 8, 9, 9}}, {{4, 8, 3, 3}}}},
    {"func @zero_point(%x: u8[1, 8, 9, 9], %w: i8[4, 8, 3, 3]) -> i32[1, 4, 7, 7] {\n"
     "  %z = reduce_min %x\n  %y = conv_integer %x, %w, %z\n  return %y\n}\n",
     {{{1, 8, 9, 9}}, {{4, 8, 3, 3}}}},
    {"func @carried(%x: f16[?n, ?m]) -> (f16[?n], f16[?n]) attributes {excess_precision = allow} "
     "{\n"
     "  %y = mul %x, %x\n  %m = reduce_max %y {axes = [1]}\n  %s = reduce_sum %y {axes = [1]}\n"
     "  %t = add %s, %m\n  return %m, %t\n}\n",
     {{{5, 77}}}},
    {"func @constant() -> (f32[], i8[2]) {\n  %c = constant [1.0, nan, -3.0] : f32[3]\n"
     "  %m = reduce_max_abs %c\n  %d = constant [1, -128, 7, 9] : i8[2, 2]\n"
     "  %a = reduce_max_abs %d {axes = [1]}\n  return %m, %a\n}\n",
     {}},
    {"func @of_nothing(%x: i16[1, ?n]) -> (i16[], i16[?n]) {\n  %a = reduce_min %x {axes = [0]}\n"
     "  %b = reduce_max_abs %a\n  return %b, %a\n}\n",
     {{{1, 0}}}},
    {"func @looked_up(%x: u8[?n, 3], %t: f16[256]) -> (f16[3], f16[?n]) {\n"
     "  %y = look_up %x, %t\n  %z = mul %y, %y\n  %a = reduce_max %z {axes = [0]}\n"
     "  %b = reduce_sum %y {axes = [1]}\n  return %a, %b\n}\n",
     {{{40, 3}}, {{256}}}},
    {"func @blocked(%x: i8[?n, ?m], %s: f32[?n, ?]) -> (f32[?n], f32[?m]) {\n"
     "  %f = convert %x : f32\n  %y = mul %f, %s {broadcast = blocked, axes = [1], block = [32]}\n"
     "  %a = reduce_max_abs %y {axes = [1]}\n  %b = reduce_sum %y {axes = [0]}\n"
     "  return %a, %b\n}\n",
     {{{5, 70}}, {{5, 3}}}},
    {"func @quantized(%x: f32[?n, ?m], %z: u8[]) -> u8[?n, ?m] {\n"
     "  %m = reduce_max_abs %x {axes = [1], keep_dims = true}\n  %127 = constant 127.0 : f32[]\n"
     "  %s = div %m, %127\n  %y = quantize_linear %x, %s : u8\n  return %y\n}\n",
     {{{5, 70}}, {{}}}},
    {"func @broadcast(%x: f32[3, 1]) -> (f32[3], f32[]) {\n  %b = broadcast %x : [3, 130]\n"
     "  %s = reduce_sum %b {axes = [1]}\n  %t = reduce_sum %b\n  return %s, %t\n}\n",
     {{{3, 1}}}},
    {"func @several(%x: i32[?n, ?m], %y: i32[?n, ?m]) -> (i32[?n], i32[?n], i32[?n], i32[?m]) {\n"
     "  %a = reduce_max %x {axes = [1]}\n  %b = reduce_min %y {axes = [1]}\n"
     "  %s = add %x, %y\n  %c = reduce_sum %s {axes = [1]}\n  %d = reduce_sum %s {axes = [0]}\n"
     "  return %a, %b, %c, %d\n}\n",
     {{{9, 65}}, {{9, 65}}}},
};

TEST(Reduction, StandsBetweenOtherOperations) {
  for (const FunctionCase& row : functions) {
    for (uint64_t seed : {1, 2, 3}) ASSERT_NO_FATAL_FAILURE(check_function(row, seed));
  }
}

}  // namespace
}  // namespace castor::test
