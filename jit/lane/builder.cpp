// SPDX-License-Identifier: Apache-2.0
// Elementary intents. Arithmetic and comparisons that are composed are in builder_arithmetic.cpp,
// conversions to, from and between floats in builder_conversions.cpp.
#include "jit/lane/builder.hpp"

#include <bit>

#include "ir/numerics/scalar.hpp"

namespace castor::jit {

namespace {

bool is_float_op(LaneOp op) { return op >= LaneOp::float_add && op <= LaneOp::round; }

uint64_t sign_bit(int bits) { return uint64_t{1} << (bits - 1); }

}  // namespace

LaneId LaneBuilder::append(LaneInst inst) {
  inst.origin = origin_;
  program_.code.push_back(inst);
  return static_cast<LaneId>(program_.code.size()) - 1;
}

LaneId LaneBuilder::unary(LaneOp op, LaneType type, LaneId a, int64_t imm) {
  return append({.op = op, .type = type, .a = a, .imm = imm});
}

std::optional<uint64_t> LaneBuilder::folded(LaneOp op, LaneId a, LaneId b) const {
  const LaneInst& x = program_.code[static_cast<size_t>(a)];
  const LaneInst& y = program_.code[static_cast<size_t>(b)];
  if (x.op != LaneOp::constant || y.op != LaneOp::constant) return std::nullopt;
  const auto first = static_cast<uint64_t>(x.imm);
  const auto second = static_cast<uint64_t>(y.imm);
  switch (op) {
    case LaneOp::add: return first + second;
    case LaneOp::sub: return first - second;
    case LaneOp::bit_and: return first & second;
    case LaneOp::bit_or: return first | second;
    case LaneOp::bit_xor: return first ^ second;
    default: return std::nullopt;
  }
}

LaneId LaneBuilder::binary(LaneOp op, LaneId a, LaneId b) {
  const LaneType type = type_of(a);
  const LaneType result = is_mask(type)     ? type
                          : is_float_op(op) ? float_lane(bits_of(type))
                                            : integer_lane(bits_of(type));
  if (const auto bits = folded(op, a, b)) return constant(result, *bits);
  return append({.op = op, .type = result, .a = a, .b = b});
}

LaneId LaneBuilder::compare(LaneOp op, LaneId a, LaneId b) {
  return append({.op = op, .type = mask_lane(bits_of(type_of(a))), .a = a, .b = b});
}

LaneId LaneBuilder::shift(LaneOp op, LaneId a, int count) {
  return unary(op, integer_lane(bits_of(type_of(a))), a, count);
}

LaneId LaneBuilder::resize(LaneOp op, LaneId a, int bits) {
  if (bits_of(type_of(a)) == bits) return a;
  return unary(op, integer_lane(bits), a);
}

LaneId LaneBuilder::load(int source, LaneType type) {
  return append({.op = LaneOp::load, .type = type, .imm = source});
}

void LaneBuilder::store(int sink, LaneId value, Narrowing narrowing) {
  append({.op = LaneOp::store,
          .type = type_of(value),
          .narrowing = narrowing,
          .a = value,
          .imm = sink});
}

void LaneBuilder::store_with_signs(int sink, LaneId value, LaneId signs, Narrowing narrowing) {
  store(sink, value, narrowing);
  program_.code.back().b = signs;
}

void LaneBuilder::store_by_table(int sink, LaneId value, const ByteTable& table,
                                 Narrowing look_up) {
  const int32_t index = add_byte_table(table);
  store(sink, value, look_up);
  program_.code.back().table = index;
}

int32_t LaneBuilder::add_threshold_table(const ThresholdTable& table) {
  program_.threshold_tables.push_back(table);
  return static_cast<int32_t>(program_.threshold_tables.size()) - 1;
}

int32_t LaneBuilder::add_class_table(const ClassTable& table) {
  program_.class_tables.push_back(table);
  return static_cast<int32_t>(program_.class_tables.size()) - 1;
}

int32_t LaneBuilder::add_byte_table(const ByteTable& table) {
  program_.tables.push_back(table);
  return static_cast<int32_t>(program_.tables.size()) - 1;
}

void LaneBuilder::store_encoded(int sink, LaneId value, Narrowing narrowing, int32_t table) {
  store(sink, value, narrowing);
  program_.code.back().table = table;
}

LaneId LaneBuilder::look_up(LaneId a, const ByteTable& table) {
  const LaneId id = unary(LaneOp::look_up, LaneType::i8, a);
  program_.code.back().table = add_byte_table(table);
  return id;
}

LaneId LaneBuilder::look_up_i32(LaneId a, const I32Table& table) {
  program_.i32_tables.push_back(table);
  const LaneId id = unary(LaneOp::look_up_i32, LaneType::i32, a);
  program_.code.back().table = static_cast<int32_t>(program_.i32_tables.size()) - 1;
  return id;
}

LaneId LaneBuilder::merge_bits(uint64_t mask, LaneId a, LaneId b) {
  const LaneType type = integer_lane(bits_of(type_of(a)));
  const LaneId kept = constant(type, mask);
  if (target_.has_avx512()) {
    constexpr int64_t truth_table = 0b11100100;  // a where c is 1, b where c is 0
    return append(
        {.op = LaneOp::bit_ternary, .type = type, .a = a, .b = b, .c = kept, .imm = truth_table});
  }
  return bit_or(bit_and(a, kept), binary(LaneOp::bit_andnot, kept, b));
}

LaneId LaneBuilder::constant(LaneType type, uint64_t bits) {
  if (bits_of(type) < 64) bits &= (uint64_t{1} << bits_of(type)) - 1;
  for (LaneId id : constants_) {
    const LaneInst& inst = program_.code[static_cast<size_t>(id)];
    if (bits_of(inst.type) == bits_of(type) && static_cast<uint64_t>(inst.imm) == bits) return id;
  }
  constants_.push_back(
      append({.op = LaneOp::constant, .type = type, .imm = static_cast<int64_t>(bits)}));
  return constants_.back();
}

LaneId LaneBuilder::float_constant(LaneType type, double value) {
  const auto bits = std::bit_cast<uint64_t>(value);
  switch (type) {
    case LaneType::f16:
      return constant(type, numerics::convert(bits, ElementType::f64, ElementType::f16, {}));
    case LaneType::f32: return constant(type, std::bit_cast<uint32_t>(static_cast<float>(value)));
    default: return constant(type, bits);
  }
}

LaneId LaneBuilder::flip_sign_bit(LaneId a) {
  const int bits = bits_of(type_of(a));
  return bit_xor(a, constant(integer_lane(bits), sign_bit(bits)));
}

LaneId LaneBuilder::min_signed(LaneId a, LaneId b) {
  if (bits_of(type_of(a)) < 64 || target_.has_avx512()) return binary(LaneOp::min_signed, a, b);
  return select(greater_signed(a, b), b, a);
}

LaneId LaneBuilder::max_signed(LaneId a, LaneId b) {
  if (bits_of(type_of(a)) < 64 || target_.has_avx512()) return binary(LaneOp::max_signed, a, b);
  return select(greater_signed(a, b), a, b);
}

LaneId LaneBuilder::min_unsigned(LaneId a, LaneId b) {
  if (bits_of(type_of(a)) < 64 || target_.has_avx512()) return binary(LaneOp::min_unsigned, a, b);
  return select(greater_signed(flip_sign_bit(a), flip_sign_bit(b)), b, a);
}

LaneId LaneBuilder::max_unsigned(LaneId a, LaneId b) {
  if (bits_of(type_of(a)) < 64 || target_.has_avx512()) return binary(LaneOp::max_unsigned, a, b);
  return select(greater_signed(flip_sign_bit(a), flip_sign_bit(b)), a, b);
}

LaneId LaneBuilder::is_nonzero(LaneId a) {
  const LaneType type = integer_lane(bits_of(type_of(a)));
  const LaneId one = constant(type, 1);
  if (bits_of(type) < 64 || target_.has_avx512()) return binary(LaneOp::min_unsigned, a, one);
  return zero_unless(mask_not(equal(a, constant(type, 0))), one);
}

LaneId LaneBuilder::mask_resize(LaneId a, int bits) {
  // Opmasks have no width; masks in vector registers do.
  if (target_.has_avx512() || bits_of(type_of(a)) == bits) return a;
  return unary(LaneOp::mask_resize, mask_lane(bits), a);
}

LaneId LaneBuilder::select(LaneId mask, LaneId a, LaneId otherwise) {
  const LaneInst& condition = program_.code[static_cast<size_t>(mask)];
  if (condition.op == LaneOp::mask_not) return select(condition.a, otherwise, a);
  return append({.op = LaneOp::select, .type = type_of(a), .a = a, .c = otherwise, .mask = mask});
}

LaneId LaneBuilder::zero_unless(LaneId mask, LaneId a) {
  const LaneInst& condition = program_.code[static_cast<size_t>(mask)];
  if (condition.op == LaneOp::mask_not && !target_.has_avx512()) {
    return append({.op = LaneOp::bit_andnot, .type = type_of(a), .a = condition.a, .b = a});
  }
  return append({.op = LaneOp::select, .type = type_of(a), .a = a, .mask = mask});
}

LaneId LaneBuilder::not_and_or(LaneId a, LaneId b, LaneId c) {
  constexpr int64_t truth_table = 0b00010101;  // 1 where c is 0 and not both a and b are 1
  return append({.op = LaneOp::bit_ternary,
                 .type = integer_lane(bits_of(type_of(a))),
                 .a = a,
                 .b = b,
                 .c = c,
                 .imm = truth_table});
}

LaneId LaneBuilder::round_half_even(LaneId a, int count) {
  const LaneType type = integer_lane(bits_of(type_of(a)));
  const uint64_t half = uint64_t{1} << (count - 1);
  const LaneId upper = shift_right(a, count);
  if (target_.has_avx512()) {
    // With n = (upper & 1) | (half - 2), a + n + 1 is a - ~n.
    return sub(a, not_and_or(upper, constant(type, 1), constant(type, half - 2)));
  }
  const LaneId last_bit = bit_and(upper, constant(type, 1));
  return add(add(a, constant(type, half - 1)), last_bit);
}

LaneId LaneBuilder::quiet_nan(LaneId a, LaneId b) {
  if (target_.has_avx512()) {
    // A digit for each class of b: for quiet and signalling NaN (the lowest two) b made quiet (2),
    // for every other class a (0).
    constexpr uint64_t responses = 0x00000022;
    return append({.op = LaneOp::fix_up,
                   .type = LaneType::f32,
                   .a = a,
                   .b = b,
                   .c = constant(LaneType::i32, responses)});
  }
  const LaneId quiet = bit_or(b, constant(LaneType::i32, 0x00400000));
  return select(compare(FloatPredicate::unordered, b, b), quiet, a);
}

LaneId LaneBuilder::bound_specials(LaneId a, double limit) {
  // A digit for each class: NaNs give +0 (8), +infinity the limit (0), every other class a (1).
  constexpr uint64_t responses = 0x11011188;
  return append({.op = LaneOp::fix_up,
                 .type = LaneType::f32,
                 .a = float_constant(LaneType::f32, limit),
                 .b = a,
                 .c = constant(LaneType::i32, responses)});
}

LaneId LaneBuilder::bound_to_powers(LaneId a, bool outside_is_nan) {
  // A digit for each class: NaNs give +infinity (5), positive numbers stay (1). The others: +0 (8),
  // and 2^127 (0) for +infinity.
  const uint64_t responses = outside_is_nan ? 0x15551555 : 0x18081855;
  return append({.op = LaneOp::fix_up,
                 .type = LaneType::f32,
                 .a = float_constant(LaneType::f32, 0x1p127),
                 .b = a,
                 .c = constant(LaneType::i32, responses)});
}

LaneId LaneBuilder::float_quotient(LaneId a, LaneId b, QuotientFacts facts) {
  return append({.op = LaneOp::float_quotient,
                 .type = float_lane(bits_of(type_of(a))),
                 .a = a,
                 .b = b,
                 .imm = facts.imm()});
}

LaneId LaneBuilder::float_sub_product(LaneId c, LaneId a, LaneId b) {
  return append({.op = LaneOp::float_sub_product, .type = type_of(c), .a = a, .b = b, .c = c});
}

LaneId LaneBuilder::round(LaneId a, LaneRounding rounding) {
  return unary(LaneOp::round, type_of_float(a), a, static_cast<int64_t>(rounding));
}

LaneId LaneBuilder::compare(FloatPredicate predicate, LaneId a, LaneId b) {
  return append({.op = LaneOp::float_compare,
                 .type = mask_lane(bits_of(type_of(a))),
                 .a = a,
                 .b = b,
                 .imm = static_cast<int64_t>(predicate)});
}

LaneId LaneBuilder::magnitude(LaneId a) {
  const int bits = bits_of(type_of(a));
  const LaneId cleared = bit_and(a, constant(integer_lane(bits), sign_bit(bits) - 1));
  return cleared;
}

}  // namespace castor::jit
