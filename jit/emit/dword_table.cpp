// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/dword_table.hpp"

#include <algorithm>

#include "jit/emit/op_helpers.hpp"
#include "jit/emit/vector_constant.hpp"

namespace castor::jit {

namespace {

/// A table of 16 in one register, or of 32 in two, that dword permutations take.
std::vector<uint8_t> dword_vector(const LaneEmitter& emitter, const DwordTable& table, int part) {
  const int bits = emitter.target().vector_bits();
  const int count = bits / 32;
  return vector_constant<uint32_t>(bits, [&](int i) {
    return table.entries[static_cast<size_t>(part * count + i) % (size_t{1} << table.index_bits)];
  });
}

int dword_parts(const LaneEmitter& emitter, const DwordTable& table) {
  return std::max(1, (1 << table.index_bits) * 32 / emitter.target().vector_bits());
}

void look_up_dwords_avx512(LaneEmitter& emitter, const DwordTable& table, const Xmm& index,
                           const Xmm& to) {
  Assembler& code = emitter.code();
  OwnedVector fallbacks[2];
  const Xmm first = emitter.vector(dword_vector(emitter, table, 0), fallbacks[0]);
  const Xbyak::Zmm result(to.getIdx());
  if (table.index_bits == 4) return code.vpermd(result, Xbyak::Zmm(index.getIdx()), first);
  const Xmm second = emitter.vector(dword_vector(emitter, table, 1), fallbacks[1]);
  code.vmovdqa64(result, Xbyak::Zmm(index.getIdx()));
  code.vpermi2d(result, first, second);
}

/// Eight entries at a time; index bit 3, then 4, moved to the sign chooses between them.
void look_up_dwords_avx2(LaneEmitter& emitter, const DwordTable& table, const Xmm& index,
                         const Xmm& to) {
  Assembler& code = emitter.code();
  const Xbyak::Ymm result(to.getIdx());
  const Xbyak::Ymm indices(index.getIdx());
  const auto eight = [&](const Xbyak::Ymm& into, int part) {
    code.vpermd(into, indices, code.constant(dword_vector(emitter, table, part)));
  };
  const OwnedVector other = emitter.scratch();
  const OwnedVector chooser = emitter.scratch();
  const Xbyak::Ymm second(other.as(256).getIdx());
  const Xbyak::Ymm choice(chooser.as(256).getIdx());
  code.vpslld(choice, indices, 28);
  eight(result, 0);
  eight(second, 1);
  code.vblendvps(result, result, second, choice);
  if (table.index_bits == 4) return;
  const OwnedVector upper = emitter.scratch();
  const Xbyak::Ymm third(upper.as(256).getIdx());
  eight(third, 2);
  eight(second, 3);
  code.vblendvps(third, third, second, choice);
  code.vpslld(choice, indices, 27);
  code.vblendvps(result, result, third, choice);
}

}  // namespace

void reserve_dword_table(LaneEmitter& emitter, const DwordTable& table) {
  if (!emitter.has_avx512()) return;
  for (int part = 0; part < dword_parts(emitter, table); ++part) {
    emitter.reserve_vector(dword_vector(emitter, table, part));
  }
}

void emit_look_up_dwords(LaneEmitter& emitter, const LaneInst& inst) {
  const DwordTable& table = emitter.program().dword_tables[static_cast<size_t>(inst.table)];
  const Xmm index = emitter.use(inst.a);
  if (emitter.has_avx512()) {
    look_up_dwords_avx512(emitter, table, index, emitter.define_apart());
  } else {
    look_up_dwords_avx2(emitter, table, index, emitter.define_apart());
  }
}

}  // namespace castor::jit
