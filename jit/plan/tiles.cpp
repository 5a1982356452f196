// SPDX-License-Identifier: Apache-2.0
#include "jit/plan/tiles.hpp"

#include <algorithm>

namespace castor::jit {

namespace {

/// Bytes of the copies of a tile, with transposed operands, whose cache lines are far apart, and
/// without: all of them stay in L1. (Measured, like row_bytes: half a tile or half a row costs up
/// to a third of the speed where tensors exceed the caches.)
constexpr int64_t transposed_tile_bytes = int64_t{32} << 10;
constexpr int64_t strided_tile_bytes = int64_t{8} << 10;
/// A row of a tile with transposed operands, in elements as wide as the widest.
constexpr int64_t row_bytes = 1024;
constexpr int64_t max_columns = 512;
constexpr int64_t cache_line_bytes = 64;
/// Copies of rows of at most this many elements cost less than a loop over the rows.
constexpr int64_t max_copied_of_a_row = 6;
/// A tile costs some hundred cycles beside its elements.
constexpr int64_t min_tile_elements = 256;
constexpr int64_t min_transposed_elements = 64;

int64_t bytes_of(const Nest& nest, size_t operand) { return bits_of(nest.element(operand)) / 8; }

bool is_transposed(const IterationSpace& space, size_t operand, int axis) {
  return axis > 0 && space.form.access[operand] == Access::strided &&
         space.strides[operand][static_cast<size_t>(axis)] == 1;
}

int64_t transposed_bytes(const Nest& nest, const IterationSpace& space, int axis) {
  int64_t bytes = 0;
  for (size_t k = 0; k < nest.operands(); ++k) {
    if (is_transposed(space, k, axis)) bytes += bytes_of(nest, k);
  }
  return bytes;
}

/// The axis along which the most bytes are consecutive that are not along the innermost axis. Where
/// there is none, or tiles would be tiny: the axis next to the innermost if it makes them large,
/// else the longest.
int axis_of_tiles(const Nest& nest, const IterationSpace& space) {
  const auto elements = [&](int axis) { return space.extents[0] * space.extents[axis]; };
  int longest = std::min(space.form.rank - 1, 1);
  int best = 0;
  int64_t max = 0;
  for (int axis = 1; axis < space.form.rank; ++axis) {
    if (space.extents[axis] > space.extents[longest]) longest = axis;
    const int64_t bytes = transposed_bytes(nest, space, axis);
    if (bytes <= max || elements(axis) < min_transposed_elements) continue;
    max = bytes;
    best = axis;
  }
  if (best > 0 || space.form.rank == 1) return best;
  return elements(1) >= min_tile_elements ? 1 : longest;
}

int64_t copied_bytes(const Nest& nest, const Tiles& tiles) {
  int64_t bytes = 0;
  for (const CopiedOperand& copy : tiles.copies) bytes += bytes_of(nest, copy.operand);
  return bytes;
}

int64_t widest_bytes(const Nest& nest) {
  int64_t bytes = 1;
  for (size_t k = 0; k < nest.operands(); ++k) bytes = std::max(bytes, bytes_of(nest, k));
  return bytes;
}

/// `count`, rounded down to whole units where it is more than one.
int64_t whole_units(int64_t count, int64_t unit) {
  return count > unit ? count / unit * unit : count;
}

/// Makes rows as long as possible, of whole cache lines, and takes the rows that the copies have
/// room for.
void choose_strided_extents(const Nest& nest, const IterationSpace& space, Tiles& tiles) {
  const int64_t elements = std::max<int64_t>(strided_tile_bytes / copied_bytes(nest, tiles), 2);
  const int64_t available_rows = tiles.axis > 0 ? space.extents[tiles.axis] : 1;
  tiles.columns = std::min(whole_units(elements, cache_line_bytes), space.extents[0]);
  tiles.rows = std::min(std::max<int64_t>(elements / tiles.columns, 2), available_rows);
}

/// Makes tiles of whole cache lines along both axes; if one axis is short, the other gets more.
void choose_transposed_extents(const Nest& nest, const IterationSpace& space, Tiles& tiles) {
  const int64_t elements = transposed_tile_bytes / copied_bytes(nest, tiles);
  const int64_t long_row = std::min(row_bytes / widest_bytes(nest), max_columns);
  const int64_t available_rows = space.extents[tiles.axis];
  const int64_t columns = std::min(long_row, space.extents[0]);
  const int64_t rows = std::max<int64_t>(elements / columns, 2);
  tiles.rows = std::min(whole_units(rows, cache_line_bytes), available_rows);
  tiles.columns = columns;
  if (available_rows >= rows) return;
  const int64_t longer = std::max(elements / available_rows, columns);
  tiles.columns = std::min(whole_units(longer, long_row), space.extents[0]);
}

IterationSpace space_of_tile(const Nest& nest, const IterationSpace& space, const Tiles& tiles) {
  std::vector<Dims> strides;
  for (const auto& of_operand : space.strides) {
    const int64_t row_stride = tiles.axis > 0 ? of_operand[static_cast<size_t>(tiles.axis)] : 0;
    strides.push_back({row_stride, of_operand[0]});
  }
  for (const CopiedOperand& copy : tiles.copies) strides[copy.operand] = {tiles.columns, 1};
  return iteration_space({tiles.rows, tiles.columns}, strides, nest.storage());
}

/// Operands that are strided along the innermost axis.
std::vector<CopiedOperand> strided_operands(const Nest& nest, const IterationSpace& space,
                                            int axis) {
  std::vector<CopiedOperand> copies;
  for (size_t k = 0; k < nest.operands(); ++k) {
    if (space.form.access[k] != Access::strided) continue;
    const bool transposed = is_transposed(space, k, axis);
    copies.push_back({k, transposed ? TileCopyKind::transposed : TileCopyKind::strided});
  }
  return copies;
}

/// Operands whose rows do not follow one another, where rows are so short that copies pay, which
/// let one call of the code do all rows of a tile.
std::vector<CopiedOperand> gapped_operands(const Nest& nest, const IterationSpace& space) {
  std::vector<CopiedOperand> copies;
  if (space.form.rank == 1) return copies;
  for (size_t k = 0; k < nest.operands(); ++k) {
    const auto& strides = space.strides[k];
    const bool is_repeated = strides[0] == 0 || strides[1] == 0;  // without a gap
    const bool follow = strides[1] == strides[0] * space.extents[0];
    if (!is_repeated && !follow) copies.push_back({k, TileCopyKind::strided});
  }
  const int64_t copied = static_cast<int64_t>(copies.size()) * space.extents[0];
  if (copied > max_copied_of_a_row) copies.clear();
  return copies;
}

}  // namespace

std::optional<Tiles> plan_tiles(const Nest& nest, const IterationSpace& space) {
  if (nest.has_sub_byte_operand() || space.form.has_periods()) return std::nullopt;
  Tiles tiles;
  if (space.form.has(Access::strided)) {
    tiles.axis = axis_of_tiles(nest, space);
    tiles.copies = strided_operands(nest, space, tiles.axis);
  } else {
    tiles.axis = 1;
    tiles.copies = gapped_operands(nest, space);
  }
  if (tiles.copies.empty()) return std::nullopt;
  if (transposed_bytes(nest, space, tiles.axis) > 0) {
    choose_transposed_extents(nest, space, tiles);
  } else {
    choose_strided_extents(nest, space, tiles);
  }
  tiles.space = space_of_tile(nest, space, tiles);
  return tiles;
}

}  // namespace castor::jit
