// SPDX-License-Identifier: Apache-2.0
#include "tools/fuzz/layout.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace castor::fuzz {

namespace {

std::vector<int> draw_order(Random& random, int rank, bool permuted) {
  std::vector<int> order(static_cast<size_t>(rank));
  std::iota(order.rbegin(), order.rend(), 0);  // the last axis is the closest
  if (!permuted) return order;
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

/// Each axis steps over everything within it, and over a gap of at most `max_gap` more.
Dims draw_gaps(Random& random, const Dims& shape, const std::vector<int>& order, int64_t min_gap,
               int64_t max_gap) {
  Dims strides = Dims::filled(shape.rank(), 1);
  int64_t within = 1;
  for (int axis : order) {
    strides[axis] = within + random.between(min_gap, max_gap);
    within = strides[axis] * std::max<int64_t>(shape[axis], 1);
  }
  return strides;
}

/// Small strides whatever they make coincide.
Dims draw_overlap(Random& random, const Dims& shape) {
  Dims strides;
  for (int axis = 0; axis < shape.rank(); ++axis) strides.push_back(random.between(1, 3));
  return strides;
}

/// Strides of axes that are never stepped along do not count.
void scramble_unwalked(Random& random, const Dims& shape, Dims& strides) {
  const bool is_empty = count_of(shape) == 0;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (is_empty || shape[axis] == 1) strides[axis] = random.between(-3, 1000);
  }
}

Dims draw_any(Random& random, const Dims& shape, bool may_overlap) {
  switch (random.below(may_overlap ? 7 : 6)) {
    case 0:
    case 1: return dense_strides(shape);
    case 2: return draw_gaps(random, shape, draw_order(random, shape.rank(), true), 0, 0);
    case 3: return draw_gaps(random, shape, draw_order(random, shape.rank(), true), 0, 2);
    case 4: return draw_gaps(random, shape, draw_order(random, shape.rank(), false), 0, 5);
    case 5: {  // a slice: dense rows, far apart
      Dims strides = dense_strides(shape);
      const int64_t pitch = random.between(1, 9);
      for (int axis = 0; axis + 1 < shape.rank(); ++axis) strides[axis] *= pitch;
      return strides;
    }
    default: return draw_overlap(random, shape);
  }
}

}  // namespace

int64_t reach_of(const Dims& shape, const Dims& strides) {
  if (count_of(shape) == 0) return 0;
  int64_t last = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] > 1) last += (shape[axis] - 1) * strides[axis];
  }
  return last + 1;
}

std::optional<int64_t> matching_element(int64_t element, const Dims& result, const Dims& operand) {
  int64_t index = 0;
  int64_t step = 1;
  for (int axis = 0; axis < operand.rank(); ++axis) {
    const int from_right = operand.rank() - 1 - axis;
    const int64_t extent = operand[from_right];
    const int at = result.rank() - 1 - axis;
    if (extent != 1 && (at < 0 || result[at] != extent)) return {};
    if (at >= 0 && result[at] > 0) {
      if (extent != 1) index += element % result[at] * step;
      element /= result[at];
    }
    step *= extent;
  }
  return index;
}

Dims draw_strides(Random& random, const Dims& shape, StrideKind kind, bool may_overlap,
                  int64_t max) {
  Dims strides = dense_strides(shape);
  if (kind == StrideKind::spread) {
    strides = draw_gaps(random, shape, draw_order(random, shape.rank(), false), 1, 1);
  } else if (kind == StrideKind::any) {
    strides = draw_any(random, shape, may_overlap);
    if (random.percent(20)) scramble_unwalked(random, shape, strides);
  }
  return reach_of(shape, strides) <= max ? strides : dense_strides(shape);
}

}  // namespace castor::fuzz
