// SPDX-License-Identifier: Apache-2.0
#include "jit/plan/tiles.hpp"

#include <algorithm>

#include "ir/types/storage.hpp"
#include "jit/plan/copied_operands.hpp"

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
/// Blocks of transposed codes, whose cache lines stay in L1.
constexpr int64_t blocked_columns = 64;
constexpr int64_t blocked_rows = 128;
constexpr int64_t min_blocked_elements = int64_t{1} << 15;
constexpr int64_t min_transposed_elements = 64;

int64_t bytes_of(const Nest& nest, size_t operand) { return bits_of(nest.element(operand)) / 8; }

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

/// Bytes of the copies of an element, at least one.
int64_t copied_bytes(const Nest& nest, const Tiles& tiles) {
  int64_t bytes = 0;
  for (const CopiedOperand& copy : tiles.copies) bytes += bytes_of(nest, copy.operand);
  return std::max<int64_t>(bytes, 1);
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
  const int64_t rows = std::max<int64_t>(elements / tiles.columns, 2);
  // After eight rows, sub-byte rows of any length begin as far into a byte as before.
  const int64_t unit = nest.has_sub_byte_operand() ? storage_group : 1;
  tiles.rows = std::min(whole_units(rows, unit), available_rows);
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
  std::vector<bool> is_copied(nest.operands(), false);
  for (const CopiedOperand& copy : tiles.copies) {
    strides[copy.operand] = {tiles.columns, 1};
    is_copied[copy.operand] = true;
  }
  IterationSpace tile = iteration_space({tiles.rows, tiles.columns}, strides, nest.storage());
  // Copies begin with a byte, but tiles at any bit.
  for (size_t k = 0; k < nest.operands(); ++k) {
    if (is_copied[k] || !is_sub_byte(nest.element(k))) continue;
    if (tile.form.access[k] == Access::contiguous)
      tile.form = bitwise_form(tile.form, nest.storage());
  }
  return tile;
}

/// The axis along which a sub-byte input is consecutive, where cache lines of a large one would be
/// read again and again; 0 where there is none. Not where rows of sub-byte outputs have bytes in
/// common: tiles of these could not be done by several tasks.
int axis_of_transposed_codes(const Nest& nest, const IterationSpace& space) {
  int transposed = 0;
  int64_t elements = space.extents[0];
  for (int axis = 1; axis < space.form.rank; ++axis) {
    const auto at = static_cast<size_t>(axis);
    elements *= space.extents[axis];
    for (size_t k = 0; k < nest.operands(); ++k) {
      if (!is_sub_byte(nest.element(k))) continue;
      if (k >= nest.inputs.size() && space.strides[k][at] % storage_group != 0) return 0;
      if (k < nest.inputs.size() && space.strides[k][0] > 1 && space.strides[k][at] == 1) {
        transposed = axis;
      }
    }
  }
  return elements >= min_blocked_elements ? transposed : 0;
}

}  // namespace

std::optional<Tiles> plan_tiles(const Nest& nest, const IterationSpace& space,
                                const Target& target) {
  if (space.form.has_periods()) return std::nullopt;
  Tiles tiles;
  if (space.form.has(Access::strided)) {
    tiles.axis = axis_of_tiles(nest, space);
    tiles.copies = strided_operands(nest, space, tiles.axis);
  } else {
    tiles.axis = 1;
    tiles.copies = operands_of_short_rows(nest, space, target);
  }
  if (tiles.copies.empty()) {
    tiles.axis = axis_of_transposed_codes(nest, space);
    if (tiles.axis == 0) return std::nullopt;
    tiles.columns = std::min(blocked_columns, space.extents[0]);
    tiles.rows = std::min(blocked_rows, space.extents[tiles.axis]);
  } else if (transposed_bytes(nest, space, tiles.axis) > 0) {
    choose_transposed_extents(nest, space, tiles);
  } else {
    choose_strided_extents(nest, space, tiles);
  }
  tiles.space = space_of_tile(nest, space, tiles);
  return tiles;
}

}  // namespace castor::jit
