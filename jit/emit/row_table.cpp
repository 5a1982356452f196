// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/row_table.hpp"

#include <algorithm>

#include "ir/types/storage.hpp"
#include "jit/emit/control_flow.hpp"
#include "jit/emit/memory_operands.hpp"
#include "jit/emit/packed_loop.hpp"
#include "jit/emit/packer.hpp"
#include "jit/emit/vector_constant.hpp"

namespace castor::jit {

namespace {

using Xbyak::Zmm;

// Registers with one meaning for the whole function (RowTable::taken_vectors).
const Zmm table(31);
const Zmm byte_of_lane(30);    ///< which of the loaded bytes has a lane's code
const Zmm factor_of_lane(29);  ///< moves the code to where it counts
const Zmm indices(28);

/// Tables hold every code that an index may have: a byte shifted right may have bits of the next
/// codes on top, of which permutations use five (of 16-bit lanes) or four (of 32-bit lanes).
constexpr int table_codes = 16;

bool has_codes_in_bytes(ElementType type) {
  const bool is_power_of_two = bits_of(type) == 1 || bits_of(type) == 2 || bits_of(type) == 4;
  return is_power_of_two && info(type).order != StorageOrder::split;
}

bool stores_elements(const LaneProgram& program) {
  return std::ranges::none_of(program.code, [](const LaneInst& inst) {
    return inst.op == LaneOp::store && (looks_up(inst.narrowing) || encodes(inst.narrowing));
  });
}

/// The order of the halves that elements are of all codes' lanes, twice.
std::vector<uint8_t> order_of_halves(const LaneInst& store) {
  const int half = store.narrowing == Narrowing::high_half ? 1 : 0;
  return vector_constant<uint16_t>(512, [&](int lane) { return 2 * (lane % table_codes) + half; });
}

/// Shorter programs are as fast without a table.
constexpr size_t min_instructions = 5;

}  // namespace

std::optional<CodeTables> code_tables(const Nest& nest, const NestForm& form, const Target& target,
                                      int lanes) {
  if (!target.has_avx512() || lanes < table_codes || nest.outputs.size() != 1) return std::nullopt;
  const int to_bits = bits_of(nest.program.sinks[0].element);
  if ((to_bits != 16 && to_bits != 32) || form.access.back() != Access::contiguous)
    return std::nullopt;
  if (!stores_elements(nest.program)) return std::nullopt;
  if (nest.program.code.size() < min_instructions) return std::nullopt;
  if (form.has(Access::repeated)) {
    const bool has_whole_vectors = form.baked_period % (512 / to_bits) == 0;
    const bool is_long = form.period_chunks(lanes) > 0 && form.baked_period > table_codes;
    if (!has_whole_vectors || !is_long) return std::nullopt;
  }
  std::optional<CodeTables> tables;
  for (size_t k = 0; k < nest.inputs.size(); ++k) {
    if (form.access[k] == Access::uniform || form.access[k] == Access::repeated) continue;
    if (tables || form.access[k] != Access::contiguous) return std::nullopt;
    if (!has_codes_in_bytes(nest.element(k))) return std::nullopt;
    tables = {k, form.baked_period};
  }
  return tables;
}

void CodesSource::emit_load(LaneEmitter& emitter, const LaneInst& inst, const Xbyak::Xmm& to) {
  const int bits = std::max(128, emitter.lanes() * bits_of(inst.type));
  const int mask = (1 << bits_of(element_)) - 1;
  const auto codes =
      lanes_constant(bits_of(inst.type), bits, [&](int lane) { return lane & mask; });
  emitter.code().vmovups(vector_register(to.getIdx(), bits), emitter.code().constant(codes));
}

/// Whether elements are the lower, or the upper, halves of lanes: one permutation takes them, and
/// repeats them.
bool TableSink::takes_halves(const LaneInst& inst) const {
  return bits_of(inst.type) == 32 && bits_of(element_) == 16 &&
         (inst.narrowing == Narrowing::high_half || inst.narrowing == Narrowing::truncate);
}

void TableSink::reserve_constants(LaneEmitter& emitter) {
  for (const LaneInst& inst : emitter.program().code) {
    if (inst.op == LaneOp::store && takes_halves(inst))
      emitter.reserve_vector(order_of_halves(inst));
  }
}

void TableSink::emit_store(LaneEmitter& emitter, const LaneInst& inst) {
  Assembler& code = emitter.code();
  if (takes_halves(inst)) {
    OwnedVector fallback;
    const Xbyak::Xmm order = emitter.vector(order_of_halves(inst), fallback);
    return code.vpermw(table, Zmm(order.getIdx()), Zmm(emitter.use(inst.a).getIdx()));
  }
  const int lane_bits = bits_of(inst.type);
  const int element_bits = bits_of(element_);
  OwnedVector narrowed;
  Xbyak::Xmm value = emitter.use(inst.a);
  if (lane_bits != element_bits) {
    narrowed = emitter.scratch();
    emit_narrow_one(emitter, narrowed, value, lane_bits, element_bits, inst.narrowing);
    value = narrowed.as(emitter.lanes() * element_bits);
  }
  if (emitter.lanes() * element_bits == 512) {
    code.vmovdqa64(table, Zmm(value.getIdx()));
  } else {
    code.vinserti64x4(table, Zmm(value.getIdx()), Xbyak::Ymm(value.getIdx()), 1);
  }
}

RowTable::RowTable(const Nest& nest, const CodeTables& tables, Stores stores, LaneEmitter& lanes,
                   const Frame& frame, NestLoops& loops)
    : code_(lanes.code()),
      frame_(frame),
      loops_(loops),
      stores_(stores),
      source_(tables.operand),
      sink_(nest.inputs.size()),
      from_(nest.element(source_)),
      to_(nest.element(sink_)),
      codes_(from_),
      table_sink_(to_),
      sinks_({&table_sink_}) {}

void RowTable::emit_constants() {
  const int lane_bits = bits_of(to_);
  const int lane_bytes = lane_bits / 8;
  constexpr int nothing = 0x80;
  const auto byte_of = [&](int i) {
    if (i % lane_bytes != 1) return nothing;
    return static_cast<int>(storage_bit(from_, i / lane_bytes, 0) / 8);
  };
  // A byte times 2^8, multiplied by 2^(8 - n), has the bits from n on in the product's upper half.
  const auto factor_of = [&](int lane) { return 1 << (8 - storage_bit(from_, lane, 0) % 8); };
  code_.vmovups(byte_of_lane, code_.constant(vector_constant<uint8_t>(512, byte_of)));
  code_.vmovups(factor_of_lane, code_.constant(lanes_constant(lane_bits, 512, factor_of)));
}

/// gpr::counter counts the bytes of codes.
Xbyak::Address RowTable::emit_codes_address(int displacement) const {
  return code_.ptr[frame_.emit_pointer(source_) + gpr::counter + displacement];
}

Xbyak::Address RowTable::emit_elements_address(int displacement) const {
  return code_.ptr[frame_.emit_pointer(sink_) + gpr::index * (bits_of(to_) / 8) + displacement];
}

void RowTable::emit_row() {
  code_.xor_(gpr::counter.cvt32(), gpr::counter.cvt32());
  if (stores_ == Stores::streaming) emit_elements_to_alignment();
  emit_loop(2);
  emit_loop(1);
  emit_remainder(gpr::extent);
}

void RowTable::emit_block(int element, int elements) {
  emit_locate_codes();
  const int first = element / elements_per_vector();
  const int vectors = elements / elements_per_vector();
  for (int vector = 0; vector < vectors; ++vector) emit_vector(first + vector);
}

void RowTable::emit_locate_codes() { emit_byte_offset(code_, gpr::counter, bits_of(from_)); }

/// Does the elements before the first aligned one, whose codes begin at a byte.
void RowTable::emit_elements_to_alignment() {
  const Section before = code_.section(CodeSection::before_alignment);
  code_.mov(gpr::limit, frame_.emit_pointer(sink_));
  code_.neg(gpr::limit);
  code_.and_(gpr::limit, static_cast<uint32_t>(streaming_alignment - 1));
  code_.shr(gpr::limit, std::countr_zero(static_cast<unsigned>(bits_of(to_) / 8)));
  code_.cmp(gpr::limit, gpr::extent);
  code_.cmovg(gpr::limit, gpr::extent);
  code_.mov(frame_.group_end(), gpr::limit);
  emit_remainder(frame_.group_end());
  code_.mov(gpr::index, frame_.group_end());
  emit_locate_codes();
}

/// Does whole vectors, `vectors` at a time.
void RowTable::emit_loop(int vectors) {
  const Section loop = code_.section(CodeSection::main_loop);
  const int elements = vectors * elements_per_vector();
  code_.lea(gpr::limit, code_.ptr[gpr::extent - elements]);
  code_.cmp(gpr::index, gpr::limit);
  emit_unless(code_, Condition::greater, [&] {
    const uint32_t begin = code_.position();
    emit_loop_while(code_, Condition::less_equal, [&] {
      for (int vector = 0; vector < vectors; ++vector) emit_vector(vector);
      const Section next = code_.section(CodeSection::next_iteration);
      code_.add(gpr::counter, vectors * bytes_per_vector());
      code_.add(gpr::index, elements);
      code_.cmp(gpr::index, gpr::limit);
    });
    loops_.end_loop("main loop", begin, elements);
  });
}

void RowTable::emit_vector(int vector) {
  const Section codes = code_.section(CodeSection::row_table);
  emit_load_codes(vector * bytes_per_vector());
  emit_look_up();
  const Xbyak::Address to = emit_elements_address(vector * 64);
  stores_ == Stores::streaming ? code_.vmovntps(to, indices) : code_.vmovups(to, indices);
}

/// Loads a vector's codes into each of its 128-bit parts.
void RowTable::emit_load_codes(int displacement) {
  const Xbyak::Address from = emit_codes_address(displacement);
  switch (bytes_per_vector()) {
    case 16: return code_.vbroadcasti32x4(indices, from);
    case 8: return code_.vpbroadcastq(indices, from);
    case 4: return code_.vpbroadcastd(indices, from);
    default: return code_.vpbroadcastw(indices, from);
  }
}

void RowTable::emit_look_up() {
  const Section look_up = code_.section(CodeSection::row_table);
  code_.vpshufb(indices, indices, byte_of_lane);
  code_.vpmulhuw(indices, indices, factor_of_lane);
  if (bits_of(to_) == 16) {
    code_.vpermw(indices, indices, table);
  } else {
    code_.vpermd(indices, indices, table);
  }
}

/// Does the elements from gpr::index to `end`: less than a vector.
void RowTable::emit_remainder(const Xbyak::Operand& end) {
  const Section tail = code_.section(CodeSection::tail);
  code_.cmp(gpr::index, end);
  emit_unless(code_, Condition::greater_equal, [&] {
    code_.mov(gpr::limit, end);
    code_.sub(gpr::limit, gpr::index);
    emit_load_last_codes();
    emit_look_up();
    code_.or_(gpr::scratch, -1);
    code_.bzhi(gpr::scratch, gpr::scratch, gpr::limit);
    code_.kmovq(tail_mask, gpr::scratch);
    const Section stores = code_.section(CodeSection::stores);
    const Xbyak::Address to = emit_elements_address(0) | tail_mask;
    bits_of(to_) == 16 ? code_.vmovdqu16(to, indices) : code_.vmovdqu32(to, indices);
  });
}

/// Loads only the bytes that hold the last gpr::limit codes.
void RowTable::emit_load_last_codes() {
  const Section codes = code_.section(CodeSection::row_table);
  const Xbyak::Xmm low(indices.getIdx());
  code_.mov(frame_.group_begin(), gpr::extent);
  code_.imul(gpr::extent, gpr::limit, bits_of(from_));
  code_.add(gpr::extent, 7);
  code_.shr(gpr::extent, 3);
  code_.or_(gpr::scratch, -1);
  code_.bzhi(gpr::scratch, gpr::scratch, gpr::extent);
  code_.kmovq(tail_mask, gpr::scratch);
  code_.mov(gpr::extent, frame_.group_begin());
  code_.vmovdqu8(low | tail_mask | Xbyak::util::T_z, emit_codes_address(0));
  code_.vshufi32x4(indices, indices, indices, 0);
}

}  // namespace castor::jit
