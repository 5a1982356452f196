// SPDX-License-Identifier: Apache-2.0
// Arithmetic on floats: in f64 for f64, else in f32, rounded once to the type. x86's add, sub, mul,
// div and sqrt give the first NaN operand, made quiet: operands keep their order.
#include <cmath>

#include "jit/lower/elementwise_families.hpp"

namespace castor::jit {

namespace {

LaneId quieted(const Elementwise& op, LaneId value) {
  return op.may_be_signalling() ? op.builder.quiet(value) : value;
}

/// max(x, lo); NaN stays, made quiet.
LaneId clamp_below(const Elementwise& op, LaneId x, double lo) {
  if (lo == 0 && !std::signbit(lo)) return op.builder.at_least_zero(x);
  // x86's max takes its second operand where that is NaN or both are zero.
  return op.builder.float_max(op.number(lo), quieted(op, x));
}

/// min(x, hi); the NaNs of x are quiet.
LaneId clamp_above(const Elementwise& op, LaneId x, double hi) {
  if (hi == 0 && std::signbit(hi)) return op.builder.minimum(x, op.number(hi));
  return op.builder.float_min(op.number(hi), x);
}

LaneTensor integral(const Elementwise& op, LaneRounding rounding) {
  return op.rounded(op.builder.round(op.value(0), rounding));
}

/// The largest magnitude of a sum or difference, or of a product, of two integers, which the type
/// has if it is small; nothing where an operand may be another number.
std::optional<int64_t> max_of_sum(const Elementwise& op) {
  const auto a = op.operand(0).max_integer();
  const auto b = op.operand(1).max_integer();
  return a && b ? std::optional(*a + *b) : std::nullopt;
}

/// Nothing for fnuz formats, which lack one of the integers' products: -1 times 0.
std::optional<int64_t> max_of_product(const Elementwise& op) {
  if (info(op.type).format.specials == FloatSpecials::fnuz) return std::nullopt;
  const auto a = op.operand(0).max_integer();
  const auto b = op.operand(1).max_integer();
  return a && b ? std::optional(*a * *b) : std::nullopt;
}

/// Lanes with the sign at the same bit in all of them.
struct SignedBits {
  LaneId lanes;
  LaneId sign;
  LaneId magnitude;  ///< all other bits
  Narrowing narrowing;
};

SignedBits signed_bits(const Elementwise& op) {
  LaneBuilder& builder = op.builder;
  Storable bits = op.operand(0).as_storable();
  const bool in_high_half = bits.narrowing == Narrowing::high_half;
  if (!in_high_half) bits = {op.operand(0).as_bits(), Narrowing::fits_unsigned};
  const LaneType lane = integer_lane(bits_of(builder.type_of(bits.lanes)));
  const int sign_position = (in_high_half ? bits_of(lane) : bits_of(op.type)) - 1;
  const uint64_t sign = uint64_t{1} << sign_position;
  return {bits.lanes, builder.constant(lane, sign), builder.constant(lane, ~sign), bits.narrowing};
}

/// relu of 16-bit floats, without a conversion: as integers, negative numbers are below 0.
LaneTensor relu_of_bits(const Elementwise& op) {
  LaneBuilder& builder = op.builder;
  const FloatFormat& format = info(op.type).format;
  const SignedBits bits = signed_bits(op);
  const LaneType lane = integer_lane(bits_of(builder.type_of(bits.lanes)));
  const int below = bits_of(lane) - bits_of(op.type);  // bits that do not count
  const auto constant = [&](uint64_t code) { return builder.constant(lane, code); };
  const uint64_t infinity = ((uint64_t{1} << format.exponent_bits) - 1) << format.mantissa_bits;
  const uint64_t quiet = uint64_t{1} << (format.mantissa_bits - 1);
  const LaneId size = builder.bit_and(bits.lanes, bits.magnitude);
  const LaneId is_nan = builder.greater_signed(size, constant(((infinity + 1) << below) - 1));
  const LaneId nan = builder.bit_or(bits.lanes, constant(quiet << below));
  const LaneId number = builder.max_signed(bits.lanes, constant(0));
  return LaneTensor::computed(builder, op.type,
                              {builder.select(is_nan, nan, number), bits.narrowing});
}

/// Zero and NaN of an fnuz format have no sign: their codes stay.
LaneId unless_signless(const Elementwise& op, LaneId changed, LaneId bits) {
  if (info(op.type).format.specials != FloatSpecials::fnuz) return changed;
  const LaneId magnitude = op.builder.constant(op.integer_type(), 0x7f);
  return op.builder.select(op.builder.any_bits(bits, magnitude), changed, bits);
}

}  // namespace

LaneTensor add_floats(const Elementwise& op) {
  const auto [a, b] = op.values();
  return op.rounded(op.builder.float_add(a, b), max_of_sum(op));
}

LaneTensor sub_floats(const Elementwise& op) {
  const auto [a, b] = op.values();
  return op.rounded(op.builder.float_sub(a, b), max_of_sum(op));
}

LaneTensor mul_floats(const Elementwise& op) {
  const auto [a, b] = op.values();
  return op.rounded(op.builder.float_mul(a, b), max_of_product(op));
}

LaneTensor div_floats(const Elementwise& op) {
  const auto [a, b] = op.values();
  return op.rounded(op.builder.float_div(a, b));
}

LaneTensor bounded_product_of_floats(const Elementwise& op) {
  LaneBuilder& builder = op.builder;
  if (!builder.target().has_avx512()) return mul_floats(op);
  const auto [a, b] = op.values();
  const LaneId quotient =
      builder.float_quotient(builder.float_mul(a, b), op.number(1.0), {.is_bounded = true});
  LaneTensor product = op.rounded(quotient);
  product.holds_no_nan().holds_numbers_up_to(max_bounded_quotient);
  return product;
}

LaneTensor small_quotient_of_floats(const Elementwise& op, QuotientFacts facts) {
  if (!op.builder.target().has_avx512() || op.float_type() != LaneType::f32) return div_floats(op);
  const auto [a, b] = op.values();
  LaneTensor quotient = op.rounded(op.builder.float_quotient(a, b, facts)).holds_no_nan();
  if (facts.is_bounded) quotient.holds_numbers_up_to(max_bounded_quotient);
  return quotient;
}

LaneTensor encoded_quotient_of_floats(const Elementwise& op) {
  if (!op.builder.target().has_avx512()) return div_floats(op);
  const auto [a, b] = op.values();
  return op.rounded(op.builder.float_quotient(a, b, {.is_encoded = true}));
}

LaneTensor min_floats(const Elementwise& op) {
  const auto [a, b] = op.values();
  return op.rounded(op.builder.minimum(a, b));
}

LaneTensor max_floats(const Elementwise& op) {
  const auto [a, b] = op.values();
  return op.rounded(op.builder.maximum(a, b));
}

LaneTensor squared_difference_of_floats(const Elementwise& op) {
  LaneTensor difference = sub_floats(op);
  LaneTensor* const factors[] = {&difference, &difference};
  return mul_floats({op.builder, op.operation, factors, op.type});
}

LaneTensor prelu_of_floats(const Elementwise& op) {
  const auto [x, slope] = op.values();
  const LaneId scaled = op.builder.float_mul(x, slope);
  const LaneId is_negative = op.builder.compare(FloatPredicate::less, x, op.number(0.0));
  return op.rounded(op.builder.select(is_negative, scaled, quieted(op, x)));
}

LaneTensor abs_of_float(const Elementwise& op) {
  const SignedBits bits = signed_bits(op);
  const LaneId cleared = op.builder.bit_and(bits.lanes, bits.magnitude);
  return LaneTensor::computed(op.builder, op.type,
                              {unless_signless(op, cleared, bits.lanes), bits.narrowing});
}

LaneTensor neg_of_float(const Elementwise& op) {
  const SignedBits bits = signed_bits(op);
  const LaneId flipped = op.builder.bit_xor(bits.lanes, bits.sign);
  return LaneTensor::computed(op.builder, op.type,
                              {unless_signless(op, flipped, bits.lanes), bits.narrowing});
}

LaneTensor sign_of_float(const Elementwise& op) {
  return op.rounded(op.builder.sign_of(op.value(0)));
}

LaneTensor relu_of_float(const Elementwise& op) {
  if (bits_of(op.type) == 16) return relu_of_bits(op);
  return op.rounded(clamp_below(op, op.value(0), 0.0));
}

LaneTensor clamp_float(const Elementwise& op) {
  LaneId x = op.value(0);
  const auto lo = float_bound(op, "lo");
  x = lo ? clamp_below(op, x, *lo) : quieted(op, x);
  if (const auto hi = float_bound(op, "hi")) x = clamp_above(op, x, *hi);
  return op.rounded(x);
}

LaneTensor sqrt_of_float(const Elementwise& op) {
  return op.rounded(op.builder.float_sqrt(op.value(0)));
}

LaneTensor floor_of_float(const Elementwise& op) { return integral(op, LaneRounding::down); }
LaneTensor ceil_of_float(const Elementwise& op) { return integral(op, LaneRounding::up); }
LaneTensor trunc_of_float(const Elementwise& op) { return integral(op, LaneRounding::toward_zero); }
LaneTensor round_even_of_float(const Elementwise& op) {
  return integral(op, LaneRounding::nearest_even);
}

}  // namespace castor::jit
