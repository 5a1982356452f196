// SPDX-License-Identifier: Apache-2.0
// Types of mnemonics and helpers for the emitters of lane operations.
#pragma once

#include "jit/emit/lane_emitter.hpp"

namespace castor::jit {

using Xbyak::Opmask;
using Xbyak::Xmm;

/// A three-operand vector instruction, whose last operand may be in memory.
using BinaryMnemonic = void (*)(Assembler&, const Xmm& to, const Xmm& a, const Xbyak::Operand& b);
/// A two-operand vector instruction.
using UnaryMnemonic = void (*)(Assembler&, const Xmm& to, const Xmm& a);
/// A two-operand vector instruction whose second operand may be in memory.
using LoadMnemonic = void (*)(Assembler&, const Xmm& to, const Xbyak::Operand& from);
/// A comparison into an opmask.
using MaskMnemonic = void (*)(Assembler&, const Opmask& to, const Xmm& a, const Xmm& b);
/// A two-operand vector instruction with an immediate.
using ImmediateMnemonic = void (*)(Assembler&, const Xmm& to, const Xmm& a, uint8_t immediate);

#define CASTOR_BINARY(name) \
  [](Assembler& c, const Xmm& t, const Xmm& a, const Xbyak::Operand& b) { c.name(t, a, b); }
#define CASTOR_UNARY(name) [](Assembler& c, const Xmm& t, const Xmm& a) { c.name(t, a); }
#define CASTOR_LOAD(name) [](Assembler& c, const Xmm& t, const Xbyak::Operand& a) { c.name(t, a); }
#define CASTOR_MASKING(name) \
  [](Assembler& c, const Opmask& t, const Xmm& a, const Xmm& b) { c.name(t, a, b); }
#define CASTOR_IMMEDIATE(name) \
  [](Assembler& c, const Xmm& t, const Xmm& a, uint8_t i) { c.name(t, a, i); }

/// The whole register.
inline Xbyak::Ymm ymm(const Xmm& vector) { return Xbyak::Ymm(vector.getIdx()); }
inline Xbyak::Zmm zmm(const Xmm& vector) { return Xbyak::Zmm(vector.getIdx()); }
/// The same, under the register's mask if it has one.
inline Xbyak::Zmm zmm_masked(const Xmm& vector) {
  Xbyak::Zmm whole = zmm(vector);
  whole.setOpmaskIdx(vector.getOpmaskIdx());
  if (vector.hasZero()) whole.setZero();
  return whole;
}

/// The register of a masked store of that many bytes. On Zen 4 one of 24 bytes takes 4.2 cycles of
/// 512 bits, and 1.6 of 256 bits (bench/results/amd-epyc-zen4.md).
inline Xmm masked_store_register(const Xmm& vector, int bytes) {
  return vector_register(vector.getIdx(), bytes < 32 ? 256 : 512);
}

/// Index of a lane width in tables: 8, 16, 32, 64 bits -> 0, 1, 2, 3.
inline size_t width_index(int bits) { return bits == 8 ? 0 : bits == 16 ? 1 : bits == 32 ? 2 : 3; }

// Logic on whole registers, in the encoding that the target has.
inline void emit_and(LaneEmitter& emitter, const Xmm& to, const Xmm& a, const Xbyak::Operand& b) {
  emitter.has_avx512() ? emitter.code().vpandd(to, a, b) : emitter.code().vpand(to, a, b);
}
inline void emit_or(LaneEmitter& emitter, const Xmm& to, const Xmm& a, const Xmm& b) {
  emitter.has_avx512() ? emitter.code().vpord(to, a, b) : emitter.code().vpor(to, a, b);
}
inline void emit_xor(LaneEmitter& emitter, const Xmm& to, const Xmm& a, const Xbyak::Operand& b) {
  emitter.has_avx512() ? emitter.code().vpxord(to, a, b) : emitter.code().vpxor(to, a, b);
}
inline void emit_zero(LaneEmitter& emitter, const Xmm& to) {
  emitter.has_avx512() ? emitter.code().vpxord(to, to, to) : emitter.code().vpxor(to, to, to);
}

/// The register of the current instruction's result, under its mask if it has one. Call it after
/// `use` of all operands.
inline Xmm define_result(LaneEmitter& emitter, const LaneInst& inst) {
  if (inst.mask == no_lane) return emitter.define();
  const Opmask mask = emitter.use_mask(inst.mask);
  Xmm to;
  if (inst.c == no_lane) {
    to = emitter.define();
    to.setZero();
  } else {
    to = emitter.define_from(inst.c);
  }
  to.setOpmaskIdx(mask.getIdx());
  return to;
}

}  // namespace castor::jit
