// SPDX-License-Identifier: Apache-2.0
// Floats to floats.
#include "jit/lower/convert.hpp"

namespace castor::jit {

namespace {

/// f32 -> bf16, nearest even: adding 0x7fff plus the last bit that stays carries exactly where the
/// cut-off half rounds up. NaNs would carry too; they are made quiet instead.
LaneTensor round_to_bf16(LaneBuilder& builder, LaneId value, bool may_be_nan) {
  const auto constant = [&](uint64_t bits) { return builder.constant(LaneType::i32, bits); };
  const LaneId last_bit = builder.bit_and(builder.shift_right(value, 16), constant(1));
  LaneId rounded = builder.add(builder.add(value, constant(0x7fff)), last_bit);
  if (may_be_nan) {
    const LaneId is_nan = builder.compare(FloatPredicate::unordered, value, value);
    rounded = builder.select(is_nan, builder.bit_or(value, constant(0x00400000)), rounded);
  }
  return LaneTensor::computed(builder, ElementType::bf16, {rounded, Narrowing::high_half});
}

}  // namespace

LaneTensor narrow_f32(LaneBuilder& builder, LaneId value, ElementType to,
                      const ConvertOptions& options, bool may_be_nan) {
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
    return narrow_f32(builder, builder.f64_to_f32_odd(value), to, options, true);
  }
  LaneId value = source.as_f32();
  if (from == ElementType::bf16 && to == ElementType::f32) {
    // x + -0 is x, and a signalling NaN made quiet.
    value = builder.float_add(value, builder.float_constant(LaneType::f32, -0.0));
  }
  return narrow_f32(builder, value, to, options, true);
}

}  // namespace castor::jit
