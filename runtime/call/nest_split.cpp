// SPDX-License-Identifier: Apache-2.0
#include "runtime/call/nest_split.hpp"

#include <algorithm>
#include <numeric>

#include "ir/support/integer_math.hpp"
#include "ir/types/storage.hpp"
#include "jit/plan/columns.hpp"

namespace castor::detail {

namespace {

/// Units per task that are enough for tasks to be nearly equal.
constexpr int64_t units_a_task = 16;
/// Elements that take whole cache lines in every type: after them, outputs of streaming code are as
/// far from the alignment as before.
constexpr int64_t line_elements = 8 * jit::streaming_alignment;
/// Elements that take whole cache lines in every type of whole bytes.
constexpr int64_t line_bytes = jit::streaming_alignment;

/// Looks for cuts of one nest.
class Cuts {
 public:
  explicit Cuts(const ReadyNest& ready)
      : ready_(ready), step_(ready.step), space_(ready.step.space) {}

  /// Nothing where outputs would share bytes.
  std::optional<NestSplit> along(int axis, int64_t wanted) const {
    NestSplit split = {.axis = axis, .extent = space_.extents[axis]};
    for (int outer = axis + 1; outer < space_.form.rank; ++outer) {
      split.rows *= space_.extents[outer];
    }
    const int64_t step = axis == 0                    ? step_of_elements()
                         : axis == 1 && has_columns() ? jit::min_rows_of_columns
                                                      : 1;
    split.unit = step;
    for (size_t k = step_.first_output; k < step_.operands.size(); ++k) {
      if (!is_bitwise(k)) continue;
      if (!rows_follow(k) || !rows_begin_alike(k, axis)) return std::nullopt;
      split.unit = std::lcm(split.unit, period_of(k, axis));
    }
    const std::optional<int64_t> first = first_index(axis, step, split.unit);
    if (!first || *first >= split.extent) return std::nullopt;
    split.first = *first;
    if (axis == 0) split.unit = whole_lines(split, wanted);
    split.units = units_of(split, split.unit);
    return split;
  }

  /// Whether rows are done for columns first, which are best left whole.
  bool has_columns() const { return space_.form.has(jit::Access::column); }

 private:
  bool is_bitwise(size_t k) const { return ready_.code.access[k] == jit::Access::bitwise; }
  int64_t stride(size_t k, int axis) const { return space_.strides[k][static_cast<size_t>(axis)]; }

  static int64_t units_of(const NestSplit& split, int64_t unit) {
    return ceil_div(split.extent - split.first, unit);
  }

  /// Along the innermost axis: whole periods, whole bytes of what is read and written by bytes.
  int64_t step_of_elements() const {
    int64_t step = std::max<int64_t>(space_.period, 1);
    for (size_t k = 0; k < step_.operands.size(); ++k) {
      if (ready_.code.access[k] != jit::Access::contiguous) continue;
      step = std::lcm(step, aligned_elements(step_.operands[k].element));
    }
    return ready_.streams() ? std::lcm(step, line_elements) : step;
  }

  /// Units of whole lines, where there are enough of them.
  int64_t whole_lines(const NestSplit& split, int64_t wanted) const {
    for (const int64_t line : {line_elements, line_bytes}) {
      const int64_t unit = std::lcm(split.unit, line);
      if (units_of(split, unit) * split.rows >= wanted) return unit;
    }
    return split.unit;
  }

  /// Whether elements are visited in the order of their addresses: each axis' stride is beyond the
  /// reach of those further in.
  bool rows_follow(size_t k) const {
    int64_t last = 0;
    for (int axis = 0; axis < space_.form.rank; ++axis) {
      if (stride(k, axis) <= last) return false;
      last += (space_.extents[axis] - 1) * stride(k, axis);
    }
    return true;
  }

  /// Whether further out all elements begin as far into a byte.
  bool rows_begin_alike(size_t k, int axis) const {
    const int64_t aligned = aligned_elements(step_.operands[k].element);
    for (int outer = axis + 1; outer < space_.form.rank; ++outer) {
      if (stride(k, outer) % aligned != 0) return false;
    }
    return true;
  }

  /// Indices along the axis after which elements begin as far into a byte as before.
  int64_t period_of(size_t k, int axis) const {
    const int64_t aligned = aligned_elements(step_.operands[k].element);
    return aligned / std::gcd(aligned, stride(k, axis));
  }

  /// The first index, a multiple of `step`, at which all outputs begin a byte.
  std::optional<int64_t> first_index(int axis, int64_t step, int64_t period) const {
    for (int64_t index = 0; index < period; index += step) {
      if (begins_bytes(axis, index)) return index;
    }
    return std::nullopt;
  }
  bool begins_bytes(int axis, int64_t index) const {
    for (size_t k = step_.first_output; k < step_.operands.size(); ++k) {
      if (!is_bitwise(k)) continue;
      const int64_t element = ready_.arguments[k] + index * stride(k, axis);
      if (element % aligned_elements(step_.operands[k].element) != 0) return false;
    }
    return true;
  }

  const ReadyNest& ready_;
  const ElementwiseStep& step_;
  const jit::IterationSpace& space_;
};

/// Runs parts of a nest, through an argument block of its own.
class PartRunner {
 public:
  PartRunner(const ReadyNest& ready, const NestSplit& split)
      : ready_(ready),
        split_(split),
        space_(ready.step.space),
        layout_(ready.step.operands.size(), space_.form.rank),
        entry_(ready.entry.entry()) {
    std::copy_n(ready.arguments, layout_.words(), arguments_);
    for (int axis = split.axis + 1; axis < space_.form.rank; ++axis) {
      arguments_[layout_.extent(axis)] = 1;
    }
  }

  /// The indices from `begin` to `end` along the axis, in one row.
  void run(int64_t row, int64_t begin, int64_t end) {
    for (size_t k = 0; k < ready_.step.operands.size(); ++k) {
      arguments_[k] = ready_.arguments[k] + distance(k, row, begin);
    }
    arguments_[layout_.extent(split_.axis)] = end - begin;
    entry_(arguments_);
  }

 private:
  /// The distance from the nest's first element of an operand, in what its argument counts.
  int64_t distance(size_t k, int64_t row, int64_t index) const {
    const auto& strides = space_.strides[k];
    const jit::Access access = ready_.code.access[k];
    const bool by_period = split_.axis == 0 && access == jit::Access::repeated;
    int64_t elements =
        (by_period ? index / space_.period : index) * strides[static_cast<size_t>(split_.axis)];
    for (int axis = split_.axis + 1; axis < space_.form.rank; ++axis) {
      elements += row % space_.extents[axis] * strides[static_cast<size_t>(axis)];
      row /= space_.extents[axis];
    }
    const ElementType element = ready_.step.operands[k].element;
    if (jit::counts_elements(access, element)) return elements;
    return storage_byte(element, elements);
  }

  const ReadyNest& ready_;
  const NestSplit& split_;
  const jit::IterationSpace& space_;
  const jit::ArgumentLayout layout_;
  const jit::KernelFunction<jit::NestSpec> entry_;
  int64_t arguments_[jit::max_argument_words];
};

}  // namespace

NestSplit split_nest(const ReadyNest& ready, int64_t tasks) {
  const int64_t wanted = units_a_task * tasks;
  const Cuts cuts(ready);
  NestSplit best = {.axis = ready.step.space.form.rank - 1,
                    .extent = ready.step.space.extents[ready.step.space.form.rank - 1]};
  for (int axis = best.axis; axis >= 0 && best.count() < wanted; --axis) {
    if (axis == 0 && cuts.has_columns() && best.count() >= tasks) break;
    const std::optional<NestSplit> split = cuts.along(axis, wanted);
    if (split && split->count() > best.count()) best = *split;
  }
  return best;
}

void run_units(const ReadyNest& ready, const NestSplit& split, int64_t begin, int64_t end) {
  PartRunner runner(ready, split);
  NestSplit::Position position = split.begin_of(begin);
  const NestSplit::Position last = split.begin_of(end);
  for (; position.row < last.row; position = {position.row + 1, 0}) {
    runner.run(position.row, position.index, split.extent);
  }
  if (position.index < last.index) runner.run(position.row, position.index, last.index);
}

}  // namespace castor::detail
