// SPDX-License-Identifier: Apache-2.0
// Integer lanes, truth values and tables.
#include <array>
#include <vector>

#include "tools/prove/lane/step.hpp"

namespace castor::prove {

using jit::IntegerPredicate;
using jit::LaneOp;

namespace {

Term compared(IntegerPredicate predicate, const Term& a, const Term& b,
              Term (*less)(const Term&, const Term&)) {
  switch (predicate) {
    case IntegerPredicate::equal: return equal(a, b);
    case IntegerPredicate::not_equal: return not_equal(a, b);
    case IntegerPredicate::less: return less(a, b);
    case IntegerPredicate::less_equal: return ~less(b, a);
    case IntegerPredicate::greater: return less(b, a);
    case IntegerPredicate::greater_equal: return ~less(a, b);
  }
  return {};
}

/// The sum of two signed products of 16-bit halves; only MIN * MIN twice exceeds i32, and wraps.
Term dot_of_halves(const Term& a, const Term& b) {
  const auto product = [&](int low) {
    return extend_sign(extract(a, low, 16), 32) * extend_sign(extract(b, low, 16), 32);
  };
  return product(0) + product(16);
}

/// Products of unsigned and signed bytes, added and saturated to i16.
Term dot_of_bytes(const Term& a, const Term& b) {
  const auto product = [&](int low) {
    return extend_zero(extract(a, low, 8), 32) * extend_sign(extract(b, low, 8), 32);
  };
  const Term sum = product(0) + product(8);
  const Term least = like(sum, static_cast<uint32_t>(-0x8000));
  return truncate(max_signed(min_signed(sum, like(sum, 0x7fff)), least), 16);
}

Term high_products_of_halves(const Term& a, const Term& b) {
  const auto upper = [&](int low) {
    return extract(extend_zero(extract(a, low, 16), 32) * extend_zero(extract(b, low, 16), 32), 16,
                   16);
  };
  return concat(upper(16), upper(0));
}

/// Bit 4 * a + 2 * b + c of the truth table, for each bit of the lanes.
Term by_truth_table(int64_t truth_table, const Term& a, const Term& b, const Term& c) {
  Term result = like(a, 0);
  for (int row = 0; row < 8; ++row) {
    if ((truth_table >> row & 1) == 0) continue;
    const auto literal = [row](const Term& x, int bit) { return (row & bit) != 0 ? x : ~x; };
    result = result | (literal(a, 4) & literal(b, 2) & literal(c, 1));
  }
  return result;
}

Term shifted_by(LaneStep& step, Term (*shift)(const Term&, const Term&)) {
  return shift(step.a, step.b);
}

Term by_immediate(const LaneStep& step, Term (*shift)(const Term&, int)) {
  return shift(step.a, static_cast<int>(step.inst.imm));
}

Term divided(LaneStep& step, Term (*divide)(const Term&, const Term&)) {
  step.require(not_equal(step.b, like(step.b, 0)));
  return divide(step.a, step.b);
}

Term resized_mask(const LaneStep& step) { return step.a; }

}  // namespace

Term entry_of(const jit::ByteTable& table, const Term& byte, int entry_bits) {
  std::array<uint64_t, 256> entries = {};
  for (size_t i = 0; i < entries.size(); ++i) {
    const size_t index = i & ((size_t{1} << table.index_bits) - 1);
    const bool is_cleared = table.index_bits == 4 && i >= 0x80;
    entries[i] = is_cleared ? 0 : table.entries[index] & low_mask(entry_bits);
  }
  return byte.terms().table(entries, entry_bits, byte);
}

namespace {

Term looked_up_i32(const LaneStep& step) {
  const jit::I32Table& table = step.program.i32_tables[static_cast<size_t>(step.inst.table)];
  const size_t count = size_t{1} << table.index_bits;
  const std::vector<uint64_t> entries(table.entries.begin(),
                                      table.entries.begin() + static_cast<ptrdiff_t>(count));
  return step.terms.table(entries, 32, truncate(step.a, table.index_bits));
}

}  // namespace

Term integer_meaning(LaneStep& step) {
  const Term &a = step.a, &b = step.b, &c = step.c;
  const auto predicate = static_cast<IntegerPredicate>(step.inst.imm);
  switch (step.inst.op) {
    case LaneOp::add: return a + b;
    case LaneOp::sub: return a - b;
    case LaneOp::sub_down_to_zero: return if_then_else(less_unsigned(a, b), like(a, 0), a - b);
    case LaneOp::mul: return a * b;
    case LaneOp::mul_low_u32:
      return extend_zero(truncate(a, 32), 64) * extend_zero(truncate(b, 32), 64);
    case LaneOp::dot_i16_pairs: return dot_of_halves(a, b);
    case LaneOp::add_dot_i16_pairs: return c + dot_of_halves(a, b);
    case LaneOp::dot_u8_pair: return dot_of_bytes(a, b);
    case LaneOp::mul_high_u16: return high_products_of_halves(a, b);
    case LaneOp::bit_and: return a & b;
    case LaneOp::bit_or: return a | b;
    case LaneOp::bit_xor: return a ^ b;
    case LaneOp::bit_andnot: return ~a & b;
    case LaneOp::shift_left: return by_immediate(step, shift_left);
    case LaneOp::shift_right: return by_immediate(step, shift_right);
    case LaneOp::shift_right_signed: return by_immediate(step, shift_right_signed);
    case LaneOp::shift_left_by: return shifted_by(step, shift_left);
    case LaneOp::shift_right_by: return shifted_by(step, shift_right);
    case LaneOp::shift_right_signed_by: return shifted_by(step, shift_right_signed);
    case LaneOp::min_signed: return min_signed(a, b);
    case LaneOp::min_unsigned: return min_unsigned(a, b);
    case LaneOp::max_signed: return max_signed(a, b);
    case LaneOp::max_unsigned: return max_unsigned(a, b);
    case LaneOp::absolute: return if_then_else(less_signed(a, 0), -a, a);
    case LaneOp::leading_zeros: return leading_zeros(a);
    case LaneOp::divide_each: return divided(step, udiv);
    case LaneOp::remainder_each: return divided(step, urem);
    case LaneOp::bit_ternary: return by_truth_table(step.inst.imm, a, b, c);
    case LaneOp::equal: return equal(a, b);
    case LaneOp::greater_signed: return less_signed(b, a);
    case LaneOp::compare_signed: return compared(predicate, a, b, less_signed);
    case LaneOp::compare_unsigned: return compared(predicate, a, b, less_unsigned);
    case LaneOp::any_bits: return not_equal(a & b, like(a, 0));
    case LaneOp::combine_halves: return concat(extract(a, 32, 32), extract(b, 0, 32));
    case LaneOp::extend_zero: return extend_zero(a, step.width());
    case LaneOp::extend_sign: return extend_sign(a, step.width());
    case LaneOp::truncate: return truncate(a, step.width());
    case LaneOp::widen_to_high_half: return concat(a, step.terms.constant(16, 0));
    case LaneOp::mask_and: return a & b;
    case LaneOp::mask_or: return a | b;
    case LaneOp::mask_xor: return a ^ b;
    case LaneOp::mask_andnot: return ~a & b;
    case LaneOp::mask_not: return ~a;
    case LaneOp::mask_resize: return resized_mask(step);
    case LaneOp::select: return a;  // under the mask
    case LaneOp::look_up:
      return entry_of(step.program.tables[static_cast<size_t>(step.inst.table)], a, 8);
    case LaneOp::look_up_i32: return looked_up_i32(step);
    default: return {};
  }
}

}  // namespace castor::prove
