// SPDX-License-Identifier: Apache-2.0
// All that can be proved: every conversion and every elementwise operation.
#pragma once

#include "tools/prove/query/subject.hpp"

namespace castor::prove {

/// The conversions of all pairs of value types, with all options that differ.
std::vector<Conversion> all_conversions();

/// The elementwise operations on all element types that they take; `clamp` with bounds of each
/// kind: both, only one, zero, and fractions.
std::vector<ElementwiseOp> all_elementwise_ops();

}  // namespace castor::prove
