// SPDX-License-Identifier: Apache-2.0
#include "jit/plan/fold_space.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "ir/shape/reduction.hpp"
#include "ir/support/integer_math.hpp"
#include "jit/lower/lane_tensor.hpp"
#include "jit/plan/prefetch.hpp"

namespace castor::jit {

namespace {

/// Rows longer than this are folded in parts, which tasks may share.
constexpr int64_t min_part = int64_t{1} << 16;
constexpr int64_t max_parts = 256;
/// Bytes of an accumulator that are folded into before those after them, so that they stay in the
/// L1 cache.
constexpr int64_t tile_bytes = int64_t{1} << 14;

struct Axis {
  int logical;
  int64_t extent;
  bool is_reduced;
  int64_t reach;  ///< bits from one element to the next, over all inputs
};

/// Axes of more than one element, the innermost first: those with the smallest strides. A sum in
/// order has its axis first.
std::vector<Axis> ordered_axes(const Nest& nest, const Dims& extents,
                               const std::vector<bool>& reduced, std::span<const Dims> strides) {
  const bool in_order = folds_in_order(nest.program);
  std::vector<Axis> axes;
  for (int axis = extents.rank() - 1; axis >= 0; --axis) {
    if (extents[axis] == 1) continue;
    Axis each{axis, extents[axis], reduced[static_cast<size_t>(axis)], 0};
    for (size_t k = 0; k < strides.size(); ++k) {
      each.reach += std::abs(strides[k][axis]) * bits_of(nest.element(k));
    }
    axes.push_back(each);
  }
  std::ranges::stable_sort(axes, [&](const Axis& a, const Axis& b) {
    if (in_order && a.is_reduced != b.is_reduced) return a.is_reduced;
    return a.reach < b.reach;
  });
  return axes;
}

/// Dense strides of accumulators: in the order of the loops where rows are folded into rows, else
/// in that of the logical axes.
Dims accumulator_strides(std::span<const Axis> axes, bool by_loops, int rank, int64_t first) {
  std::vector<Axis> kept;
  std::ranges::copy_if(axes, std::back_inserter(kept),
                       [](const Axis& axis) { return !axis.is_reduced; });
  if (!by_loops) std::ranges::sort(kept, std::greater{}, &Axis::logical);
  Dims strides = Dims::filled(rank, 0);
  for (const Axis& axis : kept) {
    strides[axis.logical] = first;
    first *= axis.extent;
  }
  return strides;
}

/// The loops, neighbours merged where one continues the other in every operand.
IterationSpace merged_space(const Nest& nest, std::span<const Axis> axes,
                            std::span<const Dims> strides, const Dims& of_accumulators) {
  IterationSpace space;
  space.strides.resize(nest.operands());
  const auto stride_of = [&](size_t k, const Axis& axis) {
    return k < strides.size() ? strides[k][axis.logical] : of_accumulators[axis.logical];
  };
  for (const Axis& axis : axes) {
    const int last = space.extents.rank() - 1;
    bool continues = last >= 0;
    for (size_t k = 0; k < nest.operands() && continues; ++k) {
      int64_t next = 0;
      continues = !__builtin_mul_overflow(space.strides[k][static_cast<size_t>(last)],
                                          space.extents[last], &next) &&
                  next == stride_of(k, axis);
    }
    if (continues) {
      space.extents[last] *= axis.extent;
      continue;
    }
    for (size_t k = 0; k < nest.operands(); ++k) {
      space.strides[k][static_cast<size_t>(last + 1)] = stride_of(k, axis);
    }
    space.extents.push_back(axis.extent);
  }
  if (space.extents.empty()) {
    space.extents.push_back(1);
    for (size_t k = 0; k < nest.operands(); ++k) space.strides[k][0] = k < strides.size() ? 1 : 0;
  }
  space.form.rank = space.extents.rank();
  return space;
}

/// Sub-byte inputs may begin at any bit.
Access access_of(int64_t stride, ElementType element) {
  if (stride == 0) return Access::uniform;
  if (is_sub_byte(element)) return Access::bitwise;
  return stride == 1 ? Access::contiguous : Access::strided;
}

/// Whether the target folds many short rows at a time: accumulators are alike, and chunks of them
/// are vectors that it permutes.
bool is_foldable_in_blocks(const Nest& nest, const Target& target) {
  if (!target.has_avx512() || folds_in_order(nest.program)) return false;
  const int bits = bits_of(nest.program.sinks.front().element);
  const auto is_alike = [&](const MemoryOperand& sink) { return bits_of(sink.element) == bits; };
  const int chunk_bits = target.vector_bits() / nest.program.widest_bits() * bits;
  return std::ranges::all_of(nest.program.sinks, is_alike) && chunk_bits >= 128 &&
         (bits > 8 || target.supports(Feature::avx512_vbmi));
}

/// Rows of a power of two of elements, all of which follow one another.
bool has_dense_short_rows(const Nest& nest, const IterationSpace& space) {
  constexpr int64_t min_row = 4;
  constexpr int64_t max_row = 64;
  constexpr int64_t min_rows = 16;
  constexpr int64_t max_unrolled_instructions = 768;
  if (space.form.rank != 2) return false;
  const int64_t row = space.extents[0];
  const auto instructions = static_cast<int64_t>(nest.program.code.size());
  if (row < min_row || row > max_row || !std::has_single_bit(static_cast<uint64_t>(row)) ||
      space.extents[1] < min_rows || row * instructions > max_unrolled_instructions) {
    return false;
  }
  for (size_t k = 0; k < nest.operands(); ++k) {
    const int64_t along_row = space.strides[k][0];
    const int64_t step = space.strides[k][1];
    const bool is_accumulator = k >= nest.inputs.size();
    const bool is_dense = along_row == 1 && step == row && !is_sub_byte(nest.element(k));
    const bool is_one = along_row == 0 && step == 0 && !is_sub_byte(nest.element(k));
    if (is_accumulator ? along_row != 0 || step != 1 : !is_dense && !is_one) return false;
  }
  return true;
}

}  // namespace

bool folds_in_order(const LaneProgram& program) {
  return std::ranges::any_of(
      program.sinks, [](const MemoryOperand& sink) { return sink.fold == Fold::float_add; });
}

FoldSpace fold_space(const Nest& nest, const Dims& extents, const std::vector<bool>& reduced,
                     std::span<const Dims> strides, const Target& target) {
  const std::vector<Axis> axes = ordered_axes(nest, extents, reduced, strides);
  const bool folds_rows = axes.empty() || axes.front().is_reduced;
  FoldSpace fold;
  fold.accumulator_strides = accumulator_strides(axes, !folds_rows, extents.rank(), 1);
  fold.space = merged_space(nest, axes, strides, fold.accumulator_strides);
  const int64_t row = fold.space.extents[0];
  if (folds_rows) {
    const bool in_order = folds_in_order(nest.program);
    const int64_t part = in_order ? SumTree::block : std::max(min_part, ceil_div(row, max_parts));
    if (row > part) {
      fold.part = part;
      fold.parts = ceil_div(row, part);
      fold.accumulator_strides = accumulator_strides(axes, false, extents.rank(), fold.parts);
      fold.space = merged_space(nest, axes, strides, fold.accumulator_strides);
    }
  } else {
    const int64_t tile = tile_bytes / (bits_of(nest.element(strides.size())) / 8);
    if (fold.space.form.rank > 1 && row > tile) fold.part = tile;
  }
  fold.accumulator_elements = fold.parts;
  for (const Axis& axis : axes) {
    if (!axis.is_reduced) fold.accumulator_elements *= axis.extent;
  }
  for (size_t k = 0; k < nest.operands(); ++k) {
    fold.space.form.access.push_back(access_of(fold.space.strides[k][0], nest.element(k)));
  }
  const bool has_short_rows = folds_rows && fold.parts == 1 &&
                              is_foldable_in_blocks(nest, target) &&
                              has_dense_short_rows(nest, fold.space);
  if (has_short_rows) fold.space.form.folded_row = static_cast<int>(row);
  fold.space.form.prefetch = prefetch_of(nest, fold.space, target);
  return fold;
}

Nest combining_nest(const Nest& nest, const Target& target) {
  Nest combining;
  LaneBuilder builder(target, combining.program);
  for (size_t k = 0; k < nest.outputs.size(); ++k) {
    const MemoryOperand& sink = nest.program.sinks[k];
    combining.inputs.push_back(nest.outputs[k].value);
    combining.outputs.push_back(nest.outputs[k]);
    combining.program.sources.push_back({sink.element});
    combining.program.sinks.push_back(sink);
  }
  for (size_t k = 0; k < nest.outputs.size(); ++k) {
    const ElementType element = nest.program.sinks[k].element;
    LaneTensor partial = LaneTensor::from_source(builder, element, static_cast<int>(k));
    builder.store(static_cast<int>(k), partial.as_bits(), Narrowing::truncate);
  }
  return combining;
}

Nest unfolded_nest(const Nest& nest) {
  Nest unfolded = nest;
  unfolded.reduced.clear();
  for (MemoryOperand& sink : unfolded.program.sinks) sink.fold = Fold::none;
  for (NestOutput& output : unfolded.outputs) output.accumulator = -1;
  return unfolded;
}

}  // namespace castor::jit
