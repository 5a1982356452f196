// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/nest_emitter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <memory>

#include "jit/emit/control_flow.hpp"
#include "jit/emit/frame.hpp"
#include "jit/emit/nest_loops.hpp"
#include "jit/emit/nest_operands.hpp"
#include "jit/emit/packed_loop.hpp"
#include "jit/emit/power_codes.hpp"
#include "jit/emit/quotient_codes.hpp"
#include "jit/emit/row_blocks.hpp"
#include "jit/emit/row_table.hpp"
#include "jit/emit/scaled_codes.hpp"
#include "jit/emit/scaled_nibbles.hpp"
#include "jit/lane/adjacent_chunks.hpp"
#include "jit/lane/halves.hpp"
#include "jit/lane/hoist.hpp"
#include "jit/lane/reciprocals.hpp"

namespace castor::jit {

namespace {

/// Room for a chunk of the widest elements, and for windows, of each operand.
std::vector<int> staging_bytes(const Nest& nest, const NestForm& form, const Target& target,
                               const ChunkPlan& plan) {
  const int lanes = plan.lanes;
  int bytes = nest.has_sub_byte_operand() ? window_bytes(target.vector_bits()) : 0;
  const bool has_masked_tails = target.has_avx512() && has_whole_chunks(form);
  for (size_t k = 0; k < nest.operands() && !has_masked_tails; ++k) {
    bytes = std::max(bytes, lanes * lane_bits_of(nest.element(k)) / 8);
  }
  std::vector<int> all(nest.operands(), (bytes + 63) / 64 * 64);
  for (size_t k = 0; k < nest.operands(); ++k) {
    if (form.access[k] == Access::bitwise) all[k] = tile_window_bytes(k >= nest.inputs.size());
    if (plan.fold_vectors > 0 && k >= nest.inputs.size()) {
      all[k] = RowAccumulators::stack_bytes(plan);
    }
  }
  return all;
}

/// Windows of elements that are copied from any bit on are not stored to by vectors, and the copies
/// borrow registers, which are found from the caller's frame.
Frame::Needs frame_needs(const Nest& nest, const NestForm& form, const ChunkPlan& plan) {
  bool has_copies = false;
  bool has_packed = false;
  for (size_t k = 0; k < nest.operands(); ++k) {
    has_copies |= is_sub_byte(nest.element(k)) && form.access[k] != Access::contiguous;
    has_packed |= has_window(nest.element(k), form.access[k]);
  }
  return {.groups = nest.has_sub_byte_operand(),
          .packed = has_packed && plan.has_main_loop && !plan.has_tiles,
          .windows = plan.has_windows && !has_copies,
          .periods = form.has_periods()};
}

/// The registers that packed codes, row tables, scaled codes and accumulators use.
TakenRegisters taken_registers(const Nest& nest, const ChunkPlan& plan, const Target& target,
                               const PackedLoop* packed) {
  if (packed != nullptr) return {.vectors = packed->taken_vectors()};
  if (plan.scales_codes()) return {CodeScaler::taken_vectors, CodeScaler::taken_masks};
  if (plan.scales_nibbles()) return {NibbleScaler::taken_vectors, NibbleScaler::taken_masks};
  if (plan.encodes_powers()) return {PowerCoder::taken_vectors, PowerCoder::taken_masks};
  if (plan.encodes_quotients()) {
    return {QuotientCoder::taken_vectors, QuotientCoder::taken_masks};
  }
  if (plan.fold_vectors > 0) {
    TakenRegisters taken = RowAccumulators::taken(nest, plan, target);
    if (plan.block_chunks > 0) taken.vectors |= RowBlocks::taken_vectors(nest, plan, target);
    return taken;
  }
  return {.vectors = plan.tables() == nullptr ? 0 : RowTable::taken_vectors};
}

/// The loop level of each source. With tables, loads of codes belong to none.
std::vector<LoopLevel> source_levels(const Nest& nest, const NestForm& form,
                                     const ChunkPlan& plan) {
  std::vector<LoopLevel> sources;
  for (size_t k = 0; k < nest.inputs.size(); ++k) {
    const bool is_table = plan.tables() != nullptr && plan.tables()->operand == k;
    sources.push_back(is_table                            ? LoopLevel::nest
                      : form.access[k] == Access::uniform ? LoopLevel::row
                      : form.access[k] == Access::table   ? LoopLevel::row
                      : form.access[k] == Access::column  ? LoopLevel::row
                                                          : LoopLevel::chunk);
  }
  return sources;
}

/// Emits one nest. The methods are in the order of the code that they emit.
class NestEmitter {
 public:
  NestEmitter(const Nest& nest, const NestForm& form, const ChunkPlan& plan, const Target& target,
              const CodeBuffer& buffer)
      : nest_(nest),
        form_(form),
        target_(target),
        plan_(plan),
        layout_(nest.operands(), form.rank),
        code_(buffer, target.frame_pointers),
        frame_(code_, form.rank, staging_bytes(nest, form, target, plan_),
               frame_needs(nest, form, plan_)),
        packed_(packed_loop(nest, form, target)),
        lanes_(code_, target, nest.program, plan_.lanes, plan_.pending_vectors,
               loop_levels(nest.program, source_levels(nest, form, plan_)),
               taken_registers(nest, plan_, target, packed_.get())),
        loops_(code_, nest, form, frame_, plan_.fold_vectors > 0),
        operands_(nest, form, plan_, lanes_, frame_),
        sources_(operands_.sources()) {
    lanes_.set_bytes_apart(plan_.bytes_apart);
    if (plan_.fold_vectors > 0) {
      folds_.emplace(nest, plan_, lanes_, frame_, operands_);
      operands_.set_sinks(folds_->sinks());
      if (plan_.block_chunks > 0) blocks_.emplace(nest, form, plan_, lanes_, frame_);
    }
    if (plan_.scales_codes() && !form.has_periods()) {
      row_scaler_.emplace(nest, form, code_, frame_, loops_);
    } else {
      block_emitter_ = make_block_emitter();
    }
    if (const CodeTables* tables = plan_.tables()) {
      table_.emplace(nest, *tables, form.stores, lanes_, frame_, loops_);
      sources_[tables->operand] = table_->codes();
    }
  }

  MachineCode emit() {
    emit_entry();
    emit_axis(form_.rank - 1);
    const FrameState body = emit_exit();
    if (code_.has_deferred()) code_.resume_frame(body);
    code_.emit_deferred();
    MachineCode machine_code = code_.finish();
    machine_code.spills = lanes_.spills();
    return machine_code;
  }

 private:
  void emit_entry();
  FrameState emit_exit();
  void emit_axis(int axis);
  void emit_columns();
  void emit_chunks_of_columns();
  void emit_move_by_rows(bool back);
  void emit_innermost_axis();
  void emit_row_blocks();
  void emit_row_block();
  void emit_folded_row();
  void emit_row();
  void emit_scaled_row();
  std::unique_ptr<BlockEmitter> make_block_emitter();
  void emit_blocks();
  void emit_table_blocks();
  void emit_table_blocks(int blocks);
  void emit_streaming_axis();
  void emit_elements_to_alignment();
  void emit_tiles();
  void emit_main_loop();
  void emit_main_loop_chunk(int chunk);
  void emit_tail_loop();
  void emit_tail_groups();
  void emit_begin_group(int elements);
  void emit_tail_chunks(const Xbyak::Operand& end);
  void emit_tail_count(int elements);
  void emit_phase_steps();
  void emit_chunk(int chunk);

  Xbyak::Address argument(size_t word) { return code_.qword[gpr::arguments + 8 * word]; }
  std::span<Sink* const> sinks() const {
    return table_ ? table_->sinks() : std::span<Sink* const>(operands_.sinks());
  }

  const Nest& nest_;
  const NestForm& form_;
  const Target& target_;
  const ChunkPlan plan_;
  const ArgumentLayout layout_;
  Assembler code_;
  Frame frame_;
  const std::unique_ptr<const PackedLoop> packed_;  ///< null where codes are unpacked
  LaneEmitter lanes_;
  NestLoops loops_;
  NestOperands operands_;
  std::vector<Source*> sources_;
  std::optional<RowTable> table_;
  std::optional<CodeScaler> row_scaler_;         ///< for rows that have one scale
  std::unique_ptr<BlockEmitter> block_emitter_;  ///< null where no blocks are done in another way
  std::optional<RowAccumulators> folds_;
  std::optional<RowBlocks> blocks_;
};

void NestEmitter::emit_entry() {
  const Section entry = code_.section(CodeSection::entry);
  frame_.emit_entry();
  lanes_.set_spill_base(frame_.spill_offset());
  frame_.emit_load_pointers();
  if (nest_.program.uses_float_state()) {
    const Section float_state = code_.section(CodeSection::float_state);
    constexpr uint32_t nearest_even_masked = 0x1f80;  // no FTZ, no DAZ, exceptions masked
    code_.stmxcsr(frame_.saved_mxcsr());
    code_.ldmxcsr(code_.constant_of(nearest_even_masked));
  }
  lanes_.emit_constants(sources_, sinks());
  {
    const Section constants = code_.section(CodeSection::constants);
    if (table_) table_->emit_constants();
    if (row_scaler_) row_scaler_->emit_constants();
    if (block_emitter_) block_emitter_->emit_constants();
  }
  lanes_.emit_hoisted(LoopLevel::nest, sources_);
  if (form_.has_periods()) emit_phase_steps();
}

/// Elements by which an iteration, and a chunk, move within a period.
void NestEmitter::emit_phase_steps() {
  const Section steps = code_.section(CodeSection::period_steps);
  for (const bool chunk : {false, true}) {
    code_.mov(gpr::scratch.cvt32(), plan_.lanes * (chunk ? 1 : plan_.chunks));
    code_.xor_(gpr::extent.cvt32(), gpr::extent.cvt32());
    code_.div(argument(layout_.period()));
    code_.mov(chunk ? frame_.chunk_phase() : frame_.iteration_phase(), gpr::extent);
    if (chunk) code_.mov(frame_.chunk_periods(), gpr::scratch);
  }
}

FrameState NestEmitter::emit_exit() {
  const Section exit = code_.section(CodeSection::exit);
  if (nest_.program.uses_float_state()) {
    const Section float_state = code_.section(CodeSection::float_state);
    code_.ldmxcsr(frame_.saved_mxcsr());
  }
  if (form_.stores == Stores::streaming) code_.sfence();
  code_.vzeroupper();
  return frame_.emit_exit(lanes_.spill_bytes());
}

/// The loop over one axis around those within it.
void NestEmitter::emit_axis(int axis) {
  if (axis == 0) return emit_innermost_axis();
  if (axis == 1 && plan_.columns_first) return emit_columns();
  const Section loop = code_.section(CodeSection::axis_loop, axis);
  code_.mov(gpr::scratch, argument(layout_.extent(axis)));
  code_.mov(frame_.loop_counter(axis), gpr::scratch);
  const auto emit_loop = [&] {
    emit_loop_while(code_, Condition::not_equal, [&] {
      emit_axis(axis - 1);
      const Section step = code_.section(CodeSection::axis_step, axis);
      for (size_t k = 0; k < nest_.operands(); ++k) {
        frame_.emit_advance(k, argument(layout_.step(k, axis)));
      }
      code_.dec(frame_.loop_counter(axis));
    });
  };
  if (!blocks_) return emit_loop();
  emit_row_blocks();
  code_.cmp(frame_.loop_counter(axis), 0);
  emit_unless(code_, Condition::equal, emit_loop);
}

/// The two innermost axes: for adjacent chunks of the innermost one, the other. Afterwards
/// pointers are where the loop over rows would leave them.
void NestEmitter::emit_columns() {
  const Section columns = code_.section(CodeSection::axis_loop, 1);
  code_.mov(gpr::extent, argument(layout_.extent(0)));
  code_.xor_(gpr::index.cvt32(), gpr::index.cvt32());
  operands_.enter_main_loop();
  operands_.set_chunk(0);
  const int elements = plan_.lanes * plan_.chunks;
  code_.lea(gpr::limit, code_.ptr[gpr::extent - elements]);
  code_.cmp(gpr::index, gpr::limit);
  emit_unless(code_, Condition::greater, [&] {
    emit_loop_while(code_, Condition::less_equal, [&] {
      emit_chunks_of_columns();
      code_.add(gpr::index, elements);
      code_.cmp(gpr::index, gpr::limit);
    });
  });
  code_.cmp(gpr::index, gpr::extent);
  emit_unless(code_, Condition::greater_equal, [&] {
    const Section tail = code_.section(CodeSection::tail);
    operands_.enter_tail();
    emit_tail_count(elements);
    emit_chunks_of_columns();
  });
  emit_move_by_rows(false);
}

/// What follows from the columns, then all rows. Pointers end where they began.
void NestEmitter::emit_chunks_of_columns() {
  lanes_.emit_hoisted(LoopLevel::row, sources_);
  code_.mov(gpr::counter, argument(layout_.extent(1)));
  code_.align_to(32);
  const uint32_t begin = code_.position();
  emit_loop_while(code_, Condition::not_equal, [&] {
    emit_chunk(0);
    const Section step = code_.section(CodeSection::axis_step, 1);
    for (size_t k = 0; k < nest_.operands(); ++k) {
      if (form_.access[k] != Access::contiguous) continue;
      frame_.emit_advance(k, argument(layout_.step(k, 1)));
    }
    code_.dec(gpr::counter);
  });
  loops_.end_loop("rows", begin, int64_t{plan_.lanes} * plan_.chunks);
  lanes_.release_hoisted(LoopLevel::row);
  emit_move_by_rows(true);
}

/// Moves pointers by as many rows as the axis has.
void NestEmitter::emit_move_by_rows(bool back) {
  const Section step = code_.section(CodeSection::axis_step, 1);
  for (size_t k = 0; k < nest_.operands(); ++k) {
    if (form_.access[k] != Access::contiguous) continue;
    code_.mov(gpr::scratch, argument(layout_.extent(1)));
    code_.imul(gpr::scratch, argument(layout_.step(k, 1)));
    back ? frame_.emit_retreat(k, gpr::scratch) : frame_.emit_advance(k, gpr::scratch);
  }
}

/// Blocks of rows, while there are as many rows as a chunk has lanes.
void NestEmitter::emit_row_blocks() {
  const Section blocks = code_.section(CodeSection::row_blocks);
  operands_.emit_row_start();
  lanes_.emit_hoisted(LoopLevel::row, sources_);
  {
    const Section constants = code_.section(CodeSection::constants);
    blocks_->emit_begin();
  }
  code_.xor_(gpr::index.cvt32(), gpr::index.cvt32());
  code_.cmp(frame_.loop_counter(1), plan_.lanes);
  emit_unless(code_, Condition::less, [&] {
    code_.align_to(32);
    const uint32_t begin = code_.position();
    emit_loop_while(code_, Condition::greater_equal, [&] { emit_row_block(); });
    loops_.end_loop("blocks of rows", begin, int64_t{plan_.lanes} * plan_.block_chunks);
  });
  lanes_.release_hoisted(LoopLevel::row);
}

void NestEmitter::emit_row_block() {
  operands_.enter_main_loop();
  for (int chunk = 0; chunk < plan_.block_chunks; ++chunk) {
    operands_.set_chunk(int64_t{chunk} * plan_.lanes);
    blocks_->set_chunk(chunk);
    lanes_.emit_chunk(sources_, blocks_->sinks(), CodeSection::chunk, chunk);
  }
  {
    const Section fold = code_.section(CodeSection::fold_results);
    blocks_->emit_end_block();
  }
  code_.sub(frame_.loop_counter(1), plan_.lanes);
  code_.cmp(frame_.loop_counter(1), plan_.lanes);
}

void NestEmitter::emit_innermost_axis() {
  const Section axis = code_.section(CodeSection::innermost_axis);
  operands_.emit_row_start();
  lanes_.emit_hoisted(LoopLevel::row, sources_);
  if (folds_) return emit_folded_row();
  emit_row();
}

/// A row, all of whose elements become one of each accumulator.
void NestEmitter::emit_folded_row() {
  {
    const Section first = code_.section(CodeSection::partial_results);
    folds_->emit_begin_row();
  }
  emit_row();
  const Section fold = code_.section(CodeSection::fold_results);
  folds_->emit_end_row();
}

std::unique_ptr<BlockEmitter> NestEmitter::make_block_emitter() {
  const auto make = [&]<class Emitter>(std::type_identity<Emitter>, auto... more) {
    return std::make_unique<Emitter>(nest_, form_, code_, frame_, loops_, more...);
  };
  if (plan_.scales_codes()) return make(std::type_identity<CodeScaler>());
  if (plan_.scales_nibbles()) return make(std::type_identity<NibbleScaler>());
  if (plan_.encodes_powers()) return make(std::type_identity<PowerCoder>(), plan_.bytes_apart);
  if (plan_.encodes_quotients())
    return make(std::type_identity<QuotientCoder>(), plan_.bytes_apart);
  return nullptr;
}

void NestEmitter::emit_row() {
  if (plan_.has_row_tables()) emit_chunk(0);
  code_.mov(gpr::extent, argument(layout_.extent(0)));
  code_.xor_(gpr::index.cvt32(), gpr::index.cvt32());
  if (table_) return plan_.has_row_tables() ? table_->emit_row() : emit_table_blocks();
  if (row_scaler_) return emit_scaled_row();
  if (block_emitter_) return emit_blocks();
  if (form_.stores == Stores::streaming) return emit_streaming_axis();
  if (plan_.has_tiles) return emit_tiles();
  if (plan_.has_main_loop) emit_main_loop();
  emit_tail_loop();
}

/// The lane program does what is less than a group, or all where the scale is out of range.
void NestEmitter::emit_scaled_row() {
  row_scaler_->emit_row();
  emit_unless_row_is_done(code_, [&] {
    if (form_.stores == Stores::streaming) {
      code_.test(gpr::index, gpr::index);
      emit_unless(code_, Condition::not_equal, [&] { emit_streaming_axis(); });
    } else if (plan_.has_main_loop) {
      emit_main_loop();
    }
    emit_tail_loop();
  });
}

/// The lane program does the iterations that have scales out of range, and the last elements.
void NestEmitter::emit_blocks() {
  emit_loop_while(code_, Condition::less, [&] {
    block_emitter_->emit_blocks();
    code_.cmp(gpr::index, gpr::extent);
    emit_unless(code_, Condition::greater_equal, [&] {
      code_.lea(gpr::scratch, code_.ptr[gpr::index + block_emitter_->elements_per_iteration()]);
      code_.cmp(gpr::scratch, gpr::extent);
      code_.cmovl(gpr::extent, gpr::scratch);
      if (plan_.has_main_loop && form_.stores == Stores::cached) emit_main_loop();
      emit_tail_loop();
      code_.mov(gpr::index, gpr::extent);  // the last chunk may have counted further
      operands_.emit_locate_period();
      code_.mov(gpr::extent, argument(layout_.extent(0)));
    });
    code_.cmp(gpr::index, gpr::extent);
  });
}

/// The axis is whole blocks.
void NestEmitter::emit_table_blocks() {
  operands_.enter_main_loop();
  emit_table_blocks(2);
  emit_table_blocks(1);
}

/// A loop of `blocks` at a time while enough are left: each block's table, then its elements.
void NestEmitter::emit_table_blocks(int blocks) {
  const int elements = plan_.tables()->block;
  loops_.emit_main_loop(blocks * elements, [&] {
    for (int block = 0; block < blocks; ++block) {
      const int first = block * elements;
      operands_.set_chunk(first);
      emit_chunk(block);
      table_->emit_block(first, elements);
    }
    const Section next = code_.section(CodeSection::next_iteration);
    code_.add(gpr::period, blocks);
  });
}

/// A tile after the other: their sub-byte elements are unpacked to windows before all chunks, or
/// packed after them.
void NestEmitter::emit_tiles() {
  const Section tiles = code_.section(CodeSection::tile_of_bits);
  operands_.enter_main_loop();
  emit_loop_while(code_, Condition::less, [&] {
    emit_begin_group(tile_elements);
    operands_.emit_fill_windows();
    code_.mov(gpr::extent, frame_.group_end());
    if (plan_.has_main_loop) emit_main_loop();
    emit_tail_loop();
    operands_.emit_drain_windows();
    code_.mov(gpr::extent, argument(layout_.extent(0)));
    code_.cmp(gpr::index, gpr::extent);
  });
}

/// The tail loop runs twice: first for the elements before the first aligned output, then
/// for what the main loop leaves.
void NestEmitter::emit_streaming_axis() {
  Xbyak::Label aligned;
  Xbyak::Label tail;
  emit_elements_to_alignment();
  code_.jmp(tail, Xbyak::CodeGenerator::T_NEAR);
  code_.L(aligned);
  code_.mov(gpr::index, gpr::extent);  // the last chunk may have counted further
  if (form_.has_periods()) operands_.emit_locate_period();
  code_.mov(gpr::extent, argument(layout_.extent(0)));
  emit_main_loop();
  code_.L(tail);
  emit_tail_loop();
  code_.cmp(gpr::extent, argument(layout_.extent(0)));
  code_.jl(aligned, Xbyak::CodeGenerator::T_NEAR);
}

/// extent = min(extent, elements of the first streamed output before the alignment).
void NestEmitter::emit_elements_to_alignment() {
  size_t output = nest_.inputs.size();
  while (!has_streaming_stores(target_, nest_.element(output))) ++output;
  const int bits = bits_of(nest_.element(output));
  const Section before = code_.section(CodeSection::before_alignment);
  code_.mov(gpr::counter, frame_.emit_pointer(output));
  code_.neg(gpr::counter);
  code_.and_(gpr::counter, static_cast<uint32_t>(streaming_alignment - 1));
  if (bits < 8) {
    code_.shl(gpr::counter, std::countr_zero(static_cast<unsigned>(8 / bits)));
  } else {
    code_.shr(gpr::counter, std::countr_zero(static_cast<unsigned>(bits / 8)));
  }
  code_.cmp(gpr::counter, gpr::extent);
  code_.cmovl(gpr::extent, gpr::counter);
}

/// Whole iterations, while that many elements are left.
void NestEmitter::emit_main_loop() {
  if (packed_ != nullptr) packed_->emit(form_.stores, lanes_, frame_, loops_);
  loops_.emit_prefetching_loop(plan_.lanes * plan_.chunks, [&] {
    operands_.enter_main_loop();
    operands_.emit_begin_iteration();
    for (int chunk = 0; chunk < plan_.chunks; ++chunk) emit_main_loop_chunk(chunk);
    if (!form_.has_periods()) return;
    const Section next = code_.section(CodeSection::next_iteration);
    operands_.emit_end_iteration();
  });
}

void NestEmitter::emit_main_loop_chunk(int chunk) {
  operands_.set_chunk(int64_t{chunk} * plan_.lanes);
  if (plan_.has_windows && chunk % operands_.group_chunks() == 0) {
    operands_.emit_fill_windows();
  }
  emit_chunk(chunk);
  operands_.emit_end_main_loop_chunk();
  if (plan_.has_windows && (chunk + 1) % operands_.group_chunks() == 0)
    operands_.emit_drain_windows();
}

/// Does the remaining elements a chunk at a time, the last one with fewer lanes.
void NestEmitter::emit_tail_loop() {
  const Section tail = code_.section(CodeSection::tail);
  code_.cmp(gpr::index, gpr::extent);
  emit_unless(code_, Condition::greater_equal, [&] {
    operands_.enter_tail();
    if (folds_) {
      const Section kept = code_.section(CodeSection::partial_results);
      folds_->emit_begin_tail();
    }
    plan_.has_windows ? emit_tail_groups() : emit_tail_chunks(gpr::extent);
    if (!folds_) return;
    const Section kept = code_.section(CodeSection::partial_results);
    folds_->emit_end_tail();
  });
}

/// Does the remaining elements a group at a time, the last one with fewer elements.
void NestEmitter::emit_tail_groups() {
  const Section groups = code_.section(CodeSection::next_group);
  emit_loop_while(code_, Condition::less, [&] {
    emit_begin_group(operands_.group_elements());
    operands_.emit_fill_windows();
    emit_tail_chunks(frame_.group_end());
    operands_.emit_drain_windows();
    code_.cmp(gpr::index, gpr::extent);
  });
}

/// The group begins at gpr::index, and has that many elements or those that are left.
void NestEmitter::emit_begin_group(int elements) {
  code_.mov(frame_.group_begin(), gpr::index);
  code_.lea(gpr::scratch, code_.ptr[gpr::index + elements]);
  code_.cmp(gpr::scratch, gpr::extent);
  code_.cmovg(gpr::scratch, gpr::extent);
  code_.mov(frame_.group_end(), gpr::scratch);
}

void NestEmitter::emit_tail_chunks(const Xbyak::Operand& end) {
  const Section chunks = code_.section(CodeSection::next_chunk);
  const uint32_t begin = code_.position();
  emit_loop_while(code_, Condition::less, [&] {
    emit_tail_count(plan_.lanes);
    operands_.emit_fill_staging();
    emit_chunk(0);
    operands_.emit_drain_staging();
    if (form_.has_periods()) operands_.emit_end_chunk();
    code_.add(gpr::index, plan_.lanes);
    code_.cmp(gpr::index, end);
  });
  loops_.end_loop("tail", begin, plan_.lanes);
}

/// Elements of this chunk, or of several: min(elements, left), as a number for staging buffers and
/// as an opmask.
void NestEmitter::emit_tail_count(int elements) {
  code_.mov(gpr::counter, gpr::extent);
  code_.sub(gpr::counter, gpr::index);
  code_.mov(gpr::scratch.cvt32(), elements);
  code_.cmp(gpr::counter, gpr::scratch);
  code_.cmovg(gpr::counter, gpr::scratch);
  code_.mov(frame_.chunk_count(), gpr::counter);
  if (!target_.has_avx512()) return;
  code_.or_(gpr::scratch, -1);
  code_.bzhi(gpr::scratch, gpr::scratch, gpr::counter);
  code_.kmovq(tail_mask, gpr::scratch);
}

void NestEmitter::emit_chunk(int chunk) {
  lanes_.emit_chunk(sources_, sinks(), CodeSection::chunk, chunk);
}

}  // namespace

Result<MachineCode> emit_nest(const Nest& nest, const NestForm& form, const Target& target,
                              const EmitOptions& options) {
  const ChunkPlan plan = plan_chunks(nest, form, target);
  Nest reduced = nest;
  reduced.program = with_reciprocals(nest.program, source_levels(nest, form, plan));
  if (plan.joins_halves) reduced.program = with_joined_halves(reduced.program);
  if (plan.columns_first) {
    std::vector<bool> is_uniform;
    for (const Access access : form.access) is_uniform.push_back(access == Access::uniform);
    reduced.program = adjacent_chunks(reduced.program, plan.chunks, is_uniform);
  }
  return assemble(fmt::format("tier {}", name_of(target.tier)), options,
                  [&](const CodeBuffer& buffer) {
                    return NestEmitter(reduced, form, plan, target, buffer).emit();
                  });
}

}  // namespace castor::jit
