// SPDX-License-Identifier: Apache-2.0
// The order of exact numbers.
#pragma once

#include <tuple>

#include "ir/numerics/unpacked.hpp"

namespace castor::numerics {

/// Whether a > b, exactly; -0 equals +0, NaN is greater than nothing and nothing than NaN.
/// Not both of them are inexact.
inline bool is_greater(const Unpacked& a, const Unpacked& b) {
  if (a.kind == NumberClass::nan || b.kind == NumberClass::nan) return false;
  if (a.kind == NumberClass::zero) return b.kind != NumberClass::zero && b.negative;
  if (b.kind == NumberClass::zero || a.negative != b.negative) return !a.negative;
  const auto size = [](const Unpacked& number) {
    const bool infinite = number.kind == NumberClass::infinity;
    return infinite ? std::tuple(true, 0, uint64_t{0}, false)
                    : std::tuple(false, number.exponent, number.significand, number.inexact);
  };
  return a.negative ? size(a) < size(b) : size(a) > size(b);
}

}  // namespace castor::numerics
