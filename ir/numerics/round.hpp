// SPDX-License-Identifier: Apache-2.0
// Rounding: cutting an exact number at a bit position, and deciding what the part cut off does.
#pragma once

#include <cassert>
#include <cstdint>

#include "ir/numerics/unpacked.hpp"
#include "ir/types/convert_options.hpp"

namespace castor::numerics {

/// The part that rounding cuts off, compared with half of the last place that is kept.
enum class Tail : uint8_t { zero, below_half, half, above_half };

/// A magnitude cut at a bit position: `kept` in units of that bit, and what was cut off.
struct Cut {
  uint64_t kept = 0;
  Tail tail = Tail::zero;
};

/// Cuts the lowest `count` (at least 0) of the significand's 64 bits off. A number that is itself
/// inexact needs count >= 1: otherwise what it lacks cannot be compared with a half.
inline Cut cut_low_bits(const Unpacked& number, int count) {
  constexpr uint64_t half = uint64_t{1} << 63;
  assert(number.kind == NumberClass::finite && count >= 0 && (count > 0 || !number.inexact));
  if (count == 0) return {number.significand, Tail::zero};
  if (count > 64) return {0, Tail::below_half};  // significand < 2^64 is less than half of 2^count
  const uint64_t kept = count == 64 ? 0 : number.significand >> count;
  const uint64_t fraction = number.significand << (64 - count);  // scaled: `half` is half a unit
  if (fraction == half) return {kept, number.inexact ? Tail::above_half : Tail::half};
  if (fraction > half) return {kept, Tail::above_half};
  return {kept, fraction != 0 || number.inexact ? Tail::below_half : Tail::zero};
}

/// Whether the kept magnitude grows by one unit (IEEE 754-2019, 4.3; half_up is
/// floor(x + 1/2)). `rounding` is not by_type.
inline bool rounds_away_from_zero(Rounding rounding, bool negative, const Cut& cut) {
  switch (rounding) {
    case Rounding::by_type:
    case Rounding::toward_zero:  // 4.3.2 roundTowardZero
      return false;
    case Rounding::nearest_even:  // 4.3.1 roundTiesToEven
      return cut.tail == Tail::above_half || (cut.tail == Tail::half && (cut.kept & 1) != 0);
    case Rounding::nearest_away:  // 4.3.1 roundTiesToAway
      return cut.tail >= Tail::half;
    case Rounding::down:  // 4.3.2 roundTowardNegative
      return negative && cut.tail != Tail::zero;
    case Rounding::up:  // 4.3.2 roundTowardPositive
      return !negative && cut.tail != Tail::zero;
    case Rounding::half_up:  // ties go up, that is, toward zero for negative numbers
      return cut.tail == Tail::above_half || (cut.tail == Tail::half && !negative);
  }
  return false;
}

}  // namespace castor::numerics
