// SPDX-License-Identifier: Apache-2.0
// How large a function's values can get: what integers become, times and plus known constants, is
// known not to be a NaN, nor beyond some number.
#pragma once

#include <vector>

#include "ir/function.hpp"

namespace castor::jit {

/// Upper bounds of |v| for every element of each value, as far as types, constants of f32 and the
/// operations tell; infinity where a value may be a NaN, infinite or anything.
class Magnitudes {
 public:
  /// Of a verified function, which the object does not keep. Reads constants of up to some ten
  /// thousand elements.
  explicit Magnitudes(const Function& function);

  double of(ValueId value) const { return bounds_[value]; }

 private:
  double of_result(const Function& function, const Operation& operation) const;
  double of_float(const Operation& operation) const;

  std::vector<double> bounds_;  // by value
};

}  // namespace castor::jit
