// SPDX-License-Identifier: Apache-2.0
// Emitters of integer arithmetic, logic and comparisons.
#include "jit/emit/integer_ops.hpp"

#include <array>

#include "jit/emit/op_helpers.hpp"

namespace castor::jit {

namespace {

/// A family: the instruction for lanes of 8, 16, 32 and 64 bits; null where there is none.
using Widths = std::array<BinaryMnemonic, 4>;

void emit_binary(LaneEmitter& emitter, const LaneInst& inst, const Widths& widths) {
  const Xmm a = emitter.use(inst.a);
  const Xmm b = emitter.use(inst.b);
  widths[width_index(bits_of(inst.type))](emitter.code(), define_result(emitter, inst), a, b);
}

constexpr Widths add = {CASTOR_BINARY(vpaddb), CASTOR_BINARY(vpaddw), CASTOR_BINARY(vpaddd),
                        CASTOR_BINARY(vpaddq)};
constexpr Widths sub = {CASTOR_BINARY(vpsubb), CASTOR_BINARY(vpsubw), CASTOR_BINARY(vpsubd),
                        CASTOR_BINARY(vpsubq)};
constexpr Widths min_signed = {CASTOR_BINARY(vpminsb), CASTOR_BINARY(vpminsw),
                               CASTOR_BINARY(vpminsd), CASTOR_BINARY(vpminsq)};
constexpr Widths min_unsigned = {CASTOR_BINARY(vpminub), CASTOR_BINARY(vpminuw),
                                 CASTOR_BINARY(vpminud), CASTOR_BINARY(vpminuq)};
constexpr Widths max_signed = {CASTOR_BINARY(vpmaxsb), CASTOR_BINARY(vpmaxsw),
                               CASTOR_BINARY(vpmaxsd), CASTOR_BINARY(vpmaxsq)};
constexpr Widths max_unsigned = {CASTOR_BINARY(vpmaxub), CASTOR_BINARY(vpmaxuw),
                                 CASTOR_BINARY(vpmaxud), CASTOR_BINARY(vpmaxuq)};
constexpr Widths right_by = {nullptr, nullptr, CASTOR_BINARY(vpsrlvd), CASTOR_BINARY(vpsrlvq)};

/// Logic on whole registers: VEX for AVX2; EVEX wants a granularity, that of its mask.
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
  const Xmm b = emitter.use(inst.b);
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
  const Xmm b = emitter.use(inst.b);
  const size_t width = width_index(bits_of(inst.type));
  if (emitter.has_avx512()) {
    compare.mask[width](emitter.code(), emitter.define_mask(), a, b);
  } else {
    compare.vector[width](emitter.code(), emitter.define(), a, b);
  }
}

}  // namespace

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
void emit_shift_right_by(LaneEmitter& e, const LaneInst& i) { emit_binary(e, i, right_by); }
void emit_equal(LaneEmitter& e, const LaneInst& i) { emit_compare(e, i, compare_equal); }
void emit_greater_signed(LaneEmitter& e, const LaneInst& i) { emit_compare(e, i, compare_greater); }

}  // namespace castor::jit
