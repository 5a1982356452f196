// SPDX-License-Identifier: Apache-2.0
// quantize_linear and dequantize_linear on every tier: all types, every granularity, odd sizes and
// strided views, with every tensor between guard pages.
#include <fmt/format.h>

#include "tests/support/function_case.hpp"

namespace castor::test {
namespace {

/// Shapes of x and of its scale, and the attributes that pair them.
struct Granularity {
  Dims x;
  Dims scale;
  std::string attributes;
};

const std::vector<Granularity>& granularities() {
  static const std::vector<Granularity> rows = {
      {{77}, {}, ""},
      {{77}, {1}, ""},
      {{5, 133}, {133}, ""},
      {{5, 133}, {5}, "axis = 0"},
      {{2, 3, 4, 9}, {3}, "axis = -3"},
      {{7, 3, 41}, {7, 3, 1}, ""},
      {{6, 130}, {6, 5}, "axis = 1, block_size = 32"},
      {{6, 128}, {6, 4}, "block_size = 32"},
      {{7, 65}, {4, 65}, "axis = 0, block_size = 2"},
      {{33, 70}, {3, 5}, "axes = [0, 1], block = [16, 16]"},
  };
  return rows;
}

std::string text_of(const std::string& op, ElementType from, ElementType scale, ElementType to,
                    const Granularity& row, bool has_zero_point, const std::string& more = {}) {
  const ElementType quantized = op == "quantize_linear" ? to : from;
  std::string attributes = row.attributes;
  if (!more.empty()) attributes += (attributes.empty() ? "" : ", ") + more;
  return fmt::format(
      "func @f(%x: {}{}, %s: {}{}, %z: {}{}) -> {}{} {{ %y = {} %x, %s{}{} : {} return %y }}",
      name_of(from), to_string(row.x), name_of(scale), to_string(row.scale), name_of(quantized),
      to_string(row.scale), name_of(to), to_string(row.x), op, has_zero_point ? ", %z" : "",
      attributes.empty() ? "" : " {" + attributes + "}", name_of(to));
}

void check(const std::string& text, const Granularity& row) {
  check_function({text, {{row.x}, {row.scale}, {row.scale}}});
}

using enum ElementType;

/// A scalar, too, may have a scale that is a vector of one.
TEST(QuantizeLinear, EveryGranularity) {
  std::vector<Granularity> rows = granularities();
  rows.push_back({{}, {1}, ""});
  for (const Granularity& row : rows) {
    for (const bool has_zero_point : {true, false}) {
      check(text_of("quantize_linear", f32, f32, u8, row, has_zero_point), row);
      check(text_of("quantize_linear", f16, f32, i4, row, has_zero_point), row);
      check(text_of("quantize_linear", bf16, bf16, f8e4m3, row, has_zero_point), row);
      check(text_of("dequantize_linear", u8, f32, f32, row, has_zero_point), row);
      check(text_of("dequantize_linear", i4, f16, f16, row, has_zero_point), row);
      check(text_of("dequantize_linear", f4e2m1, f8e8m0, bf16, row, has_zero_point), row);
    }
  }
}

TEST(QuantizeLinear, EveryType) {
  const Granularity& row = granularities()[3];
  for (const ElementType to : {u8, i8, u16, i16, u4, i4, u2, i2, u1, u3, u6, f8e4m3, f8e4m3fnuz,
                               f8e5m2, f8e5m2fnuz, f4e2m1, f6e2m3, f6e3m2}) {
    for (const ElementType from : {f32, f16, bf16, f64, i32}) {
      for (const ElementType scale : {f32, f16, bf16, i32, f8e8m0}) {
        check(text_of("quantize_linear", from, scale, to, row, true), row);
      }
    }
    check(text_of("quantize_linear", f32, f32, to, row, true, "precision = f16"), row);
    check(text_of("quantize_linear", f32, f32, to, row, true, "scaling = reciprocal"), row);
    if (is_float(to) && bits_of(to) == 8) {
      check(text_of("quantize_linear", f32, f32, to, row, true, "saturate = false"), row);
    }
    for (const ElementType y : {f32, f16, bf16, f64}) {
      check(text_of("dequantize_linear", to, f32, y, row, true), row);
      check(text_of("dequantize_linear", to, f8e4m3, y, row, false), row);
    }
  }
  check(text_of("dequantize_linear", i32, f32, f32, row, true), row);
  check(text_of("dequantize_linear", nf4, f32, bf16, row, false), row);
}

TEST(QuantizeLinear, FunctionsAroundThem) {
  check_function(
      {"func @f(%x: f32[3, ?n], %s: f32[], %z: u8[]) -> (u8[3, ?n], f32[3, ?n]) attributes "
       "{excess_precision = allow} {\n"
       "  %r = relu %x\n  %q = quantize_linear %r, %s, %z : u8\n"
       "  %d = dequantize_linear %q, %s, %z : f32\n  %e = sub %x, %d\n  return %q, %e\n}",
       {{{3, 67}}, {{}}, {{}}}});
  check_function(
      {"func @f(%x: f16[?, ?], %s: f16[?, ?]) -> i8[?, ?] attributes {excess_precision = "
       "allow} {\n  %a = add %x, %x\n"
       "  %q = quantize_linear %a, %s {block_size = 16} : i8\n  return %q\n}",
       {{{3, 67}}, {{3, 5}}}});
}

TEST(QuantizeLinear, StridedViews) {
  FunctionCase row{text_of("quantize_linear", f32, f32, u8, granularities()[2], true),
                   {{{5, 133}, {200, 1}, 3}, {{133}, {2}}, {{133}}},
                   {{{5, 133}, {1, 5}}}};
  check_function(row);
  row.text = text_of("quantize_linear", f32, f32, i4, granularities()[2], true);
  row.outputs = {{{5, 133}, {150, 1}, 1}};
  check_function(row);
}

}  // namespace
}  // namespace castor::test
