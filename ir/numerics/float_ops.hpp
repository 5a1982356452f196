// SPDX-License-Identifier: Apache-2.0
// Elementwise ops on one element of a floating type, from raw bits to raw bits.
#pragma once

#include <cstdint>

#include "ir/types/element_type.hpp"

/// Each op rounds its exact result once into the type, with the default options of `convert`, and
/// follows ir/README.md, Arithmetic: the first NaN operand in operand order is the result,
/// made quiet; without one an invalid operation gives NaN with sign 1 and payload 0; both then as
/// by `convert` (a format without NaN: the largest of that sign).
///
/// ir/README.md says "computed in f32 and rounded once" of types of 16 bits and less. That is the
/// same: rounding to f32 first never shows. Let p <= 11 be the bits of the type's significands.
/// - Where the result is normal in the type and in f32, rounding to 24 bits before rounding to p is
///   innocuous for + - * / and sqrt: 24 >= 2p + 2 (S. A. Figueroa, "When is double rounding
///   innocuous?", 1995).
/// - Sums are whole multiples of the type's least number; those that are subnormal in the type are
///   thus exact in it. Roots are never subnormal.
/// - Products have at most 2p <= 22 bits, which f32 holds, but for bf16's below 2^-126: there p = 8
///   and f32 rounds at 2^-149. Halves of bf16's last place are odd multiples of 2^-134. A product
///   that f32 takes for one of them is within 2^-150 of it and so has ones at both ends of 17 bits,
///   or, next below 2^-134, is a row of 16 ones; it has 16 bits at most, and 2^16 - 1 is no product
///   of two numbers below 2^8.
/// - Quotients X / Y that are subnormal in the type: from a half M of a last place (X, Y, M < 2^p,
///   scaled) a quotient differs, if at all, by at least 1 / max(M Y, X) of itself. For f16 that is
///   over 2^-22 where f32 rounds by 2^-24 at most; for bf16 it is at least 2^-134 / 2^8 where f32
///   rounds by 2^-150 at most.
/// - Remainders are exact in the type.
/// tests/jit/arithmetic/arithmetic_f32_test.cpp computes in f32: all pairs of 8-bit values, and all
/// pairs of significands of bf16 and f16 whose products or quotients are near the subnormals.
namespace castor::numerics::float_ops {

uint64_t add(uint64_t a, uint64_t b, ElementType type);
uint64_t sub(uint64_t a, uint64_t b, ElementType type);
uint64_t mul(uint64_t a, uint64_t b, ElementType type);
uint64_t div(uint64_t a, uint64_t b, ElementType type);
/// floor(div(a, b)), both in the type.
uint64_t floor_div(uint64_t a, uint64_t b, ElementType type);
/// C's fmod, exact.
uint64_t mod(uint64_t a, uint64_t b, ElementType type);
/// r = mod(a, b); r + b rounded if r is nonzero and of the other sign than b; a zero takes b's
/// sign.
uint64_t floor_mod(uint64_t a, uint64_t b, ElementType type);
/// NaN propagates; -0 is below +0.
uint64_t min(uint64_t a, uint64_t b, ElementType type);
uint64_t max(uint64_t a, uint64_t b, ElementType type);
/// d * d with d = a - b, each rounded.
uint64_t squared_difference(uint64_t a, uint64_t b, ElementType type);
/// x < 0 ? x * slope : x. The slope's NaN shows only where it is multiplied.
uint64_t prelu(uint64_t x, uint64_t slope, ElementType type);

/// abs and neg change the sign bit only, of NaNs too, which stay as quiet as they are. fnuz formats
/// have neither -0 nor a second NaN: 0 and the NaN stay.
uint64_t abs(uint64_t x, ElementType type);
uint64_t neg(uint64_t x, ElementType type);
/// -1, +0 or 1.
uint64_t sign(uint64_t x, ElementType type);
/// max(x, +0).
uint64_t relu(uint64_t x, ElementType type);
uint64_t sqrt(uint64_t x, ElementType type);
/// These four keep the sign of zeros, and of what becomes one.
uint64_t floor(uint64_t x, ElementType type);
uint64_t ceil(uint64_t x, ElementType type);
uint64_t trunc(uint64_t x, ElementType type);
uint64_t round_even(uint64_t x, ElementType type);

}  // namespace castor::numerics::float_ops
