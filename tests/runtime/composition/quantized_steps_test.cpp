// SPDX-License-Identifier: Apache-2.0
// Numbers that are quantized, dequantized at once, added and quantized again, as residual layers
// do, on every tier: what is left out because bounds are known must not show.
#include <fmt/format.h>

#include "tests/support/function_case.hpp"

namespace castor::test {
namespace {

constexpr const char* types[] = {"u8", "i8", "u16", "i16"};

int64_t zero_point_of(std::string_view type, int64_t number) {
  const ElementType element = *element_type_named(type);
  return std::clamp(number, integer_min(element), static_cast<int64_t>(integer_max(element)));
}

/// %y from %x in f32, quantized to the type and back.
std::string quantized(std::string_view x, std::string_view y, std::string_view type, double scale,
                      int64_t zero_point) {
  return fmt::format(
      "  %{1}s = constant {3:.9e} : f32[]\n  %{1}z = constant {4} : {2}[]\n"
      "  %{1}q = quantize_linear %{0}, %{1}s, %{1}z : {2}\n"
      "  %{1} = dequantize_linear %{1}q, %{1}s, %{1}z : f32\n",
      x, y, type, scale, zero_point);
}

TEST(QuantizedSteps, ResidualSums) {
  for (const char* type : types) {
    for (const int64_t zero : {0, 1, 130, -7, -128, 65535}) {
      for (const double scale : {0.02, 1.5e-5, 3e4, 1e-38, 7e37}) {
        const int64_t zero_point = zero_point_of(type, zero);
        SCOPED_TRACE(fmt::format("{}, zero point {}, scale {}", type, zero_point, scale));
        check_function(
            {fmt::format(
                 "func @f(%x: i32[37], %r: {0}[37]) -> {0}[37] {{\n  %f = convert %x : f32\n"
                 "  %m = constant 0.0012 : f32[]\n  %p = mul %f, %m\n{1}"
                 "  %rs = constant 0.31 : f32[]\n  %rz = constant {2} : {0}[]\n"
                 "  %d = dequantize_linear %r, %rs, %rz : f32\n  %a = add %y, %d\n"
                 "  %y2 = quantize_linear %a, %rs, %rz : {0}\n  return %y2\n}}\n",
                 type, quantized("p", "y", type, scale, zero_point), zero_point),
             {{{37}}, {{37}}}});
      }
    }
  }
}

/// Floats of any size are the operand, NaN and infinities included.
TEST(QuantizedSteps, ThereAndBack) {
  for (const char* type : types) {
    for (const int64_t zero : {0, 99, -128}) {
      check_function({fmt::format("func @f(%x: f32[301]) -> (f32[301], {0}[301]) {{\n{1}"
                                  "  return %y, %yq\n}}\n",
                                  type, quantized("x", "y", type, 0.07, zero_point_of(type, zero))),
                      {{{301}}}});
    }
  }
}

/// Bounds that one sum's saturation hides show after a second sum.
TEST(QuantizedSteps, SumsOfSeveralOffsets) {
  for (const char* to : {"u8", "i16"}) {
    for (const char* offset : {"65535", "-65535", "40000"}) {
      check_function(
          {fmt::format("func @f(%x: f32[301], %o: u16[301]) -> {0}[301] {{\n"
                       "  %i = convert %x {{rounding = nearest_even}} : i32\n"
                       "  %c = clamp %i {{lo = -131072.0, hi = 131072.0}}\n"
                       "  %k = constant {1} : i32[]\n  %a = add %c, %k\n  %w = convert %o : i32\n"
                       "  %b = add %a, %w\n  %y = convert %b {{overflow = saturate}} : {0}\n"
                       "  return %y\n}}\n",
                       to, offset),
           {{{301}}, {{301}}}});
    }
  }
}

/// Sums of integers of any size, scaled so that their products are around the bounds of i32 and of
/// the range to which quantization clamps.
TEST(QuantizedSteps, ScaledSums) {
  for (const char* type : types) {
    for (const char* scale : {"3.0e-5", "6.1e-5", "0.4", "0.49", "0.51", "1.0", "3.0"}) {
      for (const int64_t zero : {3, -128}) {
        check_function(
            {fmt::format("func @f(%x: i32[301]) -> {0}[301] {{\n  %f = convert %x : f32\n"
                         "  %m = constant {1} : f32[]\n  %p = mul %f, %m\n"
                         "  %s = constant 1.0 : f32[]\n  %z = constant {2} : {0}[]\n"
                         "  %y = quantize_linear %p, %s, %z : {0}\n  return %y\n}}\n",
                         type, scale, zero_point_of(type, zero)),
             {{{301}}}});
      }
    }
  }
}

}  // namespace
}  // namespace castor::test
