// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/nest_operands.hpp"

#include <algorithm>

#include "jit/emit/control_flow.hpp"
#include "jit/emit/packed_loop.hpp"

namespace castor::jit {

namespace {

/// The part of gpr::scratch that holds an element of `bytes`.
Xbyak::Reg scratch_of(int bytes) {
  switch (bytes) {
    case 1: return gpr::scratch.cvt8();
    case 2: return gpr::scratch.cvt16();
    case 4: return gpr::scratch.cvt32();
    default: return gpr::scratch;
  }
}

}  // namespace

NestOperands::NestOperands(const Nest& nest, const NestForm& form, const ChunkPlan& plan,
                           LaneEmitter& emitter, const Frame& frame)
    : nest_(nest),
      form_(form),
      layout_(nest.operands(), form.rank),
      lanes_(plan.lanes),
      chunks_(plan.chunks),
      packs_(plan.packs),
      has_tiles_(plan.has_tiles),
      emitter_(emitter),
      target_(emitter.target()),
      code_(emitter.code()),
      frame_(frame),
      windows_(emitter, frame),
      modes_(nest.operands(), ChunkMode::whole) {
  make_operands();
}

void NestOperands::make_source(size_t operand) {
  const ElementType element = nest_.element(operand);
  switch (form_.access[operand]) {
    case Access::uniform:
      sources_.push_back(
          &uniform_sources_.try_emplace(operand, operand, element, frame_).first->second);
      return;
    case Access::repeated: {
      const Xbyak::Address numbers = argument(layout_.period_numbers());
      sources_.push_back(
          &repeated_sources_
               .try_emplace(operand, operand, element, form_.baked_period, *this, frame_, numbers)
               .first->second);
      return;
    }
    case Access::table:
    case Access::tables: {
      const TableOperand table = {operand, element, nest_.program.sources[operand].index_bits,
                                  form_.access[operand] == Access::tables};
      sources_.push_back(
          &table_sources_.try_emplace(operand, table, target_, *this, frame_).first->second);
      return;
    }
    default:
      sources_.push_back(&memory_sources_
                              .try_emplace(operand, operand, element, *this,
                                           form_.access[operand] == Access::column)
                              .first->second);
      return;
  }
}

void NestOperands::make_operands() {
  for (size_t k = 0; k < nest_.operands(); ++k) {
    if (k < nest_.inputs.size()) {
      make_source(k);
    } else if (nest_.program.folds()) {
      const MemoryOperand& accumulator = nest_.program.sinks[k - nest_.inputs.size()];
      sinks_.push_back(&fold_sinks_.emplace_back(k, accumulator, *this));
    } else {
      sinks_.push_back(&memory_sinks_.emplace_back(k, nest_.element(k), packs_, *this));
    }
  }
  if (nest_.program.folds()) return;
  for (const LaneInst& inst : nest_.program.code) {
    if (inst.op != LaneOp::store) continue;
    memory_sinks_[static_cast<size_t>(inst.imm)].set_store(inst, nest_.program);
  }
}

void NestOperands::emit_row_start() {
  for (size_t k = 0; k < nest_.inputs.size(); ++k) {
    if (form_.access[k] != Access::uniform || !is_sub_byte(nest_.element(k))) continue;
    const Section fill = code_.section(CodeSection::code_on_stack, static_cast<int>(k));
    windows_.emit_fill_one(window_operand(k));
  }
  for (auto& [operand, table] : table_sources_) {
    const Section load = code_.section(CodeSection::table_registers, static_cast<int>(operand));
    table.emit_load_registers(code_);
  }
  if (form_.has_periods()) emit_begin_periods();
}

void NestOperands::emit_begin_periods() {
  code_.xor_(gpr::phase.cvt32(), gpr::phase.cvt32());
  code_.xor_(gpr::period.cvt32(), gpr::period.cvt32());
}

/// Overwrites gpr::extent.
void NestOperands::emit_locate_period() {
  code_.mov(gpr::scratch, gpr::index);
  code_.xor_(gpr::extent.cvt32(), gpr::extent.cvt32());
  code_.div(argument(layout_.period()));
  code_.mov(gpr::period, gpr::scratch);
  code_.mov(gpr::phase, gpr::extent);
}

void NestOperands::emit_advance_phase(const Xbyak::Address& step) {
  code_.add(gpr::phase, step);
  code_.mov(gpr::scratch, gpr::phase);
  code_.sub(gpr::scratch, argument(layout_.period()));
  code_.cmovns(gpr::phase, gpr::scratch);
}

void NestOperands::emit_end_iteration() {
  if (counts_chunks()) return;
  if (form_.baked_period == 0) return emit_advance_phase(frame_.iteration_phase());
  code_.add(gpr::period, lanes_ * chunks_ / form_.baked_period);  // iterations are whole periods
}

void NestOperands::emit_end_main_loop_chunk() {
  if (!counts_chunks()) return;
  const Section next = code_.section(CodeSection::next_chunk);
  emit_end_chunk();
}

void NestOperands::emit_end_chunk() {
  emit_advance_phase(frame_.chunk_phase());
  if (!form_.has(Access::repeated)) return;
  // scratch is not negative where the phase went beyond a period: one more is complete.
  code_.sar(gpr::scratch, 63);
  code_.add(gpr::period, frame_.chunk_periods());
  code_.lea(gpr::period, code_.ptr[gpr::period + gpr::scratch + 1]);
}

void NestOperands::enter_main_loop() {
  in_tail_ = false;
  has_group_ = false;
  for (size_t k = 0; k < nest_.operands(); ++k) modes_[k] = main_loop_mode(k);
}

/// Bytes that the group register counts for a group: 3 where all packed elements have 3 or 6 bits,
/// else 1.
int NestOperands::counted_bytes() const {
  for (size_t k = 0; k < nest_.operands(); ++k) {
    if (has_window(k) && bits_of(nest_.element(k)) % 3 != 0) return 1;
  }
  return 3;
}

void NestOperands::emit_begin_iteration() {
  const std::optional<Xbyak::Reg64> group = frame_.group_register();
  if (!group) return;
  code_.mov(*group, gpr::index);
  code_.shr(*group, 3);
  if (counted_bytes() == 3) code_.lea(*group, code_.ptr[*group + *group * 2]);
  has_group_ = true;
}

void NestOperands::enter_tail() {
  in_tail_ = true;
  has_group_ = false;
  chunk_displacement_ = 0;
  for (size_t k = 0; k < nest_.operands(); ++k) modes_[k] = tail_mode(k);
}

ChunkMode NestOperands::main_loop_mode(size_t operand) const {
  if (form_.access[operand] == Access::periodic) return ChunkMode::staged;
  if (!has_window(operand)) return ChunkMode::whole;
  if (has_tiles_) return ChunkMode::tiled;
  // A chunk that is a whole group, or that packing collects, needs no window.
  const bool is_source = operand < nest_.inputs.size();
  const bool in_registers = lanes_ == group_elements() || (!is_source && packs_);
  return in_registers ? ChunkMode::whole : ChunkMode::staged;
}

ChunkMode NestOperands::tail_mode(size_t operand) const {
  if (form_.access[operand] == Access::periodic) return ChunkMode::staged;
  return has_window(operand) || is_staged(operand) ? ChunkMode::staged : ChunkMode::masked;
}

/// The address of packed bits of whole groups, which are eight elements. Where the group register
/// counts, all pointers are in registers, and gpr::scratch stays as it is.
ChunkAddress NestOperands::emit_packed_address(size_t operand, int64_t displacement_in_elements) {
  const int bits = bits_of(nest_.element(operand));
  ChunkAddress chunk = {.mode = ChunkMode::whole,
                        .displacement = displacement_in_elements * bits / 8};
  if (!has_group_) {
    emit_byte_offset(code_, gpr::counter, bits);
    code_.add(gpr::counter, frame_.emit_pointer(operand));
    chunk.base = gpr::counter;
    return chunk;
  }
  chunk.index = *frame_.group_register();
  int counted = counted_bytes();
  if (bits % 3 == 0 && counted == 1) {
    code_.lea(gpr::counter, code_.ptr[chunk.index + chunk.index * 2]);
    chunk.index = gpr::counter;
    counted = 3;
  }
  chunk.base = frame_.emit_pointer(operand);
  chunk.scale = bits / counted;
  return chunk;
}

/// The address in the copy of the operand's period. gpr::phase is that of the chunk, where chunks
/// are counted in the main loop, else that of the iteration.
ChunkAddress NestOperands::emit_periodic_address(size_t operand) {
  const int bytes = lane_bits_of(nest_.element(operand)) / 8;
  const int64_t elements = counts_chunks() ? 0 : chunk_displacement_;
  return {.mode = ChunkMode::staged,
          .base = frame_.emit_pointer(operand),
          .index = gpr::phase,
          .scale = bytes,
          .displacement = elements * bytes};
}

ChunkAddress NestOperands::emit_chunk_address(size_t operand, int chunks_back) {
  const int64_t elements = chunk_displacement_ - int64_t{chunks_back} * lanes_;
  if (form_.access[operand] == Access::periodic) return emit_periodic_address(operand);
  const ChunkMode mode = modes_[operand];
  if (mode != ChunkMode::staged && mode != ChunkMode::tiled) {
    if (has_window(operand)) return emit_packed_address(operand, elements);
    return {.mode = mode,
            .base = frame_.emit_pointer(operand),
            .index = gpr::index,
            .scale = element_bytes(operand),
            .displacement = elements * element_bytes(operand)};
  }
  ChunkAddress chunk = {
      .mode = mode, .base = gpr::stack, .displacement = frame_.staging_offset(operand)};
  if (has_window(operand) && (in_tail_ || has_tiles_)) {
    code_.mov(gpr::scratch, gpr::index);
    code_.sub(gpr::scratch, frame_.group_begin());
    chunk.index = gpr::scratch;
    chunk.scale = 1;
    chunk.displacement += elements;
  } else if (has_window(operand)) {
    chunk.displacement += elements % group_elements();
  }
  return chunk;
}

void NestOperands::emit_fill_windows() {
  for (size_t k = 0; k < nest_.inputs.size(); ++k) {
    if (!has_window(k) || modes_[k] == ChunkMode::whole) continue;
    const Section fill = code_.section(CodeSection::fill_window, static_cast<int>(k));
    if (in_tail_ || has_tiles_) {
      windows_.emit_fill(window_operand(k), unpacker(k));
    } else {
      const ChunkAddress chunk = emit_packed_address(k, chunk_displacement_);
      windows_.emit_fill_whole(window_operand(k), unpacker(k), address_of(code_, chunk));
    }
  }
}

void NestOperands::emit_drain_windows() {
  for (size_t k = nest_.inputs.size(); k < nest_.operands(); ++k) {
    if (!has_window(k) || modes_[k] == ChunkMode::whole) continue;
    const Section drain = code_.section(CodeSection::drain_window, static_cast<int>(k));
    if (in_tail_ || has_tiles_) {
      windows_.emit_drain(window_operand(k), bit_packer(k));
    } else {
      const int64_t begin = chunk_displacement_ - int64_t{group_chunks() - 1} * lanes_;
      const ChunkAddress chunk = emit_packed_address(k, begin);
      windows_.emit_drain_whole(window_operand(k), bit_packer(k), address_of(code_, chunk));
    }
  }
}

WindowOperand NestOperands::window_operand(size_t operand) {
  return {operand,       nest_.element(operand),          form_.access[operand],
          step(operand), argument(layout_.base(operand)), tile_elements};
}

void NestOperands::emit_fill_staging() {
  emit_copy_staging(0, nest_.program.folds() ? nest_.operands() : nest_.inputs.size(), true);
}

void NestOperands::emit_drain_staging() {
  emit_copy_staging(nest_.inputs.size(), nest_.operands(), false);
}

/// Copies the chunk's elements between the operands from `first` to `end` and their staging
/// buffers. Whole chunks of consecutive elements are copied at once: to load a vector of elements
/// that were stored one by one is a store forwarding stall.
void NestOperands::emit_copy_staging(size_t first, size_t end, bool in) {
  std::vector<size_t> consecutive;
  std::vector<size_t> apart;
  for (size_t k = first; k < end; ++k) {
    if (is_staged(k)) (is_contiguous(k) ? consecutive : apart).push_back(k);
  }
  for (const size_t k : apart) emit_copy_elements(k, in);
  if (consecutive.empty()) return;
  Xbyak::Label done;
  code_.cmp(frame_.chunk_count(), lanes_);
  emit_unless(code_, Condition::not_equal, [&] {
    for (const size_t k : consecutive) emit_copy_chunk(k, in);
    code_.jmp(done, Xbyak::CodeGenerator::T_NEAR);
  });
  for (const size_t k : consecutive) emit_copy_elements(k, in);
  code_.L(done);
}

Section NestOperands::staging_section(size_t operand, bool in) {
  return code_.section(in ? CodeSection::fill_staging : CodeSection::drain_staging,
                       static_cast<int>(operand));
}

void NestOperands::emit_copy_chunk(size_t operand, bool in) {
  const Section copy = staging_section(operand, in);
  emit_locate_elements(operand);
  const int bytes = element_bytes(operand) * lanes_;
  const int part = std::min(bytes, target_.vector_bits() / 8);
  const OwnedVector chunk = emitter_.scratch();
  const Xbyak::Xmm vector = chunk.as(8 * part);
  for (int at = 0; at < bytes; at += part) {
    const Xbyak::Address elements = code_.ptr[gpr::cursor + at];
    const Xbyak::Address staged = code_.ptr[gpr::stack + (frame_.staging_offset(operand) + at)];
    emit_move_whole(code_, vector, in ? elements : staged, 8 * part);
    emit_move_whole(code_, in ? staged : elements, vector, 8 * part);
  }
}

/// Copies the chunk's elements one by one.
void NestOperands::emit_copy_elements(size_t operand, bool in) {
  const Section copy = staging_section(operand, in);
  emit_locate_elements(operand);
  const int bytes = element_bytes(operand);
  const Xbyak::Reg data = scratch_of(bytes);
  const Xbyak::Address element = code_.ptr[gpr::cursor];
  const Xbyak::Address staged =
      code_.ptr[gpr::stack + gpr::counter * bytes + frame_.staging_offset(operand)];
  code_.xor_(gpr::counter.cvt32(), gpr::counter.cvt32());
  emit_loop_while(code_, Condition::less, Jump::shortest, [&] {
    code_.mov(data, in ? element : staged);
    code_.mov(in ? staged : element, data);
    emit_step_cursor(operand);
    code_.inc(gpr::counter);
    code_.cmp(gpr::counter, frame_.chunk_count());
  });
}

/// cursor = address of the chunk's first element.
void NestOperands::emit_locate_elements(size_t operand) {
  if (is_contiguous(operand)) {
    code_.lea(gpr::cursor,
              code_.ptr[frame_.emit_pointer(operand) + gpr::index * element_bytes(operand)]);
    return;
  }
  code_.mov(gpr::cursor, gpr::index);
  code_.imul(gpr::cursor, step(operand));
  code_.add(gpr::cursor, frame_.emit_pointer(operand));
}

/// cursor = address of the next element.
void NestOperands::emit_step_cursor(size_t operand) {
  if (is_contiguous(operand)) {
    code_.add(gpr::cursor, element_bytes(operand));
  } else {
    code_.add(gpr::cursor, step(operand));
  }
}

}  // namespace castor::jit
