// SPDX-License-Identifier: Apache-2.0
// How the chunks of a nest reach its operands: directly, or through a buffer on the stack. Operands
// of sub-byte elements have a window (see emit/windows.hpp). Others have a staging buffer for
// chunks that are not contiguous, and on AVX2, which has no opmasks, for all chunks of the tail.
#pragma once

#include <deque>
#include <map>

#include "jit/emit/accumulators.hpp"
#include "jit/emit/bit_fields.hpp"
#include "jit/emit/broadcast_operands.hpp"
#include "jit/emit/chunk_plan.hpp"
#include "jit/emit/frame.hpp"
#include "jit/emit/memory_operands.hpp"
#include "jit/emit/table_source.hpp"
#include "jit/emit/windows.hpp"

namespace castor::jit {

class NestOperands : public OperandLocator {
 public:
  NestOperands(const Nest& nest, const NestForm& form, const ChunkPlan& plan, LaneEmitter& emitter,
               const Frame& frame);

  const std::vector<Source*>& sources() const { return sources_; }
  const std::vector<Sink*>& sinks() const { return sinks_; }
  /// Where a nest's accumulators are given other sinks, these.
  void set_sinks(const std::vector<Sink*>& sinks) { sinks_ = sinks; }

  /// The chunks emitted from here on are whole.
  void enter_main_loop();
  /// Emits what the chunks of an iteration of the main loop need: where their packed elements are.
  void emit_begin_iteration();
  /// The chunks emitted from here on begin at gpr::index and may have fewer elements.
  void enter_tail();
  /// Elements from gpr::index to the main loop's chunk that is emitted next.
  void set_chunk(int64_t displacement_in_elements) {
    chunk_displacement_ = displacement_in_elements;
  }

  /// Emits what the beginning of a row needs: the codes of uniform sub-byte operands on the stack,
  /// tables in registers, and the account of periods.
  void emit_row_start();
  /// Begins the account of periods with a row's first element, or with the element at gpr::index.
  void emit_begin_periods();
  void emit_locate_period();
  /// Advances the account of periods after an iteration of the main loop, after one of its chunks,
  /// and after a chunk of the tail.
  void emit_end_iteration();
  void emit_end_main_loop_chunk();
  void emit_end_chunk();

  /// Fills the windows of the group that begins with the chunk, or of the tile.
  void emit_fill_windows();
  /// Drains the windows of the group that ends with the chunk, or of the tile.
  void emit_drain_windows();
  int group_elements() const { return codes_per_vector(target_.vector_bits()); }
  int group_chunks() const { return group_elements() / lanes_; }

  /// Copies the frame.chunk_count() elements of the chunk from the inputs, and from accumulators,
  /// to their staging buffers.
  void emit_fill_staging();
  /// Copies these elements from the staging buffers of the outputs to the outputs.
  void emit_drain_staging();

  ChunkMode mode(size_t operand) const override { return modes_[operand]; }
  Stores stores() const override { return form_.stores; }
  ChunkAddress emit_chunk_address(size_t operand, int chunks_back) override;
  int64_t element_of_iteration() const override { return chunk_displacement_; }

 private:
  void make_operands();
  void make_source(size_t operand);
  void emit_advance_phase(const Xbyak::Address& step);
  /// Whether the main loop advances the account of periods after each chunk.
  bool counts_chunks() const { return form_.has(Access::repeated) && form_.baked_period == 0; }
  bool has_window(size_t operand) const {
    return jit::has_window(nest_.element(operand), form_.access[operand]);
  }
  bool is_staged(size_t operand) const {
    if (form_.access[operand] == Access::strided) return true;
    return !target_.has_avx512() && is_contiguous(operand) && !has_window(operand);
  }
  bool is_contiguous(size_t operand) const { return form_.access[operand] == Access::contiguous; }
  int counted_bytes() const;
  ChunkMode main_loop_mode(size_t operand) const;
  ChunkMode tail_mode(size_t operand) const;
  ChunkAddress emit_periodic_address(size_t operand);
  ChunkAddress emit_packed_address(size_t operand, int64_t displacement_in_elements);
  WindowOperand window_operand(size_t operand);
  void emit_copy_staging(size_t first, size_t end, bool in);
  Section staging_section(size_t operand, bool in);
  void emit_copy_chunk(size_t operand, bool in);
  void emit_copy_elements(size_t operand, bool in);
  void emit_locate_elements(size_t operand);
  void emit_step_cursor(size_t operand);
  const BitUnpacker& unpacker(size_t input) const { return memory_sources_.at(input).unpacker(); }
  const BitPacker& bit_packer(size_t operand) const {
    return memory_sinks_[operand - nest_.inputs.size()].bit_packer();
  }
  int element_bytes(size_t operand) const { return bits_of(nest_.element(operand)) / 8; }
  Xbyak::Address argument(size_t word) const { return code_.qword[gpr::arguments + 8 * word]; }
  /// The operand's step along the innermost axis.
  Xbyak::Address step(size_t operand) const { return argument(layout_.step(operand, 0)); }

  const Nest& nest_;
  const NestForm& form_;
  const ArgumentLayout layout_;
  const int lanes_;   ///< of a chunk
  const int chunks_;  ///< of an iteration
  const bool packs_;
  const bool has_tiles_;
  LaneEmitter& emitter_;
  const Target& target_;
  Assembler& code_;
  const Frame& frame_;
  const Windows windows_;
  std::map<size_t, MemorySource> memory_sources_;  // by operand, as are the next two
  std::map<size_t, UniformSource> uniform_sources_;
  std::map<size_t, RepeatedSource> repeated_sources_;
  std::map<size_t, TableSource> table_sources_;
  std::deque<MemorySink> memory_sinks_;
  std::deque<FoldSink> fold_sinks_;
  std::vector<Source*> sources_;
  std::vector<Sink*> sinks_;
  std::vector<ChunkMode> modes_;
  bool in_tail_ = false;
  bool has_group_ = false;          ///< the frame's group register counts the iteration's groups
  int64_t chunk_displacement_ = 0;  ///< in elements
};

}  // namespace castor::jit
