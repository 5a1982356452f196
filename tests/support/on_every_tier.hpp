// SPDX-License-Identifier: Apache-2.0
// One conversion of prepared inputs, on every tier.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/support/conversions.hpp"

namespace castor::test {

/// Converts the inputs on every tier and compares all bytes with the expected ones; a difference
/// is a fatal failure of the running test.
inline void check_on_every_tier(const Conversion& conversion, const ExpectedConversion& expected) {
  const auto count = static_cast<int64_t>(expected.inputs.size());
  std::vector<std::byte> actual(expected.output_bytes.size());
  for (const auto& [tier, runtime] : elementwise_tier_runtimes()) {
    std::fill(actual.begin(), actual.end(), std::byte{0xa5});
    const ConstView source(expected.input_bytes.data(), conversion.from, {count},
                           expected.input_bytes.size());
    const View destination(actual.data(), conversion.to, {count}, actual.size());
    const Status status = runtime.convert(source, destination, conversion.options);
    ASSERT_TRUE(status.ok()) << conversion.name() << ": " << status.error().message;
    ASSERT_TRUE(actual == expected.output_bytes)
        << name_of(tier) << " " << conversion.name() << ": "
        << first_difference(conversion, expected, actual, expected.inputs.size());
  }
}

}  // namespace castor::test
