// SPDX-License-Identifier: Apache-2.0
// Elementwise ops whose result is boolean: comparisons by decoded value, and logic. From raw bits
// to 0 or 1.
#pragma once

#include <cstdint>

#include "ir/types/element_type.hpp"

namespace castor::numerics::truth_ops {

/// The operand is of a floating type.
uint64_t is_nan(uint64_t x, ElementType type);

// Comparisons take every type, by decoded value (ir/README.md, Arithmetic): -0 equals +0; NaN, that
// of f8e8m0 included, is unordered, and only not_equal is true of it; boolean compares as 0 or 1.

uint64_t equal(uint64_t a, uint64_t b, ElementType type);
uint64_t not_equal(uint64_t a, uint64_t b, ElementType type);
uint64_t less(uint64_t a, uint64_t b, ElementType type);
uint64_t less_equal(uint64_t a, uint64_t b, ElementType type);
uint64_t greater(uint64_t a, uint64_t b, ElementType type);
uint64_t greater_equal(uint64_t a, uint64_t b, ElementType type);

// Logical ops take booleans, where any nonzero byte is true.

uint64_t logical_and(uint64_t a, uint64_t b, ElementType type);
uint64_t logical_or(uint64_t a, uint64_t b, ElementType type);
uint64_t logical_xor(uint64_t a, uint64_t b, ElementType type);
uint64_t logical_not(uint64_t x, ElementType type);

}  // namespace castor::numerics::truth_ops
