// SPDX-License-Identifier: Apache-2.0
// Bounds of a function's values: integers, scaled and shifted by known constants, are known not to
// be NaN, nor beyond some number.
#pragma once

#include <vector>

#include "ir/function.hpp"

namespace castor::jit {

/// Upper bounds of |v| for every element of each value, as far as types, constants of f32 and i32
/// and the operations tell; infinity where a value may be a NaN, infinite or anything.
class Magnitudes {
 public:
  /// `function` is verified; the object does not keep it. Reads constants of up to some ten
  /// thousand elements.
  explicit Magnitudes(const Function& function);

  double bound(ValueId value) const { return bounds_[value]; }

 private:
  double bound_of_result(const Function& function, const Operation& operation) const;
  double bound_of_signed(const Function& function, const Operation& operation) const;
  double bound_of_float(const Operation& operation) const;

  std::vector<double> bounds_;  // by value
  std::vector<double> least_;   // by value, the least magnitude; of constants, else 0
};

}  // namespace castor::jit
