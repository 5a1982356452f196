// SPDX-License-Identifier: Apache-2.0
#include "jit/lower/reduction.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "ir/numerics/scalar.hpp"
#include "ir/shape/reduction.hpp"
#include "jit/core/core_tuning.hpp"
#include "jit/lower/convert.hpp"

namespace castor::jit {

namespace {

ElementType integer_of(int bits, bool is_signed) {
  using enum ElementType;
  switch (bits) {
    case 8: return is_signed ? i8 : u8;
    case 16: return is_signed ? i16 : u16;
    case 32: return is_signed ? i32 : u32;
    default: return is_signed ? i64 : u64;
  }
}

/// The format in which floats of a type are compared and added: 16-bit ones are compared as they
/// are, smaller ones as f32.
ElementType compared_as(ElementType type) { return bits_of(type) < 16 ? ElementType::f32 : type; }
ElementType added_in(ElementType type) {
  return type == ElementType::f64 ? ElementType::f64 : ElementType::f32;
}

/// What numbers of a format look like.
struct FloatBits {
  explicit FloatBits(ElementType format)
      : width(bits_of(format)),
        sign(uint64_t{1} << (width - 1)),
        infinity(infinity_of(format)),
        quiet_nan(infinity | uint64_t{1} << (info(format).format.mantissa_bits - 1)) {}

  static uint64_t infinity_of(ElementType format) {
    const int mantissa = info(format).format.mantissa_bits;
    return ((uint64_t{1} << (bits_of(format) - 1 - mantissa)) - 1) << mantissa;
  }
  /// All bits but the sign.
  uint64_t magnitude() const { return sign - 1; }

  int width;
  uint64_t sign;
  uint64_t infinity;
  uint64_t quiet_nan;
};

/// The bits, in the format of comparisons, of the largest number of a type: an infinity, or what it
/// has instead.
uint64_t largest(ElementType type) {
  if (has_infinities(type)) return FloatBits::infinity_of(compared_as(type));
  return std::bit_cast<uint32_t>(static_cast<float>(largest_finite(type)));
}

/// The key of a number that is not negative, or of its negative.
uint64_t key_of(uint64_t magnitude, bool is_negative, int width) {
  const uint64_t ones = ~uint64_t{0} >> (64 - width);
  return is_negative ? ~magnitude & ones : magnitude;
}

LaneId integer_constant(LaneBuilder& builder, int width, uint64_t bits) {
  return builder.constant(integer_lane(width), bits);
}

/// Float bits as keys, and keys as float bits.
LaneId lower_key(LaneBuilder& builder, LaneId bits, const FloatBits& format) {
  const LaneId magnitude = integer_constant(builder, format.width, format.magnitude());
  if (format.width == 64) {
    const LaneId zero = integer_constant(builder, 64, 0);
    return builder.bit_xor(bits,
                           builder.zero_unless(builder.greater_signed(zero, bits), magnitude));
  }
  const LaneId signs = builder.shift_right_signed(bits, format.width - 1);
  return builder.bit_xor(bits, builder.bit_and(signs, magnitude));
}

LaneId float_bits(LaneTensor& x, ElementType format) {
  return format == ElementType::f32   ? x.as_f32()
         : format == ElementType::f64 ? x.as_f64()
                                      : x.as_bits();
}

std::vector<Accumulator> integer_accumulators(OpKind op, ElementType type) {
  const int width = lane_bits_of(type);
  const bool is_signed = is_signed_integer(type);
  const ElementType same = integer_of(width, is_signed);
  const uint64_t ones = ~uint64_t{0} >> (64 - width);
  const auto lowest = static_cast<uint64_t>(integer_min(type)) & ones;
  switch (op) {
    case OpKind::reduce_min:
      return {{same, is_signed ? Fold::min_signed : Fold::min_unsigned, integer_max(type)}};
    case OpKind::reduce_max:
      return {{same, is_signed ? Fold::max_signed : Fold::max_unsigned, lowest}};
    case OpKind::reduce_max_abs: return {{integer_of(width, false), Fold::max_unsigned}};
    default: return {{same, Fold::add}};
  }
}

std::vector<Accumulator> float_accumulators(const Reduction& reduction) {
  const OpKind op = reduction.op;
  const ElementType type = reduction.operand;
  if (op == OpKind::reduce_sum) return {{added_in(type), Fold::float_add}};
  const int width = bits_of(compared_as(type));
  const ElementType keys = integer_of(width, true);
  if (op == OpKind::reduce_max_abs) return {{keys, Fold::max_signed}};
  const uint64_t end = largest(type);
  if (reduction.compares_floats) {
    const ElementType format = compared_as(type);
    return {{format, Fold::float_max, end | FloatBits(format).sign},
            {format, Fold::float_min, end},
            {format, Fold::any_nan}};
  }
  return {{keys, Fold::max_signed, key_of(end, true, width)},
          {keys, Fold::min_signed, key_of(end, false, width)}};
}

std::vector<LaneId> lower_folded_integer(LaneBuilder& builder, const Reduction& reduction,
                                         LaneTensor& x) {
  const ElementType type = x.element();
  if (reduction.op == OpKind::reduce_sum) return {x.as_integer(lane_bits_of(reduction.sum))};
  const LaneId lanes = x.as_integer(lane_bits_of(type));
  const bool is_magnitude = reduction.op == OpKind::reduce_max_abs && is_signed_integer(type);
  return {is_magnitude ? builder.absolute(lanes) : lanes};
}

std::vector<LaneId> lower_folded_float(LaneBuilder& builder, const Reduction& reduction,
                                       LaneTensor& x, Signs signs) {
  if (reduction.op == OpKind::reduce_sum) return {float_bits(x, added_in(x.element()))};
  const ElementType format = compared_as(x.element());
  const FloatBits as(format);
  const LaneId bits = float_bits(x, format);
  if (reduction.op == OpKind::reduce_max_abs) {
    return {builder.bit_and(bits, integer_constant(builder, as.width, as.magnitude()))};
  }
  if (reduction.compares_floats) return {bits, bits, bits};
  const LaneId key = signs == Signs::clear ? bits : lower_key(builder, bits, as);
  return {key, key};
}

/// Float bits, with one NaN, of the keys' accumulators of minimum, maximum or magnitude.
LaneId lower_extreme(LaneBuilder& builder, OpKind op, const FloatBits& format, Signs signs,
                     std::span<const LaneId> keys) {
  const auto constant = [&](uint64_t bits) {
    return integer_constant(builder, format.width, bits);
  };
  LaneId is_nan = builder.greater_signed(keys[0], constant(format.infinity));
  LaneId bits = keys[0];
  if (op != OpKind::reduce_max_abs) {
    const uint64_t lowest = signs == Signs::clear ? 0 : key_of(format.infinity, true, format.width);
    is_nan = builder.mask_or(is_nan, builder.greater_signed(constant(lowest), keys[1]));
    bits = lower_key(builder, op == OpKind::reduce_max ? keys[0] : keys[1], format);
  }
  return builder.select(is_nan, constant(format.quiet_nan), bits);
}

LaneTensor lower_reduced_float(LaneBuilder& builder, const Reduction& reduction, Signs signs,
                               ElementType element, std::span<LaneTensor> accumulators) {
  const bool adds = reduction.op == OpKind::reduce_sum;
  const ElementType format = adds ? added_in(reduction.operand) : compared_as(reduction.operand);
  const FloatBits as(format);
  LaneId bits = no_lane;
  if (adds) {
    const LaneId sum = float_bits(accumulators[0], format);
    const LaneId is_nan = builder.compare(FloatPredicate::unordered, sum, sum);
    bits = builder.select(is_nan, integer_constant(builder, as.width, as.quiet_nan), sum);
  } else if (reduction.compares_floats) {
    const LaneId nan = float_bits(accumulators[2], format);
    const LaneId is_nan = builder.compare(FloatPredicate::unordered, nan, nan);
    bits = builder.select(
        is_nan, integer_constant(builder, as.width, as.quiet_nan),
        float_bits(accumulators[reduction.op == OpKind::reduce_max ? 0 : 1], format));
  } else {
    std::vector<LaneId> keys;
    for (LaneTensor& each : accumulators) keys.push_back(each.as_integer(as.width));
    bits = lower_extreme(builder, reduction.op, as, signs, keys);
  }
  LaneTensor result = LaneTensor::computed(builder, format, {.lanes = bits});
  return format == element ? result : lower_convert(builder, result, element, {});
}

/// The largest f32 or f64: comparisons find NaNs in pairs, since the largest number says nothing of
/// them.
LaneId largest_wide(LaneBuilder& builder, const FloatBits& format, std::span<const LaneId> bits) {
  LaneId largest = bits[0];
  LaneId is_nan = no_lane;
  for (size_t i = 0; i < bits.size(); i += 2) {
    const LaneId next = bits[std::min(i + 1, bits.size() - 1)];
    const LaneId unordered = builder.compare(FloatPredicate::unordered, bits[i], next);
    is_nan = is_nan == no_lane ? unordered : builder.mask_or(is_nan, unordered);
  }
  for (const LaneId each : bits.subspan(1)) largest = builder.max_of_numbers(largest, each);
  return builder.select(is_nan, integer_constant(builder, format.width, format.quiet_nan), largest);
}

/// The largest of 16-bit floats: a NaN is one of the extremes of the keys.
LaneId largest_short(LaneBuilder& builder, const FloatBits& format, std::span<const LaneId> bits) {
  std::array<LaneId, 2> keys = {no_lane, no_lane};
  for (const LaneId each : bits) {
    const LaneId key = lower_key(builder, each, format);
    const bool is_first = keys[0] == no_lane;
    keys[0] = is_first ? key : builder.max_signed(keys[0], key);
    keys[1] = is_first ? key : builder.min_signed(keys[1], key);
  }
  return lower_extreme(builder, OpKind::reduce_max, format, Signs::any, keys);
}

LaneTensor largest_float(LaneBuilder& builder, std::span<LaneTensor> tensors) {
  const ElementType type = tensors[0].element();
  const ElementType format = compared_as(type);
  std::vector<LaneId> bits;
  for (LaneTensor& each : tensors) bits.push_back(float_bits(each, format));
  const FloatBits as(format);
  const LaneId largest =
      as.width == 16 ? largest_short(builder, as, bits) : largest_wide(builder, as, bits);
  LaneTensor result = LaneTensor::computed(builder, format, {.lanes = largest});
  return format == type ? result : lower_convert(builder, result, type, {});
}

LaneTensor largest_integer(LaneBuilder& builder, std::span<LaneTensor> tensors) {
  const ElementType type = tensors[0].element();
  LaneId largest = no_lane;
  for (LaneTensor& each : tensors) {
    const LaneId next = each.as_integer(lane_bits_of(type));
    largest = largest == no_lane        ? next
              : is_signed_integer(type) ? builder.max_signed(largest, next)
                                        : builder.max_unsigned(largest, next);
  }
  return LaneTensor::computed(builder, type, {.lanes = largest});
}

}  // namespace

uint64_t lowest_bits(ElementType type) {
  if (!is_float(type)) {
    const uint64_t ones = ~uint64_t{0} >> (64 - bits_of(type));
    return static_cast<uint64_t>(integer_min(type)) & ones;
  }
  const ElementType format = compared_as(type);
  return numerics::convert(FloatBits(format).sign | largest(type), format, type, {});
}

LaneTensor lower_largest(LaneBuilder& builder, std::span<LaneTensor> tensors) {
  return is_float(tensors[0].element()) ? largest_float(builder, tensors)
                                        : largest_integer(builder, tensors);
}

Reduction::Reduction(const Operation& operation, const TensorType& type, const Target& target)
    : op(operation.op),
      operand(type.element),
      sum(reduction_options(operation).value().accumulator.value_or(operand)) {
  const bool is_extreme = op == OpKind::reduce_min || op == OpKind::reduce_max;
  const std::vector<bool> axes = reduced_axes(operation, static_cast<int>(type.shape.size()));
  compares_floats = is_extreme && is_float(operand) && bits_of(compared_as(operand)) >= 32 &&
                    target.has_avx512() && target.tuning().reduction.compares_floats &&
                    !axes.empty() && axes.back();
}

std::vector<Accumulator> accumulators_of(const Reduction& reduction) {
  if (is_float(reduction.operand)) return float_accumulators(reduction);
  const bool adds = reduction.op == OpKind::reduce_sum;
  return integer_accumulators(reduction.op, adds ? reduction.sum : reduction.operand);
}

std::vector<LaneId> lower_folded(LaneBuilder& builder, const Reduction& reduction, LaneTensor& x,
                                 Signs signs) {
  return is_float(x.element()) ? lower_folded_float(builder, reduction, x, signs)
                               : lower_folded_integer(builder, reduction, x);
}

LaneTensor lower_reduced(LaneBuilder& builder, const Reduction& reduction, Signs signs,
                         ElementType element, std::span<LaneTensor> accumulators) {
  if (is_float(reduction.operand)) {
    return lower_reduced_float(builder, reduction, signs, element, accumulators);
  }
  const LaneId lanes = accumulators[0].as_integer(lane_bits_of(element));
  return LaneTensor::computed(builder, element, {.lanes = lanes});
}

}  // namespace castor::jit
