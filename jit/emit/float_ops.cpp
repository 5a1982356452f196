// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/float_ops.hpp"

#include <bit>

#include "jit/emit/op_helpers.hpp"
#include "jit/emit/vector_constant.hpp"
#include "jit/lane/quotient_facts.hpp"
#include "jit/lane/reciprocals.hpp"

namespace castor::jit {

namespace {

/// An instruction for f16, f32 and f64 lanes.
template <class Mnemonic>
struct Precisions {
  Mnemonic f16;
  Mnemonic f32;
  Mnemonic f64;

  Mnemonic of(LaneType type) const {
    const int bits = bits_of(type);
    return bits == 16 ? f16 : bits == 32 ? f32 : f64;
  }
};

void emit_unary(LaneEmitter& emitter, const LaneInst& inst,
                const Precisions<UnaryMnemonic>& precisions) {
  const Xmm a = emitter.use(inst.a);
  precisions.of(inst.type)(emitter.code(), define_result(emitter, inst), a);
}

void emit_binary(LaneEmitter& emitter, const LaneInst& inst,
                 const Precisions<BinaryMnemonic>& precisions) {
  const Xmm a = emitter.use(inst.a);
  const LastOperand b = emitter.use_last(inst.b);
  precisions.of(inst.type)(emitter.code(), define_result(emitter, inst), a, b);
}

/// Immediate of vroundps and vrndscaleps: the mode in bits 0 and 1, no precision exception.
uint8_t rounding_control(int64_t rounding) {
  constexpr uint8_t no_exception = 8;
  return static_cast<uint8_t>(no_exception | rounding);
}

/// Immediates of vcmpps, the quiet ones (Intel SDM, CMPPS, table 3-1).
uint8_t predicate_control(int64_t predicate) {
  constexpr uint8_t controls[] = {0x00 /* EQ_OQ */, 0x11 /* LT_OQ */,   0x12 /* LE_OQ */,
                                  0x1e /* GT_OQ */, 0x1d /* GE_OQ */,   0x0c /* NEQ_OQ */,
                                  0x07 /* ORD_Q */, 0x03 /* UNORD_Q */, 0x04 /* NEQ_UQ */};
  return controls[predicate];
}

/// Immediates of vrangeps: what is compared in bits 0 and 1, the sign in bits 2 and 3.
enum RangeControl : uint8_t {
  minimum = 0b0100,
  maximum = 0b0101,
  min_magnitude = 0b0010,
  max_magnitude = 0b0011
};

constexpr auto bounded_quotient_bits =
    std::bit_cast<uint32_t>(static_cast<float>(max_bounded_quotient));
/// What is added to round a number to an integer.
constexpr auto integer_offset = std::bit_cast<uint32_t>(0x1.8p23f);

std::vector<uint8_t> in_lanes(uint32_t value, int lanes) {
  return repeated_constant<uint32_t>(32 * lanes, static_cast<int>(value));
}

/// vfixupimmps' responses to the classes of a quotient: 0 (8) for NaNs, the lowest two digits,
/// infinities (4 and 5) for infinities, the quotient itself (0) for numbers. Of quotients that are
/// encoded NaNs stay, quiet (2), and the product (1) gives zeros and infinities.
std::vector<uint8_t> quotient_responses(QuotientFacts facts, int lanes) {
  return in_lanes(facts.is_encoded ? 0x00110122 : 0x00540088, lanes);
}

/// Quotients by a division: 0 where they are NaN, unless they are encoded; cut where they are
/// bounded.
struct DivisionForQuotient {
  QuotientFacts facts;
  int lanes;

  /// to = a / b; `responses`: a register, or in memory.
  void emit(Assembler& code, const Xmm& to, const Xmm& a, const Xmm& b,
            const Xbyak::Operand& responses) const {
    code.vdivps(to, a, b);
    if (facts.is_encoded) return;
    code.vfixupimmps(to, to, responses, 0);
    if (!facts.is_bounded) return;
    code.vrangeps(to, to, code.constant(in_lanes(bounded_quotient_bits, lanes)), min_magnitude);
  }
};

void emit_range(LaneEmitter& emitter, const LaneInst& inst, RangeControl control) {
  const Xmm a = emitter.use(inst.a);
  const Xmm b = emitter.use(inst.b);
  const bool single = bits_of(inst.type) == 32;
  const Xmm to = define_result(emitter, inst);
  single ? emitter.code().vrangeps(to, a, b, control) : emitter.code().vrangepd(to, a, b, control);
}

}  // namespace

void emit_range_min(LaneEmitter& e, const LaneInst& i) { emit_range(e, i, minimum); }
void emit_range_max(LaneEmitter& e, const LaneInst& i) { emit_range(e, i, maximum); }
void emit_range_magnitude(LaneEmitter& e, const LaneInst& i) { emit_range(e, i, min_magnitude); }
void emit_range_magnitude_from(LaneEmitter& e, const LaneInst& i) {
  emit_range(e, i, max_magnitude);
}

void emit_float_add(LaneEmitter& e, const LaneInst& i) {
  emit_binary(e, i, {CASTOR_BINARY(vaddph), CASTOR_BINARY(vaddps), CASTOR_BINARY(vaddpd)});
}
void emit_float_sub(LaneEmitter& e, const LaneInst& i) {
  emit_binary(e, i, {CASTOR_BINARY(vsubph), CASTOR_BINARY(vsubps), CASTOR_BINARY(vsubpd)});
}
void emit_float_mul(LaneEmitter& e, const LaneInst& i) {
  emit_binary(e, i, {CASTOR_BINARY(vmulph), CASTOR_BINARY(vmulps), CASTOR_BINARY(vmulpd)});
}
void emit_float_div(LaneEmitter& e, const LaneInst& i) {
  emit_binary(e, i, {CASTOR_BINARY(vdivph), CASTOR_BINARY(vdivps), CASTOR_BINARY(vdivpd)});
}
void emit_float_sqrt(LaneEmitter& e, const LaneInst& i) {
  emit_unary(e, i, {CASTOR_UNARY(vsqrtph), CASTOR_UNARY(vsqrtps), CASTOR_UNARY(vsqrtpd)});
}
void emit_float_min(LaneEmitter& e, const LaneInst& i) {
  emit_binary(e, i, {CASTOR_BINARY(vminph), CASTOR_BINARY(vminps), CASTOR_BINARY(vminpd)});
}
void emit_float_max(LaneEmitter& e, const LaneInst& i) {
  emit_binary(e, i, {CASTOR_BINARY(vmaxph), CASTOR_BINARY(vmaxps), CASTOR_BINARY(vmaxpd)});
}

void emit_float_sub_product(LaneEmitter& emitter, const LaneInst& inst) {
  constexpr Precisions<BinaryMnemonic> mnemonics = {
      CASTOR_BINARY(vfnmadd231ph), CASTOR_BINARY(vfnmadd231ps), CASTOR_BINARY(vfnmadd231pd)};
  const Xmm a = emitter.use(inst.a);
  const LastOperand b = emitter.use_last(inst.b);
  mnemonics.of(inst.type)(emitter.code(), emitter.define_from(inst.c), a, b);
}

void reserve_quotient(LaneEmitter& emitter, const LaneInst& inst) {
  if (inst.op == LaneOp::quotient_to_signed) {
    return emitter.reserve_vector(in_lanes(integer_offset, emitter.lanes()));
  }
  if (inst.op != LaneOp::float_quotient) return;
  const QuotientFacts facts = QuotientFacts::of(inst.imm);
  const bool is_hoisted = inst.c != no_lane;
  const bool has_responses = facts.is_encoded ? is_hoisted : !(facts.is_bounded && is_hoisted);
  if (has_responses) emitter.reserve_vector(quotient_responses(facts, emitter.lanes()));
}

namespace {

/// emit_float_quotient for numbers that are neither infinite nor NaN, with quotients that are not
/// either where the divisor is good. In two steps, the quotient is there already, unless it must be
/// divided.
void emit_bounded_quotient(LaneEmitter& emitter, const LaneInst& inst) {
  Assembler& code = emitter.code();
  const QuotientFacts facts = QuotientFacts::of(inst.imm);
  const DivisionForQuotient division = {facts, emitter.lanes()};
  const Xmm a = emitter.use(inst.a);
  const Xmm b = emitter.use(inst.b);
  Xbyak::Label divides;
  Xbyak::Label done;
  Xmm dividend = a;
  Xmm to = a;
  if (facts.takes_two_steps()) {
    to = emitter.define_from(inst.c);
    emitter.emit_jump_if_any(inst.mask, divides);
  } else {
    const Xmm reciprocal = emitter.use(inst.c);
    const OwnedVector first = emitter.scratch();
    const Xmm q0 = first.as(emitter.register_bits(inst.type));
    dividend = to = emitter.define_from(inst.a);
    emitter.emit_jump_if_any(inst.mask, divides);
    code.vmulps(q0, to, reciprocal);
    code.vfnmadd231ps(to, q0, b);
    code.vfmadd213ps(to, reciprocal, q0);
  }
  code.L(done);
  code.defer([&code, division, to, dividend, b, divides, done]() mutable {
    code.L(divides);
    division.emit(code, to, dividend, b,
                  code.constant(quotient_responses(division.facts, division.lanes)));
    code.jmp(done, Xbyak::CodeGenerator::T_NEAR);
  });
}

}  // namespace

/// With r = 1 / b, rounded: q0 = a * r, and then q0 + (a - q0 * b) * r, with one rounding of each
/// line. That is a / b, rounded, where b is as with_reciprocals has it and the quotient is at least
/// a quarter, or encoded: quotient_test enumerates the cases in which it is nearly not. Where q0 is
/// infinite the correction is NaN, so that q0's class tells what the result is.
void emit_float_quotient(LaneEmitter& emitter, const LaneInst& inst) {
  Assembler& code = emitter.code();
  const QuotientFacts facts = QuotientFacts::of(inst.imm);
  const DivisionForQuotient division = {facts, emitter.lanes()};
  if (facts.is_bounded && inst.c != no_lane) return emit_bounded_quotient(emitter, inst);
  const Xmm b = emitter.use(inst.b);
  if (facts.is_encoded && inst.c == no_lane) {
    const Xmm a = emitter.use(inst.a);
    return code.vdivps(emitter.define(), a, b);
  }
  OwnedVector fallback;
  const Xmm responses = emitter.vector(quotient_responses(facts, emitter.lanes()), fallback);
  if (inst.c == no_lane) {
    const Xmm to = emitter.define_from(inst.a);
    return division.emit(code, to, to, b, responses);
  }
  const Xmm reciprocal = emitter.use(inst.c);
  const OwnedVector first = emitter.scratch();
  const Xmm q0 = first.as(emitter.register_bits(inst.type));
  const Xmm to = emitter.define_from(inst.a);
  Xbyak::Label divides;
  Xbyak::Label done;
  emitter.emit_jump_if_any(inst.mask, divides);
  code.vmulps(q0, to, reciprocal);
  code.vfnmadd231ps(to, q0, b);
  code.vfmadd213ps(to, reciprocal, q0);
  code.vfixupimmps(to, q0, responses, 0);
  code.L(done);
  code.defer([&code, division, to, b, responses, divides, done]() mutable {
    code.L(divides);
    division.emit(code, to, to, b, responses);
    code.jmp(done, Xbyak::CodeGenerator::T_NEAR);
  });
}

/// With 1.5 * 2^23 added, a number of magnitude up to 2^22 is rounded to an integer, in the sum's
/// low bits. Where both products' sums are equal, so is what is between them, the rounded quotient;
/// beyond 2^22 the sums differ, or are beyond as well. Else, and where a or a sum is NaN, all lanes
/// are divided.
void emit_quotient_to_signed(LaneEmitter& emitter, const LaneInst& inst) {
  Assembler& code = emitter.code();
  const int lanes = emitter.lanes();
  const Xmm a = emitter.use(inst.a);
  const Xmm b = emitter.use(inst.b);
  const Xmm low = emitter.use(inst.c);
  const Xmm high = emitter.use(inst.mask);
  OwnedVector fallback;
  const Xmm offset = emitter.vector(in_lanes(integer_offset, lanes), fallback);
  const OwnedVector other = emitter.scratch();
  const OwnedVector third = emitter.scratch();
  const OwnedMask differs = emitter.scratch_mask();
  const int bits = emitter.register_bits(inst.type);
  const Xmm above = other.as(bits);
  const Xmm quotient = third.as(bits);
  const Opmask unequal = differs.get();
  const Xmm to = emitter.define_apart();
  Xbyak::Label divides;
  Xbyak::Label done;
  code.vmovaps(to, a);
  code.vmovaps(above, a);
  code.vfmadd213ps(to, low, offset);
  code.vfmadd213ps(above, high, offset);
  code.vcmpps(unequal, to, above,
              predicate_control(static_cast<int64_t>(FloatPredicate::not_equal_or_unordered)));
  code.kortestw(unequal, unequal);
  code.jne(divides, Xbyak::CodeGenerator::T_NEAR);
  code.vpsubd(to, to, offset);
  code.L(done);
  code.defer([=, &code]() mutable {
    const auto unordered = predicate_control(static_cast<int64_t>(FloatPredicate::unordered));
    Xbyak::Label by_division;
    Xbyak::Label divided;
    code.L(divides);
    code.vcmpps(unequal, low, low, unordered);
    code.kortestw(unequal, unequal);
    code.jne(by_division, Xbyak::CodeGenerator::T_NEAR);
    code.vpaddd(above, low, code.constant(in_lanes(reciprocal_slack, lanes)));
    code.vmovaps(quotient, a);
    code.vmulps(to, a, above);
    code.vfnmadd231ps(quotient, to, b);
    code.vfmadd213ps(quotient, above, to);
    code.vfixupimmps(quotient, to, code.constant(quotient_responses({}, lanes)), 0);
    code.L(divided);
    code.vpminsd(quotient, quotient, code.constant(in_lanes(bounded_quotient_bits, lanes)));
    code.vcvtps2dq(to, quotient);
    code.jmp(done, Xbyak::CodeGenerator::T_NEAR);
    code.L(by_division);
    code.vdivps(quotient, a, b);
    code.vfixupimmps(quotient, quotient, code.constant(quotient_responses({}, lanes)), 0);
    code.jmp(divided, Xbyak::CodeGenerator::T_NEAR);
  });
}

void emit_fix_up(LaneEmitter& emitter, const LaneInst& inst) {
  constexpr uint8_t no_flags = 0;
  const Xmm b = emitter.use(inst.b);
  const Xmm responses = emitter.use(inst.c);
  const bool single = bits_of(inst.type) == 32;
  const Xmm to = emitter.define_from(inst.a);
  single ? emitter.code().vfixupimmps(to, b, responses, no_flags)
         : emitter.code().vfixupimmpd(to, b, responses, no_flags);
}

void emit_round(LaneEmitter& emitter, const LaneInst& inst) {
  constexpr Precisions<ImmediateMnemonic> evex = {
      CASTOR_IMMEDIATE(vrndscaleph), CASTOR_IMMEDIATE(vrndscaleps), CASTOR_IMMEDIATE(vrndscalepd)};
  constexpr Precisions<ImmediateMnemonic> vex = {nullptr, CASTOR_IMMEDIATE(vroundps),
                                                 CASTOR_IMMEDIATE(vroundpd)};
  const Xmm a = emitter.use(inst.a);
  const ImmediateMnemonic mnemonic = (emitter.has_avx512() ? evex : vex).of(inst.type);
  mnemonic(emitter.code(), define_result(emitter, inst), a, rounding_control(inst.imm));
}

void emit_float_compare(LaneEmitter& emitter, const LaneInst& inst) {
  Assembler& code = emitter.code();
  const bool single = bits_of(inst.type) == 32;
  const uint8_t predicate = predicate_control(inst.imm);
  const Xmm a = emitter.use(inst.a);
  if (emitter.has_avx512()) {
    const Xmm b = emitter.use(inst.b);
    const Opmask to = emitter.define_mask();
    switch (bits_of(inst.type)) {
      case 16: code.vcmpph(to, a, b, predicate); break;
      case 32: code.vcmpps(to, a, b, predicate); break;
      default: code.vcmppd(to, a, b, predicate); break;
    }
  } else {
    const LastOperand b = emitter.use_last(inst.b);
    const Xmm to = emitter.define();
    single ? code.vcmpps(to, a, b, predicate) : code.vcmppd(to, a, b, predicate);
  }
}

}  // namespace castor::jit
