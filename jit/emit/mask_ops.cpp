// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/mask_ops.hpp"

#include "jit/emit/op_helpers.hpp"
#include "jit/emit/resize_ops.hpp"

namespace castor::jit {

namespace {

using OpmaskMnemonic = void (*)(Assembler&, const Opmask&, const Opmask&, const Opmask&);

void emit_mask_logic(LaneEmitter& emitter, const LaneInst& inst, OpmaskMnemonic opmask,
                     BinaryMnemonic vector) {
  if (emitter.has_avx512()) {
    const Opmask a = emitter.use_mask(inst.a);
    const Opmask b = emitter.use_mask(inst.b);
    opmask(emitter.code(), emitter.define_mask(), a, b);
  } else {
    const Xmm a = emitter.use(inst.a);
    const Xmm b = emitter.use(inst.b);
    vector(emitter.code(), emitter.define(), a, b);
  }
}

/// AVX-512 without an operation to fuse into: a move under the mask.
void emit_select_opmask(LaneEmitter& emitter, const LaneInst& inst) {
  static constexpr UnaryMnemonic moves[] = {CASTOR_UNARY(vmovdqu8), CASTOR_UNARY(vmovdqu16),
                                            CASTOR_UNARY(vmovdqa32), CASTOR_UNARY(vmovdqa64)};
  const Xmm a = emitter.use(inst.a);
  moves[width_index(bits_of(inst.type))](emitter.code(), define_result(emitter, inst), a);
}

}  // namespace

void emit_mask_and(LaneEmitter& e, const LaneInst& i) {
  emit_mask_logic(
      e, i,
      [](Assembler& c, const Opmask& t, const Opmask& a, const Opmask& b) { c.kandq(t, a, b); },
      CASTOR_BINARY(vpand));
}

void emit_mask_or(LaneEmitter& e, const LaneInst& i) {
  emit_mask_logic(
      e, i,
      [](Assembler& c, const Opmask& t, const Opmask& a, const Opmask& b) { c.korq(t, a, b); },
      CASTOR_BINARY(vpor));
}

void emit_mask_xor(LaneEmitter& e, const LaneInst& i) {
  emit_mask_logic(
      e, i,
      [](Assembler& c, const Opmask& t, const Opmask& a, const Opmask& b) { c.kxorq(t, a, b); },
      CASTOR_BINARY(vpxor));
}

void emit_mask_andnot(LaneEmitter& e, const LaneInst& i) {
  emit_mask_logic(
      e, i,
      [](Assembler& c, const Opmask& t, const Opmask& a, const Opmask& b) { c.kandnq(t, a, b); },
      CASTOR_BINARY(vpandn));
}

void emit_mask_not(LaneEmitter& emitter, const LaneInst& inst) {
  if (emitter.has_avx512()) {
    const Opmask a = emitter.use_mask(inst.a);
    emitter.code().knotq(emitter.define_mask(), a);
    return;
  }
  const Xmm a = emitter.use(inst.a);
  const OwnedVector ones = emitter.scratch();
  const Xmm all = ones.as(emitter.register_bits(inst.type));
  emitter.code().vpcmpeqd(all, all, all);
  emitter.code().vpxor(emitter.define(), a, all);
}

void emit_mask_resize(LaneEmitter& emitter, const LaneInst& inst) {
  // Lanes are all ones or all zeros: widening extends the sign, narrowing drops bits.
  if (bits_of(inst.type) > bits_of(emitter.type_of(inst.a))) {
    emit_extend_sign(emitter, inst);
  } else {
    emit_truncate(emitter, inst);
  }
}

void emit_select(LaneEmitter& emitter, const LaneInst& inst) {
  if (emitter.has_avx512()) return emit_select_opmask(emitter, inst);
  const Xmm mask = emitter.use(inst.mask);
  if (inst.c == no_lane) {
    const LastOperand a = emitter.use_last(inst.a);
    emitter.code().vpand(emitter.define(), mask, a);
  } else {
    const Xmm otherwise = emitter.use(inst.c);
    const LastOperand a = emitter.use_last(inst.a);
    emitter.code().vpblendvb(emitter.define(), otherwise, a, mask);
  }
}

}  // namespace castor::jit
