// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/epilogue_walk.hpp"

#include "ir/types/storage.hpp"

namespace castor::jit {

namespace {

/// Axes of a result that count as one.
struct Axes {
  int begin = 0;
  int end = 0;
};

/// The stride of neighbouring axes as one; 0 where none has more than one element.
std::optional<int64_t> joint_stride(const Dims& extents, const Dims& strides, const Axes& axes) {
  std::optional<int64_t> stride;
  int64_t behind = 0;  // where the axes so far would go on
  for (int axis = axes.end - 1; axis >= axes.begin; --axis) {
    if (extents[axis] == 1) continue;
    if (stride && strides[axis] != behind) return std::nullopt;
    if (!stride) stride = strides[axis];
    if (__builtin_mul_overflow(strides[axis], extents[axis], &behind)) return std::nullopt;
  }
  return stride.value_or(0);
}

int64_t count_of(const Dims& extents, const Axes& axes) {
  int64_t count = 1;
  for (int axis = axes.begin; axis < axes.end; ++axis) count *= extents[axis];
  return count;
}

/// Builds the walk operand by operand.
class WalkBuilder {
 public:
  WalkBuilder(const Nest& nest, const Dims& extents) : nest_(nest), extents_(extents) {
    const bool nhwc = nest.epilogue->layout == ConvolutionLayout::nhwc;
    const int rank = extents.rank();
    const Axes channels = nhwc ? Axes{rank - 1, rank} : Axes{1, 2};
    const Axes pixels = nhwc ? Axes{1, rank - 1} : Axes{2, rank};
    const bool one_channel = count_of(extents, channels) == 1;
    const bool one_pixel = count_of(extents, pixels) == 1;
    walk_.rows_of_channels = one_pixel || (nhwc && !one_channel);
    elements_ = walk_.rows_of_channels ? channels : pixels;
    rows_ = walk_.rows_of_channels ? pixels : channels;
    last_ = nhwc && walk_.rows_of_channels ? rank - 1 : last_of_several(elements_);
  }

  bool add(size_t operand, const Dims& strides) {
    const auto row = joint_stride(extents_, strides, rows_);
    auto element = joint_stride(extents_, strides, elements_);
    if (!row || !element) return false;
    if (operand >= nest_.inputs.size() && count_of(extents_, elements_) == 1) element = 1;
    if (*element != 0 && *element != 1) return false;
    const PieceSteps steps = {extents_[0] == 1 ? 0 : strides[0], *row, *element};
    if (!has_whole_bytes(operand, steps)) return false;
    walk_.operands.push_back(steps);
    return true;
  }

  /// The operand whose rows are those of the slabs.
  void add_source() { walk_.operands.push_back({.element = 1}); }

  EpilogueWalk finish() {
    IterationSpace& space = walk_.space;
    space.form.rank = 2;
    space.extents = {1, 1};
    for (size_t k = 0; k < nest_.operands(); ++k) {
      const PieceSteps& steps = walk_.operands[k];
      space.strides.push_back({steps.element, steps.row});
      space.form.access.push_back(steps.element == 0 ? Access::uniform : Access::contiguous);
    }
    walk_.joining_row = joining_row();
    return std::move(walk_);
  }

 private:
  /// The last axis of more than one element, or the first.
  int last_of_several(const Axes& axes) const {
    int axis = axes.end - 1;
    while (axis > axes.begin && extents_[axis] == 1) --axis;
    return axis;
  }

  bool has_whole_bytes(size_t operand, const PieceSteps& steps) const {
    const ElementType element = nest_.element(operand);
    if (!is_sub_byte(element) || steps.element == 0) return true;
    const int64_t aligned = aligned_elements(element);
    return steps.image % aligned == 0 && steps.row % aligned == 0 && extents_[last_] % aligned == 0;
  }

  int64_t joining_row() const {
    int64_t length = -1;
    for (size_t k = 0; k < nest_.operands(); ++k) {
      if (k == nest_.epilogue->source) continue;
      const PieceSteps& steps = walk_.operands[k];
      if (steps.element == 0 && steps.row == 0) continue;
      if (steps.element == 0 || (length >= 0 && steps.row != length)) return -1;
      length = steps.row;
    }
    return length;
  }

  const Nest& nest_;
  const Dims& extents_;
  EpilogueWalk walk_;
  Axes elements_;
  Axes rows_;
  int last_ = 0;  ///< the axis whose extent every slab's rows are multiples of, or end with
};

}  // namespace

std::optional<EpilogueWalk> epilogue_walk(const Nest& nest, const Dims& extents,
                                          std::span<const Dims> strides) {
  WalkBuilder builder(nest, extents);
  for (size_t k = 0; k < nest.operands(); ++k) {
    if (k == nest.epilogue->source) {
      builder.add_source();
    } else if (!builder.add(k, strides[k])) {
      return std::nullopt;
    }
  }
  return builder.finish();
}

}  // namespace castor::jit
