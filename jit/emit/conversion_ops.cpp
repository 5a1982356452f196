// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/conversion_ops.hpp"

#include <algorithm>
#include <array>

#include "jit/emit/op_helpers.hpp"

namespace castor::jit {

namespace {

/// Instructions by the widths of operand and result lanes, 16, 32 and 64 bits each.
using Conversions = std::array<std::array<UnaryMnemonic, 3>, 3>;

UnaryMnemonic pick(const Conversions& conversions, int from_bits, int to_bits) {
  return conversions[width_index(from_bits) - 1][width_index(to_bits) - 1];
}

constexpr Conversions from_signed = {{
    {CASTOR_UNARY(vcvtw2ph), nullptr, nullptr},
    {CASTOR_UNARY(vcvtdq2ph), CASTOR_UNARY(vcvtdq2ps), CASTOR_UNARY(vcvtdq2pd)},
    {CASTOR_UNARY(vcvtqq2ph), CASTOR_UNARY(vcvtqq2ps), CASTOR_UNARY(vcvtqq2pd)},
}};
constexpr Conversions from_unsigned = {{
    {CASTOR_UNARY(vcvtuw2ph), nullptr, nullptr},
    {CASTOR_UNARY(vcvtudq2ph), CASTOR_UNARY(vcvtudq2ps), CASTOR_UNARY(vcvtudq2pd)},
    {CASTOR_UNARY(vcvtuqq2ph), CASTOR_UNARY(vcvtuqq2ps), CASTOR_UNARY(vcvtuqq2pd)},
}};
constexpr Conversions to_signed = {{
    {CASTOR_UNARY(vcvtph2w), CASTOR_UNARY(vcvtph2dq), CASTOR_UNARY(vcvtph2qq)},
    {nullptr, CASTOR_UNARY(vcvtps2dq), CASTOR_UNARY(vcvtps2qq)},
    {nullptr, CASTOR_UNARY(vcvtpd2dq), CASTOR_UNARY(vcvtpd2qq)},
}};
constexpr Conversions to_signed_truncating = {{
    {CASTOR_UNARY(vcvttph2w), CASTOR_UNARY(vcvttph2dq), CASTOR_UNARY(vcvttph2qq)},
    {nullptr, CASTOR_UNARY(vcvttps2dq), CASTOR_UNARY(vcvttps2qq)},
    {nullptr, CASTOR_UNARY(vcvttpd2dq), CASTOR_UNARY(vcvttpd2qq)},
}};
constexpr Conversions to_unsigned = {{
    {CASTOR_UNARY(vcvtph2uw), CASTOR_UNARY(vcvtph2udq), CASTOR_UNARY(vcvtph2uqq)},
    {nullptr, CASTOR_UNARY(vcvtps2udq), CASTOR_UNARY(vcvtps2uqq)},
    {nullptr, CASTOR_UNARY(vcvtpd2udq), CASTOR_UNARY(vcvtpd2uqq)},
}};
constexpr Conversions to_unsigned_truncating = {{
    {CASTOR_UNARY(vcvttph2uw), CASTOR_UNARY(vcvttph2udq), CASTOR_UNARY(vcvttph2uqq)},
    {nullptr, CASTOR_UNARY(vcvttps2udq), CASTOR_UNARY(vcvttps2uqq)},
    {nullptr, CASTOR_UNARY(vcvttpd2udq), CASTOR_UNARY(vcvttpd2uqq)},
}};

/// Emits a conversion; a rounding other than MXCSR's is written into the instruction, which
/// AVX-512 has for whole registers only, so narrower ones are widened: the lanes above are unused.
void emit_convert(LaneEmitter& emitter, const LaneInst& inst, const Conversions& conversions,
                  LaneRounding rounding) {
  const int from_bits = bits_of(emitter.type_of(inst.a));
  const int to_bits = bits_of(inst.type);
  Xmm a = emitter.use(inst.a);
  Xmm to = define_result(emitter, inst);
  if (rounding != LaneRounding::nearest_even) {
    constexpr Xbyak::EvexModifierRounding modes[] = {
        Xbyak::EvexModifierRounding(Xbyak::EvexModifierRounding::T_RN_SAE),
        Xbyak::EvexModifierRounding(Xbyak::EvexModifierRounding::T_RD_SAE),
        Xbyak::EvexModifierRounding(Xbyak::EvexModifierRounding::T_RU_SAE),
        Xbyak::EvexModifierRounding(Xbyak::EvexModifierRounding::T_RZ_SAE)};
    const auto widen = [](const Xmm& narrow, int bits) {
      Xmm wide = vector_register(narrow.getIdx(), bits);
      wide.setOpmaskIdx(narrow.getOpmaskIdx());
      if (narrow.hasZero()) wide.setZero();
      return wide;
    };
    const int widest = std::max(from_bits, to_bits);
    a = widen(a, 512 / widest * from_bits) | modes[static_cast<size_t>(rounding)];
    to = widen(to, 512 / widest * to_bits);
  }
  pick(conversions, from_bits, to_bits)(emitter.code(), to, a);
}

void emit_float_to_integer(LaneEmitter& emitter, const LaneInst& inst, const Conversions& rounding,
                           const Conversions& truncating) {
  const auto mode = static_cast<LaneRounding>(inst.imm);
  if (mode == LaneRounding::toward_zero) {
    emit_convert(emitter, inst, truncating, LaneRounding::nearest_even);
  } else {
    emit_convert(emitter, inst, rounding, mode);
  }
}

}  // namespace

void emit_f16_to_f32(LaneEmitter& emitter, const LaneInst& inst) {
  const Xmm a = emitter.use(inst.a);
  emitter.code().vcvtph2ps(emitter.define(), a);
}

void emit_f32_to_f16(LaneEmitter& emitter, const LaneInst& inst) {
#ifdef CASTOR_PLANT_BUG
  constexpr uint8_t nearest_even = 1;  // one wrong bit, for the fuzzer to find: rounds down
#else
  constexpr uint8_t nearest_even = 0;
#endif
  constexpr uint8_t toward_zero = 3;
  const bool is_cut = inst.imm == static_cast<int64_t>(LaneRounding::toward_zero);
  const Xmm a = emitter.use(inst.a);
  emitter.code().vcvtps2ph(emitter.define(), a, is_cut ? toward_zero : nearest_even);
}

void emit_f32_to_f64(LaneEmitter& emitter, const LaneInst& inst) {
  const Xmm a = emitter.use(inst.a);
  emitter.code().vcvtps2pd(emitter.define(), a);
}

void emit_f64_to_f32(LaneEmitter& emitter, const LaneInst& inst) {
  constexpr Conversions narrowing = {{{}, {}, {nullptr, CASTOR_UNARY(vcvtpd2ps), nullptr}}};
  emit_convert(emitter, inst, narrowing, static_cast<LaneRounding>(inst.imm));
}

void emit_f16_to_f64(LaneEmitter& emitter, const LaneInst& inst) {
  const Xmm a = emitter.use(inst.a);
  emitter.code().vcvtph2pd(emitter.define(), a);
}

void emit_f64_to_f16(LaneEmitter& emitter, const LaneInst& inst) {
  const Xmm a = emitter.use(inst.a);
  emitter.code().vcvtpd2ph(emitter.define(), a);
}

void emit_signed_to_float(LaneEmitter& e, const LaneInst& i) {
  emit_convert(e, i, from_signed, static_cast<LaneRounding>(i.imm));
}
void emit_unsigned_to_float(LaneEmitter& e, const LaneInst& i) {
  emit_convert(e, i, from_unsigned, static_cast<LaneRounding>(i.imm));
}
void emit_float_to_signed(LaneEmitter& e, const LaneInst& i) {
  emit_float_to_integer(e, i, to_signed, to_signed_truncating);
}
void emit_float_to_unsigned(LaneEmitter& e, const LaneInst& i) {
  emit_float_to_integer(e, i, to_unsigned, to_unsigned_truncating);
}

}  // namespace castor::jit
