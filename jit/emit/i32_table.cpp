// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/i32_table.hpp"

#include <algorithm>

#include "jit/emit/op_helpers.hpp"
#include "jit/emit/vector_constant.hpp"

namespace castor::jit {

namespace {

/// One part of a table: the entries that a 32-bit permutation takes in one register.
std::vector<uint8_t> table_vector(const LaneEmitter& emitter, const I32Table& table, int part) {
  const int bits = emitter.target().vector_bits();
  const int count = bits / 32;
  return vector_constant<uint32_t>(bits, [&](int i) {
    return table.entries[static_cast<size_t>(part * count + i) % (size_t{1} << table.index_bits)];
  });
}

int table_parts(const LaneEmitter& emitter, const I32Table& table) {
  return std::max(1, (1 << table.index_bits) * 32 / emitter.target().vector_bits());
}

void emit_look_up_avx512(LaneEmitter& emitter, const I32Table& table, const Xmm& index,
                         const Xmm& to) {
  Assembler& code = emitter.code();
  OwnedVector fallbacks[2];
  const Xmm first = emitter.vector(table_vector(emitter, table, 0), fallbacks[0]);
  const Xbyak::Zmm result(to.getIdx());
  if (table.index_bits == 4) return code.vpermd(result, Xbyak::Zmm(index.getIdx()), first);
  const Xmm second = emitter.vector(table_vector(emitter, table, 1), fallbacks[1]);
  code.vmovdqa64(result, Xbyak::Zmm(index.getIdx()));
  code.vpermi2d(result, first, second);
}

/// Four entries are chosen within each half of a register, others eight at a time, where index bit
/// 3, then 4, moved to the sign chooses between them. From memory vpermd would take twice as long
/// on Zen 3 (2 cycles).
void emit_look_up_avx2(LaneEmitter& emitter, const I32Table& table, const Xmm& index,
                       const Xmm& to) {
  Assembler& code = emitter.code();
  const Xbyak::Ymm result(to.getIdx());
  const Xbyak::Ymm indices(index.getIdx());
  const auto part_in = [&](const Xbyak::Ymm& into, int part) {
    return Xbyak::Ymm(emitter.vector(table_vector(emitter, table, part), into).getIdx());
  };
  const auto emit_eight = [&](const Xbyak::Ymm& into, int part) {
    code.vpermd(into, indices, part_in(into, part));
  };
  if (table.index_bits == 2) return code.vpermilps(result, part_in(result, 0), indices);
  if (table.index_bits == 3) return emit_eight(result, 0);
  const OwnedVector other = emitter.scratch();
  const OwnedVector chooser = emitter.scratch();
  const Xbyak::Ymm second(other.as(256).getIdx());
  const Xbyak::Ymm choice(chooser.as(256).getIdx());
  code.vpslld(choice, indices, 28);
  emit_eight(result, 0);
  emit_eight(second, 1);
  code.vblendvps(result, result, second, choice);
  if (table.index_bits == 4) return;
  const OwnedVector upper = emitter.scratch();
  const Xbyak::Ymm third(upper.as(256).getIdx());
  emit_eight(third, 2);
  emit_eight(second, 3);
  code.vblendvps(third, third, second, choice);
  code.vpslld(choice, indices, 27);
  code.vblendvps(result, result, third, choice);
}

}  // namespace

void reserve_i32_table(LaneEmitter& emitter, const I32Table& table) {
  for (int part = 0; part < table_parts(emitter, table); ++part) {
    emitter.reserve_vector(table_vector(emitter, table, part));
  }
}

void emit_look_up_i32(LaneEmitter& emitter, const LaneInst& inst) {
  const I32Table& table = emitter.program().i32_tables[static_cast<size_t>(inst.table)];
  const Xmm index = emitter.use(inst.a);
  if (emitter.has_avx512()) {
    emit_look_up_avx512(emitter, table, index, emitter.define_apart());
  } else {
    emit_look_up_avx2(emitter, table, index, emitter.define_apart());
  }
}

}  // namespace castor::jit
