// SPDX-License-Identifier: Apache-2.0
// Division of floats with an integral quotient, and its remainder. Remainders are exact, in f32 for
// every type of at most its width, and representable in the type.
#include <limits>

#include "jit/lower/elementwise_families.hpp"

namespace castor::jit {

namespace {

/// Quotients below have an integral part that floats of that width hold exactly.
double first_large_quotient(const Elementwise& op) {
  return op.type == ElementType::f64 ? 0x1p53 : 0x1p24;
}

/// |x| - |y| * trunc(|x / y|) for a quotient that is not large. It was rounded, so that its
/// integral part may be one too large; a product that is subtracted unrounded then leaves a
/// negative result, to which y is added. Both sums are exact: their values are multiples of y's
/// last place and less than y.
LaneId small_remainder(const Elementwise& op, LaneId x, LaneId y, LaneId quotient) {
  LaneBuilder& builder = op.builder;
  const LaneId integral = builder.round(quotient, LaneRounding::toward_zero);
  // 0 * y is NaN for an infinite y; then the minimum takes its second operand.
  const LaneId rest = builder.float_min(builder.float_sub_product(x, integral, y), x);
  const LaneId is_below = builder.compare(FloatPredicate::less, rest, op.number(0.0));
  return builder.select(is_below, builder.float_add(rest, y), rest);
}

/// C's fmod, of x's sign. Where x is infinite or y zero, or one of them NaN, the quotient is
/// infinite or NaN already: less itself it is the NaN that the result is.
LaneId remainder(const Elementwise& op, LaneId x, LaneId y) {
  LaneBuilder& builder = op.builder;
  const LaneId x_size = builder.magnitude(x);
  const LaneId y_size = builder.magnitude(y);
  const LaneId infinity = op.number(std::numeric_limits<double>::infinity());
  const LaneId x_is_finite = builder.compare(FloatPredicate::less, x_size, infinity);
  const LaneId y_divides = builder.compare(FloatPredicate::greater, y_size, op.number(0.0));
  const LaneId is_regular = builder.mask_and(x_is_finite, y_divides);
  const LaneId quotient = builder.float_div(x, y);
  const LaneId quotient_size = builder.magnitude(quotient);
  const LaneId is_large = builder.compare(FloatPredicate::greater_equal, quotient_size,
                                          op.number(first_large_quotient(op)));
  const LaneId small = small_remainder(op, x_size, y_size, quotient_size);
  const LaneId takes_steps = builder.mask_and(is_regular, is_large);
  const LaneId size = builder.float_remainder_where(takes_steps, x_size, y_size, small);
  const int bits = bits_of(builder.type_of(x));
  const LaneId rest = builder.merge_bits(uint64_t{1} << (bits - 1), x, size);
  return builder.select(is_regular, rest, builder.float_sub(quotient, quotient));
}

/// A remainder that is not zero and has the other sign comes to y's by adding it; a zero takes y's
/// sign.
LaneId match_sign(const Elementwise& op, LaneId y, LaneId rest) {
  LaneBuilder& builder = op.builder;
  const LaneType lane = integer_lane(bits_of(builder.type_of(rest)));
  const LaneId sign = builder.constant(lane, uint64_t{1} << (bits_of(lane) - 1));
  const LaneId zero = op.number(0.0);
  const LaneId signs_differ = builder.greater_signed(zero, builder.bit_xor(rest, y));
  const LaneId is_zero = builder.compare(FloatPredicate::equal, rest, zero);
  const LaneId is_nonzero = builder.compare(FloatPredicate::not_equal, rest, zero);
  const LaneId moved = builder.float_add(rest, y);
  const LaneId number = builder.select(builder.mask_and(is_nonzero, signs_differ), moved, rest);
  return builder.select(is_zero, builder.bit_and(y, sign), number);
}

}  // namespace

LaneTensor floor_div_floats(const Elementwise& op) {
  LaneTensor quotient = div_floats(op);
  LaneTensor* const operands[] = {&quotient};
  return floor_of_float({op.builder, op.operation, operands, op.type});
}

LaneTensor mod_floats(const Elementwise& op) {
  const auto [x, y] = op.values();
  return op.rounded(remainder(op, x, y));
}

LaneTensor floor_mod_floats(const Elementwise& op) {
  const auto [x, y] = op.values();
  return op.rounded(match_sign(op, y, remainder(op, x, y)));
}

}  // namespace castor::jit
