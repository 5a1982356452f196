// SPDX-License-Identifier: Apache-2.0
// Reduces a program that fails to a small one that fails alike.
#pragma once

#include <vector>

#include "tools/fuzz/executor.hpp"

namespace castor::fuzz {

/// A program that fails, and how.
struct Mismatch {
  Program original;
  Program minimised;    ///< the original where it did not fail again
  Finding finding;      ///< the minimised program's
  bool repeats = true;  ///< false: the original does not fail in a process of its own
};

/// Takes operations, results, inputs, elements, gaps, offsets, options and data away for as long as
/// the program fails alike on the finding's tier. Every attempt runs in a child process with a
/// runtime of its own; at most `max_attempts`.
inline constexpr int max_attempts = 1500;
Mismatch minimise(const Program& original, const Finding& finding, const std::vector<Tier>& tiers,
                  const Tamper& tamper);

}  // namespace castor::fuzz
