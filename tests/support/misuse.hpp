// SPDX-License-Identifier: Apache-2.0
// What tests of misuse share.
#pragma once

#include <string_view>

namespace castor::test {

/// A value of the enumeration, or a number that is none.
template <class Enumeration>
Enumeration number(int value) {
  return static_cast<Enumeration>(value);
}

/// A function that nothing is wrong with.
inline constexpr std::string_view right_text =
    "func @f(%x: f32[2, 3]) -> (u8[2, 3]) {\n  %y = convert %x : u8\n  return %y\n}\n";

}  // namespace castor::test
