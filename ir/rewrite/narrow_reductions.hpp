// SPDX-License-Identifier: Apache-2.0
// Minima, maxima and largest magnitudes of widened numbers, found among the numbers themselves.
#pragma once

#include "ir/function.hpp"

namespace castor {

/// Reduces the operand of a conversion from f16 or bf16 to f32 or f64, and converts the result,
/// instead of reducing the conversion's result: the order of numbers, infinities and signed zeros
/// stays, and the one NaN of reductions is converted to the one of the wider type. Sums stay, and
/// so does what is carried in a wider type (see carried_types). The same pointer when there is
/// nothing to do.
FunctionPtr narrow_reductions(const FunctionPtr& function);

}  // namespace castor
