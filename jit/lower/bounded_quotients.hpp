// SPDX-License-Identifier: Apache-2.0
// Divisions of a tensor's elements by a scale that follows from the range of the same elements.
#pragma once

#include <vector>

#include "ir/function.hpp"

namespace castor::jit {

/// Whether each element of a division of f32 is divided by a constant fraction of a range that it
/// is in: the largest magnitude along axes, or the largest number less the lowest one, of which one
/// is not negative and the other not positive. Then a quotient of finite numbers by a normal
/// divisor is at most max_bounded_quotient in magnitude. `defining`: by value, the operation that
/// it is a result of, or null.
bool has_bounded_quotient(const Function& function, const std::vector<const Operation*>& defining,
                          const Operation& division);

/// Whether each element of a product of f32 is multiplied by the reciprocal of such a fraction: the
/// bound is the same where that is finite.
bool has_bounded_product(const Function& function, const std::vector<const Operation*>& defining,
                         const Operation& multiplication);

}  // namespace castor::jit
