// SPDX-License-Identifier: Apache-2.0
#include "tools/fuzz/draw_blocks.hpp"

#include <algorithm>

#include "ir/support/integer_math.hpp"

namespace castor::fuzz {

BroadcastRule draw_blocks(Random& random, const Dims& extents) {
  BroadcastRule rule{.mode = BroadcastMode::blocked};
  for (int axis = 0; axis < extents.rank() && rule.axes.size() < 2; ++axis) {
    if (random.percent(40) && axis + 1 < extents.rank()) continue;
    rule.axes.push_back(axis);
    const int64_t longest = std::max<int64_t>(extents[axis] + 1, 2);
    rule.block.push_back(random.percent(50) ? random.between(1, 8) : random.between(1, longest));
  }
  return rule;
}

Dims blocks_of(Dims extents, const BroadcastRule& rule) {
  for (size_t i = 0; i < rule.axes.size(); ++i) {
    int64_t& extent = extents[static_cast<int>(rule.axes[i])];
    extent = ceil_div(extent, rule.block[i]);
  }
  return extents;
}

Dims target_of_blocks(Random& random, Dims extents, const BroadcastRule& rule) {
  for (size_t i = 0; i < rule.axes.size(); ++i) {
    int64_t& extent = extents[static_cast<int>(rule.axes[i])];
    if (extent > 0) extent = extent * rule.block[i] - random.between(0, rule.block[i] - 1);
  }
  return extents;
}

}  // namespace castor::fuzz
