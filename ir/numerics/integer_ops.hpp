// SPDX-License-Identifier: Apache-2.0
// Elementwise ops on one element of an integer type (or boolean, where said), from raw bits to raw
// bits: two's complement, results modulo 2^N (ir/README.md, Arithmetic).
#pragma once

#include <cstdint>

#include "ir/types/element_type.hpp"

namespace castor::numerics::integer_ops {

uint64_t add(uint64_t a, uint64_t b, ElementType type);
uint64_t sub(uint64_t a, uint64_t b, ElementType type);
uint64_t mul(uint64_t a, uint64_t b, ElementType type);

// A divisor of 0 gives 0. Of MIN and -1 the quotients wrap to MIN, the remainders are 0.

/// Rounded toward zero.
uint64_t div(uint64_t a, uint64_t b, ElementType type);
/// Rounded down.
uint64_t floor_div(uint64_t a, uint64_t b, ElementType type);
/// The result has the sign of `a`.
uint64_t mod(uint64_t a, uint64_t b, ElementType type);
/// The result has the sign of `b`.
uint64_t floor_mod(uint64_t a, uint64_t b, ElementType type);

uint64_t min(uint64_t a, uint64_t b, ElementType type);
uint64_t max(uint64_t a, uint64_t b, ElementType type);
/// (a - b) * (a - b).
uint64_t squared_difference(uint64_t a, uint64_t b, ElementType type);
/// x < 0 ? x * slope : x.
uint64_t prelu(uint64_t x, uint64_t slope, ElementType type);

uint64_t abs(uint64_t x, ElementType type);
uint64_t neg(uint64_t x, ElementType type);
/// -1, 0 or 1.
uint64_t sign(uint64_t x, ElementType type);
/// max(x, 0).
uint64_t relu(uint64_t x, ElementType type);
/// floor, ceil, trunc and round_even of an integer.
uint64_t identity(uint64_t x, ElementType type);

// Boolean too: any nonzero byte reads as 1, results are 0 or 1.

uint64_t bitwise_and(uint64_t a, uint64_t b, ElementType type);
uint64_t bitwise_or(uint64_t a, uint64_t b, ElementType type);
uint64_t bitwise_xor(uint64_t a, uint64_t b, ElementType type);
uint64_t bitwise_not(uint64_t x, ElementType type);

// The count is read as an unsigned number of N bits; N and more shift every bit out.

uint64_t shift_left(uint64_t x, uint64_t count, ElementType type);
/// Arithmetic for signed types.
uint64_t shift_right(uint64_t x, uint64_t count, ElementType type);

}  // namespace castor::numerics::integer_ops
