// SPDX-License-Identifier: Apache-2.0
// Canonical functions give the bits of the functions that they stand for, excess precision allowed
// or not: every code of 8- and 16-bit sources, signalling NaNs and all boolean bytes included.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/rewrite/canonicalize.hpp"
#include "ir/text/text.hpp"
#include "tests/support/interpreted.hpp"

namespace castor {
namespace {

using test::interpreted;
using test::Patterns;

/// Operations on %x, every code of `source`, and %y, the same codes backwards, up to %r.
struct Program {
  const char* source;
  const char* result;
  const char* operations;
};

constexpr Program programs[] = {
    {"f16", "f16", "%a = add %x, %y %r = convert %a : f16"},
    {"f16", "f16", "%a = add %x, %y %b = convert %a : f16 %r = mul %b, %x"},
    {"f16", "f32", "%a = mul %x, %y %r = convert %a : f32"},
    {"f16", "f16", "%a = mul %x, %y %b = convert %a : f32 %r = convert %b : f16"},
    {"f16", "bf16", "%a = mul %x, %y %b = convert %a : f16 %r = convert %b : bf16"},
    {"f16", "bf16", "%a = sub %x, %y %b = convert %a : f32 %r = convert %b : bf16"},
    {"bf16", "i8", "%a = sub %x, %y %b = convert %a : f32 %r = convert %b {rounding = up} : i8"},
    {"bf16", "f32",
     "%a = neg %x %b, %c = convert_promote_types %x, %a %d = convert %c : f32 %r = add %d, %d"},
    {"f16", "f16", "%a = add %x, %y %r, %c = convert_promote_types %a, %x"},
    {"f16", "f16", "%a = add %x, %y %r = reshape %a : [65536]"},
    {"f16", "f16", "%a = add %x, %y %b = reshape %a : [65536] %r = add %b, %y"},
    {"f16", "f16", "%a = sqrt %x %r = convert %a {overflow = saturate} : f16"},
    {"f8e5m2", "f8e5m2", "%a = add %x, %y %b = convert %a : f8e5m2 %r = sub %b, %y"},
    {"f8e4m3", "f8e4m3", "%a = div %x, %y %b = convert %a : f16 %r = convert %b : f8e4m3"},
    {"f8e4m3fnuz", "u8", "%a = mul %x, %y %b = convert %a : f8e4m3fnuz %r = convert %b : u8"},
    {"boolean", "boolean", "%a = bitwise_or %x, %y %r = convert %a : boolean"},
    {"boolean", "boolean", "%a = bitwise_not %x %r = convert %a : boolean"},
    {"boolean", "boolean", "%a = less %x, %y %r = convert %a : boolean"},
    {"boolean", "boolean", "%a = logical_xor %x, %y %r = convert %a : boolean"},
    {"boolean", "boolean", "%a = select %x, %y, %x %r = convert %a : boolean"},
    {"boolean", "boolean", "%a = reshape %x : [256] %r = convert %a : boolean"},
    {"i8", "i8", "%a = floor %x %b = round_even %a %r = add %b, %y"},
    {"u16", "u16", "%a = relu %x %b = abs %a %r = ceil %b"},
    {"f16", "u8",
     "%a = relu %x %r = convert %a {overflow = saturate, rounding = nearest_even} : u8"},
    {"bf16", "u64", "%a = add %x, %y %b = relu %a %r = convert %b {rounding = down} : u64"},
    {"f8e5m2", "u4", "%a = relu %x %r = convert %a {rounding = half_up} : u4"},
    {"f16", "u8", "%a = relu %x %r = convert %a {overflow = wrap} : u8"},
    {"i8", "u2", "%a = relu %x %r = convert %a {overflow = saturate} : u2"},
    {"i8", "u2", "%a = relu %x %r = convert %a : u2"},
    {"u8", "i16",
     "%a = convert %x : i16 %b = convert %y : i8 %r, %c = convert_promote_types %a, "
     "%b"},
};

Patterns codes_of(ElementType type, bool backwards) {
  const int64_t count = int64_t{1} << bits_of(type);
  std::vector<uint64_t> codes;
  for (int64_t i = 0; i < count; ++i) {
    codes.push_back(static_cast<uint64_t>(backwards ? count - 1 - i : i));
  }
  return test::row_of(type, std::move(codes));
}

void expect_same_bits(const Program& program, const char* attributes) {
  const ElementType type = *element_type_named(program.source);
  const std::vector<Patterns> operands = {codes_of(type, false), codes_of(type, true)};
  const std::string text = fmt::format(
      "func @f(%x: {0}[{1}], %y: {0}[{1}]) -> ({2}[{1}]){3} {{ {4} return %r }}", program.source,
      operands[0].elements.size(), program.result, attributes, program.operations);
  const auto function = parse_function(text);
  ASSERT_TRUE(function) << text << function.error().to_string();
  const FunctionPtr canonical = canonicalize(*function);
  EXPECT_EQ(interpreted(**function, operands), interpreted(*canonical, operands))
      << text << "\n"
      << print(*canonical);
}

TEST(CanonicalizeValues, AreTheFunctions) {
  for (const Program& program : programs) expect_same_bits(program, "");
}

TEST(CanonicalizeValues, AreTheFunctionsInExcessPrecision) {
  for (const Program& program : programs) {
    expect_same_bits(program, " attributes {excess_precision = allow}");
  }
}

}  // namespace
}  // namespace castor
