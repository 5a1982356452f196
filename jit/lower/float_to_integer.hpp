// SPDX-License-Identifier: Apache-2.0
// What the files of convert_float_to_integer share.
#pragma once

#include "jit/lower/lane_tensor.hpp"

namespace castor::jit {

/// A float that is about to become an integer: the lanes, and the rounding that the conversion
/// itself has still to do.
struct Rounded {
  LaneId value;
  LaneRounding left_to_do;
};

/// 2^N of the first value above the integer type's range; exact.
LaneId first_above(LaneBuilder& builder, LaneType lane, ElementType to);

/// In the range whose low bits `overflow = wrap` keeps: i64, and u64 as well if that is the
/// destination. NaN is in no range.
LaneId is_in_wrap_range(LaneBuilder& builder, LaneId integral_value, ElementType to);

// Saturation and wrapping where AVX2 has no instruction. `value` is the float before rounding.

/// u32 from f32: numbers from 2^31 up are converted less 2^31.
LaneTensor saturate_f32_to_u32_avx2(LaneBuilder& builder, Rounded rounded);
/// u32 from f64: clamped at both ends in float.
LaneTensor saturate_f64_to_u32_avx2(LaneBuilder& builder, Rounded rounded);
/// u32 and u64 from f16: its numbers fit 31 bits, and +infinity becomes the one negative i32, which
/// the sign turns into all ones.
LaneTensor saturate_f16_to_unsigned_avx2(LaneBuilder& builder, ElementType to, Rounded rounded);
/// i64 from f16: its numbers fit 32 bits. Infinities become zero and the smallest i32, and are
/// replaced afterwards.
LaneTensor saturate_f16_to_i64_avx2(LaneBuilder& builder, LaneId value, Rounded rounded);
/// u64: by moving the significand. NaN and negative numbers become 0 first.
LaneTensor saturate_to_u64_avx2(LaneBuilder& builder, LaneType lane, Rounded rounded);
/// i64: saturates the magnitude, to at most 2^63, like u64; then the sign, as complement of one
/// less.
LaneTensor saturate_to_i64_avx2(LaneBuilder& builder, LaneType lane, Rounded rounded);
/// Any integer from f64 lanes: the magnitude by moving the significand, then the sign.
LaneTensor wrap_avx2(LaneBuilder& builder, ElementType to, Rounded rounded);

}  // namespace castor::jit
