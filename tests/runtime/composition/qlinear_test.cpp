// SPDX-License-Identifier: Apache-2.0
// qlinear_conv and qlinear_matmul on every tier: layouts, groups, bias, scales and zero points of
// every form, known and unknown extents; and that each is one kernel.
#include <fmt/format.h>

#include "ir/rewrite/canonicalize.hpp"
#include "jit/plan/nest.hpp"
#include "tests/support/function_case.hpp"

namespace castor::test {
namespace {

/// One qlinear_conv; shapes of scales and zero points are [] but where they are given.
struct Conv {
  Dims x;
  Dims w;
  Dims w_scale = {};
  Dims w_zero_point = {};
  std::string attributes = {};
  bool has_bias = true;
  bool is_signed = false;
  Dims one = {};  ///< shape of parameters with one entry
  std::string scale = "f32";
};

std::string in_braces(const std::string& attributes) {
  return attributes.empty() ? "" : " {" + attributes + "}";
}

std::string names(const Dims& extents, bool is_open) {
  return is_open ? to_string(Shape(static_cast<size_t>(extents.rank()), Dim::any()))
                 : to_string(extents);
}

FunctionCase case_of(const Conv& row, bool is_open) {
  const char* x = row.is_signed ? "i8" : "u8";
  const Dims bias = {row.w[0]};
  const std::string y = to_string(Shape(static_cast<size_t>(row.x.rank()), Dim::any()));
  FunctionCase made;
  made.text = fmt::format(
      "func @f(%x: {0}{1}, %xs: {2}{3}, %xz: {0}[], %w: i8{4}, %ws: {2}{5}, %wz: i8{6}, %ys: "
      "{2}{3}, "
      "%yz: {0}{3}, %b: i32{7}) -> {0}{8} {{\n  %y = qlinear_conv %x, %xs, %xz, %w, %ws, %wz, %ys, "
      "%yz{9}{10}\n  return %y }}",
      x, names(row.x, is_open), row.scale, names(row.one, is_open), names(row.w, is_open),
      names(row.w_scale, is_open), names(row.w_zero_point, is_open), names(bias, is_open), y,
      row.has_bias ? ", %b" : "", in_braces(row.attributes));
  for (const Dims& shape :
       {row.x, row.one, Dims{}, row.w, row.w_scale, row.w_zero_point, row.one, row.one, bias}) {
    made.inputs.push_back({shape});
  }
  return made;
}

const std::vector<Conv>& convs() {
  static const std::vector<Conv> rows = {
      {{1, 3, 9, 11}, {8, 3, 3, 3}, {}, {}, "pads = [1, 1, 1, 1]"},
      {{2, 16, 7, 7}, {20, 16, 1, 1}, {20}, {20}},
      {{1, 16, 7, 7}, {20, 16, 1, 1}, {20}, {}, "", false, true},
      {{1, 8, 9, 9}, {8, 1, 3, 3}, {8}, {}, "group = 8, strides = [2, 2]"},
      {{1, 8, 9, 9}, {16, 4, 3, 3}, {16}, {16}, "group = 2", true, true},
      {{1, 9, 9, 8}, {24, 8, 3, 3}, {24}, {}, "layout = nhwc, pads = [1, 1, 1, 1]"},
      {{1, 9, 9, 32}, {32, 1, 3, 3}, {32}, {}, "layout = nhwc, group = 32"},
      {{1, 4, 21}, {6, 4, 5}, {1}, {1}, "dilations = [2]", true, false, {1}},
      {{1, 16, 8, 8}, {8, 16, 3, 3}, {8}, {}, "", true, false, {}, "f16"},
  };
  return rows;
}

TEST(QlinearConv, EveryForm) {
  for (const Conv& row : convs()) {
    const bool per_one = row.w_zero_point.rank() == 1 && row.w_zero_point[0] == 1;
    Conv each = row;
    if (per_one) each.w_zero_point = {};
    check_function(case_of(each, false), 3);
    check_function(case_of(each, true), 4);
  }
}

/// One qlinear_matmul.
struct Matmul {
  Dims a;
  Dims b;
  Dims y;
  Dims a_scale = {};
  Dims b_scale = {};
  Dims y_scale = {};
  Dims a_zero_point = {};
  Dims b_zero_point = {};
};

FunctionCase case_of(const Matmul& row, bool is_open) {
  FunctionCase made;
  made.text = fmt::format(
      "func @f(%a: u8{}, %as: f32{}, %az: u8{}, %b: i8{}, %bs: f32{}, %bz: i8{}, %ys: f32{}, %yz: "
      "i8{}) -> i8{} {{\n  %y = qlinear_matmul %a, %as, %az, %b, %bs, %bz, %ys, %yz\n  return %y "
      "}}",
      names(row.a, is_open), names(row.a_scale, is_open), names(row.a_zero_point, is_open),
      names(row.b, is_open), names(row.b_scale, is_open), names(row.b_zero_point, is_open),
      names(row.y_scale, is_open), names(row.y_scale, is_open),
      to_string(Shape(static_cast<size_t>(row.y.rank()), Dim::any())));
  for (const Dims& shape : {row.a, row.a_scale, row.a_zero_point, row.b, row.b_scale,
                            row.b_zero_point, row.y_scale, row.y_scale}) {
    made.inputs.push_back({shape});
  }
  return made;
}

TEST(QlinearMatmul, EveryForm) {
  const Matmul rows[] = {
      {{5, 24}, {24, 33}, {5, 33}},
      {{5, 24}, {24, 33}, {5, 33}, {5}, {33}, {5}, {5}, {33}},
      {{5, 24}, {24, 33}, {5, 33}, {1}, {1}, {1}, {1}, {1}},
      {{3, 5, 24},
       {3, 24, 17},
       {3, 5, 17},
       {3, 5, 1},
       {3, 1, 17},
       {3, 5, 1},
       {3, 5, 1},
       {3, 1, 17}},
      {{2, 1, 5, 24}, {3, 24, 17}, {2, 3, 5, 17}, {5}, {17}},
      {{24}, {24, 17}, {17}, {}, {17}},
      {{5, 24}, {24}, {5}, {5}, {}, {5}},
      {{24}, {24}, {}},
  };
  for (const Matmul& row : rows) {
    check_function(case_of(row, false), 5);
    check_function(case_of(row, true), 6);
  }
}

/// Scales of stacked matrices beside a vector, which has no rows or columns: the result lacks them.
TEST(QlinearMatmul, StackedScalesBesideVectors) {
  const Matmul rows[] = {
      {{24}, {3, 24, 17}, {3, 17}, {}, {3, 1, 17}, {}, {}, {3, 1, 17}},
      {{24}, {2, 3, 24, 1}, {2, 3, 1}, {1}, {2, 3, 1, 1}},
      {{3, 5, 24}, {24}, {3, 5}, {3, 5, 1}, {}, {3, 5, 1}, {3, 1, 1}},
  };
  for (const Matmul& row : rows) check_function(case_of(row, false), 5);
  const char* open[] = {
      "func @f(%a: u8[24], %as: f32[], %az: u8[], %b: i8[?n, 24, 17], %bs: f32[?n, 1, 17], %bz: "
      "i8[], %ys: f32[], %yz: u8[]) -> u8[?n, 17] {\n  %y = qlinear_matmul %a, %as, %az, %b, %bs, "
      "%bz, %ys, %yz\n  return %y }",
      "func @f(%a: u8[?n, ?m, 24], %as: f32[?n, ?m, 1], %az: u8[], %b: i8[24], %bs: f32[], %bz: "
      "i8[], %ys: f32[], %yz: u8[]) -> u8[?n, ?m] {\n  %y = qlinear_matmul %a, %as, %az, %b, %bs, "
      "%bz, %ys, %yz\n  return %y }",
  };
  const Dims one = {};
  check_function(
      {open[0], {{{24}}, {one}, {one}, {{3, 24, 17}}, {{3, 1, 17}}, {one}, {one}, {one}}}, 6);
  check_function({open[1], {{{3, 5, 24}}, {{3, 5, 1}}, {one}, {{24}}, {one}, {one}, {one}, {one}}},
                 6);
}

/// Sum, scales, rounding and zero point: the epilogue of one convolution.
TEST(QlinearConv, IsOneKernel) {
  std::vector<std::string> texts = {
      case_of(Matmul{{5, 24}, {24, 33}, {5, 33}, {5}, {33}}, false).text};
  for (const Conv& row : convs()) texts.push_back(case_of(row, false).text);
  for (const std::string& text : texts) {
    const Result<FunctionPtr> function = parse_function(text);
    ASSERT_TRUE(function) << function.error().message << text;
    for (const auto& [tier, runtime] : elementwise_tier_runtimes()) {
      const auto nests = jit::plan_nests(*canonicalize(*function), jit::Target{tier});
      ASSERT_EQ(nests.size(), 2u) << text;
      EXPECT_TRUE(nests[1].epilogue) << text;
    }
  }
}

}  // namespace
}  // namespace castor::test
