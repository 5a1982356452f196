// SPDX-License-Identifier: Apache-2.0
// What lowering knows of a quotient (LaneOp::float_quotient).
#pragma once

#include <cstdint>

namespace castor::jit {

/// Facts of dividend and divisor that are not zero, infinite or NaN; an instruction's imm.
struct QuotientFacts {
  /// The quotient's magnitude is at most max_bounded_quotient. Whatever zeros, infinities and NaNs
  /// give is cut to that: readers saturate both alike.
  bool is_bounded = false;
  /// The dividend has at most short_dividend_bits significant bits.
  bool is_short = false;
  /// The quotient is rounded to a small float: what is less than min_encoded_quotient in
  /// magnitude may be anything that is, and what is not finite may stand for larger numbers. Zeros,
  /// infinities and NaNs are those of a division.
  bool is_encoded = false;

  /// Whether a product and a multiply-add give the quotient (with_reciprocals).
  constexpr bool takes_two_steps() const { return is_bounded && is_short; }

  static constexpr QuotientFacts of(int64_t imm) {
    return {(imm & 1) != 0, (imm & 2) != 0, (imm & 4) != 0};
  }
  constexpr int64_t imm() const {
    return (is_bounded ? 1 : 0) | (is_short ? 2 : 0) | (is_encoded ? 4 : 0);
  }
};

inline constexpr double max_bounded_quotient = 0x1p17;
inline constexpr int short_dividend_bits = 8;
/// Half of the least number of f8e5m2fnuz.
inline constexpr double min_encoded_quotient = 0x1p-18;

}  // namespace castor::jit
