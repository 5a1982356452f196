// SPDX-License-Identifier: Apache-2.0
// What a target takes for a bug.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "ir/support/result.hpp"

namespace castor::libfuzzer {

/// Ends the process with a message, which libFuzzer takes for a finding.
[[noreturn]] inline void found(std::string_view what, std::string_view detail) {
  std::fprintf(stderr, "FOUND: %.*s\n%.*s\n", static_cast<int>(what.size()), what.data(),
               static_cast<int>(detail.size()), detail.data());
  std::abort();
}

inline void expect(bool holds, std::string_view what, std::string_view detail) {
  if (!holds) found(what, detail);
}

/// A refusal says something, and is not castor's own mistake.
inline void expect_refusal(const Error& error, std::string_view text) {
  expect(error.code != ErrorCode::internal && !error.message.empty(),
         "an input was refused with: " + error.to_string(), text);
}

}  // namespace castor::libfuzzer
