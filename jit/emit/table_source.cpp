// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/table_source.hpp"

#include "jit/emit/byte_table.hpp"
#include "jit/emit/control_flow.hpp"
#include "jit/emit/op_helpers.hpp"

namespace castor::jit {

namespace {

using Xbyak::Reg64;

constexpr int part_bytes = 64;  // of a table of 256 bytes
constexpr int xmm_bytes = 16;

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
void emit_insert_part(LaneEmitter& emitter, const Xmm& to, const Xmm& part_of, int part) {
  const auto number = static_cast<uint8_t>(part);
  Assembler& code = emitter.code();
  if (!emitter.has_avx512()) return code.vinserti128(ymm(to), ymm(to), part_of, number);
  width_of(to) == 512 ? code.vinserti32x4(zmm(to), zmm(to), part_of, number)
                      : code.vinserti32x4(ymm(to), ymm(to), part_of, number);
}

}  // namespace

bool permutes_table(const Target& target, int index_bits, LaneType type) {
  return bits_of(type) == 8 && (index_bits == 4 || target.supports(Feature::avx512_vbmi));
}

void TableSource::reserve_constants(LaneEmitter& emitter) {
  const LaneType type = integer_lane(bits_of(table_.element));
  if (table_.is_each || !permutes_table(emitter.target(), table_.index_bits, type)) return;
  parts_ = table_.index_bits == 4 ? 1 : 4;
  vector_bits_ = emitter.target().vector_bits();
  for (int part = 0; part < parts_; ++part) {
    registers_[static_cast<size_t>(part)] = emitter.reserve_register();
  }
}

void TableSource::emit_load_registers(Assembler& code) const {
  for (size_t part = 0; part < registers_.size(); ++part) {
    if (registers_[part]) emit_load_part(code, part, *registers_[part]);
  }
}

/// 64 entries, or all 16 in every 128 bits.
void TableSource::emit_load_part(Assembler& code, size_t part, int vector) const {
  const Reg64 table = frame_.emit_pointer(table_.operand);
  const Xmm to = vector_register(vector, vector_bits_);
  if (parts_ == 4) return code.vmovdqu64(to, code.ptr[table + part_bytes * part]);
  if (vector_bits_ == 512) {
    code.vbroadcasti32x4(zmm(to), code.ptr[table]);
  } else {
    code.vbroadcasti128(ymm(to), code.ptr[table]);
  }
}

Xmm TableSource::emit_part(LaneEmitter& emitter, size_t part, OwnedVector& fallback) const {
  if (registers_[part]) return vector_register(*registers_[part], vector_bits_);
  fallback = emitter.scratch();
  const Xmm vector = fallback.as(vector_bits_);
  emit_load_part(emitter.code(), part, vector.getIdx());
  return vector;
}

void TableSource::emit_load(LaneEmitter& emitter, const LaneInst& inst, const Xmm& to) {
  const Xmm indices = emitter.use(inst.a);
  if (parts_ == 4) {
    const auto quarter = [&](int part, OwnedVector& fallback) {
      return emit_part(emitter, static_cast<size_t>(part), fallback);
    };
    return emit_permute_256(emitter, quarter, indices, to);
  }
  if (parts_ == 1) {
    OwnedVector fallback;
    const Xmm table = emit_part(emitter, 0, fallback);
    return emitter.code().vpshufb(to, vector_register(table.getIdx(), width_of(to)), indices);
  }
  const bool is_whole = locator_.mode(table_.operand) == ChunkMode::whole;
  is_whole ? emit_each_lane(emitter, inst, to) : emit_each_lane_of_tail(emitter, inst, to);
}

/// A register with the address of the table of the chunk's first lane: the operand's pointer, which
/// may be in gpr::scratch, or gpr::counter.
Reg64 TableSource::emit_base(Assembler& code) const {
  if (!table_.is_each) return frame_.emit_pointer(table_.operand);
  code.imul(gpr::counter, gpr::index, table_bytes());
  code.add(gpr::counter, frame_.emit_pointer(table_.operand));
  return gpr::counter;
}

/// Reads the entries of a whole chunk, sixteen bytes of the result at a time.
void TableSource::emit_each_lane(LaneEmitter& emitter, const LaneInst& inst, const Xmm& to) const {
  Assembler& code = emitter.code();
  const OwnedSlot slot = emitter.scratch_slot();
  code.vmovups(emitter.address(slot), emitter.use(inst.a));
  const Reg64 base = emit_base(code);
  const Reg64 entry = base == gpr::scratch ? gpr::counter : gpr::scratch;
  const int each = table_.is_each ? table_bytes() : 0;
  const auto first = static_cast<int64_t>(each) * locator_.element_of_iteration();
  const int lanes_of_part = xmm_bytes / element_bytes();
  for (int begin = 0; begin < emitter.lanes(); begin += lanes_of_part) {
    const OwnedVector other = begin == 0 ? OwnedVector() : emitter.scratch();
    const Xmm part = begin == 0 ? Xmm(to.getIdx()) : other.as(128);
    emit_zero(emitter, part);
    const int end = std::min(begin + lanes_of_part, emitter.lanes());
    for (int lane = begin; lane < end; ++lane) {
      code.movzx(entry.cvt32(), code.byte[emitter.address(slot, lane).getRegExp()]);
      const auto offset = static_cast<size_t>(first + static_cast<int64_t>(each) * lane);
      emit_insert(code, part, code.ptr[base + entry * element_bytes() + offset], element_bytes(),
                  lane - begin);
    }
    if (begin > 0) emit_insert_part(emitter, to, part, begin / lanes_of_part);
  }
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
