// SPDX-License-Identifier: Apache-2.0
// dequantize_mx: every format on every tier, and every code by every scale as a product of numbers.
#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "ir/composition/mx_formats.hpp"
#include "ir/numerics/scalar.hpp"
#include "tests/support/function_case.hpp"
#include "tests/support/on_every_engine.hpp"

namespace castor::test {
namespace {

using enum ElementType;

TEST(DequantizeMx, EveryFormat) {
  for (const MxFormat& format : mx_formats) {
    for (const ElementType to : {f32, bf16, f16, f64}) {
      for (const Dims& x : {Dims{7, 96}, Dims{3, 2, 75}, Dims{33}}) {
        Dims scale = x;
        int64_t& last = scale[scale.rank() - 1];
        last = (last + format.block - 1) / format.block;
        const bool has_tensor_scale = format.has_tensor_scale && to != bf16;
        check_function(
            {fmt::format("func @f(%x: {}{}, %s: {}{}, %t: f32[]) -> {}{} {{ %y = dequantize_mx %x, "
                         "%s{} {{format = {}}} : {} return %y }}",
                         name_of(format.element), to_string(x), name_of(format.scale),
                         to_string(scale), name_of(to), to_string(x),
                         has_tensor_scale ? ", %t" : "", format.name, name_of(to)),
             {{x}, {scale}, {{}}}});
      }
    }
  }
  check_function(
      {"func @f(%x: f4e2m1[?, ?], %s: f8e8m0[?, ?]) -> f32[?, ?] { %y = dequantize_mx %x, "
       "%s {format = mxfp4, axis = 0, block = 16} : f32 return %y }",
       {{{40, 9}}, {{3, 9}}}});
}

double number_of(uint64_t code, ElementType type) {
  return std::bit_cast<double>(numerics::convert(code, type, f64, {}));
}

/// In f64 products are exact: element times scale, rounded once to f32.
TEST(DequantizeMx, EveryCodeByEveryScale) {
  for (const MxFormat& format : mx_formats) {
    const int64_t codes = int64_t{1} << bits_of(format.element);
    Patterns x{format.element, {256, codes}, {}};
    Patterns scale{format.scale, {256, 1}, {}};
    Patterns expected{f32, x.shape, {}};
    for (uint64_t s = 0; s < 256; ++s) {
      scale.elements.push_back(s);
      for (uint64_t code = 0; code < static_cast<uint64_t>(codes); ++code) {
        x.elements.push_back(code);
        const double element = std::ldexp(number_of(code, format.element), -format.fraction_bits);
        const auto product = static_cast<float>(element * number_of(s, format.scale));
        expected.elements.push_back(std::bit_cast<uint32_t>(product));
      }
    }
    const FunctionPtr function =
        function_of(OpKind::dequantize_mx, {x, scale},
                    {{"format", {Identifier{std::string(format.name)}}}, {"block", {codes}}},
                    {.element = f32, .shape = {}});
    ASSERT_TRUE(function);
    EXPECT_EQ(mistake_anywhere(function, {x, scale}, expected), "") << format.name;
  }
}

}  // namespace
}  // namespace castor::test
