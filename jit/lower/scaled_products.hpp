// SPDX-License-Identifier: Apache-2.0
// Recognises nests that do nothing but multiply or divide by scales and round: block formats, fp8
// with scales.
#pragma once

#include "jit/lower/function_facts.hpp"

namespace castor::jit {

/// Which sources of a lowered nest are codes and scales, where all that it does is
///   convert(mul(convert(codes) : f32, scales)) : bf16,
/// its factors in either order; else none.
ScaledCodes find_scaled_codes(const FunctionFacts& facts, const Nest& nest);

/// Which sources are bf16 and powers of two, where all that it does is
///   convert(mul(convert(floats) : f32, powers)) : f8e4m3, f8e5m2 or f4e2m1,
/// to nearest even and saturated, its factors in either order; else none.
ScaledFloats find_scaled_floats(const FunctionFacts& facts, const Nest& nest);

/// Which sources are bf16 and divisors, where all that it does is
///   convert(div(convert(floats) : f32, divisors)) : f4e2m1,
/// to nearest even and saturated; else none.
DividedFloats find_divided_floats(const FunctionFacts& facts, const Nest& nest);

}  // namespace castor::jit
