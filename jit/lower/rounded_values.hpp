// SPDX-License-Identifier: Apache-2.0
// Values that only small integers are made of, which may be computed less exactly than others.
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

/// What becomes of floats that are rounded.
class RoundedValues {
 public:
  /// `function` is verified; the object does not keep it.
  explicit RoundedValues(const Function& function);

  /// The range that all readers of a float converted to i32, saturating, clamp it to.
  std::optional<SmallRange> range(ValueId converted) const { return ranges_[converted]; }
  /// Whether what is below such a range may as well be the least i32: all that reads the clamped
  /// integer adds an unsigned one of at most 16 bits and saturates the sum, which does not wrap,
  /// and the range's least number would be saturated as well. Only where there is a range.
  bool may_be_least(ValueId converted) const {
    constexpr int32_t beyond_16_bits = -(1 << 17);
    return may_be_least_[converted] && ranges_[converted]->lo <= beyond_16_bits;
  }
  /// Whether a float is read by nothing but conversions to integers of at most 16 bits, or to i32
  /// of a small range, that saturate, and round to the nearest or toward zero: then NaN may as well
  /// be 0, and anything below a quarter in magnitude anything else below a quarter.
  bool is_small(ValueId value) const { return small_[value]; }

 private:
  std::vector<std::optional<SmallRange>> ranges_;  // by value
  std::vector<bool> may_be_least_;
  std::vector<bool> small_;
};

}  // namespace castor::jit
