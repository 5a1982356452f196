// SPDX-License-Identifier: Apache-2.0
#include "runtime/bind/row_blocks.hpp"

#include <algorithm>
#include <numeric>

#include "ir/support/integer_math.hpp"
#include "ir/types/storage.hpp"
#include "jit/plan/nest.hpp"
#include "runtime/compiled.hpp"

namespace castor::detail {

namespace {

using Axes = RowBlocks::Axes;

/// Finds out whether the outermost axes of all nests are row axes.
class RowAxes {
 public:
  RowAxes(const Compiled& compiled, const BoundShapes& shapes)
      : function_(*compiled.canonical),
        nests_(compiled.nests),
        shapes_(shapes),
        roots_(jit::reshape_roots(function_)) {
    for (const Operation& operation : function_.operations) {
      if (operation.op == OpKind::constant) constants_.push_back(operation.results[0]);
    }
  }

  /// Whether the `count` outermost axes are, whose extents are those of the first nest.
  bool find(int count) {
    axes_.clear();
    extents_ = {};
    const Dims& first = shapes_.values[nests_.front().space];
    if (first.rank() < count) return false;
    for (int axis = 0; axis < count; ++axis) extents_.push_back(first[axis]);
    return std::ranges::all_of(nests_, [&](const jit::Nest& nest) { return admit(nest); }) &&
           std::ranges::all_of(constants_, [&](ValueId value) { return is_same_for_all(value); });
  }

  const Dims& extents() const { return extents_; }
  std::unordered_map<ValueId, Axes> take_axes() { return std::move(axes_); }
  const std::unordered_map<ValueId, Axes>& axes() const { return axes_; }
  ValueId root_of(ValueId value) const { return roots_[value]; }

 private:
  int count() const { return extents_.rank(); }

  bool admit(const jit::Nest& nest) {
    if (nest.convolution || nest.requantization) return false;
    for (int axis = 0; axis < count() && !nest.reduced.empty(); ++axis) {
      if (nest.reduced[static_cast<size_t>(axis)]) return false;
    }
    if (!has_rows(nest.space)) return false;
    for (const jit::NestOutput& output : nest.outputs) {
      if (!has_rows(output.value)) return false;
    }
    return std::ranges::all_of(nest.inputs,
                               [&](const jit::NestInput& input) { return admit(input); });
  }

  /// A value that a nest computes, or could: its outermost axes are the row axes.
  bool has_rows(ValueId value) {
    const Dims& own = shapes_.values[value];
    if (own.rank() < count() || element_count(own).value_or(0) == 0) return false;
    Axes axes;
    for (int axis = 0; axis < count(); ++axis) {
      if (own[axis] != extents_[axis]) return false;
      axes.push_back(extents_[axis] > 1 ? axis : -1);
    }
    return set(value, axes);
  }

  bool admit(const jit::NestInput& input) {
    if (input.tap) return false;  // blocks of rows would read rows of others
    const Dims& own = shapes_.values[input.value];
    Axes axes = Dims::filled(count(), -1);
    for (int i = 0; i < own.rank(); ++i) {
      const int64_t along = input.axes[i];
      if (along < 0 || along >= count() || own[i] == 1) continue;
      if (own[i] != extents_[static_cast<int>(along)] || input.blocks[i] != 1) return false;
      axes[static_cast<int>(along)] = i;
    }
    return set(input.value, axes) && admit_root(input.value, axes);
  }

  /// A reshape keeps row axes where these are the outermost ones of both tensors.
  bool admit_root(ValueId value, const Axes& axes) {
    const ValueId root = root_of(value);
    if (root == value) return true;
    const Dims& own = shapes_.values[value];
    const Dims& of_root = shapes_.values[root];
    for (int axis = 0; axis < count(); ++axis) {
      if (axes[axis] < 0) continue;
      for (int outer = 0; outer <= axis; ++outer) {
        if (of_root.rank() <= outer || of_root[outer] != own[outer]) return false;
      }
      if (axes[axis] != axis) return false;
    }
    return set(root, axes);
  }

  /// False where the value has other axes along the rows elsewhere.
  bool set(ValueId value, const Axes& axes) {
    return axes_.try_emplace(value, axes).first->second == axes;
  }

  /// Constants are part of the code's arguments, and the same in every block.
  bool is_same_for_all(ValueId value) const {
    const auto found = axes_.find(value);
    return found == axes_.end() ||
           std::ranges::all_of(found->second, [](int64_t axis) { return axis < 0; });
  }

  const Function& function_;
  const std::vector<jit::Nest>& nests_;
  const BoundShapes& shapes_;
  const std::vector<ValueId> roots_;
  std::vector<ValueId> constants_;
  Dims extents_;
  std::unordered_map<ValueId, Axes> axes_;
};

/// Bytes of the tensors that nests read and write, each counted once.
int64_t bytes_of_tensors(const Compiled& compiled, const BoundShapes& shapes, const RowAxes& rows) {
  std::unordered_map<ValueId, int64_t> bytes;
  const auto add = [&](ValueId value, ElementType element) {
    const std::optional<int64_t> count = element_count(shapes.values[value]);
    bytes[value] = byte_size(element, count.value_or(INT64_MAX)).value_or(INT64_MAX);
  };
  for (const jit::Nest& nest : compiled.nests) {
    for (size_t k = 0; k < nest.inputs.size(); ++k) {
      add(rows.root_of(nest.inputs[k].value), nest.element(k));
    }
    for (size_t k = 0; k < nest.outputs.size(); ++k) {
      add(nest.outputs[k].value, nest.element(nest.inputs.size() + k));
    }
  }
  int64_t sum = 0;
  for (const auto& [value, each] : bytes) sum = saturated_sum(sum, each);
  return sum;
}

/// Sub-byte tensors of the caller: blocks begin where a group of whole bytes does.
class SubByteTensors {
 public:
  SubByteTensors(const BoundState& bound, const RowAxes& rows) : rows_(rows) {
    const Function& function = *bound.kernel->compiled->canonical;
    for (size_t i = 0; i < bound.inputs.size(); ++i) {
      add(bound.inputs[i], function.parameters[i], false);
    }
    for (size_t o = 0; o < bound.outputs.size(); ++o) {
      add(bound.outputs[o], function.results[o], true);
    }
  }

  /// The least number of indices of a block, or nothing where there is none.
  std::optional<int64_t> unit() const {
    if (!may_be_cut_) return std::nullopt;
    return unit_;
  }

 private:
  /// What blocks of an output keep after their last elements is only right where these end a byte.
  void add(const BoundTensor& tensor, ValueId value, bool is_output) {
    if (!is_sub_byte(tensor.element)) return;
    const auto found = rows_.axes().find(value);
    if (found == rows_.axes().end()) return;
    if (is_output && !is_dense(tensor)) may_be_cut_ = false;
    const int64_t aligned = aligned_elements(tensor.element);
    const int last = rows_.extents().rank() - 1;
    for (int axis = 0; axis <= last; ++axis) {
      const int64_t own = found->second[axis];
      if (own < 0) continue;
      const int64_t period = aligned / std::gcd(aligned, tensor.strides[static_cast<int>(own)]);
      if (axis == last) {
        unit_ = std::lcm(unit_, period);
      } else {
        may_be_cut_ &= period == 1;
      }
    }
  }

  const RowAxes& rows_;
  int64_t unit_ = 1;
  bool may_be_cut_ = true;
};

/// Indices of the last row axis that make equal blocks of at most `max`, in whole units.
int64_t equal_blocks(int64_t extent, int64_t max, int64_t unit) {
  const int64_t blocks = ceil_div(extent, std::max(max / unit * unit, unit));
  return std::min(ceil_div(ceil_div(extent, blocks), unit) * unit, extent);
}

}  // namespace

Dims RowBlocks::extents_in_block(ValueId value, const Dims& all, int64_t indices) const {
  const auto found = axes.find(value);
  if (found == axes.end()) return all;
  Dims own = all;
  for (int axis = 0; axis < extents.rank(); ++axis) {
    const auto along = static_cast<int>(found->second[axis]);
    if (along >= 0) own[along] = axis + 1 == extents.rank() ? indices : 1;
  }
  return own;
}

int64_t row_block_bytes(const jit::Target& target) { return target.caches.l2 / 4; }

std::optional<RowBlocks> plan_row_blocks(const BoundState& bound, const BoundShapes& shapes,
                                         int64_t block_bytes) {
  const Compiled& compiled = *bound.kernel->compiled;
  if (compiled.nests.size() < 2) return std::nullopt;
  RowAxes rows(compiled, shapes);
  int64_t outer = 1;
  for (int count = 1; rows.find(count); ++count) {
    const int64_t bytes = bytes_of_tensors(compiled, shapes, rows);
    if (bytes < 2 * block_bytes) return std::nullopt;
    const int64_t extent = rows.extents()[count - 1];
    outer *= extent;
    const int64_t row_bytes = ceil_div(bytes, outer);
    if (row_bytes > block_bytes) continue;  // smaller rows, if there are any
    const std::optional<int64_t> unit = SubByteTensors(bound, rows).unit();
    if (!unit || saturated_product(*unit, row_bytes) > 2 * block_bytes) return std::nullopt;
    const int64_t block = equal_blocks(extent, block_bytes / row_bytes, *unit);
    if (outer / extent * ceil_div(extent, block) < 2) return std::nullopt;
    return RowBlocks{rows.extents(), block, rows.take_axes()};
  }
  return std::nullopt;
}

}  // namespace castor::detail
