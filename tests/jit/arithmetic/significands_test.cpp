// SPDX-License-Identifier: Apache-2.0
// Products of short numbers that are stored as bf16 without rounding (Significands), against the
// interpreter: every pair of codes.
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

TEST(Significands, ProductsOfProducts) {
  for (const ElementType first : {f4e2m1, i4}) {
    for (const ElementType second : {f8e8m0, f4e2m1}) {
      check_products(first, second, "%q = mul %p, %b ");
      check_products(first, second, "%q = mul %p, %p ");
    }
  }
}

}  // namespace
}  // namespace castor::test
