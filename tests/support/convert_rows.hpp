// SPDX-License-Identifier: Apache-2.0
// Rows of the conversion table as test data: value, options, expected bits.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ir/numerics/scalar.hpp"

namespace castor {

struct ConvertRow {
  ElementType from;
  ElementType to;
  ConvertOptions options;
  uint64_t input;
  uint64_t expected;
};

/// Expects of each row that its options are admitted and that `convert` gives the expected bits.
inline void expect_rows(const std::vector<ConvertRow>& rows) {
  for (const ConvertRow& row : rows) {
    const std::string what = std::string(name_of(row.from)) + " -> " +
                             std::string(name_of(row.to)) + " {" + to_string(row.options) + "}";
    EXPECT_TRUE(check_convert_options(row.from, row.to, row.options)) << what;
    EXPECT_EQ(numerics::convert(row.input, row.from, row.to, row.options), row.expected)
        << what << std::hex << ", input 0x" << row.input;
  }
}

}  // namespace castor
