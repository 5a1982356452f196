// SPDX-License-Identifier: Apache-2.0
#include "runtime/bind/fold_tiles.hpp"

#include <algorithm>

#include "ir/support/integer_math.hpp"
#include "jit/plan/copied_operands.hpp"
#include "runtime/cache/code_store.hpp"
#include "runtime/compiled.hpp"

namespace castor::detail {

namespace {

/// Bytes of a copy, so that it stays in L1; and the least number of its rows, so that of every row
/// of the tensor a few cache lines are read at a time (Reduce/sum_f32_outer).
constexpr int64_t tile_bytes = int64_t{1} << 14;
constexpr int64_t min_tile_rows = 32;
/// The axis, besides the innermost one, that tiles span: that with the smallest strides.
constexpr int tile_axis = 1;

/// Rows in order only: others are folded along whichever axis is consecutive.
bool needs_tiles(const jit::Nest& nest, const jit::IterationSpace& space) {
  if (!jit::folds_in_order(nest.program) || space.form.rank <= tile_axis) return false;
  if (space.extents[0] * space.extents[tile_axis] < jit::min_tile_elements) return false;
  bool is_transposed = false;
  for (size_t k = 0; k < nest.inputs.size(); ++k) {
    if (is_sub_byte(nest.element(k))) return false;
    is_transposed |= jit::is_transposed(space, k, tile_axis);
  }
  return is_transposed;
}

}  // namespace

Result<std::optional<FoldTiles>> bind_fold_tiles(const jit::Nest& nest, const jit::FoldSpace& fold,
                                                 const Compiled& compiled, ScratchPlan& plan) {
  const jit::IterationSpace& space = fold.space;
  if (!needs_tiles(nest, space)) return std::optional<FoldTiles>();
  FoldTiles tiles;
  tiles.extents = space.extents;
  tiles.columns = fold.part > 0 ? fold.part : space.extents[0];
  int64_t widest = 1;
  for (size_t k = 0; k < nest.inputs.size(); ++k) {
    if (space.form.access[k] != jit::Access::strided) continue;
    widest = std::max<int64_t>(widest, bits_of(nest.element(k)) / 8);
  }
  const int64_t rows = tile_bytes / (tiles.columns * widest) / min_tile_rows * min_tile_rows;
  tiles.rows = std::min(std::max(rows, min_tile_rows), space.extents[tile_axis]);
  for (size_t k = 0; k < nest.operands(); ++k) {
    const int64_t bytes = bits_of(nest.element(k)) / 8;
    auto& steps = tiles.steps.emplace_back(space.strides[k]);
    for (int64_t& step : steps) step = wrapped_product(step, bytes);
    const bool is_accumulator = k >= nest.inputs.size();
    tiles.part_steps.push_back(is_accumulator ? bytes : steps[0] * tiles.columns);
    if (space.form.access[k] != jit::Access::strided) continue;
    auto code =
        compiled.store->cache.get(jit::TileCopySpec{static_cast<int>(bytes)}, compiled.target);
    if (!code.ok()) return code.error();
    const size_t offset = plan.take(static_cast<size_t>(tiles.columns * tiles.rows * bytes));
    tiles.copies.push_back({.operand = k,
                            .kind = jit::TileCopyKind::transposed,
                            .element_bytes = bytes,
                            .offset = offset,
                            .code = std::move(code).value()});
  }
  return std::optional(std::move(tiles));
}

jit::IterationSpace tile_space(const jit::Nest& nest, const jit::FoldSpace& fold,
                               const FoldTiles& tiles) {
  jit::IterationSpace space;
  space.form.rank = tile_axis + 1;
  space.form.access = fold.space.form.access;
  space.extents = {tiles.columns, tiles.rows};
  for (size_t k = 0; k < nest.operands(); ++k) {
    auto& strides = space.strides.emplace_back();
    const auto& whole = fold.space.strides[k];
    strides[0] = whole[0];
    strides[tile_axis] = whole[tile_axis];
    if (space.form.access[k] != jit::Access::strided) continue;
    strides[0] = 1;
    strides[tile_axis] = tiles.columns;
    space.form.access[k] = jit::Access::contiguous;
  }
  return space;
}

}  // namespace castor::detail
