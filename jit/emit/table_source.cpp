// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/table_source.hpp"

#include <algorithm>

#include "jit/emit/byte_table.hpp"
#include "jit/emit/control_flow.hpp"
#include "jit/emit/op_helpers.hpp"

namespace castor::jit {

namespace {

using Xbyak::Reg64;

constexpr int zmm_bytes = 64;
constexpr int xmm_bytes = 16;

/// Registers that hold a whole table.
int parts_of(TableMethod method) {
  switch (method) {
    case TableMethod::each_lane: return 0;
    case TableMethod::permute_bytes:
    case TableMethod::permute_byte_pairs: return 4;
    case TableMethod::permute_256_i16: return 8;
    case TableMethod::permute_i64: return 2;
    default: return 1;
  }
}

/// Inserts an element in memory as lane `lane` of a 128-bit register.
void emit_insert(Assembler& code, const Xmm& to, const Xbyak::Address& from, int bytes, int lane) {
  const auto number = static_cast<uint8_t>(lane);
  switch (bytes) {
    case 1: return code.vpinsrb(to, to, from, number);
    case 2: return code.vpinsrw(to, to, from, number);
    case 4: return code.vpinsrd(to, to, from, number);
    default: return code.vpinsrq(to, to, from, number);
  }
}

/// Moves an element of that many bytes; `data` is overwritten.
void emit_move(Assembler& code, const Xbyak::Address& to, const Reg64& data,
               const Xbyak::Address& from, int bytes) {
  const Xbyak::Reg part = bytes == 1   ? Xbyak::Reg(data.cvt8())
                          : bytes == 2 ? Xbyak::Reg(data.cvt16())
                          : bytes == 4 ? Xbyak::Reg(data.cvt32())
                                       : Xbyak::Reg(data);
  code.mov(part, from);
  code.mov(to, part);
}

/// Puts 128 bits into part `part` of a wider register.
void emit_insert_part(LaneEmitter& emitter, const Xmm& to, const Xmm& bits, int part) {
  const auto number = static_cast<uint8_t>(part);
  Assembler& code = emitter.code();
  if (!emitter.has_avx512()) return code.vinserti128(ymm(to), ymm(to), bits, number);
  width_of(to) == 512 ? code.vinserti32x4(zmm(to), zmm(to), bits, number)
                      : code.vinserti32x4(ymm(to), ymm(to), bits, number);
}

/// Extends bytes with zeros to the lanes of a whole register.
void emit_widen_indices(Assembler& code, const Xmm& to, const Xmm& bytes, int bits) {
  switch (bits) {
    case 16: return code.vpmovzxbw(zmm(to), ymm(bytes));
    case 32: return code.vpmovzxbd(zmm(to), Xmm(bytes.getIdx()));
    default: return code.vpmovzxbq(zmm(to), Xmm(bytes.getIdx()));
  }
}

}  // namespace

TableSource::TableSource(const TableOperand& table, const Target& target,
                         const OperandLocator& locator, const Frame& frame)
    : table_(table),
      method_(table.is_each ? TableMethod::each_lane
                            : table_method(target, table.index_bits, bits_of(table.element))),
      vector_bits_(target.vector_bits()),
      locator_(locator),
      frame_(frame) {}

void TableSource::reserve_constants(LaneEmitter& emitter) {
  for (int part = 0; part < parts_of(method_); ++part) {
    registers_[static_cast<size_t>(part)] = emitter.reserve_register();
  }
}

void TableSource::emit_load_registers(Assembler& code) const {
  for (int part = 0; part < max_parts; ++part) {
    const std::optional<int> vector = registers_[static_cast<size_t>(part)];
    if (vector) emit_load_part(code, part, *vector);
  }
}

/// Loads the part's bytes of the table, and none beyond.
void TableSource::emit_load_part(Assembler& code, int part, int vector) const {
  const Reg64 table = frame_.emit_pointer(table_.operand);
  const Xmm to = vector_register(vector, vector_bits_);
  if (method_ == TableMethod::shuffle_bytes) {
    return vector_bits_ == 512 ? code.vbroadcasti32x4(zmm(to), code.ptr[table])
                               : code.vbroadcasti128(ymm(to), code.ptr[table]);
  }
  if (method_ == TableMethod::permute_i16) return code.vmovdqu64(ymm(to), code.ptr[table]);
  code.vmovdqu64(zmm(to), code.ptr[table + part * zmm_bytes]);
}

Xmm TableSource::emit_part(LaneEmitter& emitter, int part, OwnedVector& fallback) const {
  const std::optional<int> vector = registers_[static_cast<size_t>(part)];
  if (vector) return vector_register(*vector, vector_bits_);
  fallback = emitter.scratch();
  const Xmm loaded = fallback.as(vector_bits_);
  emit_load_part(emitter.code(), part, loaded.getIdx());
  return loaded;
}

void TableSource::emit_load(LaneEmitter& emitter, const LaneInst& inst, const Xmm& to) {
  const Xmm indices = emitter.use(inst.a);
  switch (method_) {
    case TableMethod::each_lane: break;
    case TableMethod::shuffle_bytes:
    case TableMethod::permute_bytes: return emit_permute_bytes(emitter, indices, to);
    case TableMethod::permute_byte_pairs: return emit_permute_byte_pairs(emitter, indices, to);
    case TableMethod::permute_256_i16: return emit_permute_256_i16(emitter, indices, to);
    default: return emit_permute(emitter, indices, to);
  }
  const bool is_whole = locator_.mode(table_.operand) == ChunkMode::whole;
  is_whole ? emit_each_lane(emitter, inst, to) : emit_each_lane_of_tail(emitter, inst, to);
}

void TableSource::emit_permute_bytes(LaneEmitter& emitter, const Xmm& indices, const Xmm& to) {
  if (method_ == TableMethod::permute_bytes) {
    const auto quarter = [&](int part, OwnedVector& fallback) {
      return emit_part(emitter, part, fallback);
    };
    return emit_permute_256(emitter, quarter, indices, to);
  }
  OwnedVector fallback;
  const Xmm table = emit_part(emitter, 0, fallback);
  emitter.code().vpshufb(to, vector_register(table.getIdx(), width_of(to)), indices);
}

/// 16 entries wider than bytes. Above a chunk of 16-bit lanes registers have zeros, which
/// widen_to_high_half takes.
void TableSource::emit_permute(LaneEmitter& emitter, const Xmm& indices, const Xmm& to) {
  Assembler& code = emitter.code();
  OwnedVector fallbacks[2];
  const Xmm table = emit_part(emitter, 0, fallbacks[0]);
  emit_widen_indices(code, to, indices, bits_of(table_.element));
  switch (method_) {
    case TableMethod::permute_i16:
      code.vpermw(zmm(to), zmm(to), zmm(table));
      if (width_of(to) < 512) code.vmovdqa64(to, to);
      return;
    case TableMethod::permute_i32: return code.vpermd(zmm(to), zmm(to), zmm(table));
    default: return code.vpermi2q(zmm(to), zmm(table), zmm(emit_part(emitter, 1, fallbacks[1])));
  }
}

/// Words of two parts and of the next two, by the low 6 bits of each word: of the upper ones where
/// the mask `upper` has ones. A word that one step leaves alone is the other's index.
void TableSource::emit_permute_quarters(LaneEmitter& emitter, const Xbyak::Zmm& to, int first_part,
                                        const OwnedMask& upper, const OwnedMask& lower) const {
  for (int pair = 0; pair < 2; ++pair) {
    OwnedVector fallbacks[2];
    const Xmm first = emit_part(emitter, first_part + 2 * pair, fallbacks[0]);
    const Xmm second = emit_part(emitter, first_part + 2 * pair + 1, fallbacks[1]);
    const Opmask mask = (pair == 0 ? lower : upper).get();
    emitter.code().vpermi2w(to | mask, zmm(first), zmm(second));
  }
}

/// Bits 6 and 7 of an index say of which quarter its entry is.
void TableSource::emit_permute_256_i16(LaneEmitter& emitter, const Xmm& indices, const Xmm& to) {
  Assembler& code = emitter.code();
  const OwnedMask upper_half = emitter.scratch_mask();
  const OwnedMask upper_quarter = emitter.scratch_mask();
  const OwnedMask lower_quarter = emitter.scratch_mask();
  const OwnedVector scratch = emitter.scratch();
  const Xbyak::Zmm other = zmm(scratch.as(512));
  emit_widen_indices(code, to, indices, 16);
  code.vpsllw(other, zmm(to), 8);
  code.vpmovw2m(upper_half.get(), other);
  code.vpsllw(other, zmm(to), 9);
  code.vpmovw2m(upper_quarter.get(), other);
  code.knotd(lower_quarter.get(), upper_quarter.get());
  code.vmovdqa64(other, zmm(to));
  emit_permute_quarters(emitter, zmm(to), 0, upper_quarter, lower_quarter);
  emit_permute_quarters(emitter, other, 4, upper_quarter, lower_quarter);
  // Leaves zeros above the chunk's lanes, as emit_permute does.
  code.vpblendmw(to | upper_half.get(), to, vector_register(other.getIdx(), width_of(to)));
}

/// Odd bytes, then even ones: an index's upper 7 bits select a pair of entries, bit 0 one of them.
void TableSource::emit_permute_byte_pairs(LaneEmitter& emitter, const Xmm& indices, const Xmm& to) {
  Assembler& code = emitter.code();
  const OwnedMask upper_half = emitter.scratch_mask();
  const OwnedMask lower_half = emitter.scratch_mask();
  const OwnedVector scratch[] = {emitter.scratch(), emitter.scratch()};
  const Xbyak::Zmm shift = zmm(scratch[0].as(512));
  const Xbyak::Zmm odd = zmm(scratch[1].as(512));
  for (const Xbyak::Zmm& pairs : {odd, zmm(to)}) {
    const bool is_odd = pairs.getIdx() == odd.getIdx();
    code.vpsllw(pairs, zmm(indices), is_odd ? 0 : 8);  // the index in the upper byte
    code.vpmovw2m(upper_half.get(), pairs);
    code.knotd(lower_half.get(), upper_half.get());
    code.vpsllw(shift, pairs, 7);  // its bit 0 in bit 15
    code.vpsrlw(shift, shift, 15);
    code.vpsllw(shift, shift, 3);
    code.vpsrlw(pairs, pairs, 9);
    emit_permute_quarters(emitter, pairs, 0, upper_half, lower_half);
    code.vpsrlvw(pairs, pairs, shift);
    code.vpsllw(pairs, pairs, 8);
  }
  code.vpsrlw(zmm(to), zmm(to), 8);
  code.vpord(zmm(to), zmm(to), odd);
}

/// A register with the address of the table of the chunk's first lane: the operand's pointer, which
/// may be in gpr::scratch, or gpr::counter.
Reg64 TableSource::emit_base(Assembler& code) const {
  if (!table_.is_each) return frame_.emit_pointer(table_.operand);
  code.imul(gpr::counter, gpr::index, table_bytes());
  code.add(gpr::counter, frame_.emit_pointer(table_.operand));
  return gpr::counter;
}

/// Reads the entries of a whole chunk, eight indices and sixteen bytes of the result at a time.
void TableSource::emit_each_lane(LaneEmitter& emitter, const LaneInst& inst, const Xmm& to) const {
  Assembler& code = emitter.code();
  const OwnedSlot slot = emitter.scratch_slot();
  const OwnedSlot kept = emitter.scratch_slot();
  const Reg64& table = gpr::counter;
  const Reg64& indices = gpr::scratch;
  const Reg64& entry = gpr::extent;
  code.vmovups(emitter.address(slot), emitter.use(inst.a));
  code.mov(emitter.address(kept), entry);
  const Reg64 base = emit_base(code);
  if (base != table) code.mov(table, base);
  const int each = table_.is_each ? table_bytes() : 0;
  const auto first = static_cast<int64_t>(each) * locator_.element_of_iteration();
  const int lanes_of_part = xmm_bytes / element_bytes();
  for (int begin = 0; begin < emitter.lanes(); begin += lanes_of_part) {
    const OwnedVector other = begin == 0 ? OwnedVector() : emitter.scratch();
    const Xmm part = begin == 0 ? Xmm(to.getIdx()) : other.as(128);
    emit_zero(emitter, part);
    const int end = std::min(begin + lanes_of_part, emitter.lanes());
    for (int lane = begin; lane < end; ++lane) {
      if (lane % 8 == 0) code.mov(indices, emitter.address(slot, lane));
      code.movzx(entry.cvt32(), lane % 2 == 0 ? code.al : code.ah);
      if (lane % 2 == 1 && lane % 8 != 7) code.shr(indices, 16);
      const auto offset = static_cast<size_t>(first + static_cast<int64_t>(each) * lane);
      emit_insert(code, part, code.ptr[table + entry * element_bytes() + offset], element_bytes(),
                  lane - begin);
    }
    if (begin > 0) emit_insert_part(emitter, to, part, begin / lanes_of_part);
  }
  code.mov(entry, emitter.address(kept));
}

/// Reads the entries of the lanes that exist, and no others, whose indices may be anything.
void TableSource::emit_each_lane_of_tail(LaneEmitter& emitter, const LaneInst& inst,
                                         const Xmm& to) const {
  Assembler& code = emitter.code();
  const OwnedSlot indices = emitter.scratch_slot();
  const OwnedSlot results = emitter.scratch_slot();
  const Reg64& entry = gpr::scratch;
  const Reg64& table = gpr::counter;
  const Reg64& lane = gpr::cursor;
  code.vmovups(emitter.address(indices), emitter.use(inst.a));
  const Reg64 base = emit_base(code);
  if (base != table) code.mov(table, base);
  code.xor_(lane.cvt32(), lane.cvt32());
  emit_loop_while(code, Condition::less, Jump::shortest, [&] {
    code.movzx(entry.cvt32(), code.byte[emitter.address(indices).getRegExp() + lane]);
    emit_move(code, code.ptr[emitter.address(results).getRegExp() + lane * element_bytes()], entry,
              code.ptr[table + entry * element_bytes()], element_bytes());
    if (table_.is_each) code.add(table, table_bytes());
    code.inc(lane);
    code.cmp(lane, frame_.chunk_count());
  });
  code.vmovups(to, emitter.address(results));
}

}  // namespace castor::jit
