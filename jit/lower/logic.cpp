// SPDX-License-Identifier: Apache-2.0
// Truth values, bits, shifts and select. Truth values stay masks from comparison to select.
#include <algorithm>

#include "jit/lower/elementwise_families.hpp"

namespace castor::jit {

namespace {

using MaskOp = LaneId (LaneBuilder::*)(LaneId, LaneId);

LaneTensor combine_booleans(const Elementwise& op, MaskOp combine) {
  const int bits = std::max(op.operand(0).natural_bits(), op.operand(1).natural_bits());
  const LaneId a = op.operand(0).as_mask(bits);
  const LaneId b = op.operand(1).as_mask(bits);
  return LaneTensor::from_mask(op.builder, (op.builder.*combine)(a, b));
}

/// The codes of sub-byte types, zeros above them, stay such.
LaneTensor combine_codes(const Elementwise& op, MaskOp combine) {
  const Operands codes = {op.operand(0).as_bits(), op.operand(1).as_bits()};
  return op.code((op.builder.*combine)(codes.a, codes.b));
}

/// A number and its count, in lanes that shift by a number each. A negative count is, as unsigned
/// number, beyond N in the type's width as it is in the lane's.
Operands shift_operands(const Elementwise& op) {
  const int bits = std::max(lane_bits_of(op.type), op.builder.min_shifted_bits());
  return {op.operand(0).as_integer(bits), op.operand(1).as_integer(bits)};
}

/// What `select` chooses from: the lanes of two values, of one width.
struct Choices {
  LaneId a;
  LaneId b;
  Narrowing narrowing;
};

Choices choices(const Elementwise& op) {
  const auto width = [&](const Storable& s) { return bits_of(op.builder.type_of(s.lanes)); };
  LaneTensor& first = op.operand(1);
  LaneTensor& second = op.operand(2);
  if (op.type == ElementType::bf16) {
    const Storable a = first.as_storable();
    const Storable b = second.as_storable();
    const bool in_high_halves =
        a.narrowing == Narrowing::high_half && b.narrowing == Narrowing::high_half;
    if (in_high_halves && width(a) == width(b)) return {a.lanes, b.lanes, Narrowing::high_half};
  }
  const Narrowing narrowing = is_boolean(op.type) ? Narrowing::truncate : Narrowing::fits_unsigned;
  return {first.as_bits(), second.as_bits(), narrowing};
}

LaneId select_masks(const Elementwise& op) {
  LaneBuilder& builder = op.builder;
  const int bits = std::max(
      {op.operand(0).natural_bits(), op.operand(1).natural_bits(), op.operand(2).natural_bits()});
  const LaneId condition = op.operand(0).as_mask(bits);
  const LaneId chosen = builder.mask_and(condition, op.operand(1).as_mask(bits));
  const LaneId other = builder.mask_andnot(condition, op.operand(2).as_mask(bits));
  return builder.mask_or(chosen, other);
}

}  // namespace

LaneTensor and_of_booleans(const Elementwise& op) {
  return combine_booleans(op, &LaneBuilder::mask_and);
}
LaneTensor or_of_booleans(const Elementwise& op) {
  return combine_booleans(op, &LaneBuilder::mask_or);
}
LaneTensor xor_of_booleans(const Elementwise& op) {
  return combine_booleans(op, &LaneBuilder::mask_xor);
}

LaneTensor not_of_boolean(const Elementwise& op) {
  LaneTensor& x = op.operand(0);
  return LaneTensor::from_mask(op.builder, op.builder.mask_not(x.as_mask(x.natural_bits())));
}

LaneTensor and_of_integers(const Elementwise& op) {
  return combine_codes(op, &LaneBuilder::bit_and);
}
LaneTensor or_of_integers(const Elementwise& op) { return combine_codes(op, &LaneBuilder::bit_or); }
LaneTensor xor_of_integers(const Elementwise& op) {
  return combine_codes(op, &LaneBuilder::bit_xor);
}

LaneTensor not_of_integer(const Elementwise& op) {
  const uint64_t all_bits = ~uint64_t{0} >> (64 - bits_of(op.type));
  return op.code(op.builder.bit_xor(op.operand(0).as_bits(),
                                    op.builder.constant(op.integer_type(), all_bits)));
}

LaneTensor shift_left_integers(const Elementwise& op) {
  const auto [x, count] = shift_operands(op);
  return op.low_bits(op.builder.shift_left_by(x, count));
}

LaneTensor shift_right_integers(const Elementwise& op) {
  const auto [x, count] = shift_operands(op);
  return op.exact(op.is_signed() ? op.builder.shift_right_signed_by(x, count)
                                 : op.builder.shift_right_by(x, count));
}

LaneTensor select_values(const Elementwise& op) {
  if (op.operand(1).is_mask() && op.operand(2).is_mask()) {
    return LaneTensor::from_mask(op.builder, select_masks(op));
  }
  const Choices from = choices(op);
  const LaneId condition = op.operand(0).as_mask(bits_of(op.builder.type_of(from.a)));
  return LaneTensor::computed(op.builder, op.type,
                              {op.builder.select(condition, from.a, from.b), from.narrowing});
}

}  // namespace castor::jit
