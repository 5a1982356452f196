// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/row_blocks.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "jit/emit/fold_ops.hpp"
#include "jit/emit/op_helpers.hpp"
#include "jit/emit/vector_constant.hpp"

namespace castor::jit {

namespace {

/// The orders of permutations, a temporary, what a fold takes, and other orders.
constexpr int shared_vectors = 6;

int merge_levels(const ChunkPlan& plan) {
  return std::countr_zero(static_cast<unsigned>(std::min(plan.block_chunks, plan.lanes)));
}

/// Every second part, of `part_bits`, of two vectors, from `first` on.
std::vector<uint8_t> every_second_part(int first, int part_bits, int vector_bits) {
  return lanes_constant(part_bits, vector_bits, [&](int part) { return 2 * part + first; });
}

void emit_permute_two(Assembler& code, const Xmm& to, const Xmm& order, const Xmm& second,
                      int part_bits) {
  switch (part_bits) {
    case 8: return code.vpermt2b(to, order, second);
    case 16: return code.vpermt2w(to, order, second);
    case 32: return code.vpermt2d(to, order, second);
    default: return code.vpermt2q(to, order, second);
  }
}

}  // namespace

uint32_t RowBlocks::taken_vectors(const Nest& nest, const ChunkPlan& plan, const Target& target) {
  const int of_each = merge_levels(plan) + 1;
  const int count = shared_vectors + of_each * static_cast<int>(nest.program.sinks.size());
  const uint32_t lowest = (uint32_t{1} << count) - 1;
  return lowest << (target.vector_registers() - count);
}

RowBlocks::RowBlocks(const Nest& nest, const NestForm& form, const ChunkPlan& plan,
                     LaneEmitter& lanes, Frame& frame)
    : nest_(nest),
      form_(form),
      plan_(plan),
      target_(lanes.target()),
      code_(lanes.code()),
      frame_(frame),
      lane_bits_(bits_of(nest.program.sinks.front().element)),
      chunk_bits_(plan.lanes * lane_bits_),
      levels_(merge_levels(plan)) {
  for (size_t i = 0; i < nest.outputs.size(); ++i) {
    sinks_.push_back(&block_sinks_.emplace_back(*this, i));
  }
}

Xmm RowBlocks::own_register(int index) const {
  return vector_register(target_.vector_registers() - 1 - index, chunk_bits_);
}

Xmm RowBlocks::pending(size_t accumulator, int level) const {
  return own_register(shared_vectors + static_cast<int>(accumulator) * (levels_ + 1) + level);
}

/// Rows have parts in both vectors that a merge takes, of at least two elements' bits together: it
/// moves as large a half of each as it can, since permutations of two vectors' words and bytes take
/// twice as long as others (Golden Cove).
int RowBlocks::part_bits(int level) const {
  constexpr int most = 64;
  return std::min(most, (lane_bits_ << levels_ >> level) / 2);
}

void RowBlocks::emit_load_orders(const Xmm& even, const Xmm& odd, int part_bits) {
  for (const auto& [order, first] : {std::pair(even, 0), std::pair(odd, 1)}) {
    emit_move_whole(code_, order, code_.constant(every_second_part(first, part_bits, chunk_bits_)),
                    chunk_bits_);
  }
}

void RowBlocks::emit_begin() {
  emit_load_orders(even(), odd(), part_bits(0));
  if (finds_nans(nest_.program)) {
    code_.vmovups(responses(), code_.constant(nan_responses(chunk_bits_)));
  }
}

void RowBlocks::BlockSink::emit_store(LaneEmitter& emitter, const LaneInst& inst) {
  const int value = emitter.use(inst.a).getIdx();
  blocks_.emit_fold_chunk(vector_register(value, blocks_.chunk_bits_), accumulator_);
}

/// Chunks of one row are folded element by element first.
void RowBlocks::emit_fold_chunk(const Xmm& value, size_t k) {
  const int row_chunks = std::max(1, plan_.block_chunks / plan_.lanes);
  const Xmm folded = pending(k, levels_);
  if (chunk_ % row_chunks == 0) {
    code_.vmovaps(folded, value);
  } else {
    emit_fold(code_, target_, accumulator(k).fold, lane_bits_, folded, folded, value,
              fold_scratch());
  }
  if ((chunk_ + 1) % row_chunks != 0) return;
  int level = 0;
  for (; (chunk_ / row_chunks >> level & 1) != 0; ++level) emit_merge(level, folded, k);
  if (level < levels_) code_.vmovaps(pending(k, level), folded);
}

/// later = the pending vector of that level and itself, half as many elements for each row.
void RowBlocks::emit_merge(int level, const Xmm& later, size_t k) {
  const Xmm earlier = pending(k, level);
  const int bits = part_bits(level);
  const bool is_kept = bits == part_bits(0);
  const Xmm first = is_kept ? even() : other_even();
  const Xmm second = is_kept ? odd() : other_odd();
  if (!is_kept) emit_load_orders(first, second, bits);
  code_.vmovaps(temporary(), earlier);
  emit_permute_two(code_, temporary(), first, later, bits);
  emit_permute_two(code_, earlier, second, later, bits);
  emit_fold(code_, target_, accumulator(k).fold, lane_bits_, later, temporary(), earlier,
            fold_scratch());
}

void RowBlocks::emit_end_block() {
  for (size_t k = 0; k < sinks_.size(); ++k) {
    const Xbyak::Reg64 pointer = frame_.emit_pointer(nest_.inputs.size() + k);
    const Xmm result = pending(k, levels_);
    emit_move_whole(code_, temporary(), code_.ptr[pointer], chunk_bits_);
    emit_fold(code_, target_, accumulator(k).fold, lane_bits_, result, result, temporary(),
              fold_scratch());
    emit_move_whole(code_, code_.ptr[pointer], result, chunk_bits_);
    frame_.emit_advance(nest_.inputs.size() + k, chunk_bits_ / 8);
  }
  const int elements = plan_.lanes * plan_.block_chunks;
  for (size_t k = 0; k < nest_.inputs.size(); ++k) {
    if (form_.access[k] == Access::uniform) continue;
    frame_.emit_advance(k, elements * bits_of(nest_.element(k)) / 8);
  }
}

}  // namespace castor::jit
