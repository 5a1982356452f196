// SPDX-License-Identifier: Apache-2.0
// Ops on single elements: tables of bits.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "tests/support/interpreted.hpp"

namespace castor::test {

/// An op, the raw bits of its operands, all of one type, and of its result.
struct OpCase {
  OpKind op;
  ElementType type;
  std::vector<uint64_t> operands;
  uint64_t expected;
};

inline void expect_results(const std::vector<OpCase>& cases) {
  for (const OpCase& row : cases) {
    std::string operands;
    for (uint64_t bits : row.operands) operands += fmt::format(" 0x{:x}", bits);
    EXPECT_EQ(result_of(row.op, row.type, row.operands), row.expected)
        << name_of(row.op) << " " << name_of(row.type) << operands;
  }
}

// Codes of f32.
inline constexpr uint64_t f32_one = 0x3f800000;
inline constexpr uint64_t f32_two = 0x40000000;
inline constexpr uint64_t f32_inf = 0x7f800000;
inline constexpr uint64_t f32_invalid = 0xffc00000;
inline constexpr uint64_t minus = 0x80000000;

}  // namespace castor::test
