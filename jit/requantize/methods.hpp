// SPDX-License-Identifier: Apache-2.0
// The methods by name: inside jit/requantize only.
#pragma once

#include "jit/requantize/method.hpp"

namespace castor::jit {

/// Integers of at most 16 bits on either side: (x * multiplier + addend) >> shift in 32 bits.
const RequantizeMethod& linear_method();
/// Integers of at most 16 bits on either side, exact: x * factor + addend in f32, rounded to the
/// nearest integer, where no rounding of f32 can cross the middle between two results.
const RequantizeMethod& rounded_float_method();
/// rounded_float_method with the factor in two parts.
const RequantizeMethod& split_rounded_float_method();
/// rounded_float_method in f64, for any integers; also the library's results of 32 bits from fewer.
const RequantizeMethod& rounded_double_method();
/// f32 or fixed point to at most 16 bits, exact: the quotient by the scale rounded once to f32,
/// which keeps order with the middles between results where f32 holds these.
const RequantizeMethod& float_quotient_method();
/// The library's f32 arithmetic, to and from f32.
const RequantizeMethod& embarc_from_float_method();
const RequantizeMethod& embarc_to_float_method();
/// Integers of at most 16 bits to f32: one rounding, since both factors are exact in f32.
const RequantizeMethod& to_float_method();
/// Any integers to f32, through f64.
const RequantizeMethod& to_float_through_double_method();
/// To any integers, in f64: all that is exact, and the library where it rounds but once.
const RequantizeMethod& double_method();
/// The library's sa32 to any integers, rounded half up, in 32 bits, where ratios are small.
const RequantizeMethod& i32_product_method();
/// i32_product_method to at most 16 bits, where all values far from the zero point saturate.
const RequantizeMethod& saturating_i32_product_method();
/// The library's 64-bit accumulators of sa32 to sa32, rounded half up, in 32 bits.
const RequantizeMethod& i32_accumulator_method();
/// The library's 64-bit accumulators, whose upper halves it cuts off before it rounds; in f64.
const RequantizeMethod& cut_accumulator_method();

}  // namespace castor::jit
