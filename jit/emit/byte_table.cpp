// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/byte_table.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "jit/emit/byte_table_sixteens.hpp"
#include "jit/emit/i32_table.hpp"
#include "jit/emit/nibble_look_up.hpp"
#include "jit/emit/op_helpers.hpp"
#include "jit/emit/vector_constant.hpp"

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
    const uint16_t both = table.entries[static_cast<size_t>(entry)];
    return which == EntryByte::high ? both >> 8 : both & 0xff;
  });
}

constexpr uint16_t sign_bit = 0x80;

int quarters(const ByteTable& table) { return std::max(1, 1 << table.index_bits >> 6); }

void reserve_bytes(LaneEmitter& emitter, const ByteTable& table, EntryByte which) {
  for (int quarter = 0; quarter < quarters(table); ++quarter) {
    emitter.reserve_vector(table_vector(emitter, table, which, quarter));
  }
}

/// Masks of the bytes from 128 up and of those below, for tables of 256.
struct Halves {
  OwnedMask upper;
  OwnedMask lower;

  explicit Halves(LaneEmitter& emitter)
      : upper(emitter.scratch_mask()), lower(emitter.scratch_mask()) {}

  void emit(LaneEmitter& emitter, const Xmm& bytes) const {
    emitter.code().vpmovb2m(upper.get(), Xbyak::Zmm(bytes.getIdx()));
    emitter.code().knotq(lower.get(), upper.get());
  }
};

/// 256 entries in two steps of 128: a byte that one step leaves alone is the other's index.
void emit_in_halves(LaneEmitter& emitter, const TableQuarter& quarter, const Xmm& bytes,
                    const Halves& halves, const Xmm& to) {
  Assembler& code = emitter.code();
  const Xbyak::Zmm result(to.getIdx());
  code.vmovdqa64(result, Xbyak::Zmm(bytes.getIdx()));
  for (int half = 0; half < 2; ++half) {
    OwnedVector fallbacks[2];
    const Xmm first = quarter(2 * half, fallbacks[0]);
    const Xmm second = quarter(2 * half + 1, fallbacks[1]);
    const Opmask mask = (half == 0 ? halves.lower : halves.upper).get();
    code.vpermi2b(result | mask, zmm(first), zmm(second));
  }
}

void emit_look_up_256(LaneEmitter& emitter, const ByteTable& table, EntryByte which,
                      const Xmm& bytes, const Halves& halves, const Xmm& to) {
  const auto quarter = [&](int index, OwnedVector& fallback) {
    return emitter.vector(table_vector(emitter, table, which, index), fallback);
  };
  emit_in_halves(emitter, quarter, bytes, halves, to);
}

/// 16 or 64 entries.
void emit_look_up_in_one(LaneEmitter& emitter, const ByteTable& table, EntryByte which,
                         const Xmm& bytes, const Xmm& to) {
  Assembler& code = emitter.code();
  OwnedVector fallback;
  const Xmm entries = emitter.vector(table_vector(emitter, table, which, 0), fallback);
  if (table.index_bits == 4) {
    code.vpshufb(to, vector_register(entries.getIdx(), width_of(to)), bytes);
  } else {
    code.vpermb(zmm_masked(to), zmm(bytes), zmm(entries));
  }
}

/// A table of 128, or the lower half of one of 256; the upper bit of bytes does not count.
void emit_look_up_128(LaneEmitter& emitter, const ByteTable& table, EntryByte which,
                      const Xmm& bytes, const Xmm& to) {
  Assembler& code = emitter.code();
  code.vmovdqa64(Xbyak::Zmm(to.getIdx()), Xbyak::Zmm(bytes.getIdx()));
  OwnedVector fallbacks[2];
  const Xmm first = emitter.vector(table_vector(emitter, table, which, 0), fallbacks[0]);
  const Xmm second = emitter.vector(table_vector(emitter, table, which, 1), fallbacks[1]);
  code.vpermi2b(zmm_masked(to), first, second);
}

/// vpermd: the order of 32-bit lanes from which vpunpckl and vpunpckh, which work in 128-bit parts,
/// give elements in the order of the bytes. Bytes that become 16-bit elements are unpacked once: 64
/// bits k of a part go to vector k. Bytes that become wider elements are unpacked twice: 32 bits k
/// go to vector k.
std::vector<uint8_t> unpack_order(const LaneEmitter& emitter, Narrowing look_up) {
  const int vector_bits = emitter.target().vector_bits();
  const int parts = vector_bits / 128;
  // 32-bit lanes of a part that stay adjacent.
  const int adjacent = look_up == Narrowing::look_up_16 ? 2 : 1;
  return vector_constant<uint32_t>(vector_bits, [&](int i) {
    const int part = i / 4;
    const int vector = i % 4 / adjacent;
    return (vector * parts + part) * adjacent + i % adjacent;
  });
}

void emit_order_for_unpacking(LaneEmitter& emitter, Narrowing look_up, const Xmm& to,
                              const Xmm& bytes) {
  OwnedVector fallback;
  const Xmm order = emitter.vector(unpack_order(emitter, look_up), fallback);
  if (emitter.has_avx512()) {
    emitter.code().vpermd(Xbyak::Zmm(to.getIdx()), Xbyak::Zmm(order.getIdx()), bytes);
  } else {
    emitter.code().vpermd(Xbyak::Ymm(to.getIdx()), Xbyak::Ymm(order.getIdx()), bytes);
  }
}

/// 16-bit lanes become the upper halves of 32-bit lanes; `low` and `high` are the two vectors of
/// 16-bit lanes.
std::vector<OwnedVector> emit_upper_halves(LaneEmitter& emitter, OwnedVector low,
                                           OwnedVector high) {
  Assembler& code = emitter.code();
  const int bits = emitter.target().vector_bits();
  const OwnedVector zeros = emitter.scratch();
  const Xmm zero = zeros.as(bits);
  emit_zero(emitter, zero);
  std::vector<OwnedVector> result;
  for (const OwnedVector* halves : {&low, &high}) {
    result.push_back(emitter.scratch());
    code.vpunpcklwd(result.back().as(bits), zero, halves->as(bits));
    result.push_back(emitter.scratch());
    code.vpunpckhwd(result.back().as(bits), zero, halves->as(bits));
  }
  return result;
}

/// 32-bit lanes are extended to 64 bits by their sign.
std::vector<OwnedVector> emit_extended(LaneEmitter& emitter, std::vector<OwnedVector> vectors) {
  Assembler& code = emitter.code();
  std::vector<OwnedVector> wide;
  for (OwnedVector& vector : vectors) {
    wide.push_back(emitter.scratch());
    const Xbyak::Zmm from(vector.as(512).getIdx());
    const Xbyak::Ymm half(from.getIdx());
    code.vpmovsxdq(zmm(wide.back().as(512)), half);
    code.vextracti64x4(half, from, 1);
    code.vpmovsxdq(from, half);
    wide.push_back(std::move(vector));
  }
  return wide;
}

/// How the upper half of a table of 256 follows from the lower one, by the entries' low bytes.
enum class UpperHalf : uint8_t {
  own,           ///< it does not
  same,          ///< the byte's upper bit does not count
  signed_lower,  ///< it is the result's upper bit
  zero,          ///< bytes from 128 up become 0
};

UpperHalf upper_half_of(const ByteTable& table) {
  const auto lower = std::span(table.entries).first<128>();
  const auto upper = std::span(table.entries).last<128>();
  const auto differ_by = [&](uint16_t pattern) {
    return std::ranges::equal(lower, upper, {}, [&](uint16_t entry) { return entry ^ pattern; });
  };
  if (differ_by(0)) return UpperHalf::same;
  if (differ_by(sign_bit)) return UpperHalf::signed_lower;
  const bool is_zero = std::ranges::all_of(upper, [](uint16_t entry) { return entry == 0; });
  return is_zero ? UpperHalf::zero : UpperHalf::own;
}

std::vector<uint8_t> sign_bits() {
  return vector_constant<uint8_t>(512, [](int) { return sign_bit; });
}

void emit_look_up_signed(LaneEmitter& emitter, const ByteTable& table, const Xmm& bytes,
                         const Xmm& to) {
  constexpr uint8_t a_xor_b_and_c = 0x78;
  emit_look_up_128(emitter, table, EntryByte::low, bytes, to);
  OwnedVector fallback;
  const Xbyak::Zmm signs(emitter.vector(sign_bits(), fallback).getIdx());
  const Xbyak::Zmm result(to.getIdx());
  emitter.code().vpternlogd(result, Xbyak::Zmm(bytes.getIdx()), signs, a_xor_b_and_c);
}

void emit_look_up_positive(LaneEmitter& emitter, const ByteTable& table, const Xmm& bytes,
                           const Xmm& to) {
  const Halves halves(emitter);
  halves.emit(emitter, bytes);
  const Xbyak::Zmm result(to.getIdx());
  emit_look_up_128(emitter, table, EntryByte::low, bytes,
                   result | halves.lower.get() | Xbyak::util::T_z);
}

/// Whether a table is too large for the one instruction that the target has.
bool is_in_sixteens(const LaneEmitter& emitter, const ByteTable& table) {
  return table.index_bits != 4 && !emitter.target().supports(Feature::avx512_vbmi);
}

}  // namespace

void reserve_byte_look_up(LaneEmitter& emitter, const ByteTable& table) {
  if (is_in_sixteens(emitter, table)) return reserve_look_up_in_sixteens(emitter, table);
  const UpperHalf upper = table.index_bits == 8 ? upper_half_of(table) : UpperHalf::own;
  const int used = upper == UpperHalf::own ? quarters(table) : 2;
  for (int quarter = 0; quarter < used; ++quarter) {
    emitter.reserve_vector(table_vector(emitter, table, EntryByte::low, quarter));
  }
  if (upper == UpperHalf::signed_lower) emitter.reserve_vector(sign_bits());
}

void reserve_look_up(LaneEmitter& emitter, const LaneInst& inst) {
  const auto index = static_cast<size_t>(inst.table);
  if (inst.op == LaneOp::look_up) {
    reserve_byte_look_up(emitter, emitter.program().tables[index]);
  } else {
    reserve_i32_table(emitter, emitter.program().i32_tables[index]);
  }
}

void emit_permute_256(LaneEmitter& emitter, const TableQuarter& quarter, const Xmm& bytes,
                      const Xmm& to) {
  const Halves halves(emitter);
  halves.emit(emitter, bytes);
  emit_in_halves(emitter, quarter, bytes, halves, to);
}

void reserve_table(LaneEmitter& emitter, const ByteTable& table) {
  if (is_in_sixteens(emitter, table)) {
    return reserve_nibble_table(emitter, *nibble_table(table));
  }
  reserve_bytes(emitter, table, EntryByte::low);
  reserve_bytes(emitter, table, EntryByte::high);
}

void emit_look_up_both(LaneEmitter& emitter, const ByteTable& table, const Xmm& bytes,
                       const Xmm& low, const Xmm& high) {
  if (is_in_sixteens(emitter, table)) {
    emit_look_up_by_nibbles(emitter, *nibble_table(table), bytes, low, high);
  } else if (table.index_bits == 8) {
    const Halves halves(emitter);
    halves.emit(emitter, bytes);
    emit_look_up_256(emitter, table, EntryByte::low, bytes, halves, low);
    emit_look_up_256(emitter, table, EntryByte::high, bytes, halves, high);
  } else if (table.index_bits == 7) {
    emit_look_up_128(emitter, table, EntryByte::low, bytes, low);
    emit_look_up_128(emitter, table, EntryByte::high, bytes, high);
  } else {
    emit_look_up_in_one(emitter, table, EntryByte::low, bytes, low);
    emit_look_up_in_one(emitter, table, EntryByte::high, bytes, high);
  }
}

void reserve_element_table(LaneEmitter& emitter, const ByteTable& table, Narrowing look_up) {
  emitter.reserve_vector(unpack_order(emitter, look_up));
  reserve_table(emitter, table);
}

std::vector<OwnedVector> emit_look_up_elements(LaneEmitter& emitter, const ByteTable& table,
                                               Narrowing look_up, int element_bits,
                                               const Xmm& bytes) {
  Assembler& code = emitter.code();
  const int bits = emitter.target().vector_bits();
  OwnedVector ordered = emitter.scratch();
  OwnedVector high = emitter.scratch();
  {
    const OwnedVector low = emitter.scratch();
    const Xmm indices = ordered.as(bits);
    emit_order_for_unpacking(emitter, look_up, indices, bytes);
    emit_look_up_both(emitter, table, indices, low.as(bits), high.as(bits));
    code.vpunpcklbw(indices, low.as(bits), high.as(bits));
    code.vpunpckhbw(high.as(bits), low.as(bits), high.as(bits));
  }
  std::vector<OwnedVector> vectors;
  if (look_up == Narrowing::look_up_16) {
    vectors.push_back(std::move(ordered));
    vectors.push_back(std::move(high));
    return vectors;
  }
  vectors = emit_upper_halves(emitter, std::move(ordered), std::move(high));
  if (look_up == Narrowing::look_up_upper_16) return vectors;
  for (const OwnedVector& vector : vectors) {
    code.vpsrad(zmm(vector.as(bits)), zmm(vector.as(bits)), 16);
  }
  return element_bits == 32 ? std::move(vectors) : emit_extended(emitter, std::move(vectors));
}

void emit_look_up(LaneEmitter& emitter, const LaneInst& inst) {
  const ByteTable& table = emitter.program().tables[static_cast<size_t>(inst.table)];
  const Xmm bytes = emitter.use(inst.a);
  // Apart: the table may be loaded into a register while the bytes are still needed.
  const Xmm to = emitter.define_apart();
  if (!is_in_sixteens(emitter, table)) return emit_look_up_bytes(emitter, table, bytes, to);
  const LaneInst& index = emitter.program().code[static_cast<size_t>(inst.a)];
  const bool is_code = index.op == LaneOp::load &&
                       bits_of(emitter.program().sources[static_cast<size_t>(index.imm)].element) <=
                           table.index_bits;
  const UpperBits upper_bits = is_code ? UpperBits::zero : UpperBits::any;
  emit_look_up_in_sixteens(emitter, table, bytes, upper_bits, to);
}

void emit_look_up_bytes(LaneEmitter& emitter, const ByteTable& table, const Xmm& bytes,
                        const Xmm& to) {
  if (is_in_sixteens(emitter, table)) {
    return emit_look_up_in_sixteens(emitter, table, bytes, UpperBits::any, to);
  }
  if (table.index_bits < 7) {
    return emit_look_up_in_one(emitter, table, EntryByte::low, bytes, to);
  }
  if (table.index_bits == 7) {
    return emit_look_up_128(emitter, table, EntryByte::low, bytes, to);
  }
  switch (upper_half_of(table)) {
    case UpperHalf::same: return emit_look_up_128(emitter, table, EntryByte::low, bytes, to);
    case UpperHalf::signed_lower: return emit_look_up_signed(emitter, table, bytes, to);
    case UpperHalf::zero: return emit_look_up_positive(emitter, table, bytes, to);
    case UpperHalf::own: break;
  }
  const Halves halves(emitter);
  halves.emit(emitter, bytes);
  emit_look_up_256(emitter, table, EntryByte::low, bytes, halves, to);
}

}  // namespace castor::jit
