// SPDX-License-Identifier: Apache-2.0
// A conversion of what another one computed: its lanes may be wider than elements in memory, and
// hold something else than codes.
#include <gtest/gtest.h>

#include "tests/support/element_types.hpp"
#include "tests/support/function_case.hpp"

namespace castor::test {
namespace {

class ConversionChains : public testing::TestWithParam<ElementType> {};

TEST_P(ConversionChains, HaveTheInterpretersBits) {
  const std::string_view middle = name_of(GetParam());
  for (const std::string_view from : {"f32", "f16", "bf16", "u8"}) {
    for (const std::string_view to : {"nf4", "f6e2m3", "f8e5m2", "i4", "i16", "f16"}) {
      check_function({fmt::format("func @f(%x: {0}[?n]) -> {2}[?n] {{\n"
                                  "  %y = convert %x : {1}\n  %z = convert %y : {2}\n"
                                  "  return %z\n}}\n",
                                  from, middle, to),
                      {{{203}}}});
      if (HasFatalFailure()) return;
    }
  }
}

/// A sum needs the low bits alone, a minimum the number, and a store neither.
TEST(ConversionsForArithmetic, HaveTheInterpretersBits) {
  constexpr const char* nearest_away = "{rounding = nearest_away} ";
  for (const ElementType type : all_element_types()) {
    if (!is_integer(type)) continue;
    for (const auto& [from, options] :
         {std::pair("f32", ""), std::pair("f16", ""), std::pair("bf16", ""),
          std::pair("f16", nearest_away), std::pair("bf16", nearest_away)}) {
      check_function(
          {fmt::format("func @f(%x: {0}[?n], %a: {1}[?n]) -> ({1}[?n], {1}[?n], {1}[?n]) {{\n"
                       "  %y = convert %x {2}: {1}\n  %s = add %y, %a\n  %m = min %y, %a\n"
                       "  return %y, %s, %m\n}}\n",
                       from, name_of(type), options),
           {{{203}}, {{203}}}});
      if (HasFatalFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(By, ConversionChains, testing::ValuesIn(all_element_types()),
                         [](const auto& row) { return test_name(row.param); });

}  // namespace
}  // namespace castor::test
