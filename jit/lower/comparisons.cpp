// SPDX-License-Identifier: Apache-2.0
// Comparisons, by decoded value: integers and booleans as they are, everything else in f32 or f64.
#include <algorithm>

#include "jit/lower/elementwise_families.hpp"

namespace castor::jit {

namespace {

/// The width that two masks are brought to: that of the one that is harder to change.
int common_mask_bits(const Elementwise& op) {
  return std::max(op.operand(0).natural_bits(), op.operand(1).natural_bits());
}

LaneId compare_booleans(const Elementwise& op, IntegerPredicate predicate) {
  LaneBuilder& builder = op.builder;
  const int bits = common_mask_bits(op);
  const LaneId a = op.operand(0).as_mask(bits);
  const LaneId b = op.operand(1).as_mask(bits);
  switch (predicate) {
    case IntegerPredicate::equal: return builder.mask_not(builder.mask_xor(a, b));
    case IntegerPredicate::not_equal: return builder.mask_xor(a, b);
    case IntegerPredicate::less: return builder.mask_andnot(a, b);
    case IntegerPredicate::less_equal: return builder.mask_not(builder.mask_andnot(b, a));
    case IntegerPredicate::greater: return builder.mask_andnot(b, a);
    case IntegerPredicate::greater_equal: return builder.mask_not(builder.mask_andnot(a, b));
  }
  return no_lane;
}

/// Whether the code of a type of at most 16 bits is a NaN.
LaneId is_nan_code(const Elementwise& op) {
  LaneBuilder& builder = op.builder;
  const FloatFormat& format = info(op.type).format;
  const uint64_t magnitude_mask = (uint64_t{1} << (bits_of(op.type) - 1)) - 1;
  const uint64_t top_exponent = magnitude_mask >> format.mantissa_bits << format.mantissa_bits;
  const auto constant = [&](uint64_t bits) { return builder.constant(op.integer_type(), bits); };
  const LaneId bits = op.operand(0).as_bits();
  const LaneId magnitude = builder.bit_and(bits, constant(magnitude_mask));
  switch (format.specials) {
    case FloatSpecials::ieee: return builder.greater_signed(magnitude, constant(top_exponent));
    case FloatSpecials::nan_only: return builder.equal(magnitude, constant(magnitude_mask));
    case FloatSpecials::fnuz: return builder.equal(bits, constant(magnitude_mask + 1));
    case FloatSpecials::finite: break;
  }
  return builder.equal(magnitude, constant(magnitude_mask + 1));  // of none
}

}  // namespace

LaneTensor compare_values(const Elementwise& op, const Comparison& comparison) {
  LaneBuilder& builder = op.builder;
  if (is_boolean(op.type)) {
    return LaneTensor::from_mask(builder, compare_booleans(op, comparison.integers));
  }
  if (is_integer(op.type)) {
    return LaneTensor::from_mask(builder, builder.compare(comparison.integers, op.is_signed(),
                                                          op.integer(0), op.integer(1)));
  }
  return LaneTensor::from_mask(builder,
                               builder.compare(comparison.floats, op.value(0), op.value(1)));
}

LaneTensor is_nan_of_float(const Elementwise& op) {
  if (bits_of(op.type) <= 16) return LaneTensor::from_mask(op.builder, is_nan_code(op));
  const LaneId value = op.value(0);
  return LaneTensor::from_mask(op.builder,
                               op.builder.compare(FloatPredicate::unordered, value, value));
}

}  // namespace castor::jit
