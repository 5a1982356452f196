// SPDX-License-Identifier: Apache-2.0
// Recognises nests that multiply small floats by scales: block formats, fp8 with scales.
#pragma once

#include "jit/lower/lower_nest.hpp"

namespace castor::jit {

/// Which sources of a lowered nest are codes and scales, where all that it does is
///   convert(mul(convert(codes) : f32, scales)) : bf16,
/// its factors in either order; else none.
ScaledCodes find_scaled_codes(const FunctionFacts& facts, const Nest& nest);

}  // namespace castor::jit
