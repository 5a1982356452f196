// SPDX-License-Identifier: Apache-2.0
// Functions and what canonicalising makes of them, as texts.
#pragma once

#include <gtest/gtest.h>

#include "ir/rewrite/canonicalize.hpp"
#include "ir/text/text.hpp"

namespace castor::test {

/// The only function of a text; null, and a failure, where it is refused.
inline FunctionPtr parsed(std::string_view text) {
  const auto function = parse_function(text);
  EXPECT_TRUE(function) << text << "\n" << (function ? "" : function.error().to_string());
  return function ? *function : nullptr;
}

/// The canonical form of one text is the function of another, and its own canonical form.
inline void expect_canonical(std::string_view before, std::string_view after) {
  const FunctionPtr function = parsed(before);
  const FunctionPtr expected = parsed(after);
  ASSERT_TRUE(function && expected);
  const FunctionPtr canonical = canonicalize(function);
  EXPECT_TRUE(same_computation(*canonical, *expected)) << "found:\n" << print(*canonical);
  EXPECT_EQ(canonical->hash, expected->hash);
  EXPECT_EQ(canonicalize(canonical), canonical) << "not a fixed point:\n" << print(*canonical);
  EXPECT_EQ(canonical == function, before == after) << "the same pointer if nothing changes";
}

}  // namespace castor::test
