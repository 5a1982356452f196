// SPDX-License-Identifier: Apache-2.0
// Sources of 16 bits to small floats in f16 lanes, 32 at once.
#include <bit>
#include <cmath>

#include "jit/lower/convert.hpp"
#include "jit/lower/encode_f16_lanes.hpp"
#include "jit/lower/small_float.hpp"

namespace castor::jit {

namespace {

constexpr uint64_t sign_bit = 0x8000;
constexpr uint64_t infinity = 0x7c00;

LaneId word(LaneBuilder& builder, uint64_t bits) { return builder.constant(LaneType::i16, bits); }

/// Codes of magnitudes, whose sign's bit, which only the fnuz NaN has, may be flipped.
struct Codes {
  LaneId lanes;  ///< the code in the low bits, anything above
  bool flipped;
};

/// Magnitudes in f16 lanes, none above the magnitude limit, as codes.
///
/// As in encode_signed, adding the power of two of a number's exponent times 2^(10 - mantissa bits)
/// rounds it to the format's last place; the sum's low bits are the significand, and its exponent
/// field is joined by a shift and an addition, or where the significand has a byte of its own by a
/// product of the upper one. Units that the power brings along, an even number so
/// that ties stay ties, make what is too much a multiple of the magnitudes' codes; they and the
/// significand stay below the exponent's lowest bit that is shifted. Every product is exact and
/// below 2^16: the format's numbers are at most 2^9, and its mantissa has at least one bit.
Codes magnitude_codes(LaneBuilder& builder, LaneId magnitude, ElementType to) {
  const FloatFormat& format = info(to).format;
  constexpr int f16_mantissa_bits = 10;
  constexpr int f16_bias = 15;
  const int shift = f16_mantissa_bits - format.mantissa_bits;
  const int code_of_least = (shift + f16_bias + 1 - format.bias) << format.mantissa_bits;
  const int codes = 1 << (bits_of(to) - 1);
  const int units = -code_of_least & (codes - 1);
  const double factor = std::ldexp(1.0, shift) + std::ldexp(units, shift - f16_mantissa_bits);
  const auto number = [&](double x) { return builder.float_constant(LaneType::f16, x); };
  const LaneId normal = builder.float_max(magnitude, number(std::ldexp(1.0, 1 - format.bias)));
  const LaneId power = builder.bit_and(normal, word(builder, infinity));
  const LaneId sum = builder.float_sub_product(magnitude, power, number(-factor));
  const bool is_flipped = ((code_of_least + units) & codes) != 0;
  if (shift > 8) return {builder.add(sum, builder.shift_right(sum, shift)), is_flipped};
  return {builder.dot_u8_pair(sum, word(builder, uint64_t{1} << (16 - shift) | 1)), is_flipped};
}

LaneId unflipped(LaneBuilder& builder, Codes codes, ElementType to) {
  if (!codes.flipped) return codes.lanes;
  return builder.bit_xor(codes.lanes, word(builder, 1u << (bits_of(to) - 1)));
}

/// Codes with the signs of `source`, as stores take them.
Storable with_signs(LaneBuilder& builder, Codes codes, LaneId source, ElementType to) {
  const int bits = bits_of(to);
  const uint64_t code_sign = uint64_t{1} << (bits - 1);
  if (info(to).format.specials == FloatSpecials::fnuz) {
    const LaneId flipped =
        codes.flipped ? codes.lanes : builder.bit_xor(codes.lanes, word(builder, code_sign));
    return {builder.merge_bits(0xff, flipped, source), Narrowing::fnuz_code};
  }
  const LaneId shifted = builder.shift_right(source, 16 - bits);
  return {builder.merge_bits(code_sign - 1, codes.lanes, shifted), Narrowing::fits_unsigned};
}

/// What an f16 or bf16 is encoded from: its magnitude in f16 lanes, cut off at the limit, which
/// NaNs become, and where it is NaN.
struct Magnitude {
  LaneId value;
  LaneId is_nan;
};

Magnitude magnitude_of_f16(LaneBuilder& builder, LaneId bits, double limit) {
  const LaneId size = builder.bit_and(bits, word(builder, sign_bit - 1));
  // x86's min takes its second operand where one is NaN.
  return {builder.float_min(size, builder.float_constant(LaneType::f16, limit)),
          builder.compare(FloatPredicate::unordered, bits, bits)};
}

/// bf16's exponent field less the distance of the biases is f16's; what is below f16's normal
/// numbers becomes something as small, which rounds to zero.
Magnitude magnitude_of_bf16(LaneBuilder& builder, LaneId bits, double limit) {
  constexpr uint64_t bf16_infinity = 0x7f80;
  constexpr uint64_t distance = (127 - 15) << 7;
  const uint64_t limit_bits = std::bit_cast<uint32_t>(static_cast<float>(limit)) >> 16;
  const LaneId size = builder.bit_and(bits, word(builder, sign_bit - 1));
  const LaneId bounded = builder.min_unsigned(size, word(builder, limit_bits));
  const LaneId rebased = builder.sub_down_to_zero(bounded, word(builder, distance));
  return {builder.shift_left(rebased, 3),
          builder.greater_signed(size, word(builder, bf16_infinity))};
}

Storable encode_integer(LaneBuilder& builder, LaneTensor& source, ElementType to, double limit) {
  const bool is_signed = is_signed_integer(source.element());
  const LaneId integer = source.as_integer(16);
  const LaneId size = is_signed ? builder.absolute(integer) : integer;
  const auto max = static_cast<uint64_t>(std::ceil(limit));
  const LaneId bounded = builder.min_unsigned(size, word(builder, max));
  LaneId magnitude = builder.integer_to_float(bounded, true, LaneType::f16);  // exact
  if (limit < static_cast<double>(max)) {
    magnitude = builder.float_min(magnitude, builder.float_constant(LaneType::f16, limit));
  }
  const Codes codes = magnitude_codes(builder, magnitude, to);
  if (is_signed) return with_signs(builder, codes, integer, to);
  const bool is_fnuz = info(to).format.specials == FloatSpecials::fnuz;
  const uint64_t mask = (1u << (bits_of(to) - (is_fnuz ? 0 : 1))) - 1;
  const LaneId whole = is_fnuz ? unflipped(builder, codes, to) : codes.lanes;
  return {builder.bit_and(whole, word(builder, mask)), Narrowing::fits_unsigned};
}

}  // namespace

bool encodes_in_f16_lanes(const LaneBuilder& builder, ElementType from, ElementType to,
                          const ConvertOptions& options) {
  if (!builder.has_f16_lanes() || kind_of(to) != ElementKind::floating || bits_of(to) > 8) {
    return false;
  }
  const FloatFormat& format = info(to).format;
  const bool fits = format.specials != FloatSpecials::ieee && largest_finite(to) < 0x1p9;
  const bool has_modes = options.overflow != Overflow::saturate_finite;
  const bool has_nans = !is_whole(from) && !limit_gives_nans(to, options);
  const bool has_own_nans = format.specials != FloatSpecials::finite;
  return fits && has_modes && bits_of(from) == 16 && (!has_nans || has_own_nans);
}

Storable encode_in_f16_lanes(LaneBuilder& builder, LaneTensor& source, ElementType to,
                             const ConvertOptions& options) {
  const double limit = magnitude_limit(to, options);
  if (is_whole(source.element())) return encode_integer(builder, source, to, limit);
  const LaneId bits = source.as_bits();
  const Magnitude magnitude = source.element() == ElementType::f16
                                  ? magnitude_of_f16(builder, bits, limit)
                                  : magnitude_of_bf16(builder, bits, limit);
  Codes codes = magnitude_codes(builder, magnitude.value, to);
  if (!limit_gives_nans(to, options)) {
    // The NaN's code is the one after that of the largest number.
    codes.lanes =
        builder.select(magnitude.is_nan, builder.add(codes.lanes, word(builder, 1)), codes.lanes);
  }
  return with_signs(builder, codes, bits, to);
}

}  // namespace castor::jit
