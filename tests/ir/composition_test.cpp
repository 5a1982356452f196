// SPDX-License-Identifier: Apache-2.0
// Compositions: what they are in other ops, what they refuse, and values at the edges of their
// formulas.
#include <bit>
#include <cmath>

#include "ir/composition/expand.hpp"
#include "ir/rewrite/canonicalize.hpp"
#include "ir/text/text.hpp"
#include "tests/support/interpreted.hpp"
#include "tests/support/shape_rows.hpp"

namespace castor::test {
namespace {

std::string expanded(const std::string& text) {
  const auto function = parse_function(text);
  if (!function) return function.error().message;
  EXPECT_TRUE(has_compositions(**function));
  const auto expansion = expand_compositions(**function);
  if (!expansion) return expansion.error().message;
  EXPECT_FALSE(has_compositions(**expansion));
  EXPECT_FALSE(has_compositions(*canonicalize(*function)));
  return print(**expansion);
}

TEST(Compositions, QuantizeLinearIsDividedRoundedAndOffset) {
  EXPECT_EQ(expanded("func @f(%x: f32[?n, 3], %s: f32[], %z: u8[]) -> u8[?n, 3] {\n"
                     "  %y = quantize_linear %x, %s, %z : u8\n  return %y\n}"),
            "func @f(%x: f32[?n, 3], %s: f32[], %z: u8[]) -> (u8[?n, 3]) {\n"
            "  %0 = div %x, %s\n"
            "  %1 = convert %0 {rounding = nearest_even} : i32\n"
            "  %2 = clamp %1 {lo = -131072.0, hi = 131072.0}\n"
            "  %3 = convert %z : i32\n"
            "  %4 = add %2, %3\n"
            "  %y = convert %4 {overflow = saturate} : u8\n"
            "  return %y\n"
            "}\n");
  EXPECT_EQ(expanded("func @f(%x: f32[?, 3], %s: f16[3]) -> i4[?, 3] {\n"
                     "  %y = quantize_linear %x, %s {scaling = reciprocal} : i4\n  return %y\n}"),
            "func @f(%x: f32[?, 3], %s: f16[3]) -> (i4[?, 3]) {\n"
            "  %0 = convert %x : f16\n"
            "  %1 = constant 1.0 : f32[]\n"
            "  %2 = convert %1 : f16\n"
            "  %3 = div %2, %s\n"
            "  %4 = mul %0, %3 {broadcast = pdpd, axis = 1}\n"
            "  %y = convert %4 {overflow = saturate, rounding = nearest_even} : i4\n"
            "  return %y\n"
            "}\n");
  EXPECT_EQ(
      expanded("func @f(%x: bf16[4, 70], %s: f32[4, 3]) -> f8e4m3[4, 70] {\n"
               "  %y = quantize_linear %x, %s {axis = -1, block_size = 32, saturate = false} : "
               "f8e4m3\n  return %y\n}"),
      "func @f(%x: bf16[4, 70], %s: f32[4, 3]) -> (f8e4m3[4, 70]) {\n"
      "  %0 = convert %x : f32\n"
      "  %1 = div %0, %s {broadcast = blocked, axes = [1], block = [32]}\n"
      "  %y = convert %1 : f8e4m3\n"
      "  return %y\n"
      "}\n");
}

TEST(Compositions, DequantizeLinearIsOffsetAndScaled) {
  EXPECT_EQ(expanded("func @f(%x: u8[?n, 3], %s: f32[?n, 1], %z: u8[?n, 1]) -> f16[?n, 3] {\n"
                     "  %y = dequantize_linear %x, %s, %z : f16\n  return %y\n}"),
            "func @f(%x: u8[?n, 3], %s: f32[?n, 1], %z: u8[?n, 1]) -> (f16[?n, 3]) {\n"
            "  %0 = convert %x : i32\n"
            "  %1 = convert %z : i32\n"
            "  %2 = sub %0, %1 {broadcast = pdpd, axis = 0}\n"
            "  %3 = convert %2 : f32\n"
            "  %4 = mul %3, %s {broadcast = pdpd, axis = 0}\n"
            "  %y = convert %4 : f16\n"
            "  return %y\n"
            "}\n");
  EXPECT_EQ(expanded("func @f(%x: f8e4m3[256, 300], %s: f32[2, 3]) -> bf16[256, 300] {\n"
                     "  %y = dequantize_linear %x, %s {axes = [0, 1], block = [128, 128]} : bf16\n"
                     "  return %y\n}"),
            "func @f(%x: f8e4m3[256, 300], %s: f32[2, 3]) -> (bf16[256, 300]) {\n"
            "  %0 = convert %x : f32\n"
            "  %1 = mul %0, %s {broadcast = blocked, axes = [0, 1], block = [128, 128]}\n"
            "  %y = convert %1 : bf16\n"
            "  return %y\n"
            "}\n");
  EXPECT_EQ(expanded("func @f(%x: i4[64], %s: f16[], %z: i4[]) -> f16[64] {\n"
                     "  %y = dequantize_linear %x, %s, %z : f16\n  return %y\n}"),
            "func @f(%x: i4[64], %s: f16[], %z: i4[]) -> (f16[64]) {\n"
            "  %0 = convert %x : i32\n"
            "  %1 = convert %z : i32\n"
            "  %2 = sub %0, %1\n"
            "  %3 = convert %2 : f16\n"
            "  %y = mul %3, %s\n"
            "  return %y\n"
            "}\n");
}

/// Between other operations, under the names that they had.
TEST(Compositions, AreReplacedByTheirDefinitions) {
  EXPECT_EQ(expanded("func @f(%0: f32[3], %s: f32[]) -> (i8[3], f32[3]) {\n"
                     "  %a = relu %0\n  %q = quantize_linear %a, %s : i8\n"
                     "  %d = dequantize_linear %q, %s : f32\n  %e = sub %0, %d\n"
                     "  return %q, %e\n}"),
            "func @f(%0: f32[3], %s: f32[]) -> (i8[3], f32[3]) {\n"
            "  %a = relu %0\n"
            "  %1 = div %a, %s\n"
            "  %q = convert %1 {overflow = saturate, rounding = nearest_even} : i8\n"
            "  %2 = convert %q : f32\n"
            "  %d = mul %2, %s\n"
            "  %e = sub %0, %d\n"
            "  return %q, %e\n"
            "}\n");
}

TEST(Compositions, RefuseWhatTheyDoNotTake) {
  const Inference rows[] = {
      {{"u8[3]", "f32[]"},
       "quantize_linear %x0, %x1 : i8",
       "quantize_linear: operand 0 is u8, expected f16, bf16, f32, f64 or i32"},
      {{"f32[3]", "u8[]"},
       "quantize_linear %x0, %x1 : i8",
       "quantize_linear: the scale is u8, expected f16, bf16, f32, f64, i32 or f8e8m0"},
      {{"f32[3]", "f32[]"},
       "quantize_linear %x0, %x1 : i32",
       "quantize_linear: the result is i32, expected an integer of at most 16 bits or a float of "
       "at "
       "most 8"},
      {{"f32[3]", "f32[]", "i8[]"},
       "quantize_linear %x0, %x1, %x2 : u8",
       "quantize_linear: the zero point is i8, expected u8 as the result"},
      {{"f32[3]", "f32[]"},
       "quantize_linear %x0, %x1 {saturate = false} : u8",
       "quantize_linear: found saturate = false for u8, expected it for floats of 8 bits only"},
      {{"f32[3]", "f32[]", "u8[3]"},
       "quantize_linear %x0, %x1, %x2 : u8",
       "quantize_linear: zero point [3] with scale [], expected equal shapes"},
      {{"f32[3]", "f32[]", "u8[1]"}, "quantize_linear %x0, %x1, %x2 : u8", "[3]"},
      {{"f32[4, 3]", "f32[3]"},
       "quantize_linear %x0, %x1 {axis = 2} : u8",
       "quantize_linear: axis = 2, expected -2 to 1 for f32[4, 3]"},
      {{"f32[4, 3, 2]", "f32[3, 2]"},
       "quantize_linear %x0, %x1 : u8",
       "quantize_linear: scale f32[3, 2] for f32[4, 3, 2], expected a scalar, one entry per index "
       "of "
       "an axis, or a tensor of its rank"},
      {{"f32[4, 3]", "f32[3]"},
       "quantize_linear %x0, %x1 {block_size = 2} : u8",
       "quantize_linear: scale f32[3] for blocks of f32[4, 3], expected its rank"},
      {{"f32[4, 3]", "f32[4, 2]"},
       "quantize_linear %x0, %x1 {block_size = 0} : u8",
       "quantize_linear: block_size = 0, expected 1 or more"},
      {{"f32[4, 3]", "f32[4, 2]"},
       "quantize_linear %x0, %x1 {axes = [1]} : u8",
       "quantize_linear: found one of axes and block, expected both or none"},
      {{"f32[4, 3]", "f32[4, 2]"},
       "quantize_linear %x0, %x1 {axes = [1], block = [2], axis = 1} : u8",
       "quantize_linear: found axes and block with axis or block_size, expected either pair alone"},
      {{"f32[4, 3]", "f32[4, 2]"},
       "quantize_linear %x0, %x1 {axes = [1], block = [0.5]} : u8",
       "quantize_linear: block = [0.5], expected a list of integers"},
      {{"f32[4, 3]", "f32[4]"},
       "quantize_linear %x0, %x1 : u8",
       "quantize_linear: div: operand 0 [4, 3] against operand 1 [4]: axis 1 of the result is 3 "
       "against 4; broadcast = pdpd, axis = 1 needs rank(B) <= rank(A), -1 <= axis, axis + rank(B) "
       "<= rank(A) without trailing ones of B, and extents of B that are A's or 1"},
      {{"f32[3]", "f32[]"},
       "dequantize_linear %x0, %x1 : f32",
       "dequantize_linear: operand 0 is f32, expected an integer of at most 32 bits, a float of at "
       "most 8 bits or nf4"},
      {{"u8[3]", "i32[]"},
       "dequantize_linear %x0, %x1 : f32",
       "dequantize_linear: the scale is i32, expected a float or f8e8m0"},
      {{"u8[3]", "f32[]"},
       "dequantize_linear %x0, %x1 : u8",
       "dequantize_linear: the result is u8, expected f16, bf16, f32 or f64"},
      {{"u8[3]", "f32[]", "i8[]"},
       "dequantize_linear %x0, %x1, %x2 : f32",
       "dequantize_linear: the zero point is i8, expected u8 as operand 0"},
  };
  for (const Inference& row : rows) {
    EXPECT_EQ(inferred(function_text(row.types, "%y = " + row.operation)), row.result);
  }
}

/// The first mistake inside a definition is the composition's, whatever comes after it.
TEST(Compositions, NameMistakesOfTheirDefinitions) {
  const std::vector<std::string> types = {"u8[2, 3]", "f32[]", "u8[]",  "i8[4, 5]",
                                          "f32[5]",   "i8[]",  "f32[]", "u8[]"};
  const std::string product =
      inferred(function_text(types, "%y = qlinear_matmul %x0, %x1, %x2, %x3, %x4, %x5, %x6, %x7"));
  EXPECT_TRUE(product.starts_with("qlinear_matmul: matmul_integer: ")) << product;
  const Inference rows[] = {
      {{"u8[1, 2, 3]", "f64[]", "u8[]", "i8[4, 2, 1]", "f32[4]", "i8[]", "f32[]", "u8[]"},
       "%y = qlinear_conv %x0, %x1, %x2, %x3, %x4, %x5, %x6, %x7",
       "qlinear_conv: operand 1, a scale, is f64, expected f16, bf16 or f32"},
      {{"u8[1, 2, 3]", "f32[2]", "u8[]", "i8[4, 2, 1]", "f32[4]", "i8[]", "f32[]", "u8[]"},
       "%y = qlinear_conv %x0, %x1, %x2, %x3, %x4, %x5, %x6, %x7",
       "qlinear_conv: operand 1 is f32[2], expected a scalar or a vector of 1"},
      {{"u8[1, 2, 3]", "f32[]", "u8[]", "i8[4, 2, 1]", "f32[4]", "i8[]", "f32[]", "i32[]"},
       "%y = qlinear_conv %x0, %x1, %x2, %x3, %x4, %x5, %x6, %x7",
       "qlinear_conv: operand 7, the result's zero point, is i32, expected i8 or u8"},
      {{"u8[1, 2, 3]", "f32[]", "u8[]", "i8[4, 2, 1]", "f32[4]", "i8[]", "f32[]", "u8[]", "f32[4]"},
       "%y = qlinear_conv %x0, %x1, %x2, %x3, %x4, %x5, %x6, %x7, %x8",
       "qlinear_conv: operand 8, the bias, is f32[4], expected i32 of one entry per output "
       "channel of i8[4, 2, 1]"},
      {{"u8[1, 2, 3]", "f32[]", "u8[]", "i8[4, 2, 1]", "f32[4]", "i8[]", "f32[]", "u8[]", "i32[1]"},
       "%y = qlinear_conv %x0, %x1, %x2, %x3, %x4, %x5, %x6, %x7, %x8",
       "qlinear_conv: operand 8, the bias, is i32[1], expected i32 of one entry per output "
       "channel of i8[4, 2, 1]"},
      {{"u8[2, 3]", "f32[2, 5]", "u8[]", "i8[3, 5]", "f32[5]", "i8[]", "f32[]", "u8[]"},
       "%y = qlinear_matmul %x0, %x1, %x2, %x3, %x4, %x5, %x6, %x7",
       "qlinear_matmul: axis 1 of a_scale is 5, expected 1"},
      {{"u8[2, 3]", "f32[]", "u8[]", "i8[3, 3]", "f32[2, 3]", "i8[]", "f32[]", "u8[]"},
       "%y = qlinear_matmul %x0, %x1, %x2, %x3, %x4, %x5, %x6, %x7",
       "qlinear_matmul: axis 0 of b_scale is 2, expected 1"},
      {{"u8[3, 2]", "f32[]", "u8[]", "i8[2]", "f32[3]", "i8[]", "f32[]", "u8[]"},
       "%y = qlinear_matmul %x0, %x1, %x2, %x3, %x4, %x5, %x6, %x7",
       "qlinear_matmul: b_scale has 3 entries, expected 1, or 1 as the columns of b"},
      {{"u8[]", "f32[1]", "u8[]", "i8[3, 5]", "f32[]", "i8[]", "f32[]", "u8[]"},
       "%y = qlinear_matmul %x0, %x1, %x2, %x3, %x4, %x5, %x6, %x7",
       "qlinear_matmul: a has rank 0, expected 1 or more"},
      {{"u8[2, 3]", "f32[]", "u8[]", "i8[]", "f32[5]", "i8[]", "f32[]", "u8[]"},
       "%y = qlinear_matmul %x0, %x1, %x2, %x3, %x4, %x5, %x6, %x7",
       "qlinear_matmul: b has rank 0, expected 1 or more"},
      {{"u8[2, 3]", "f32[]", "u8[]", "i8[3, 5]", "f32[]", "i8[]", "f32[]", "u8[1, 5]"},
       "%y = qlinear_matmul %x0, %x1, %x2, %x3, %x4, %x5, %x6, %x7",
       "qlinear_matmul: axis 1 of y_zero_point is 5, expected 1"},
      {{"f32[4, 3]"},
       "%y, %s, %z = dynamic_quantize_linear %x0 {axes = [1.5]} : u8",
       "dynamic_quantize_linear: axes = [1.5], expected integers"},
      {{"f32[]"},
       "%y, %s = quantize_mx %x0 {format = mxfp4} : f4e2m1",
       "quantize_mx: operand 0 is f32[], expected rank 1 or more"},
      {{"f4e2m1[4, 32]", "f8e8m0[4, 1]"},
       "%y = dequantize_mx %x0, %x1 : f32",
       "dequantize_mx: no format, expected mxfp8_e4m3, mxfp8_e5m2, mxfp6_e2m3, mxfp6_e3m2, mxfp4, "
       "mxint8, nvfp4"},
      {{"u8[3]", "f32[]", "u8[]", "i8[?, 3, ?]", "f32[?, 1, ?]", "i8[]", "f32[]", "u8[]"},
       "%y = qlinear_matmul %x0, %x1, %x2, %x3, %x4, %x5, %x6, %x7",
       "qlinear_matmul: operand 4 is f32[?, 1, ?], expected one entry, one per column, or a tensor "
       "of that per matrix"},
      {{"u8[2, 3]", "f32[2, 1, 1]", "u8[]", "i8[3, 5]", "f32[5]", "i8[]", "f32[]", "u8[]"},
       "%y = qlinear_matmul %x0, %x1, %x2, %x3, %x4, %x5, %x6, %x7",
       "qlinear_matmul: a_scale has rank 3, expected 0, 1, or 2 as a"},
  };
  for (const Inference& row : rows) {
    EXPECT_EQ(inferred(function_text(row.types, row.operation)), row.result);
  }
}

TEST(Compositions, DequantizeMxIsElementsTimesScales) {
  EXPECT_EQ(expanded("func @f(%x: f4e2m1[8, 40], %s: f8e4m3[8, 3], %t: f32[]) -> bf16[8, 40] {\n"
                     "  %y = dequantize_mx %x, %s, %t {format = nvfp4} : bf16\n  return %y\n}"),
            "func @f(%x: f4e2m1[8, 40], %s: f8e4m3[8, 3], %t: f32[]) -> (bf16[8, 40]) {\n"
            "  %0 = convert %x : f32\n"
            "  %1 = convert %s : f32\n"
            "  %2 = mul %1, %t\n"
            "  %3 = mul %0, %2 {broadcast = blocked, axes = [1], block = [16]}\n"
            "  %y = convert %3 : bf16\n"
            "  return %y\n"
            "}\n");
  EXPECT_EQ(expanded("func @f(%x: i8[64, 5], %s: f8e8m0[2, 5]) -> f32[64, 5] {\n"
                     "  %y = dequantize_mx %x, %s {format = mxint8, axis = -2} : f32\n"
                     "  return %y\n}"),
            "func @f(%x: i8[64, 5], %s: f8e8m0[2, 5]) -> (f32[64, 5]) {\n"
            "  %0 = convert %x : f32\n"
            "  %1 = constant 0.015625 : f32[]\n"
            "  %2 = mul %0, %1\n"
            "  %3 = convert %s : f32\n"
            "  %y = mul %2, %3 {broadcast = blocked, axes = [0], block = [32]}\n"
            "  return %y\n"
            "}\n");
  const Inference rows[] = {
      {{"f4e2m1[64]", "f8e4m3[2]"},
       "dequantize_mx %x0, %x1 {format = mxfp4} : f32",
       "dequantize_mx: operand 1 is f8e4m3[2], expected f8e8m0 for mxfp4"},
      {{"f8e4m3[64]", "f8e8m0[2]"},
       "dequantize_mx %x0, %x1 {format = mxfp4} : f32",
       "dequantize_mx: operand 0 is f8e4m3[64], expected f4e2m1 for mxfp4"},
      {{"f4e2m1[64]", "f8e8m0[2]", "f32[]"},
       "dequantize_mx %x0, %x1, %x2 {format = mxfp4} : f32",
       "dequantize_mx: operand 2 is f32[], expected none for mxfp4"},
      {{"f4e2m1[64]", "f8e4m3[4]", "f16[]"},
       "dequantize_mx %x0, %x1, %x2 {format = nvfp4} : f32",
       "dequantize_mx: operand 2 is f16[], expected an f32 scalar for nvfp4"},
      {{"f4e2m1[64]", "f8e8m0[2]"},
       "dequantize_mx %x0, %x1 {format = mxfp4, axis = 1} : f32",
       "dequantize_mx: axis = 1, expected -1 to 0 for f4e2m1[64]"},
      {{"f4e2m1[64]", "f8e8m0[1, 2]"},
       "dequantize_mx %x0, %x1 {format = mxfp4} : f32",
       "dequantize_mx: scales f8e8m0[1, 2] for f4e2m1[64], expected the same rank, at least 1"},
      {{"f4e2m1[64]", "f8e8m0[2]"},
       "dequantize_mx %x0, %x1 {format = mxfp4} : u8",
       "dequantize_mx: the result is u8, expected f16, bf16, f32 or f64"},
      {{"f4e2m1[64]", "f8e8m0[2]"},
       "dequantize_mx %x0, %x1 {format = mxfp5} : f32",
       "dequantize_mx: format = mxfp5, expected mxfp8_e4m3, mxfp8_e5m2, mxfp6_e2m3, mxfp6_e3m2, "
       "mxfp4, mxint8, nvfp4"},
  };
  for (const Inference& row : rows) {
    EXPECT_EQ(inferred(function_text(row.types, "%y = " + row.operation)), row.result);
  }
}

TEST(Compositions, CheckUnknownExtentsWhenTheyAreBound) {
  const std::string text =
      function_text({"f32[?, ?]", "f32[?]", "u8[?]"}, "%y = quantize_linear %x0, %x1, %x2 : u8");
  EXPECT_EQ(bound(text, {{4, 3}, {3}, {3}}), "[4, 3]");
  EXPECT_EQ(bound(text, {{4, 3}, {1}, {1}}), "[4, 3]");
  EXPECT_EQ(bound(text, {{4, 3}, {3}, {1}}),
            "quantize_linear: zero point [1] with scale [3], expected equal shapes");
}

// ---- Values.

uint64_t bits(float value) { return std::bit_cast<uint32_t>(value); }

Patterns floats(const std::vector<float>& values) {
  Patterns patterns{ElementType::f32, {static_cast<int64_t>(values.size())}, {}};
  for (const float value : values) patterns.elements.push_back(bits(value));
  return patterns;
}

std::vector<uint64_t> quantized(const std::vector<float>& x, float scale, ElementType to,
                                std::optional<uint64_t> zero_point, Attributes attributes = {}) {
  std::vector<Patterns> operands = {floats(x), {ElementType::f32, {}, {bits(scale)}}};
  if (zero_point) operands.push_back({to, {}, {*zero_point}});
  return interpreted(OpKind::quantize_linear, operands, std::move(attributes),
                     {.element = to, .shape = {}})
      .elements;
}

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float inf = std::numeric_limits<float>::infinity();
using enum ElementType;

TEST(QuantizeLinear, RoundsHalfToEvenAndSaturates) {
  using Codes = std::vector<uint64_t>;
  EXPECT_EQ(quantized({0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 3.f}, 1, u8, 128),
            (Codes{128, 130, 130, 128, 126, 131}));
  EXPECT_EQ(quantized({1e30f, -1e30f, inf, -inf, nan, -nan}, 1, u8, 7),
            (Codes{255, 0, 255, 0, 7, 7}));
  EXPECT_EQ(quantized({131072.f, -131072.f, 65536.f, -65536.f, -1, 1}, 1, u16, 65535),
            (Codes{65535, 0, 65535, 0, 65534, 65535}));
  EXPECT_EQ(quantized({131072.f, -131072.f, 32768.f, 65535.f}, 1, i16, 0x8000),
            (Codes{32767, 0x8000, 0, 32767}));
  EXPECT_EQ(quantized({7.5f, -8.5f, 6.5f, nan}, 1, i4, {}), (Codes{7, 8, 6, 0}));
  EXPECT_EQ(quantized({3.f, 1, -1, -3.f, 0}, 2, i2, 1), (Codes{1, 1, 1, 3, 1}));
  EXPECT_EQ(quantized({1, -1, 0, nan}, 0, u8, 3), (Codes{255, 0, 3, 3}));  // x / 0, 0 / 0
}

/// The two ways to scale have names of their own, for ties of the quotient are ties of one alone.
TEST(QuantizeLinear, DividesOrMultipliesByTheReciprocal) {
  const Attributes reciprocal = {{"scaling", {Identifier{"reciprocal"}}}};
  int differing = 0;
  for (int i = 0; i < 400; ++i) {
    const float half = static_cast<float>(2 * (i % 120) + 1) / 2;
    const float scale = 1.75f + static_cast<float>(i) * 0x1p-12f;  // half * scale is exact
    const uint64_t divided = quantized({half * scale}, scale, u8, 0).front();
    EXPECT_EQ(divided, static_cast<uint64_t>(std::nearbyint(half)));
    differing += divided != quantized({half * scale}, scale, u8, 0, reciprocal).front();
  }
  EXPECT_GT(differing, 10);
}

TEST(QuantizeLinear, GivesSmallFloats) {
  using Codes = std::vector<uint64_t>;
  const Attributes overflows = {{"saturate", {false}}};
  EXPECT_EQ(quantized({1, -0.f, 1000, -inf, nan}, 2, f8e4m3, 0),
            (Codes{0x30, 0x80, 0x7e, 0xfe, 0x7f}));
  EXPECT_EQ(quantized({1, 1000, -inf}, 2, f8e4m3, {}, overflows), (Codes{0x30, 0x7f, 0xff}));
  EXPECT_EQ(quantized({1, 200000, -inf}, 2, f8e5m2, {}, overflows), (Codes{0x38, 0x7c, 0xfc}));
  EXPECT_EQ(quantized({1, 200000, -inf}, 2, f8e5m2, {}), (Codes{0x38, 0x7b, 0xfb}));
  EXPECT_EQ(quantized({1, 5, 100, -100, nan, -nan}, 2, f4e2m1, {}), (Codes{1, 4, 7, 15, 8, 0}));
  EXPECT_EQ(quantized({1, 5}, 2, f4e2m1, 2), (Codes{3, 6}));  // a zero point of 1 is added
}

TEST(DequantizeLinear, SubtractsExactlyAndRoundsOnce) {
  const Patterns x{u8, {3}, {0, 128, 255}};
  const Patterns scale{ElementType::f32, {}, {bits(0.1f)}};
  const Patterns zero_point{u8, {}, {128}};
  const Patterns y = interpreted(OpKind::dequantize_linear, {x, scale, zero_point}, {},
                                 {.element = ElementType::f32, .shape = {}});
  EXPECT_EQ(y.elements, (std::vector<uint64_t>{bits(-128 * 0.1f), bits(0), bits(127 * 0.1f)}));
  const Patterns wide{i32, {2}, {0x80000000, 5}};
  const Patterns one{i32, {}, {1}};
  const Patterns lowest = interpreted(OpKind::dequantize_linear, {wide, scale, one}, {},
                                      {.element = ElementType::f32, .shape = {}});
  EXPECT_EQ(lowest.elements, (std::vector<uint64_t>{bits(-0x1p31f * 0.1f), bits(4 * 0.1f)}));
  const Patterns large{u32, {2}, {3'000'000'000, 5}};
  for (const uint64_t zero : {0, 1}) {
    const Patterns y_of_u32 =
        interpreted(OpKind::dequantize_linear, {large, scale, Patterns{u32, {}, {zero}}}, {},
                    {.element = ElementType::f32, .shape = {}});
    const float less = zero == 0 ? 5 : 4;
    EXPECT_EQ(y_of_u32.elements, (std::vector<uint64_t>{bits(3e9f * 0.1f), bits(less * 0.1f)}));
  }
}

/// A factor that the result's type lacks is not rounded before the product.
TEST(DequantizeLinear, HasProductsInF32ForResultsOf16Bits) {
  const auto dequantized = [](const Patterns& x, const Patterns& scale, ElementType to) {
    return interpreted(OpKind::dequantize_linear, {x, scale, Patterns{x.type, {}, {0}}}, {},
                       {.element = to, .shape = {}})
        .elements;
  };
  using Codes = std::vector<uint64_t>;
  const Patterns words{u16, {3}, {65535, 4097, 2049}};
  const Patterns small{ElementType::f16, {}, {0x1419}};  // 0.001 as f16
  EXPECT_EQ(dequantized(words, small, ElementType::f16), (Codes{0x5419, 0x4419, 0x401a}));
  const Patterns bytes{u8, {3}, {255, 1, 0}};
  const auto f32_scale = [](float scale) { return Patterns{ElementType::f32, {}, {bits(scale)}}; };
  EXPECT_EQ(dequantized(bytes, f32_scale(1e-8f), ElementType::f16), (Codes{0x002b, 0, 0}));
  EXPECT_EQ(dequantized(bytes, f32_scale(70000), ElementType::f16), (Codes{0x7c00, 0x7c00, 0}));
  EXPECT_EQ(dequantized({i32, {1}, {100000}}, f32_scale(0.001f), ElementType::f16),
            (Codes{0x5640}));
}

}  // namespace
}  // namespace castor::test
