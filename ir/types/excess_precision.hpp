// SPDX-License-Identifier: Apache-2.0
// The function attribute excess_precision = allow (ir/README.md, Arithmetic).
#pragma once

#include <vector>

#include "ir/function.hpp"

namespace castor {

/// Whether f16, bf16 and f8 elementwise results count as f32 until they leave the function or
/// enter an op that is not elementwise.
bool allows_excess_precision(const Function& function);

/// Whether elements of the type may be handed on as f32: f16, bf16 and f8. Formats without NaN are
/// not, since every result of theirs is a number.
bool may_be_carried_wide(ElementType type);

/// The element type, by value, in which elements are handed on. It is the value's own, but f32
/// for an f16, bf16 or f8 result of an op that keeps_excess_precision in a function that allows it.
/// Such an op then computes in f32: operands that are handed on in another type are converted to
/// f32 first (`convert` with default options). A value handed on in f32 is converted to its own
/// type, with default options, where it enters `broadcast`, `reshape` or another op that is not
/// elementwise, and where it leaves the function. `convert` takes it as an f32.
std::vector<ElementType> carried_types(const Function& function);

}  // namespace castor
