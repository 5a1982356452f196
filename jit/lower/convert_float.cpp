// SPDX-License-Identifier: Apache-2.0
// Floats to floats.
#include "jit/lower/convert.hpp"
#include "jit/lower/small_float.hpp"

namespace castor::jit {

namespace {

/// value + 0x7fff + (bit 16 of value): carries into the upper half exactly where nearest even
/// rounds the lower half up.
LaneId add_rounding(LaneBuilder& builder, LaneId value) {
  const auto constant = [&](uint64_t bits) { return builder.constant(LaneType::i32, bits); };
  const LaneId upper = builder.shift_right(value, 16);
  if (builder.target().has_avx512()) {
    // With n = (upper & 1) | 0x7ffe, value + n + 1 is value - ~n.
    return builder.sub(value, builder.not_and_or(upper, constant(1), constant(0x7ffe)));
  }
  const LaneId last_bit = builder.bit_and(upper, constant(1));
  return builder.add(builder.add(value, constant(0x7fff)), last_bit);
}

/// f32 -> bf16, nearest even. NaNs would carry as numbers do; they are made quiet instead.
LaneTensor round_to_bf16(LaneBuilder& builder, LaneId value, bool may_be_nan) {
  LaneId rounded = add_rounding(builder, value);
  if (may_be_nan) rounded = builder.quiet_nan(rounded, value);
  return LaneTensor::computed(builder, ElementType::bf16, {rounded, Narrowing::high_half});
}

}  // namespace

LaneTensor narrow_f32(LaneBuilder& builder, LaneId value, ElementType to,
                      const ConvertOptions& options, bool may_be_nan) {
  if (bits_of(to) <= 8) {
    return LaneTensor::computed(
        builder, to, {encode_small(builder, value, to, options), Narrowing::fits_unsigned});
  }
  if (options.overflow == Overflow::saturate) value = clamp_to_finite(builder, value, to);
  switch (to) {
    case ElementType::f16:
      return LaneTensor::computed(builder, to, {builder.f32_to_f16(value), Narrowing::truncate});
    case ElementType::bf16: return round_to_bf16(builder, value, may_be_nan);
    default: return LaneTensor::computed(builder, to, {value, Narrowing::truncate});
  }
}

LaneTensor convert_float_to_float(LaneBuilder& builder, LaneTensor& source, ElementType to,
                                  const ConvertOptions& options) {
  const ElementType from = source.element();
  const bool saturate = options.overflow == Overflow::saturate;
  if (to == ElementType::f64) {
    LaneId value = source.as_f64();
    if (saturate) value = clamp_to_finite(builder, value, to);
    return LaneTensor::computed(builder, to, {value, Narrowing::truncate});
  }
  if (from == ElementType::f64) {
    LaneId value = source.as_f64();
    if (to == ElementType::f32) {
      if (saturate) value = clamp_to_finite(builder, value, to);
      return LaneTensor::computed(builder, to, {builder.f64_to_f32(value), Narrowing::truncate});
    }
    // f16's rounding needs no more of f32's range; nf4 compares with f32 numbers.
    const LaneId prepared = to == ElementType::f16   ? builder.f64_to_f32_odd_for_f16(value)
                            : to == ElementType::nf4 ? builder.f64_to_f32_up(value)
                                                     : builder.f64_to_f32_odd(value);
    return narrow_f32(builder, prepared, to, options, true);
  }
  LaneId value = source.as_f32();
  if (from == ElementType::bf16 && to == ElementType::f32) {
    // x + -0 is x, and a signalling NaN made quiet.
    value = builder.float_add(value, builder.float_constant(LaneType::f32, -0.0));
  }
  return narrow_f32(builder, value, to, options, true);
}

}  // namespace castor::jit
