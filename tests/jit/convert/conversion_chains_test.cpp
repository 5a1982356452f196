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
  for (const std::string_view from : {"f32", "f16", "u8"}) {
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

INSTANTIATE_TEST_SUITE_P(By, ConversionChains, testing::ValuesIn(all_element_types()),
                         [](const auto& row) { return test_name(row.param); });

}  // namespace
}  // namespace castor::test
