// SPDX-License-Identifier: Apache-2.0
// How long the significands of a function's values are: products of short numbers are exact, and
// need no rounding to types that hold them.
#pragma once

#include <span>
#include <vector>

#include "ir/function.hpp"

namespace castor::jit {

/// Numbers that are integers of that many bits, times powers of two from 2^last_place on.
struct Significand {
  int bits = 0;
  int last_place = 0;
};

class Significands {
 public:
  /// `function` is verified, `carried` are its carried_types; the object keeps neither.
  Significands(const Function& function, std::span<const ElementType> carried);

  /// Whether a float type holds every number of the value that is not beyond its largest.
  bool fits(ValueId value, ElementType type) const;
  /// Whether it holds every number that is not below its normal ones either.
  bool fits_normal(ValueId value, ElementType type) const;
  /// Whether every number of the value but 0 is a power of two, or such a power negated.
  bool is_power(ValueId value) const { return significands_[value].bits == 1; }

 private:
  Significand of_result(const Operation& operation, std::span<const ElementType> carried) const;

  std::vector<Significand> significands_;  // by value
};

}  // namespace castor::jit
