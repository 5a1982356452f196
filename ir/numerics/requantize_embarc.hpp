// SPDX-License-Identifier: Apache-2.0
// The arithmetic of the embARC MLI library, element by element.
#pragma once

#include <cstdint>

#include "ir/numerics/requantize.hpp"

namespace castor::numerics {

/// An element of a signed container as a number.
int64_t signed_of(uint64_t bits, ElementType container);
/// A number clamped to a signed container, in its low bits.
uint64_t saturated(int64_t value, ElementType container);

/// Between integers: the ratio of scales as a multiplier of 16 bits.
uint64_t embarc_integer(int64_t x, const SliceQuantization& from, const SliceQuantization& to,
                        RequantizeRounding rounding);
/// Converts from f32, in f32 arithmetic; rounds half away from zero whatever the variant.
uint64_t embarc_from_f32(uint64_t bits, const SliceQuantization& to);
/// Converts to f32, by two operations of f32.
uint64_t embarc_to_f32(int64_t x, const SliceQuantization& from);

}  // namespace castor::numerics
