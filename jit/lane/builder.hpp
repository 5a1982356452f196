// SPDX-License-Identifier: Apache-2.0
// Building lane programs: one method per intent. An intent that the target has no instruction for
// is composed here from others that it has; the results are the same bits on every tier.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "jit/lane/program.hpp"
#include "jit/lane/quotient_facts.hpp"
#include "jit/target.hpp"

namespace castor::jit {

class LaneBuilder {
 public:
  LaneBuilder(const Target& target, LaneProgram& program) : target_(target), program_(program) {}

  const Target& target() const { return target_; }
  /// The IR operation that the following instructions come from.
  void set_origin(uint32_t origin) { origin_ = origin; }
  LaneType type_of(LaneId id) const { return program_.code[static_cast<size_t>(id)].type; }

  LaneId load(int source, LaneType type);
  void store(int sink, LaneId value, Narrowing narrowing);
  void store_with_signs(int sink, LaneId value, LaneId signs, Narrowing narrowing);
  /// Bytes become the 16-bit elements that the table has for them (look_up_16), or 32-bit elements
  /// (look_up_upper_16), or wider integers (look_up_i16).
  void store_by_table(int sink, LaneId value, const ByteTable& table, Narrowing look_up);

  /// Index of a table for a store that encodes.
  int32_t add_threshold_table(const ThresholdTable& table);
  int32_t add_class_table(const ClassTable& table);
  int32_t add_byte_table(const ByteTable& table);
  void store_encoded(int sink, LaneId value, Narrowing narrowing, int32_t table);

  /// A constant with these bits in every lane; equal constants are one value.
  LaneId constant(LaneType type, uint64_t bits);
  LaneId float_constant(LaneType type, double value);

  // Integers, on lanes of a's width. Operands are bits: a float may be used as an integer of its
  // width, and vice versa, without an instruction.
  LaneId add(LaneId a, LaneId b) { return binary(LaneOp::add, a, b); }
  LaneId sub(LaneId a, LaneId b) { return binary(LaneOp::sub, a, b); }
  /// The low half of the product.
  LaneId mul(LaneId a, LaneId b);
  LaneId bit_and(LaneId a, LaneId b) { return binary(LaneOp::bit_and, a, b); }
  LaneId bit_or(LaneId a, LaneId b) { return binary(LaneOp::bit_or, a, b); }
  LaneId bit_xor(LaneId a, LaneId b) { return binary(LaneOp::bit_xor, a, b); }
  LaneId shift_left(LaneId a, int count) { return shift(LaneOp::shift_left, a, count); }
  LaneId shift_right(LaneId a, int count) { return shift(LaneOp::shift_right, a, count); }
  /// a + half - 1 + bit `count` of a, with half = 2^(count - 1): carries into the bits from `count`
  /// on exactly where nearest even rounds the lower ones up.
  LaneId round_half_even(LaneId a, int count);
  LaneId min_signed(LaneId a, LaneId b);
  LaneId min_unsigned(LaneId a, LaneId b);
  LaneId max_signed(LaneId a, LaneId b);
  LaneId max_unsigned(LaneId a, LaneId b);
  /// The magnitude of a signed number, modulo 2^N.
  LaneId absolute(LaneId a);
  LaneId bit_not(LaneId a);
  /// Zeros above a 32-bit lane's highest one; 32 of 0.
  LaneId leading_zeros(LaneId a);
  /// The difference of unsigned numbers of 8 or 16 bits, 0 where it is negative.
  LaneId sub_down_to_zero(LaneId a, LaneId b) { return binary(LaneOp::sub_down_to_zero, a, b); }
  /// Per 16-bit lane, the sum of the products of a's unsigned bytes and b's signed ones, saturated.
  LaneId dot_u8_pair(LaneId a, LaneId b) {
    return append({.op = LaneOp::dot_u8_pair, .type = LaneType::i16, .a = a, .b = b});
  }
  /// Per 32-bit lane, the sum of the product of the lower i16 halves and that of the upper ones.
  LaneId dot_i16_pairs(LaneId a, LaneId b) {
    return append({.op = LaneOp::dot_i16_pairs, .type = LaneType::i32, .a = a, .b = b});
  }
  /// Per u16 half of a 32-bit lane, the upper half of the product.
  LaneId mul_high_u16(LaneId a, LaneId b) {
    return append({.op = LaneOp::mul_high_u16, .type = LaneType::i32, .a = a, .b = b});
  }
  /// c + dot_i16_pairs(a, b), modulo 2^32.
  LaneId add_dot_i16_pairs(LaneId c, LaneId a, LaneId b);
  /// Quotients and remainders of unsigned 64-bit lanes, lane by lane; no lane of b may be 0.
  LaneId divide_each(LaneId a, LaneId b) { return binary(LaneOp::divide_each, a, b); }
  LaneId remainder_each(LaneId a, LaneId b) { return binary(LaneOp::remainder_each, a, b); }
  /// Arithmetic; lanes of 16 or 32 bits.
  LaneId shift_right_signed(LaneId a, int count) {
    return shift(LaneOp::shift_right_signed, a, count);
  }
  /// a's bits where `mask` has ones, b's elsewhere.
  LaneId merge_bits(uint64_t mask, LaneId a, LaneId b);
  LaneId equal(LaneId a, LaneId b) { return compare(LaneOp::equal, a, b); }
  LaneId greater_signed(LaneId a, LaneId b) { return compare(LaneOp::greater_signed, a, b); }
  LaneId compare(IntegerPredicate predicate, bool is_signed, LaneId a, LaneId b);
  /// Whether a lane is not zero.
  LaneId is_set(LaneId a);
  /// Whether a and b have a bit in common.
  LaneId any_bits(LaneId a, LaneId b);
  /// 1 where a lane is not zero, else 0.
  LaneId is_nonzero(LaneId a);
  LaneId extend_zero(LaneId a, int bits) { return resize(LaneOp::extend_zero, a, bits); }
  LaneId extend_sign(LaneId a, int bits) { return resize(LaneOp::extend_sign, a, bits); }
  /// 16 bits into the upper half of 32.
  LaneId widen_to_high_half(LaneId a) {
    return unary(LaneOp::widen_to_high_half, LaneType::i32, a);
  }
  LaneId truncate(LaneId a, int bits) { return resize(LaneOp::truncate, a, bits); }

  // a shifted by b bits, an unsigned number, lane by lane; 0, or the sign, from the lane's width
  // on. Lanes of at least `min_shifted_bits`.
  LaneId shift_left_by(LaneId a, LaneId b) { return binary(LaneOp::shift_left_by, a, b); }
  LaneId shift_right_by(LaneId a, LaneId b) { return binary(LaneOp::shift_right_by, a, b); }
  LaneId shift_right_signed_by(LaneId a, LaneId b);
  int min_shifted_bits() const { return target_.has_avx512() ? 16 : 32; }

  // Masks. On AVX2 they may be used as integers of their width: all ones, or zero.
  LaneId mask_and(LaneId a, LaneId b) { return binary(LaneOp::mask_and, a, b); }
  LaneId mask_or(LaneId a, LaneId b) { return binary(LaneOp::mask_or, a, b); }
  LaneId mask_xor(LaneId a, LaneId b) { return binary(LaneOp::mask_xor, a, b); }
  /// Not a, but b.
  LaneId mask_andnot(LaneId a, LaneId b) { return binary(LaneOp::mask_andnot, a, b); }
  LaneId mask_not(LaneId a) { return unary(LaneOp::mask_not, type_of(a), a); }
  LaneId mask_resize(LaneId a, int bits);
  /// mask ? a : otherwise.
  LaneId select(LaneId mask, LaneId a, LaneId otherwise);
  /// mask ? a : 0.
  LaneId zero_unless(LaneId mask, LaneId a);
  /// mask ? -a : a, of integers.
  LaneId negate_where(LaneId mask, LaneId a);

  // Floats.
  LaneId float_add(LaneId a, LaneId b) { return binary(LaneOp::float_add, a, b); }
  LaneId float_sub(LaneId a, LaneId b) { return binary(LaneOp::float_sub, a, b); }
  LaneId float_mul(LaneId a, LaneId b) { return binary(LaneOp::float_mul, a, b); }
  LaneId float_div(LaneId a, LaneId b) { return binary(LaneOp::float_div, a, b); }
  /// a / b where only conversions to integers of at most 16 bits, or bounded ones, see it, to the
  /// nearest or toward zero: never NaN, but 0 instead. f32, AVX-512.
  LaneId float_quotient(LaneId a, LaneId b, QuotientFacts facts = {});
  LaneId float_sqrt(LaneId a) {
    return unary(LaneOp::float_sqrt, float_lane(bits_of(type_of(a))), a);
  }
  /// mask ? C's fmod : otherwise. The more lanes the mask has, the slower; where it has none, it
  /// costs almost nothing.
  LaneId float_remainder_where(LaneId mask, LaneId a, LaneId b, LaneId otherwise);
  /// c - a * b, rounded once.
  LaneId float_sub_product(LaneId c, LaneId a, LaneId b);
  /// x86's min and max: b where either is NaN.
  LaneId float_min(LaneId a, LaneId b) { return binary(LaneOp::float_min, a, b); }
  LaneId float_max(LaneId a, LaneId b) { return binary(LaneOp::float_max, a, b); }
  /// a clamped to magnitudes up to `limit`; a NaN becomes a number or stays.
  LaneId clamp_magnitude(LaneId a, double limit);
  /// The magnitude is at least, or at most, that of a number, the sign stays; of a quiet NaN it
  /// is the number's. With AVX-512.
  LaneId magnitude_from(LaneId a, LaneId min) {
    return binary(LaneOp::range_magnitude_from, a, min);
  }
  LaneId magnitude_to(LaneId a, LaneId max) { return binary(LaneOp::range_magnitude, a, max); }
  /// The smaller or larger number, -0 below +0; the first NaN, made quiet.
  LaneId minimum(LaneId a, LaneId b);
  LaneId maximum(LaneId a, LaneId b);
  /// The smaller or larger number where neither is NaN, else any lanes.
  LaneId min_of_numbers(LaneId a, LaneId b);
  LaneId max_of_numbers(LaneId a, LaneId b);
  /// NaNs made quiet.
  LaneId quiet(LaneId a);
  /// -1, +0 or 1; NaNs made quiet.
  LaneId sign_of(LaneId a);
  /// max(a, +0) of floats; NaN stays, made quiet, and -0 becomes +0.
  LaneId at_least_zero(LaneId a);
  /// b made quiet where b is NaN (its payload's top bits stay), else a; f32.
  LaneId quiet_nan(LaneId a, LaneId b);
  /// 0 where a is NaN, `limit` where it is +infinity, else a; f32, AVX-512 only.
  LaneId bound_specials(LaneId a, double limit);
  /// f32 as f8e8m0 takes it: NaNs as +infinity; what is not positive as 0 and +infinity as 2^127,
  /// or, if `outside_is_nan`, all that as +infinity. AVX-512 only.
  LaneId bound_to_powers(LaneId a, bool outside_is_nan);
  LaneId round(LaneId a, LaneRounding rounding);
  /// f32 lanes that are converted integers: where these are floats rounded to the nearest even, the
  /// floats rounded, in one instruction instead of two. Then zeros may have a sign. The floats are
  /// numbers that i32 holds.
  LaneId unconverted_integer(LaneId a);
  LaneId compare(FloatPredicate predicate, LaneId a, LaneId b);
  /// Clears the sign.
  LaneId magnitude(LaneId a);

  // Tables.
  /// What the table has for each byte, by its low table.index_bits bits.
  LaneId look_up(LaneId a, const ByteTable& table);
  /// Whether the target looks up bytes by that many bits with one or two instructions.
  bool has_look_up(int index_bits) const {
    return index_bits == 4 || target_.supports(Feature::avx512_vbmi);
  }
  /// Whether tables are looked up sixteen entries at a time: 8-bit ones by the halves of a code.
  bool looks_up_by_nibbles() const { return !target_.has_avx512(); }
  /// Looks up 32-bit lanes, on every target; the result may be used as f32.
  LaneId look_up_i32(LaneId a, const I32Table& table);

  /// The elements at these indices, i8 lanes, of a source that is a table.
  LaneId gather(int source, LaneId indices, LaneType type) {
    return append({.op = LaneOp::gather, .type = type, .a = indices, .imm = source});
  }

  // Between kinds.
  LaneId f16_to_f32(LaneId a) { return unary(LaneOp::f16_to_f32, LaneType::f32, a); }
  LaneId f32_to_f16(LaneId a, LaneRounding rounding = LaneRounding::nearest_even) {
    return unary(LaneOp::f32_to_f16, LaneType::i16, a, static_cast<int64_t>(rounding));
  }
  LaneId f32_to_f64(LaneId a) { return unary(LaneOp::f32_to_f64, LaneType::f64, a); }
  LaneId f64_to_f32(LaneId a) { return unary(LaneOp::f64_to_f32, LaneType::f32, a); }
  /// Whether the target computes with f16 lanes, and converts from and to them, by instruction.
  bool has_f16_lanes() const { return target_.supports(Feature::avx512_fp16); }
  LaneId f16_to_f64(LaneId a) { return unary(LaneOp::f16_to_f64, LaneType::f64, a); }
  LaneId f64_to_f16(LaneId a) { return unary(LaneOp::f64_to_f16, LaneType::f16, a); }
  /// Rounds to odd, to ten significant bits: an inexact result gets an odd significand, so that
  /// rounding it once more to a format at least two bits shorter is rounding the exact value once.
  /// (Boldo and Melquiond, "When double rounding is odd".) Enough for eight bits and bf16's range;
  /// what is above f32's numbers becomes the largest of them or infinity.
  LaneId f64_to_f32_odd(LaneId a);
  /// The same to 24 bits, for a value that will be rounded to a format without f32's range: what is
  /// below f32's normal numbers may become anything that is rounded to zero, and what is above its
  /// numbers the largest of them or infinity.
  LaneId f64_to_f32_odd_in_range(LaneId a);

  /// Rounds up: the least f32 that is not below a. |a| is not below f32's normal numbers, or the
  /// result's sign is all that matters; NaN stays or becomes -infinity.
  LaneId f64_to_f32_up(LaneId a);

  /// f32 whose upper half is the value rounded to odd.
  LaneId fold_to_high_half(LaneId a);

  /// An integer lane (i32 or i64) to f32 or f64, with has_f16_lanes also any but i8 to f16; one
  /// rounding to nearest even.
  LaneId integer_to_float(LaneId a, bool is_signed, LaneType to);
  /// An integer lane to f32 or f16, rounded to odd: of two neighbours one is. With AVX-512, f16
  /// with has_f16_lanes.
  LaneId integer_to_float_odd(LaneId a, bool is_signed, LaneType to);
  /// An integer lane to f32, rounded to odd as far as eight significant bits can tell.
  LaneId integer_to_f32_odd(LaneId a, bool is_signed);

  /// f32 or f64 -> i32 or i64, with has_f16_lanes also f16 -> any but i8, with the instruction's
  /// own out-of-range results; only where the target has the instruction (see
  /// has_wide_conversions).
  LaneId float_to_signed(LaneId a, int bits, LaneRounding rounding);
  LaneId float_to_unsigned(LaneId a, int bits, LaneRounding rounding);
  /// Whether the target converts floats to unsigned, and to 64-bit integers, by instruction.
  bool has_wide_conversions() const { return target_.has_avx512(); }

  /// AVX2: an i64 to the f32 whose upper half is its bf16, rounded once, and whose lower half is 0.
  LaneId i64_to_bf16_in_f32(LaneId a, bool is_signed);

  /// AVX2: the integer part of a float (f32, f64) that is not negative, given by its bits in 64-bit
  /// lanes; 0 from 2^64 up and for NaN.
  LaneId float_bits_to_u64(LaneId bits, ElementType format);
  /// The low 32 bits of an integral f64 with 0 <= a < 2^52, in 64-bit lanes.
  LaneId small_f64_to_i64(LaneId a);

 private:
  LaneId append(LaneInst inst);
  LaneId unary(LaneOp op, LaneType type, LaneId a, int64_t imm = 0);
  LaneId binary(LaneOp op, LaneId a, LaneId b);
  /// The result of integer arithmetic if both operands are constants.
  std::optional<uint64_t> folded(LaneOp op, LaneId a, LaneId b) const;
  LaneId compare(LaneOp op, LaneId a, LaneId b);
  LaneId shift(LaneOp op, LaneId a, int count);
  LaneId resize(LaneOp op, LaneId a, int bits);
  LaneType type_of_float(LaneId a) const { return float_lane(bits_of(type_of(a))); }
  LaneId zero_like(LaneId a) { return constant(integer_lane(bits_of(type_of(a))), 0); }
  LaneId compare_signed(IntegerPredicate predicate, LaneId a, LaneId b);
  LaneId compare_unsigned(IntegerPredicate predicate, LaneId a, LaneId b);
  LaneId not_and_or(LaneId a, LaneId b, LaneId c);
  LaneId flip_sign_bit(LaneId a);
  /// Whether the target has vfixupimm and vrange for a's float lanes.
  bool has_float_classes(LaneId a) const {
    return target_.has_avx512() && bits_of(type_of(a)) > 16;
  }
  LaneId i64_to_f64(LaneId a, bool is_signed);
  LaneId halves_to_f64(LaneId upper, LaneId lower, bool is_signed);
  LaneId combine_halves(LaneId upper, LaneId lower) {
    return append({.op = LaneOp::combine_halves, .type = LaneType::i64, .a = upper, .b = lower});
  }
  /// f32 whose lowest bit is set where a has one of its lowest `dropped_bits`; without AVX-512 the
  /// nearest to a with those bits folded into the next.
  LaneId f64_to_f32_marked(LaneId a, int dropped_bits);
  LaneId i64_to_f64_odd(LaneId a, bool is_signed);
  LaneId u32_to_f32(LaneId high, LaneId low);
  LaneId u32_to_f32_odd(LaneId a);
  LaneId fold_low_bits(LaneId a, int count);
  LaneId fold_masked_bits(LaneId a, LaneId low_mask);

  const Target& target_;
  LaneProgram& program_;
  std::vector<LaneId> constants_;
  uint32_t origin_ = 0;
};

}  // namespace castor::jit
