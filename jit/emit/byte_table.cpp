// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/byte_table.hpp"

#include <array>

#include "jit/emit/bit_fields.hpp"
#include "jit/emit/op_helpers.hpp"

namespace castor::jit {

namespace {

/// Which byte of the table's 16-bit entries.
enum class EntryByte : uint8_t { low, high };

/// Vectors that hold one byte of each entry: a table of 16 is repeated in every 128-bit part, the
/// others fill one zmm register (64 entries) or four.
std::vector<uint8_t> table_vector(const LaneEmitter& emitter, const ByteTable& table,
                                  EntryByte which, int quarter) {
  const int bits = table.index_bits == 4 ? emitter.target().vector_bits() : 512;
  return vector_constant<uint8_t>(bits, [&](int i) {
    const int entry = table.index_bits == 4 ? i % 16 : quarter * 64 + i;
    const uint16_t word = table.entries[static_cast<size_t>(entry)];
    return which == EntryByte::high ? word >> 8 : word & 0xff;
  });
}

int quarters(const ByteTable& table) { return table.index_bits == 8 ? 4 : 1; }

void reserve_bytes(LaneEmitter& emitter, const ByteTable& table, EntryByte which) {
  for (int quarter = 0; quarter < quarters(table); ++quarter) {
    emitter.reserve_vector(table_vector(emitter, table, which, quarter));
  }
}

/// Bytes from 128 up and those below, for tables of 256.
struct Halves {
  OwnedMask upper;
  OwnedMask lower;

  Halves(LaneEmitter& emitter, const Xmm& bytes)
      : upper(emitter.scratch_mask()), lower(emitter.scratch_mask()) {
    emitter.code().vpmovb2m(upper.get(), Xbyak::Zmm(bytes.getIdx()));
    emitter.code().knotq(lower.get(), upper.get());
  }
};

/// 256 entries in two steps of 128: a byte that one step leaves alone is the other's index.
void look_up_256(LaneEmitter& emitter, const ByteTable& table, EntryByte which, const Xmm& bytes,
                 const Halves& halves, const Xmm& to) {
  Assembler& code = emitter.code();
  const Xbyak::Zmm result(to.getIdx());
  if (to.getIdx() != bytes.getIdx()) code.vmovdqa64(result, Xbyak::Zmm(bytes.getIdx()));
  for (int half = 0; half < 2; ++half) {
    OwnedVector fallbacks[2];
    const Xmm first = emitter.vector(table_vector(emitter, table, which, 2 * half), fallbacks[0]);
    const Xmm second =
        emitter.vector(table_vector(emitter, table, which, 2 * half + 1), fallbacks[1]);
    code.vpermi2b(result | (half == 0 ? halves.lower : halves.upper).get(), first, second);
  }
}

/// 16 or 64 entries.
void look_up_in_one(LaneEmitter& emitter, const ByteTable& table, EntryByte which, const Xmm& bytes,
                    const Xmm& to) {
  Assembler& code = emitter.code();
  OwnedVector fallback;
  const Xmm entries = emitter.vector(table_vector(emitter, table, which, 0), fallback);
  if (table.index_bits == 4) {
    code.vpshufb(to, vector_register(entries.getIdx(), width_of(to)), bytes);
  } else {
    code.vpermb(Xbyak::Zmm(to.getIdx()), Xbyak::Zmm(bytes.getIdx()), Xbyak::Zmm(entries.getIdx()));
  }
}

/// vpermq: the order from which vpunpckl and vpunpckh, which work in 128-bit parts, give words in
/// the order of the bytes.
std::vector<uint8_t> unpack_order() {
  constexpr std::array<uint64_t, 8> qwords = {0, 4, 1, 5, 2, 6, 3, 7};
  return vector_constant<uint64_t>(512, [&](int i) { return qwords[static_cast<size_t>(i)]; });
}

void order_for_unpacking(LaneEmitter& emitter, const Xmm& to, const Xmm& bytes) {
  Assembler& code = emitter.code();
  if (!emitter.has_avx512()) {
    constexpr uint8_t qwords_0_2_1_3 = 0xd8;
    return code.vpermq(Xbyak::Ymm(to.getIdx()), Xbyak::Ymm(bytes.getIdx()), qwords_0_2_1_3);
  }
  OwnedVector fallback;
  const Xbyak::Zmm order(emitter.vector(unpack_order(), fallback).getIdx());
  code.vpermq(Xbyak::Zmm(to.getIdx()), order, bytes);
}

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
  if (to.getIdx() != index.getIdx()) code.vmovdqa64(result, Xbyak::Zmm(index.getIdx()));
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

void reserve_look_up(LaneEmitter& emitter, const LaneInst& inst) {
  const auto index = static_cast<size_t>(inst.table);
  if (inst.op == LaneOp::look_up) {
    reserve_bytes(emitter, emitter.program().tables[index], EntryByte::low);
  } else if (emitter.has_avx512()) {
    const DwordTable& table = emitter.program().dword_tables[index];
    for (int part = 0; part < dword_parts(emitter, table); ++part) {
      emitter.reserve_vector(dword_vector(emitter, table, part));
    }
  }
}

void reserve_word_table(LaneEmitter& emitter, const ByteTable& table) {
  if (emitter.has_avx512()) emitter.reserve_vector(unpack_order());
  reserve_bytes(emitter, table, EntryByte::low);
  reserve_bytes(emitter, table, EntryByte::high);
}

TwoVectors look_up_words(LaneEmitter& emitter, const ByteTable& table, const Xmm& bytes) {
  Assembler& code = emitter.code();
  const int bits = emitter.target().vector_bits();
  OwnedVector ordered = emitter.scratch();
  OwnedVector high = emitter.scratch();
  const OwnedVector low = emitter.scratch();
  const Xmm indices = ordered.as(bits);
  order_for_unpacking(emitter, indices, bytes);
  if (table.index_bits == 8) {
    const Halves halves(emitter, indices);
    look_up_256(emitter, table, EntryByte::low, indices, halves, low.as(bits));
    look_up_256(emitter, table, EntryByte::high, indices, halves, high.as(bits));
  } else {
    look_up_in_one(emitter, table, EntryByte::low, indices, low.as(bits));
    look_up_in_one(emitter, table, EntryByte::high, indices, high.as(bits));
  }
  code.vpunpcklbw(indices, low.as(bits), high.as(bits));
  code.vpunpckhbw(high.as(bits), low.as(bits), high.as(bits));
  return {std::move(ordered), std::move(high)};
}

void emit_look_up(LaneEmitter& emitter, const LaneInst& inst) {
  const ByteTable& table = emitter.program().tables[static_cast<size_t>(inst.table)];
  const Xmm bytes = emitter.use(inst.a);
  // Apart: the table may be loaded into a register while the bytes are still needed.
  const Xmm to = emitter.define_apart();
  if (table.index_bits != 8) {
    return look_up_in_one(emitter, table, EntryByte::low, bytes, to);
  }
  const Halves halves(emitter, bytes);
  look_up_256(emitter, table, EntryByte::low, bytes, halves, to);
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
