// SPDX-License-Identifier: Apache-2.0
// Arithmetic on extents, strides and positions that any 63-bit numbers may be given to: rounding
// divisions, and products and sums whose overflow has a stated result.
#pragma once

#include <cstdint>

namespace castor {

/// a / b rounded up, of an `a` that is not negative, however large, and a positive `b`.
constexpr int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

/// a / b rounded down, of any `a` and a positive `b`.
constexpr int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

/// a * b, or the largest number where the product exceeds it; neither is negative. For bounds: what
/// is compared with a saturated product is compared with something at least as large.
constexpr int64_t saturated_product(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

/// a + b, or the largest number where the sum exceeds it; neither is negative.
constexpr int64_t saturated_sum(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/// a * b modulo 2^64. For steps between addresses: where every address that is used is within the
/// tensor, adding wrapped steps gives that address, even if a single step exceeds 2^63.
constexpr int64_t wrapped_product(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

/// a + b modulo 2^64: see wrapped_product.
constexpr int64_t wrapped_sum(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

}  // namespace castor
