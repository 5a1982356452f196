// SPDX-License-Identifier: Apache-2.0
// Values that only small integers, or small floats, are made of, which may be computed less exactly
// than others.
#pragma once

#include <optional>
#include <vector>

#include "ir/function.hpp"

namespace castor::jit {

/// Bounds of an integer, each of magnitude at most 2^20.
struct SmallRange {
  int32_t lo = 0;
  int32_t hi = 0;
};

/// The range of an integer type of at most 16 bits.
SmallRange range_of_type(ElementType integer);

/// How far numbers may leave a range, because whoever reads them makes the same of the
/// range's ends.
struct RangeSlack {
  bool may_be_least = false;   ///< what is below it: the least i32
  bool may_be_beyond = false;  ///< what is on either side: any number of magnitude up to 2^30
};

/// What becomes of floats that are rounded.
class RoundedValues {
 public:
  /// `function` is verified; the object does not keep it.
  explicit RoundedValues(const Function& function);

  /// The range that all readers of a float converted to i32, saturating, clamp it to.
  std::optional<SmallRange> range(ValueId converted) const { return ranges_[converted]; }
  /// The slack of the integer that is clamped to range(converted), where there is one. Whoever
  /// reads it saturates it to at most 16 bits, or the sum of it and a number of at most 16 bits,
  /// and so the ends of the range as well.
  RangeSlack slack(ValueId converted) const {
    const bool is_wide_below = ranges_[converted]->lo <= -beyond_16_bits;
    const bool is_wide_above = ranges_[converted]->hi >= beyond_16_bits;
    return {.may_be_least = may_be_least_[converted] && is_wide_below,
            .may_be_beyond = may_be_beyond_[converted] && is_wide_below && is_wide_above};
  }
  /// Whether a float is read by nothing but conversions to integers of at most 16 bits, or to i32
  /// of a small range, that saturate, and round to the nearest or toward zero: then NaN may as well
  /// be 0, and anything below a quarter in magnitude anything else below a quarter.
  bool is_small(ValueId value) const { return small_[value]; }
  /// Whether an f32 is read by nothing but conversions to floats of at most 8 bits, to nearest,
  /// whose overflow gives the same result for all finite numbers and infinities of a sign.
  bool is_encoded(ValueId value) const { return encoded_[value]; }
  /// The numbers that all readers of such a float saturate it to, where all round it to the nearest
  /// even integer; else nothing.
  std::optional<SmallRange> nearest_range(ValueId value) const {
    return small_[value] ? nearest_[value] : std::nullopt;
  }

 private:
  /// Less than this by a number of 16 bits is still beyond 16 bits.
  static constexpr int32_t beyond_16_bits = 1 << 17;

  std::vector<std::optional<SmallRange>> ranges_;  // by value
  std::vector<bool> may_be_least_;
  std::vector<bool> may_be_beyond_;
  std::vector<bool> small_;
  std::vector<bool> encoded_;
  std::vector<std::optional<SmallRange>> nearest_;
};

/// The range of a clamp of i32 to bounds of magnitude up to 2^20; nothing of other operations.
std::optional<SmallRange> clamped_range(const Operation& operation);

}  // namespace castor::jit
