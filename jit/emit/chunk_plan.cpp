// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/chunk_plan.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "ir/shape/reduction.hpp"
#include "jit/core/core_tuning.hpp"
#include "jit/emit/bit_fields.hpp"
#include "jit/emit/packer.hpp"
#include "jit/emit/power_codes.hpp"
#include "jit/emit/quotient_codes.hpp"
#include "jit/emit/row_table.hpp"
#include "jit/emit/scaled_codes.hpp"
#include "jit/emit/scaled_nibbles.hpp"
#include "jit/lane/halves.hpp"
#include "jit/plan/table_method.hpp"

namespace castor::jit {

namespace {

/// A main loop does at least this many chunks, unless the program is long.
constexpr int min_chunks = 4;
/// Instructions of the lane program times chunks: beyond, the loop is unrolled no further.
constexpr size_t max_unrolled_instructions = 256;
/// Beyond, not even one group of sub-byte elements is unrolled: there is no main loop.
constexpr size_t max_instructions = 4096;

/// Registers that pending chunks may take: a third of AVX-512's. On AVX2 kernels of f64 sources
/// have six vectors pending, codes and signs.
int max_pending_vectors(const Target& target) { return target.has_avx512() ? 10 : 6; }

/// Registers that partial results may take.
int max_fold_vectors(const Target& target) { return target.has_avx512() ? 16 : 8; }

/// Decides on the partial results of rows that are folded. Sums of floats are in order: a main
/// loop's iteration goes round all of their lanes.
void plan_folds(const Nest& nest, const NestForm& form, const Target& target, ChunkPlan& plan) {
  if (!nest.program.folds() || form.access.back() != Access::uniform) return;
  const MemoryOperand& first = nest.program.sinks.front();
  const auto accumulators = static_cast<int>(nest.program.sinks.size());
  const int most = max_fold_vectors(target);
  plan.folds_in_order = first.fold == Fold::float_add;
  if (plan.folds_in_order) {
    plan.fold_vectors = static_cast<int>(sum_tree(first.element).lanes) / plan.lanes;
    plan.chunks = std::lcm(plan.chunks, plan.fold_vectors);
    plan.folds_in_registers = plan.fold_vectors <= most;
    return;
  }
  // Three accumulators, of floats, take four vectors each, as long as a comparison takes.
  const int enough = std::min(plan.chunks, most / 4 * 3 / accumulators);
  plan.fold_vectors = static_cast<int>(std::bit_floor(static_cast<unsigned>(std::max(enough, 1))));
  plan.folds_in_registers = true;
  plan.block_chunks = form.folded_row;
}

}  // namespace

bool has_whole_chunks(const NestForm& form) {
  return !form.has(Access::strided) && !form.has(Access::bitwise);
}

bool has_window(ElementType element, Access access) {
  return is_sub_byte(element) && (access == Access::contiguous || access == Access::bitwise);
}

namespace {

/// Whether chunks are of two halves, as long as wide lanes count. Operands that repeat elements
/// count in whole chunks.
bool joins_halves(const Nest& nest, const NestForm& form) {
  if (nest.program.widest_bits() < 64 || nest.program.folds()) return false;
  const auto has_halves = [](Access access) {
    return access == Access::contiguous || access == Access::uniform || access == Access::strided ||
           access == Access::bitwise;
  };
  return std::ranges::all_of(form.access, has_halves) &&
         value_after_wide_lanes(nest.program) != no_lane;
}

ChunkPlan plan_loops(const Nest& nest, const NestForm& form, const Target& target) {
  ChunkPlan plan;
  plan.joins_halves = joins_halves(nest, form);
  plan.lanes = target.vector_bits() / (plan.joins_halves ? 32 : nest.program.widest_bits());
  if (target.tuning().conversion.avoids_two_source_permutes)
    plan.bytes_apart = BytesApart::by_merges;
  if (scales_codes(nest, form, target)) {
    plan.instead = CodeScaling{};
  } else if (scales_nibbles(nest, form, target)) {
    plan.instead = NibbleScaling{};
  } else if (encodes_powers(nest, form, target)) {
    plan.instead = PowerCoding{};
  } else if (encodes_quotients(nest, form, target)) {
    plan.instead = QuotientCoding{};
  } else if (const auto tables = code_tables(nest, form, target, plan.lanes)) {
    plan.instead = *tables;
  }
  plan.columns_first = form.has(Access::column);
  plan.has_main_loop = !form.has(Access::strided) && !plan.columns_first;
  for (size_t k = 0; k < nest.operands(); ++k) {
    plan.has_windows |= has_window(nest.element(k), form.access[k]);
  }
  plan.has_tiles = form.has(Access::bitwise);
  plan.has_windows &= !plan.has_tiles;
  plan.chunks = 1;
  int packed_chunks = 1;
  for (const LaneInst& inst : nest.program.code) {
    if (inst.op != LaneOp::store) continue;
    const ElementType element = nest.program.sinks[static_cast<size_t>(inst.imm)].element;
    if (!needs_packing(inst, element, plan.lanes, target)) continue;
    const int chunks = target.vector_bits() / (plan.lanes * lane_bits_of(element));
    packed_chunks = std::max(packed_chunks, chunks);
    const int collected = inst.b == no_lane ? 1 : 2;  // lanes, and signs beside them
    plan.pending_vectors += collected * std::countr_zero(static_cast<unsigned>(chunks));
  }
  if (plan.columns_first) {
    plan.chunks = target.vector_bits() / 8 / plan.lanes;
    plan.packs = plan.pending_vectors <= max_pending_vectors(target);
    if (!plan.packs) plan.pending_vectors = 0;
    return plan;
  }
  const int64_t long_gathers = lane_by_lane_gathers(nest.program, form.access, target);
  const size_t length = nest.program.code.size() + static_cast<size_t>(long_gathers * plan.lanes);
  const bool room = plan.pending_vectors <= max_pending_vectors(target);
  const bool is_short = length * static_cast<size_t>(packed_chunks) <= max_unrolled_instructions;
  const int group_chunks =
      plan.has_windows ? codes_per_vector(target.vector_bits()) / plan.lanes : 1;
  // Repeated operands are expanded chunk by chunk where the code does not know the period.
  const int whole_chunks = form.period_chunks(plan.lanes);
  const int period = whole_chunks > 0 ? whole_chunks : std::max(1, form.baked_period);
  const bool any_period = form.has(Access::repeated) && form.baked_period == 0;
  if (!plan.has_main_loop || !room || !is_short || any_period) {
    plan.pending_vectors = 0;
    plan.chunks = std::lcm(group_chunks, period);
    plan.has_main_loop &= length * static_cast<size_t>(group_chunks) <= max_instructions;
    return plan;
  }
  plan.packs = true;
  plan.chunks = std::lcm(std::max(packed_chunks, group_chunks), period);
  while (plan.chunks < min_chunks && long_gathers == 0 &&
         2 * length * static_cast<size_t>(plan.chunks) <= max_unrolled_instructions) {
    plan.chunks *= 2;
  }
  return plan;
}

}  // namespace

ChunkPlan plan_chunks(const Nest& nest, const NestForm& form, const Target& target) {
  ChunkPlan plan = plan_loops(nest, form, target);
  plan_folds(nest, form, target, plan);
  return plan;
}

NestForm streaming_form(const Nest& nest, NestForm form, const Target& target) {
  form.stores = Stores::streaming;
  form.prefetch.output_bytes = 0;
  std::ranges::replace(form.access, Access::column, Access::contiguous);  // row by row
  if (!plan_chunks(nest, form, target).does_blocks()) form.baked_period = 0;
  return form;
}

}  // namespace castor::jit
