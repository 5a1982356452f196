// SPDX-License-Identifier: Apache-2.0
// Emitters of integer arithmetic, logic and comparisons.
#include "jit/emit/integer_ops.hpp"

#include <algorithm>
#include <array>

#include "jit/emit/op_helpers.hpp"
#include "jit/emit/vector_constant.hpp"

namespace castor::jit {

namespace {

/// A family: the instruction for lanes of 8, 16, 32 and 64 bits; null where there is none.
using Widths = std::array<BinaryMnemonic, 4>;

void emit_binary(LaneEmitter& emitter, const LaneInst& inst, const Widths& widths) {
  const Xmm a = emitter.use(inst.a);
  const LastOperand b = emitter.use_last(inst.b);
  widths[width_index(bits_of(inst.type))](emitter.code(), define_result(emitter, inst), a, b);
}

constexpr Widths add = {CASTOR_BINARY(vpaddb), CASTOR_BINARY(vpaddw), CASTOR_BINARY(vpaddd),
                        CASTOR_BINARY(vpaddq)};
constexpr Widths sub = {CASTOR_BINARY(vpsubb), CASTOR_BINARY(vpsubw), CASTOR_BINARY(vpsubd),
                        CASTOR_BINARY(vpsubq)};
constexpr Widths sub_down_to_zero = {CASTOR_BINARY(vpsubusb), CASTOR_BINARY(vpsubusw), nullptr,
                                     nullptr};
constexpr Widths min_signed = {CASTOR_BINARY(vpminsb), CASTOR_BINARY(vpminsw),
                               CASTOR_BINARY(vpminsd), CASTOR_BINARY(vpminsq)};
constexpr Widths min_unsigned = {CASTOR_BINARY(vpminub), CASTOR_BINARY(vpminuw),
                                 CASTOR_BINARY(vpminud), CASTOR_BINARY(vpminuq)};
constexpr Widths max_signed = {CASTOR_BINARY(vpmaxsb), CASTOR_BINARY(vpmaxsw),
                               CASTOR_BINARY(vpmaxsd), CASTOR_BINARY(vpmaxsq)};
constexpr Widths max_unsigned = {CASTOR_BINARY(vpmaxub), CASTOR_BINARY(vpmaxuw),
                                 CASTOR_BINARY(vpmaxud), CASTOR_BINARY(vpmaxuq)};
constexpr Widths left_by = {nullptr, CASTOR_BINARY(vpsllvw), CASTOR_BINARY(vpsllvd),
                            CASTOR_BINARY(vpsllvq)};
constexpr Widths right_by = {nullptr, CASTOR_BINARY(vpsrlvw), CASTOR_BINARY(vpsrlvd),
                             CASTOR_BINARY(vpsrlvq)};
constexpr Widths right_signed_by = {nullptr, CASTOR_BINARY(vpsravw), CASTOR_BINARY(vpsravd),
                                    CASTOR_BINARY(vpsravq)};
constexpr Widths mul = {nullptr, CASTOR_BINARY(vpmullw), CASTOR_BINARY(vpmulld),
                        CASTOR_BINARY(vpmullq)};
// Products of parts of the lanes.
constexpr Widths low_u32_product = {nullptr, nullptr, nullptr, CASTOR_BINARY(vpmuludq)};
constexpr Widths i16_pair_dot = {nullptr, nullptr, CASTOR_BINARY(vpmaddwd), nullptr};
constexpr Widths u8_pair_dot = {nullptr, CASTOR_BINARY(vpmaddubsw), nullptr, nullptr};
constexpr Widths high_u16_product = {nullptr, nullptr, CASTOR_BINARY(vpmulhuw), nullptr};

/// A mask of the low byte of each 16-bit lane.
std::vector<uint8_t> low_bytes(int register_bits) {
  return vector_constant<uint16_t>(std::max(register_bits, 128), [](int) { return 0x00ff; });
}

/// Multiplies bytes. An even one is the low byte of a 16-bit product, an odd one the high byte of
/// another, whose factors' low bytes are zero.
void emit_mul_bytes(LaneEmitter& emitter, const LaneInst& inst) {
  constexpr uint8_t a_where_c_else_b = 0b11100100;
  Assembler& code = emitter.code();
  const int bits = emitter.register_bits(inst.type);
  const Xmm a = emitter.use(inst.a);
  const Xmm b = emitter.use(inst.b);
  OwnedVector fallback;
  const Xmm low = vector_register(emitter.vector(low_bytes(bits), fallback).getIdx(), bits);
  const OwnedVector odd_a = emitter.scratch();
  const OwnedVector odd_b = emitter.scratch();
  const Xmm odd = odd_a.as(bits);
  code.vpsrlw(odd_b.as(bits), b, 8);
  emitter.has_avx512() ? code.vpandnd(odd, low, a) : code.vpandn(odd, low, a);
  code.vpmullw(odd, odd, odd_b.as(bits));
  const Xmm to = emitter.define();
  code.vpmullw(to, a, b);
  if (emitter.has_avx512()) return code.vpternlogd(to, odd, low, a_where_c_else_b);
  code.vpand(to, to, low);
  code.vpor(to, to, odd);
}

/// Logic on whole registers: VEX for AVX2; EVEX has instructions by the lane width of the mask.
struct Logic {
  BinaryMnemonic vex;
  BinaryMnemonic evex32;
  BinaryMnemonic evex64;
};
constexpr Logic logic_and = {CASTOR_BINARY(vpand), CASTOR_BINARY(vpandd), CASTOR_BINARY(vpandq)};
constexpr Logic logic_or = {CASTOR_BINARY(vpor), CASTOR_BINARY(vpord), CASTOR_BINARY(vporq)};
constexpr Logic logic_xor = {CASTOR_BINARY(vpxor), CASTOR_BINARY(vpxord), CASTOR_BINARY(vpxorq)};
constexpr Logic logic_andnot = {CASTOR_BINARY(vpandn), CASTOR_BINARY(vpandnd),
                                CASTOR_BINARY(vpandnq)};

void emit_logic(LaneEmitter& emitter, const LaneInst& inst, const Logic& logic) {
  const BinaryMnemonic evex = bits_of(inst.type) == 64 ? logic.evex64 : logic.evex32;
  const BinaryMnemonic mnemonic = emitter.has_avx512() ? evex : logic.vex;
  const Xmm a = emitter.use(inst.a);
  const LastOperand b = emitter.use_last(inst.b);
  mnemonic(emitter.code(), define_result(emitter, inst), a, b);
}

using ShiftWidths = std::array<ImmediateMnemonic, 4>;
constexpr ShiftWidths left = {nullptr, CASTOR_IMMEDIATE(vpsllw), CASTOR_IMMEDIATE(vpslld),
                              CASTOR_IMMEDIATE(vpsllq)};
constexpr ShiftWidths right = {nullptr, CASTOR_IMMEDIATE(vpsrlw), CASTOR_IMMEDIATE(vpsrld),
                               CASTOR_IMMEDIATE(vpsrlq)};
constexpr ShiftWidths right_signed = {nullptr, CASTOR_IMMEDIATE(vpsraw), CASTOR_IMMEDIATE(vpsrad),
                                      CASTOR_IMMEDIATE(vpsraq)};

void emit_shift(LaneEmitter& emitter, const LaneInst& inst, const ShiftWidths& widths) {
  const Xmm a = emitter.use(inst.a);
  widths[width_index(bits_of(inst.type))](emitter.code(), define_result(emitter, inst), a,
                                          static_cast<uint8_t>(inst.imm));
}

/// A comparison: into opmasks on AVX-512, into all-ones lanes on AVX2.
struct Compare {
  Widths vector;
  std::array<MaskMnemonic, 4> mask;
};
constexpr Compare compare_equal = {{CASTOR_BINARY(vpcmpeqb), CASTOR_BINARY(vpcmpeqw),
                                    CASTOR_BINARY(vpcmpeqd), CASTOR_BINARY(vpcmpeqq)},
                                   {CASTOR_MASKING(vpcmpeqb), CASTOR_MASKING(vpcmpeqw),
                                    CASTOR_MASKING(vpcmpeqd), CASTOR_MASKING(vpcmpeqq)}};
constexpr Compare compare_greater = {{CASTOR_BINARY(vpcmpgtb), CASTOR_BINARY(vpcmpgtw),
                                      CASTOR_BINARY(vpcmpgtd), CASTOR_BINARY(vpcmpgtq)},
                                     {CASTOR_MASKING(vpcmpgtb), CASTOR_MASKING(vpcmpgtw),
                                      CASTOR_MASKING(vpcmpgtd), CASTOR_MASKING(vpcmpgtq)}};

void emit_compare(LaneEmitter& emitter, const LaneInst& inst, const Compare& compare) {
  const Xmm a = emitter.use(inst.a);
  const size_t width = width_index(bits_of(inst.type));
  if (emitter.has_avx512()) {
    const Xmm b = emitter.use(inst.b);
    compare.mask[width](emitter.code(), emitter.define_mask(), a, b);
  } else {
    const LastOperand b = emitter.use_last(inst.b);
    compare.vector[width](emitter.code(), emitter.define(), a, b);
  }
}

using ComparisonMnemonic = void (*)(Assembler&, const Opmask&, const Xmm&, const Xmm&, uint8_t);
#define CASTOR_COMPARISON(name) \
  [](Assembler& c, const Opmask& t, const Xmm& a, const Xmm& b, uint8_t i) { c.name(t, a, b, i); }

constexpr std::array<ComparisonMnemonic, 4> signed_comparisons = {
    CASTOR_COMPARISON(vpcmpb), CASTOR_COMPARISON(vpcmpw), CASTOR_COMPARISON(vpcmpd),
    CASTOR_COMPARISON(vpcmpq)};
constexpr std::array<ComparisonMnemonic, 4> unsigned_comparisons = {
    CASTOR_COMPARISON(vpcmpub), CASTOR_COMPARISON(vpcmpuw), CASTOR_COMPARISON(vpcmpud),
    CASTOR_COMPARISON(vpcmpuq)};

void emit_comparison(LaneEmitter& emitter, const LaneInst& inst,
                     const std::array<ComparisonMnemonic, 4>& mnemonics) {
  constexpr uint8_t controls[] = {0 /* EQ */, 4 /* NEQ */, 1 /* LT */,
                                  2 /* LE */, 6 /* NLE */, 5 /* NLT */};
  const Xmm a = emitter.use(inst.a);
  const Xmm b = emitter.use(inst.b);
  mnemonics[width_index(bits_of(inst.type))](emitter.code(), emitter.define_mask(), a, b,
                                             controls[inst.imm]);
}

constexpr std::array<MaskMnemonic, 4> bit_tests = {
    CASTOR_MASKING(vptestmb), CASTOR_MASKING(vptestmw), CASTOR_MASKING(vptestmd),
    CASTOR_MASKING(vptestmq)};

constexpr std::array<UnaryMnemonic, 4> absolutes = {CASTOR_UNARY(vpabsb), CASTOR_UNARY(vpabsw),
                                                    CASTOR_UNARY(vpabsd), CASTOR_UNARY(vpabsq)};

}  // namespace

void emit_mul(LaneEmitter& emitter, const LaneInst& inst) {
  if (bits_of(inst.type) == 8) return emit_mul_bytes(emitter, inst);
  emit_binary(emitter, inst, mul);
}

void reserve_byte_product(LaneEmitter& emitter, const LaneInst& inst) {
  if (bits_of(inst.type) == 8) {
    emitter.reserve_vector(low_bytes(emitter.register_bits(inst.type)));
  }
}

void emit_mul_low_u32(LaneEmitter& e, const LaneInst& i) { emit_binary(e, i, low_u32_product); }
void emit_sub_down_to_zero(LaneEmitter& e, const LaneInst& i) {
  emit_binary(e, i, sub_down_to_zero);
}
void emit_dot_u8_pair(LaneEmitter& e, const LaneInst& i) { emit_binary(e, i, u8_pair_dot); }
void emit_dot_i16_pairs(LaneEmitter& e, const LaneInst& i) { emit_binary(e, i, i16_pair_dot); }
void emit_mul_high_u16(LaneEmitter& e, const LaneInst& i) { emit_binary(e, i, high_u16_product); }

void emit_add_dot_i16_pairs(LaneEmitter& emitter, const LaneInst& inst) {
  const Xmm a = emitter.use(inst.a);
  const Xmm b = emitter.use(inst.b);
  const auto encoding = emitter.has_avx512() ? Xbyak::EvexEncoding : Xbyak::VexEncoding;
  emitter.code().vpdpwssd(emitter.define_from(inst.c), a, b, encoding);
}

void emit_leading_zeros(LaneEmitter& emitter, const LaneInst& inst) {
  const Xmm a = emitter.use(inst.a);
  emitter.code().vplzcntd(define_result(emitter, inst), a);
}

void emit_absolute(LaneEmitter& emitter, const LaneInst& inst) {
  const Xmm a = emitter.use(inst.a);
  absolutes[width_index(bits_of(inst.type))](emitter.code(), define_result(emitter, inst), a);
}

void emit_compare_signed(LaneEmitter& e, const LaneInst& i) {
  emit_comparison(e, i, signed_comparisons);
}
void emit_compare_unsigned(LaneEmitter& e, const LaneInst& i) {
  emit_comparison(e, i, unsigned_comparisons);
}

void emit_any_bits(LaneEmitter& emitter, const LaneInst& inst) {
  const Xmm a = emitter.use(inst.a);
  const Xmm b = emitter.use(inst.b);
  bit_tests[width_index(bits_of(inst.type))](emitter.code(), emitter.define_mask(), a, b);
}

void emit_add(LaneEmitter& e, const LaneInst& i) { emit_binary(e, i, add); }
void emit_sub(LaneEmitter& e, const LaneInst& i) { emit_binary(e, i, sub); }
void emit_min_signed(LaneEmitter& e, const LaneInst& i) { emit_binary(e, i, min_signed); }
void emit_min_unsigned(LaneEmitter& e, const LaneInst& i) { emit_binary(e, i, min_unsigned); }
void emit_max_signed(LaneEmitter& e, const LaneInst& i) { emit_binary(e, i, max_signed); }
void emit_max_unsigned(LaneEmitter& e, const LaneInst& i) { emit_binary(e, i, max_unsigned); }
void emit_bit_and(LaneEmitter& e, const LaneInst& i) { emit_logic(e, i, logic_and); }
void emit_bit_or(LaneEmitter& e, const LaneInst& i) { emit_logic(e, i, logic_or); }
void emit_bit_xor(LaneEmitter& e, const LaneInst& i) { emit_logic(e, i, logic_xor); }
void emit_bit_andnot(LaneEmitter& e, const LaneInst& i) { emit_logic(e, i, logic_andnot); }
void emit_bit_ternary(LaneEmitter& emitter, const LaneInst& inst) {
  const Xmm b = emitter.use(inst.b);
  const Xmm c = emitter.use(inst.c);
  const auto truth_table = static_cast<uint8_t>(inst.imm);
  emitter.code().vpternlogd(emitter.define_from(inst.a), b, c, truth_table);
}
void emit_shift_left(LaneEmitter& e, const LaneInst& i) { emit_shift(e, i, left); }
void emit_shift_right(LaneEmitter& e, const LaneInst& i) { emit_shift(e, i, right); }
void emit_shift_right_signed(LaneEmitter& e, const LaneInst& i) { emit_shift(e, i, right_signed); }
void emit_shift_left_by(LaneEmitter& e, const LaneInst& i) { emit_binary(e, i, left_by); }
void emit_shift_right_signed_by(LaneEmitter& e, const LaneInst& i) {
  emit_binary(e, i, right_signed_by);
}
void emit_shift_right_by(LaneEmitter& e, const LaneInst& i) { emit_binary(e, i, right_by); }
void emit_equal(LaneEmitter& e, const LaneInst& i) { emit_compare(e, i, compare_equal); }
void emit_greater_signed(LaneEmitter& e, const LaneInst& i) { emit_compare(e, i, compare_greater); }

}  // namespace castor::jit
