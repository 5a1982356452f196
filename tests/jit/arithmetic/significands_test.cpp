// SPDX-License-Identifier: Apache-2.0
// Products of short numbers (Significands), against the interpreter: those that are stored as bf16
// without rounding, every pair of codes; those of bf16 and powers of two, which become small floats
// by their upper halves, every bf16.
#include "tests/support/on_every_engine.hpp"

namespace castor::test {
namespace {

Patterns all_codes(ElementType type, const Dims& shape) {
  Patterns codes{type, shape, {}};
  for (uint64_t code = 0; code < uint64_t{1} << bits_of(type); ++code)
    codes.elements.push_back(code);
  return codes;
}

/// Each code of one type times each code of another, through f32 to bf16.
void check_products(ElementType first, ElementType second, const std::string& more = {}) {
  const int64_t rows = int64_t{1} << bits_of(first);
  const int64_t columns = int64_t{1} << bits_of(second);
  const std::string text = fmt::format(
      "func @f(%x: {}[?n, 1], %s: {}[1, ?c]) -> bf16[?n, ?c] {{ %a = convert %x : f32 "
      "%b = convert %s : f32 %p = mul %a, %b {}%y = convert %{} : bf16 return %y }}",
      name_of(first), name_of(second), more, more.empty() ? "p" : "q");
  const Result<FunctionPtr> function = parse_function(text);
  ASSERT_TRUE(function.ok()) << function.error().message;
  const std::vector<Patterns> operands = {all_codes(first, Dims{rows, 1}),
                                          all_codes(second, Dims{1, columns})};
  EXPECT_EQ(mistake_anywhere(*function, operands, interpreted(**function, operands)), "") << text;
}

using enum ElementType;

TEST(Significands, ProductsOfEveryPairOfCodes) {
  for (const ElementType first : {f4e2m1, f6e2m3, f6e3m2, f8e4m3, f8e5m2, f8e4m3fnuz, u4, i4, i8}) {
    for (const ElementType second : {f8e8m0, f8e4m3, f4e2m1, f8e5m2, u2}) {
      check_products(first, second);
    }
  }
}

/// A number beyond a type's largest becomes that one, which is no power of two.
TEST(Significands, OfWhatSaturates) {
  struct Chain {
    std::string first;   ///< what becomes of %x, bf16, in f32
    std::string second;  ///< and of %s, f8e8m0
  };
  const Chain chains[] = {
      {"%a = convert %x : f32", "%t = convert %s : f4e2m1 %b = convert %t : f32"},
      {"%a = convert %x : f32",
       "%t = convert %s {overflow = saturate} : f8e4m3 %b = convert %t : f32"},
      {"%a = convert %x : f32",
       "%t = convert %s {overflow = saturate} : f16 %b = convert %t : f32"},
      {"%t = convert %x {overflow = saturate} : f16 %a = convert %t : f32",
       "%b = convert %s : f32"},
      {"%t = convert %x {overflow = saturate_finite} : f16 %a = convert %t : f32",
       "%b = convert %s : f32"}};
  Patterns floats{bf16, Dims{256 * 32}, {}};
  for (uint64_t i = 0; i < 256 * 32; ++i) floats.elements.push_back(i * 8 + i % 7);
  for (const auto& [first, second] : chains) {
    for (const std::string& last :
         {std::string(" : bf16"), std::string(" {overflow = saturate} : f8e4m3")}) {
      const std::string text = fmt::format(
          "func @f(%x: bf16[8192], %s: f8e8m0[256]) -> {}[8192] {{ {} {} "
          "%p = mul %a, %b {{broadcast = blocked, axes = [0], block = [32]}} "
          "%y = convert %p{} return %y }}",
          last.substr(last.rfind(' ') + 1), first, second, last);
      const Result<FunctionPtr> function = parse_function(text);
      ASSERT_TRUE(function.ok()) << function.error().message << text;
      const std::vector<Patterns> operands = {floats, all_codes(f8e8m0, Dims{256})};
      EXPECT_EQ(mistake_anywhere(*function, operands, interpreted(**function, operands)), "")
          << text;
    }
  }
}

TEST(Significands, ProductsOfProducts) {
  for (const ElementType first : {f4e2m1, i4}) {
    for (const ElementType second : {f8e8m0, f4e2m1}) {
      check_products(first, second, "%q = mul %p, %b ");
      check_products(first, second, "%q = mul %p, %p ");
    }
  }
}

/// A product that is handed on in f32, though its type is bf16, is as long as any.
TEST(Significands, ExcessPrecision) {
  const Result<FunctionPtr> function = parse_function(
      "func @f(%x: bf16[?n]) -> bf16[?n] attributes {excess_precision = allow} { "
      "%p = mul %x, %x %y = convert %p : bf16 return %y }");
  ASSERT_TRUE(function.ok()) << function.error().message;
  const Patterns numbers = all_codes(bf16, Dims{1 << 16});
  EXPECT_EQ(mistake_anywhere(*function, {numbers}, interpreted(**function, {numbers})), "");
}

/// bf16 over powers of two, from one near each end to the other, and NaN.
Patterns scales() {
  return {f8e8m0, {1, 15}, {0, 1, 2, 3, 17, 60, 100, 126, 127, 128, 140, 200, 253, 254, 255}};
}

TEST(Significands, QuotientsByPowersAsSmallFloats) {
  const Patterns numbers = all_codes(bf16, Dims{1 << 16, 1});
  for (const ElementType to : {f4e2m1, f6e2m3, f6e3m2, f8e4m3, f8e5m2, f8e4m3fnuz, f8e8m0}) {
    const bool has_zero_for_nan = to == f4e2m1 || to == f6e2m3 || to == f6e3m2;
    for (const char* options : {"overflow = saturate", "nan = zero"}) {
      if (options == std::string_view("nan = zero") && !has_zero_for_nan) continue;
      const std::string text = fmt::format(
          "func @f(%x: bf16[?n, 1], %s: f8e8m0[1, ?c]) -> {0}[?n, ?c] {{ %a = convert %x : f32 "
          "%b = convert %s : f32 %one = constant 1 : f32[] %r = div %one, %b %p = mul %a, %r "
          "%y = convert %p {{{1}}} : {0} return %y }}",
          name_of(to), options);
      const Result<FunctionPtr> function = parse_function(text);
      ASSERT_TRUE(function.ok()) << function.error().message;
      const Patterns expected = interpreted(**function, {numbers, scales()});
      EXPECT_EQ(mistake_anywhere(*function, {numbers, scales()}, expected), "") << text;
    }
  }
}

}  // namespace
}  // namespace castor::test
