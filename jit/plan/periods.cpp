// SPDX-License-Identifier: Apache-2.0
// Merging short innermost axes into one of periods.
#include <algorithm>

#include "jit/plan/nest_form.hpp"

namespace castor::jit {

namespace {

/// The access pattern of an operand over the axes below `outer` together with it.
enum class Pattern : uint8_t { uniform, contiguous, periodic, repeated, other };

Pattern pattern_of(const IterationSpace& space, size_t k, int outer) {
  const auto& strides = space.strides[k];
  bool still = true;  // within the axes below
  bool tight = true;
  int64_t count = 1;
  for (int axis = 0; axis < outer; ++axis) {
    const int64_t stride = strides[static_cast<size_t>(axis)];
    still &= stride == 0;
    tight &= stride == count;
    count *= space.extents[axis];
  }
  const int64_t step = strides[static_cast<size_t>(outer)];
  if (step == 0) return still ? Pattern::uniform : Pattern::periodic;
  if (still) return step == 1 ? Pattern::repeated : Pattern::other;
  return tight && step == count ? Pattern::contiguous : Pattern::other;
}

Access access_of(Pattern pattern) {
  switch (pattern) {
    case Pattern::periodic: return Access::periodic;
    case Pattern::repeated: return Access::repeated;
    default: return Access::contiguous;
  }
}

/// Whether the target permutes such elements across a vector.
bool can_expand(ElementType element, const Target& target) {
  return bits_of(element) == 8 ? target.supports(Feature::avx512_vbmi) : target.has_avx512();
}

/// What merging everything below `outer` with it would give, operand by operand; empty where it
/// cannot be done.
std::vector<Pattern> merged_patterns(const IterationSpace& space, int outer,
                                     std::span<const OperandStorage> storage,
                                     const Target& target) {
  std::vector<Pattern> patterns;
  for (size_t k = 0; k < storage.size(); ++k) {
    const Pattern pattern = pattern_of(space, k, outer);
    if (pattern == Pattern::other) return {};
    if (storage[k].is_table && pattern != Pattern::uniform) return {};
    if (storage[k].is_output && pattern != Pattern::contiguous) return {};
    // A period is copied once: it may not change along the axes further out.
    const bool is_outermost = outer + 1 == space.form.rank;
    if (pattern == Pattern::periodic && !is_outermost) return {};
    if (is_sub_byte(storage[k].element) && (pattern == Pattern::repeated || !is_outermost))
      return {};
    if (pattern == Pattern::repeated && !can_expand(storage[k].element, target)) return {};
    patterns.push_back(pattern);
  }
  return patterns;
}

/// Whether a nest over rows of `period` elements would cost more than one over periods.
bool pays(int64_t period, int64_t rows, bool repeats, int lanes) {
  constexpr int64_t min_rows = 8;
  constexpr int64_t min_elements = 128;  // copying a period takes as long as some short rows
  const int64_t longest = repeats ? 2 * lanes : std::min<int64_t>(max_period, 16 * lanes);
  return period <= longest && rows >= min_rows && period * rows >= min_elements;
}

/// Pixels of three or four colour channels get code of their own, and so do blocks of one or two
/// chunks, each of which reads one element.
bool is_baked(int64_t period, int lanes) {
  return period == 3 || period == 4 || period == lanes || period == 2 * lanes;
}

/// Axes 0 to `outer` become one.
void merge(IterationSpace& space, int outer, std::span<const Pattern> patterns) {
  IterationSpace merged;
  merged.form = space.form;
  merged.form.rank = space.form.rank - outer;
  merged.period = 1;
  for (int axis = 0; axis < outer; ++axis) {
    merged.period *= space.extents[axis];
    merged.period_extents.push_back(space.extents[axis]);
  }
  merged.period_strides = space.strides;
  merged.extents.push_back(merged.period * space.extents[outer]);
  for (int axis = outer + 1; axis < space.form.rank; ++axis) {
    merged.extents.push_back(space.extents[axis]);
  }
  merged.strides.resize(patterns.size());
  for (size_t k = 0; k < patterns.size(); ++k) {
    if (patterns[k] != Pattern::uniform) merged.form.access[k] = access_of(patterns[k]);
    merged.strides[k][0] =
        patterns[k] == Pattern::contiguous || patterns[k] == Pattern::repeated ? 1 : 0;
    for (int axis = outer + 1; axis < space.form.rank; ++axis) {
      merged.strides[k][static_cast<size_t>(axis - outer)] =
          space.strides[k][static_cast<size_t>(axis)];
    }
  }
  space = std::move(merged);
}

}  // namespace

void merge_periods(IterationSpace& space, std::span<const OperandStorage> storage, int lanes,
                   const Target& target) {
  for (int outer = space.form.rank - 1; outer >= 1; --outer) {
    int64_t period = 1;
    for (int axis = 0; axis < outer && period <= max_period; ++axis) {
      period *= std::min(space.extents[axis], max_period + 1);
    }
    if (period > max_period) continue;
    const std::vector<Pattern> patterns = merged_patterns(space, outer, storage, target);
    if (patterns.empty()) continue;
    const bool repeats = std::ranges::find(patterns, Pattern::repeated) != patterns.end();
    if (!pays(period, space.extents[outer], repeats, lanes)) continue;
    merge(space, outer, patterns);
    if (repeats && is_baked(period, lanes)) space.form.baked_period = static_cast<int>(period);
    return;
  }
}

}  // namespace castor::jit
