// SPDX-License-Identifier: Apache-2.0
// Drawing shapes: extents, patterns of broadcasts, unknown dimensions.
#include <algorithm>

#include "tools/fuzz/cells.hpp"
#include "tools/fuzz/generate_function.hpp"

namespace castor::fuzz {

namespace {

/// What follows the axes of an operand, and pdpd trims.
constexpr int max_trailing_ones = 2;

/// The extents of a space: rows of a few elements, images, matrices, batches.
Dims draw_pattern(Random& random) {
  constexpr std::array<int64_t, 10> channels = {1, 2, 3, 3, 4, 4, 5, 6, 7, 8};
  switch (random.below(8)) {
    case 0: return {random.between(1, random.percent(70) ? 150 : 400), random.pick(channels)};
    case 1: return {random.between(1, 14), random.between(1, 14), random.pick(channels)};
    case 2: return {random.between(1, 4), random.between(1, 12), random.between(1, 40)};
    case 3:
    case 4: return {random.between(1, 24), random.between(1, 70)};
    case 5: return {random.between(1, 600)};
    default:
      return draw_shape(random, static_cast<int>(random.below(max_drawn_rank + 1)),
                        std::min<int64_t>(draw_count(random), max_elements));
  }
}

Dims masked(Random& random, const Dims& space) {
  Dims shape;
  for (int64_t extent : space) shape.push_back(random.percent(50) ? extent : 1);
  return shape;
}

/// Without leading ones, some or all.
Dims trimmed(Random& random, const Dims& shape) {
  int first = 0;
  while (first < shape.rank() && shape[first] == 1 && random.percent(80)) ++first;
  return Dims(std::span(shape.begin() + first, shape.end()));
}

/// Some axes in the middle, and ones after them: what pdpd aligns with an axis.
Dims middle(Random& random, const Dims& space) {
  const int first = static_cast<int>(random.below(static_cast<size_t>(space.rank()) + 1));
  const int last = static_cast<int>(random.between(first, space.rank()));
  Dims shape(std::span(space.begin() + first, space.begin() + last));
  const int64_t ones = random.between(0, max_trailing_ones);
  for (int64_t i = 0; i < ones && shape.rank() < space.rank(); ++i) shape.push_back(1);
  return shape;
}

}  // namespace

int64_t draw_count(Random& random) {
  const size_t kind = random.below(1000);
  if (kind < 40) return 0;
  if (kind < 120) return 1;
  if (kind < 500) return random.between(1, 70);
  if (kind < 850) return random.between(1, 300);
  if (kind < 995) return random.between(200, 600);
  return random.between(600, 4000);
}

Dims draw_shape(Random& random, int rank, int64_t elements) {
  Dims shape = Dims::filled(rank, 1);
  if (rank == 0) return shape;
  const int longest = static_cast<int>(random.below(static_cast<size_t>(rank)));
  const int64_t budget = elements == 0 ? 60 : elements;
  int64_t others = 1;
  for (int axis = 0; axis < rank; ++axis) {
    if (axis == longest) continue;
    const int64_t max = std::clamp<int64_t>(budget / others, 1, 5);
    shape[axis] = random.between(1, max);
    others *= shape[axis];
  }
  shape[longest] = elements == 0 ? 0 : std::max<int64_t>(elements / others, 1);
  return shape;
}

Dims draw_space(Random& random) {
  Dims space = draw_pattern(random);
  if (space.empty()) return space;
  const int axis = static_cast<int>(random.below(static_cast<size_t>(space.rank())));
  if (random.percent(3)) space[axis] = 0;
  if (random.percent(8)) space[axis] = 1;
  return space;
}

Dims draw_operand_shape(Random& random, const Dims& space) {
  const size_t kind = random.below(100);
  if (kind < 42) return space;
  if (kind < 50) return Dims::filled(static_cast<int>(random.below(2)), 1);
  if (kind < 65) {  // rows
    const size_t first = random.below(static_cast<size_t>(space.rank()) + 1);
    return Dims(std::span(space.begin() + first, space.end()));
  }
  if (kind < 78 && !space.empty()) {  // columns
    Dims shape = space;
    shape[space.rank() - 1] = 1;
    return trimmed(random, shape);
  }
  if (kind < 92) return trimmed(random, masked(random, space));
  return middle(random, space);
}

AxisWriter::AxisWriter(Random& random)
    : random_(random), unknown_percent_(random.percent(40) ? 0 : 30 + random.below(71)) {}

AxisSpec AxisWriter::write_axis(Program& program, int64_t extent) {
  AxisSpec axis{AxisSpec::Kind::fixed, extent, 0};
  if (!random_.percent(unknown_percent_)) return axis;
  axis.kind = AxisSpec::Kind::any;
  if (random_.percent(50)) return axis;
  const auto taken = program.named_sizes.begin() + static_cast<ptrdiff_t>(names_taken_);
  const auto same = std::find(program.named_sizes.begin(), taken, extent);
  if (same == taken && names_taken_ == program.named_sizes.size()) return axis;
  axis.kind = AxisSpec::Kind::named;
  axis.name = static_cast<size_t>(same - program.named_sizes.begin());
  if (same == taken) program.named_sizes[names_taken_++] = extent;
  return axis;
}

std::vector<AxisSpec> AxisWriter::write(Program& program, const Dims& shape) {
  std::vector<AxisSpec> axes;
  for (int64_t extent : shape) axes.push_back(write_axis(program, extent));
  return axes;
}

std::vector<AxisSpec> AxisWriter::write_target(const Program& program, const Dims& shape) {
  std::vector<AxisSpec> axes;
  for (int64_t extent : shape) {
    AxisSpec axis{AxisSpec::Kind::fixed, extent, 0};
    const auto taken = program.named_sizes.begin() + static_cast<ptrdiff_t>(names_taken_);
    const auto same = std::find(program.named_sizes.begin(), taken, extent);
    if (same != taken && random_.percent(60)) {
      axis.kind = AxisSpec::Kind::named;
      axis.name = static_cast<size_t>(same - program.named_sizes.begin());
    }
    axes.push_back(axis);
  }
  return axes;
}

}  // namespace castor::fuzz
