// SPDX-License-Identifier: Apache-2.0
#include "jit/lower/convert.hpp"

#include <cmath>

namespace castor::jit {

LaneTensor lower_convert(LaneBuilder& builder, LaneTensor& source, ElementType to,
                         const ConvertOptions& options) {
  const ElementType from = source.element();
  if (from == to) return convert_same_type(builder, source, options);
  if (is_boolean(to)) return convert_to_boolean(builder, source);
  if (is_float(from)) {
    return is_float(to) ? convert_float_to_float(builder, source, to, options)
                        : convert_float_to_integer(builder, source, to, options);
  }
  return is_float(to) ? convert_integer_to_float(builder, source, to, options)
                      : convert_integer_to_integer(builder, source, to, options);
}

LaneTensor convert_to_boolean(LaneBuilder& builder, LaneTensor& source) {
  LaneId lanes = no_lane;
  if (is_float(source.element())) {
    const LaneId bits = source.as_bits();
    lanes = builder.add(bits, bits);  // drops the sign: both zeros become 0, a NaN does not
  } else {
    lanes = source.as_integer(source.natural_bits());
  }
  return LaneTensor::computed(builder, ElementType::boolean,
                              {builder.is_nonzero(lanes), Narrowing::fits_unsigned});
}

LaneTensor convert_same_type(LaneBuilder& builder, LaneTensor& source,
                             const ConvertOptions& options) {
  const ElementType type = source.element();
  if (is_boolean(type)) {
    return LaneTensor::computed(builder, type, {source.as_integer(8), Narrowing::truncate});
  }
  if (!is_float(type) || options.overflow != Overflow::saturate) return source;
  // The bits of infinity less one are those of the largest finite number.
  const LaneType lane = integer_lane(bits_of(type));
  const uint64_t magnitude_mask = (uint64_t{1} << (bits_of(type) - 1)) - 1;
  const uint64_t infinity =
      magnitude_mask & ~((uint64_t{1} << info(type).format.mantissa_bits) - 1);
  const LaneId bits = source.as_bits();
  const LaneId is_infinite =
      builder.equal(builder.bit_and(bits, builder.constant(lane, magnitude_mask)),
                    builder.constant(lane, infinity));
  const LaneId below = builder.sub(bits, builder.constant(lane, 1));
  return LaneTensor::computed(builder, type,
                              {builder.select(is_infinite, below, bits), Narrowing::truncate});
}

double largest_finite(ElementType type) {
  const FloatFormat& format = info(type).format;
  return std::ldexp(2.0 - std::ldexp(1.0, -format.mantissa_bits), format.bias);
}

LaneId clamp_to_finite(LaneBuilder& builder, LaneId value, ElementType to) {
  const LaneType lane = float_lane(bits_of(builder.type_of(value)));
  const double limit = largest_finite(to);
  const LaneId below = builder.float_min(builder.float_constant(lane, limit), value);
  return builder.float_max(builder.float_constant(lane, -limit), below);
}

}  // namespace castor::jit
