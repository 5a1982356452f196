// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/resize_ops.hpp"

#include <array>

#include "jit/emit/op_helpers.hpp"

namespace castor::jit {

namespace {

// By source width (8, 16, 32) and destination width (16, 32, 64).
using Extensions = std::array<std::array<LoadMnemonic, 3>, 3>;
constexpr Extensions zero_extensions = {{
    {CASTOR_LOAD(vpmovzxbw), CASTOR_LOAD(vpmovzxbd), CASTOR_LOAD(vpmovzxbq)},
    {nullptr, CASTOR_LOAD(vpmovzxwd), CASTOR_LOAD(vpmovzxwq)},
    {nullptr, nullptr, CASTOR_LOAD(vpmovzxdq)},
}};
constexpr Extensions sign_extensions = {{
    {CASTOR_LOAD(vpmovsxbw), CASTOR_LOAD(vpmovsxbd), CASTOR_LOAD(vpmovsxbq)},
    {nullptr, CASTOR_LOAD(vpmovsxwd), CASTOR_LOAD(vpmovsxwq)},
    {nullptr, nullptr, CASTOR_LOAD(vpmovsxdq)},
}};

void emit_extend(LaneEmitter& emitter, const LaneInst& inst, bool is_signed) {
  const Xmm a = emitter.use(inst.a);
  const int from_bits = bits_of(emitter.type_of(inst.a));
  extension(from_bits, bits_of(inst.type), is_signed)(emitter.code(), emitter.define(), a);
}

// AVX-512, by source width (16, 32, 64) and destination width (8, 16, 32).
constexpr std::array<std::array<UnaryMnemonic, 3>, 3> truncations = {{
    {CASTOR_UNARY(vpmovwb), nullptr, nullptr},
    {CASTOR_UNARY(vpmovdb), CASTOR_UNARY(vpmovdw), nullptr},
    {CASTOR_UNARY(vpmovqb), CASTOR_UNARY(vpmovqw), CASTOR_UNARY(vpmovqd)},
}};

/// vpshufb control: makes the low bytes of the lanes of each 128-bit half consecutive.
std::array<uint8_t, 32> low_bytes_control(int from_bits, int to_bits) {
  std::array<uint8_t, 32> control;
  control.fill(0x80);  // zero
  const int from_bytes = from_bits / 8;
  const int to_bytes = to_bits / 8;
  for (int i = 0; i < 16 / from_bytes * to_bytes; ++i) {
    const auto source = static_cast<uint8_t>(i / to_bytes * from_bytes + i % to_bytes);
    control[static_cast<size_t>(i)] = control[static_cast<size_t>(i) + 16] = source;
  }
  return control;
}

}  // namespace

LoadMnemonic extension(int from_bits, int to_bits, bool is_signed) {
  const Extensions& extensions = is_signed ? sign_extensions : zero_extensions;
  return extensions[width_index(from_bits)][width_index(to_bits) - 1];
}

void emit_extend_zero(LaneEmitter& e, const LaneInst& i) { emit_extend(e, i, false); }
void emit_extend_sign(LaneEmitter& e, const LaneInst& i) { emit_extend(e, i, true); }

void emit_join_lanes(LaneEmitter& emitter, const Xmm& to, const Xmm& from, int valid_bits) {
  Assembler& code = emitter.code();
  const OwnedVector upper = emitter.scratch();
  const Xmm low_to = vector_register(to.getIdx(), 128);
  const Xmm low_from = vector_register(from.getIdx(), 128);
  code.vextracti128(upper.as(128), Xbyak::Ymm(from.getIdx()), 1);
  switch (valid_bits) {
    case 64: code.vpunpcklqdq(low_to, low_from, upper.as(128)); break;
    case 32: code.vpunpckldq(low_to, low_from, upper.as(128)); break;
    default: code.vpunpcklwd(low_to, low_from, upper.as(128)); break;
  }
}

void emit_truncate(LaneEmitter& emitter, const Xmm& to, const Xmm& from, int from_bits,
                   int to_bits) {
  Assembler& code = emitter.code();
  if (emitter.has_avx512()) {
    truncations[width_index(from_bits) - 1][width_index(to_bits)](code, to, from);
    return;
  }
  OwnedVector fallback;
  const Xmm control = emitter.vector(low_bytes_control(from_bits, to_bits), fallback);
  const Xmm wide_to = vector_register(to.getIdx(), width_of(from));
  code.vpshufb(wide_to, from, vector_register(control.getIdx(), width_of(from)));
  if (width_of(from) == 256) emit_join_lanes(emitter, to, wide_to, 128 * to_bits / from_bits);
}

void emit_truncate(LaneEmitter& emitter, const LaneInst& inst) {
  const Xmm a = emitter.use(inst.a);
  const int from_bits = bits_of(emitter.type_of(inst.a));
  const Xmm to = emitter.has_avx512() ? emitter.define() : emitter.define_apart();
  emit_truncate(emitter, to, a, from_bits, bits_of(inst.type));
}

void emit_combine_halves(LaneEmitter& emitter, const LaneInst& inst) {
  constexpr uint8_t odd_lanes = 0xaa;
  Assembler& code = emitter.code();
  const Xmm upper = emitter.use(inst.a);
  const Xmm lower = emitter.use(inst.b);
  code.vpblendd(emitter.define(), lower, upper, odd_lanes);
}

std::vector<uint8_t> high_half_order(int lanes) {
  std::vector<uint8_t> bytes(static_cast<size_t>(lanes) * 4);
  for (size_t lane = 0; lane < static_cast<size_t>(lanes); ++lane) {
    // The 16-bit lanes after the chunk's are zero: what wrote the narrower register cleared them.
    const auto zero = static_cast<uint16_t>(lanes);
    const auto own = static_cast<uint16_t>(lane);
    std::memcpy(&bytes[lane * 4], &zero, 2);
    std::memcpy(&bytes[lane * 4 + 2], &own, 2);
  }
  return bytes;
}

void emit_widen_to_high_half(LaneEmitter& emitter, const LaneInst& inst) {
  Assembler& code = emitter.code();
  const Xmm a = emitter.use(inst.a);
  const int bits = emitter.register_bits(inst.type);
  if (emitter.has_avx512()) {
    OwnedVector fallback;
    const Xmm order = emitter.vector(high_half_order(emitter.lanes()), fallback);
    return code.vpermw(emitter.define(), order, vector_register(a.getIdx(), bits));
  }
  const Xmm to = emitter.define();
  code.vpmovzxwd(to, a);
  code.vpslld(to, to, 16);
}

void emit_join(LaneEmitter& emitter, const LaneInst& inst) {
  Assembler& code = emitter.code();
  const int half_bits = emitter.register_bits(inst.type) / 2;
  const Xmm second = vector_register(emitter.use(inst.a).getIdx(), half_bits);
  const Xmm first = emitter.first_half(inst.a);
  const Xmm to = emitter.define();
  if (half_bits == 256) {
    const auto whole = [](const Xmm& half) { return Xbyak::Zmm(half.getIdx()); };
    return code.vinserti64x4(whole(to), whole(first), Xbyak::Ymm(second.getIdx()), 1);
  }
  const auto whole = [](const Xmm& half) { return Xbyak::Ymm(half.getIdx()); };
  code.vinserti128(whole(to), whole(first), second, 1);
}

}  // namespace castor::jit
