// SPDX-License-Identifier: Apache-2.0
// Whether a sum of bounded multiples can fall into an interval: the arithmetic of overlap.
#pragma once

#include <cstdint>
#include <span>

#include "ir/shape/shape.hpp"

namespace castor {

/// coefficient * x for any integer x from 0 to `max`. The coefficient is positive.
struct BoundedTerm {
  int64_t coefficient;
  int64_t max;
};

/// The integers from `low` to `high`; none where low > high.
struct Interval {
  int64_t low;
  int64_t high;
};

enum class Reachable : uint8_t { no, yes, undecided };

/// Maximum number of terms: two tensors' axes (Dims keeps one more than max_rank).
inline constexpr size_t max_terms = 2 * (max_rank + 1);

/// Whether the sum of up to max_terms terms can be one of the integers in `target`. The largest
/// sum and the magnitudes of the interval's ends are at most 2^61. Thread safe.
///
/// The answer is exact. The search takes 1 + n steps each time that it looks at n terms, and gives
/// up (undecided) when it has taken more than `steps`, from which they are subtracted. Up to two
/// terms never need a search: Euclid's algorithm decides them. The terms of tensors whose axes are
/// nested, or whose strides have a common divisor, take a few looks.
Reachable sum_reaches(std::span<const BoundedTerm> terms, Interval target, int64_t& steps);

}  // namespace castor
