// SPDX-License-Identifier: Apache-2.0
#include "jit/plan/columns.hpp"

#include <algorithm>

#include "ir/support/integer_math.hpp"
#include "jit/lane/hoist.hpp"
#include "jit/plan/fold_space.hpp"

namespace castor::jit {

namespace {

/// What the code does at once (ChunkPlan::columns_first).
constexpr int64_t min_columns = 64;
/// Instructions of the longest program, of which the code has several copies.
constexpr size_t max_instructions = 64;
/// Rows at once, at most: their lines stay in L1, and their pages in the first TLB.
constexpr int64_t max_rows = 64;
/// Rows at once where tensors do not fit in L2: as many as the hardware prefetchers follow.
constexpr int64_t max_far_rows = 8;
/// Beyond that multiple of L2, memory is waited for, and rows are read faster one by one (256
/// MiB: 1.1 times).
constexpr int64_t max_l2s = 32;

/// Whether no element is the other along the axis next to the innermost.
bool is_column(const IterationSpace& space, size_t k) {
  return space.form.access[k] == Access::contiguous && space.strides[k][1] == 0;
}

/// Whether every operand is reached by whole chunks, or is one element for all of the rows.
bool has_whole_rows(const Nest& nest, const IterationSpace& space) {
  for (size_t k = 0; k < nest.operands(); ++k) {
    const bool is_fixed = space.form.access[k] == Access::uniform && space.strides[k][1] == 0;
    const bool is_output = k >= nest.inputs.size();
    if (is_sub_byte(nest.element(k)) || (is_output && is_column(space, k))) return false;
    if (!is_fixed && space.form.access[k] != Access::contiguous) return false;
  }
  return true;
}

/// Whether an instruction borrows general registers, in one of which rows are counted.
bool goes_lane_by_lane(const LaneInst& inst) {
  return inst.op == LaneOp::gather || inst.op == LaneOp::divide_each ||
         inst.op == LaneOp::remainder_each || inst.op == LaneOp::float_remainder_each;
}

/// Which instructions move along an axis: those are of chunks, as levels say.
std::vector<LoopLevel> levels_along(const Nest& nest, const IterationSpace& space, size_t axis) {
  std::vector<LoopLevel> sources;
  for (size_t k = 0; k < nest.inputs.size(); ++k) {
    sources.push_back(space.strides[k][axis] == 0 ? LoopLevel::row : LoopLevel::chunk);
  }
  return loop_levels(nest.program, sources);
}

/// Whether a quotient's divisor follows from columns alone, and its dividend does not.
bool divides_by_columns(const Nest& nest, const IterationSpace& space) {
  const std::vector<LaneInst>& code = nest.program.code;
  if (std::ranges::any_of(code, goes_lane_by_lane)) return false;
  const std::vector<LoopLevel> columns = levels_along(nest, space, 0);
  const std::vector<LoopLevel> rows = levels_along(nest, space, 1);
  for (size_t i = 0; i < code.size(); ++i) {
    if (code[i].op != LaneOp::float_quotient || rows[i] != LoopLevel::chunk) continue;
    const auto divisor = static_cast<size_t>(code[i].b);
    if (rows[divisor] != LoopLevel::chunk && columns[divisor] == LoopLevel::chunk) return true;
  }
  return false;
}

/// The largest number of rows that divides all; 0: there is none, so that rows are done one by one,
/// or columns do not pay.
int64_t rows_at_once(const Nest& nest, const IterationSpace& space, const Target& target) {
  int64_t bytes = 0;
  for (size_t k = 0; k < nest.operands(); ++k) {
    bytes = saturated_sum(bytes, operand_bytes(nest, space, k));
  }
  if (bytes / max_l2s > target.caches.l2) return 0;
  const int64_t rows = space.extents[1];
  const int64_t limit = bytes > target.caches.l2 ? max_far_rows : max_rows;
  for (int64_t at_once = std::min(rows, limit); at_once >= min_rows_of_columns; --at_once) {
    if (rows % at_once == 0) return at_once;
  }
  return 0;
}

/// Splits the axis next to the innermost.
void split_rows(IterationSpace& space, int64_t rows) {
  const int64_t parts = space.extents[1] / rows;
  if (parts == 1) return;
  Dims extents;
  for (int axis = 0; axis < space.extents.rank(); ++axis) {
    extents.push_back(axis == 1 ? rows : space.extents[axis]);
    if (axis == 1) extents.push_back(parts);
  }
  for (auto& strides : space.strides) {
    for (size_t axis = static_cast<size_t>(space.form.rank); axis > 2; --axis) {
      strides[axis] = strides[axis - 1];
    }
    strides[2] = strides[1] * rows;
  }
  space.extents = extents;
  ++space.form.rank;
}

}  // namespace

void put_columns_first(const Nest& nest, IterationSpace& space, const Target& target) {
  if (!target.has_avx512() || space.form.rank < 2 || space.form.rank == max_rank) return;
  if (nest.program.code.size() > max_instructions) return;
  if (nest.program.folds() || !has_whole_rows(nest, space)) return;
  if (!divides_by_columns(nest, space)) return;
  const int64_t rows = rows_at_once(nest, space, target);
  if (rows == 0 || space.extents[0] < min_columns) return;
  split_rows(space, rows);
  for (size_t k = 0; k < nest.inputs.size(); ++k) {
    if (is_column(space, k)) space.form.access[k] = Access::column;
  }
}

}  // namespace castor::jit
