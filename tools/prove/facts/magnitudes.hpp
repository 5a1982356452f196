// SPDX-License-Identifier: Apache-2.0
// Bounds of magnitudes (jit/lower/magnitudes.hpp), operation by operation.
#pragma once

#include "tools/prove/facts/fact.hpp"
#include "tools/prove/spec/elementwise.hpp"

namespace castor::prove {

/// The least and the largest magnitude of an operand's numbers.
struct MagnitudeRange {
  double least = 0;
  double largest = 0;
};

/// What the planner says of an operation on constants with those magnitudes; infinite where it
/// knows nothing. f64 and i64 are converted from constants of f32 and i32.
double planned_bound(const ElementwiseOp& op, std::span<const MagnitudeRange> operands);

/// That results of all operands with those magnitudes are numbers within `bound`.
void check_bound(const ElementwiseOp& op, std::span<const MagnitudeRange> operands, double bound,
                 FactCheck& check);

}  // namespace castor::prove
