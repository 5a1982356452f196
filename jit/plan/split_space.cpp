// SPDX-License-Identifier: Apache-2.0
#include "jit/plan/split_space.hpp"

#include <algorithm>

#include "ir/support/integer_math.hpp"

namespace castor::jit {

namespace {

/// Whether elements along the input's axis are read by blocks, of which there are several.
bool has_blocks(const NestInput& input, const Dims& extents, int axis) {
  return input.axes[axis] >= 0 && input.blocks[axis] > 1 && extents[axis] > 1;
}

}  // namespace

SplitSpace::SplitSpace(const Dims& extents)
    : before_(extents),
      steps_(static_cast<size_t>(extents.rank()), Steps{1}),
      rank_(extents.rank()) {}

/// Whether the block divides the axis, and every block of the axis it, or it that one.
bool SplitSpace::divides(int axis, int64_t block) const {
  const Steps& steps = steps_[static_cast<size_t>(axis)];
  return before_[axis] % block == 0 && std::ranges::all_of(steps, [&](int64_t step) {
           return block % step == 0 || step % block == 0;
         });
}

void SplitSpace::admit(const NestInput& input, const Dims& extents) {
  for (int i = 0; i < extents.rank(); ++i) {
    if (!has_blocks(input, extents, i)) continue;
    const auto axis = static_cast<int>(input.axes[i]);
    Steps& steps = steps_[static_cast<size_t>(axis)];
    const int64_t block = input.blocks[i];
    if (std::ranges::find(steps, block) != steps.end()) continue;
    if (rank_ == max_rank || !divides(axis, block)) continue;
    steps.insert(std::ranges::lower_bound(steps, block), block);
    ++rank_;
  }
}

Dims SplitSpace::extents() const {
  Dims after;
  for (int axis = 0; axis < before_.rank(); ++axis) {
    const Steps& steps = steps_[static_cast<size_t>(axis)];
    int64_t all = before_[axis];
    for (size_t part = steps.size(); part-- > 0;) {
      after.push_back(all / steps[part]);
      all = steps[part];
    }
  }
  return after;
}

Dims SplitSpace::strides(const Dims& before) const {
  Dims after;
  for (int axis = 0; axis < before_.rank(); ++axis) {
    const Steps& steps = steps_[static_cast<size_t>(axis)];
    for (size_t part = steps.size(); part-- > 0;) {
      after.push_back(wrapped_product(before[axis], steps[part]));
    }
  }
  return after;
}

bool SplitSpace::has_strides(const NestInput& input, const Dims& extents) const {
  for (int i = 0; i < extents.rank(); ++i) {
    if (!has_blocks(input, extents, i)) continue;
    const Steps& steps = steps_[static_cast<size_t>(input.axes[i])];
    if (std::ranges::find(steps, input.blocks[i]) == steps.end()) return false;
  }
  return true;
}

Dims SplitSpace::strides_of(const NestInput& input, const Dims& extents,
                            const Dims& strides) const {
  Dims own = Dims::filled(before_.rank(), 0);
  Dims blocks = Dims::filled(before_.rank(), 1);
  for (int i = 0; i < extents.rank(); ++i) {
    if (input.axes[i] < 0 || extents[i] == 1) continue;
    own[static_cast<int>(input.axes[i])] = strides[i];
    blocks[static_cast<int>(input.axes[i])] = input.blocks[i];
  }
  Dims after;
  for (int axis = 0; axis < before_.rank(); ++axis) {
    const Steps& steps = steps_[static_cast<size_t>(axis)];
    for (size_t part = steps.size(); part-- > 0;) {
      after.push_back(wrapped_product(own[axis], steps[part] / blocks[axis]));  // 0 within a block
    }
  }
  return after;
}

ExpandedCopy expanded_copy(const NestInput& input, const Dims& extents, const Dims& strides) {
  ExpandedCopy copy;
  copy.input = input;
  copy.input.tap.reset();
  int rank = extents.rank();
  for (int i = 0; i < extents.rank(); ++i) {
    const bool expands = has_blocks(input, extents, i) && rank < max_rank;
    copy.space.push_back(extents[i]);
    copy.strides.push_back(strides[i]);
    copy.extents.push_back(expands ? extents[i] * input.blocks[i] : extents[i]);
    if (!expands) continue;
    copy.space.push_back(input.blocks[i]);
    copy.strides.push_back(0);
    copy.input.blocks[i] = 1;
    ++rank;
  }
  return copy;
}

}  // namespace castor::jit
