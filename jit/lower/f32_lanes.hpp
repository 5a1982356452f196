// SPDX-License-Identifier: Apache-2.0
// Bits of f32 in lanes: inside jit/lower only.
#pragma once

#include <cstdint>

#include "jit/lane/builder.hpp"

namespace castor::jit {

inline constexpr uint64_t f32_sign = 0x80000000;
inline constexpr uint64_t f32_magnitude = 0x7fffffff;
inline constexpr uint64_t f32_infinity = 0x7f800000;
inline constexpr uint64_t f32_quiet_nan = 0x7fc00000;

/// The bits of 2^exponent, which is normal.
constexpr uint64_t f32_power_of_two(int exponent) {
  return static_cast<uint64_t>(exponent + 127) << 23;
}

inline LaneId i32_constant(LaneBuilder& builder, uint64_t bits) {
  return builder.constant(LaneType::i32, bits);
}

/// Truth values: which floats are NaN.
inline LaneId nan_mask(LaneBuilder& builder, LaneId value) {
  return builder.compare(FloatPredicate::unordered, value, value);
}

}  // namespace castor::jit
