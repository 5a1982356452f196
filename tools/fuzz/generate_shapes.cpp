// SPDX-License-Identifier: Apache-2.0
// Drawing shapes: extents, unknown dimensions, shapes that inputs share.
#include <algorithm>

#include "tools/fuzz/cells.hpp"
#include "tools/fuzz/generate_function.hpp"

namespace castor::fuzz {

namespace {

/// None, one, a few, around the vectors' sizes, and now and then enough for several rounds of the
/// longest main loop.
int64_t draw_count(Random& random) {
  const size_t kind = random.below(1000);
  if (kind < 40) return 0;
  if (kind < 120) return 1;
  if (kind < 500) return random.between(1, 70);
  if (kind < 850) return random.between(1, 300);
  if (kind < 995) return random.between(200, 600);
  return random.between(600, 4000);
}

/// Writes an axis as a number, as `?` or by a name; a name that is taken keeps its size, which may
/// change the axis.
AxisSpec write_axis(Random& random, Program& program, int64_t extent, size_t unknown_percent,
                    size_t& names_taken) {
  AxisSpec axis{AxisSpec::Kind::fixed, extent, 0};
  if (!random.percent(unknown_percent)) return axis;
  axis.kind = AxisSpec::Kind::any;
  if (random.percent(50)) return axis;
  const auto taken = program.named_sizes.begin() + static_cast<ptrdiff_t>(names_taken);
  const auto same = std::find(program.named_sizes.begin(), taken, extent);
  if (same == taken && names_taken == program.named_sizes.size()) return axis;
  axis.kind = AxisSpec::Kind::named;
  axis.name = static_cast<size_t>(same - program.named_sizes.begin());
  if (same == taken) program.named_sizes[names_taken++] = extent;
  return axis;
}

}  // namespace

Dims draw_shape(Random& random, int rank, int64_t elements) {
  Dims shape = Dims::filled(rank, 1);
  if (rank == 0) return shape;
  const int longest = static_cast<int>(random.below(static_cast<size_t>(rank)));
  const int64_t budget = elements == 0 ? 60 : elements;
  int64_t others = 1;
  for (int axis = 0; axis < rank; ++axis) {
    if (axis == longest) continue;
    const int64_t most = std::clamp<int64_t>(budget / others, 1, 5);
    shape[axis] = random.between(1, most);
    others *= shape[axis];
  }
  shape[longest] = elements == 0 ? 0 : std::max<int64_t>(elements / others, 1);
  return shape;
}

void draw_shapes(Random& random, Program& program) {
  size_t names_taken = 0;
  const size_t unknown_percent = random.percent(40) ? 0 : 30 + random.below(71);
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    InputSpec& input = program.inputs[i];
    if (i > 0 && random.percent(50)) {
      input.axes = program.inputs[i - 1].axes;
      continue;
    }
    const int rank = static_cast<int>(random.below(most_rank + 1));
    for (int64_t extent : draw_shape(random, rank, draw_count(random))) {
      input.axes.push_back(write_axis(random, program, extent, unknown_percent, names_taken));
    }
  }
}

}  // namespace castor::fuzz
