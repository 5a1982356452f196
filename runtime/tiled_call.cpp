// SPDX-License-Identifier: Apache-2.0
#include "runtime/tiled_call.hpp"

#include <algorithm>
#include <utility>

#include "jit/emit/tile_copy.hpp"

namespace castor::detail {

namespace {

void swap_directions(jit::TileCopy& copy) {
  auto* tensor = const_cast<std::byte*>(copy.source);
  copy.source = std::exchange(copy.destination, tensor);
  std::swap(copy.source_step, copy.destination_step);
  std::swap(copy.source_row_step, copy.destination_row_step);
}

void swap_axes(jit::TileCopy& copy) {
  std::swap(copy.columns, copy.rows);
  std::swap(copy.source_step, copy.source_row_step);
  std::swap(copy.destination_step, copy.destination_row_step);
}

/// Whether one side's elements lie side by side along rows, and the other's along columns.
bool transposes_rows(const jit::TileCopy& copy, int64_t element_bytes) {
  return copy.source_row_step == element_bytes && copy.destination_step == element_bytes;
}
bool transposes_columns(const jit::TileCopy& copy, int64_t element_bytes) {
  return copy.source_step == element_bytes && copy.destination_row_step == element_bytes;
}

/// Whether the copy transposes the other way round, or its rows are short and its columns longer.
bool goes_better_by_columns(const jit::TileCopy& copy, int64_t element_bytes) {
  constexpr int64_t short_row = 16;
  if (std::min(copy.columns, copy.rows) >= jit::transposed_block_bytes / element_bytes) {
    if (transposes_rows(copy, element_bytes)) return false;
    if (transposes_columns(copy, element_bytes)) return true;
  }
  return copy.columns < std::min(copy.rows, short_row);
}

/// One call: walks the tiles, and has the code do each.
class TileLoop {
 public:
  TileLoop(const BoundNest& nest, const NestCode& code, const CallMemory& memory)
      : nest_(nest),
        code_(code.entry()),
        walk_(*nest.tiles),
        layout_(nest.operands.size(), nest.space.form.rank) {
    std::copy(nest.main.arguments.begin(), nest.main.arguments.end(), arguments_);
    for (size_t k = 0; k < nest.operands.size(); ++k) {
      pointers_[k] = address(origin_of(nest.operands[k], memory), nest.elements[k]);
    }
    for (size_t c = 0; c < walk_.copies.size(); ++c) {
      copies_[c] = number_of(memory.scratch + walk_.copies[c].offset);
    }
  }

  /// The tiles of all indices along the axes from `axis` on.
  void run(int axis) {
    if (axis == walk_.axis) return run(axis + 1);
    if (axis == walk_.extents.rank()) return run_tiles();
    for (int64_t i = 0; i < walk_.extents[axis]; ++i) {
      run(axis + 1);
      move(axis, 1);
    }
    move(axis, -walk_.extents[axis]);
  }

 private:
  /// A tile's first element, and its extents.
  struct Tile {
    int64_t column;
    int64_t row;
    int64_t columns;
    int64_t rows;
  };

  /// The pointers go on along an outer axis.
  void move(int axis, int64_t count) {
    for (size_t k = 0; k < nest_.operands.size(); ++k) pointers_[k] += count * step(k, axis);
  }

  int64_t step(size_t operand, int axis) const {
    return walk_.steps[operand][static_cast<size_t>(axis)];
  }

  /// The tiles along their two axes.
  void run_tiles() {
    const int64_t columns = walk_.extents[0];
    const int64_t rows = walk_.axis > 0 ? walk_.extents[walk_.axis] : 1;
    for (int64_t column = 0; column < columns; column += walk_.columns) {
      for (int64_t row = 0; row < rows; row += walk_.rows) {
        run_tile({column, row, std::min(walk_.columns, columns - column),
                  std::min(walk_.rows, rows - row)});
      }
    }
  }

  void run_tile(const Tile& tile) {
    for (size_t k = 0; k < nest_.operands.size(); ++k) arguments_[k] = first_element(k, tile);
    for (size_t c = 0; c < walk_.copies.size(); ++c) {
      const BoundTileCopy& operand = walk_.copies[c];
      if (!operand.is_output) copy(operand, arguments_[operand.operand], copies_[c], tile);
      arguments_[operand.operand] = copies_[c];
    }
    arguments_[layout_.extent(0)] = takes_one_row() ? tile.columns * tile.rows : tile.columns;
    if (!takes_one_row()) arguments_[layout_.extent(1)] = tile.rows;
    code_(arguments_);
    for (size_t c = 0; c < walk_.copies.size(); ++c) {
      const BoundTileCopy& operand = walk_.copies[c];
      if (operand.is_output) copy(operand, first_element(operand.operand, tile), copies_[c], tile);
    }
  }

  /// Whether the code's two axes are one.
  bool takes_one_row() const { return nest_.space.form.rank == 1; }

  int64_t first_element(size_t operand, const Tile& tile) const {
    return pointers_[operand] + tile.column * step(operand, 0) +
           tile.row * step(operand, walk_.axis);
  }

  /// Copies the tile's part of an operand, which begins at `tensor`, to scratch or from there.
  void copy(const BoundTileCopy& operand, int64_t tensor, int64_t scratch, const Tile& tile) {
    jit::TileCopy copy;
    copy.columns = tile.columns;
    copy.rows = tile.rows;
    copy.source = reinterpret_cast<const std::byte*>(tensor);
    copy.source_step = step(operand.operand, 0);
    copy.source_row_step = step(operand.operand, walk_.axis);
    copy.destination = reinterpret_cast<std::byte*>(scratch);
    copy.destination_step = operand.element_bytes;
    // Code that takes a tile for one row wants the rows of a narrower one to follow each other,
    // too.
    const int64_t row = takes_one_row() ? tile.columns : walk_.columns;
    copy.destination_row_step = row * operand.element_bytes;
    if (operand.is_output) swap_directions(copy);
    if (goes_better_by_columns(copy, operand.element_bytes)) swap_axes(copy);
    operand.code->entry_as<jit::TileCopyFunction>()(&copy);
  }

  const BoundNest& nest_;
  const jit::NestFunction code_;
  const TiledWalk& walk_;
  const jit::ArgumentLayout layout_;
  int64_t arguments_[jit::most_argument_words];
  int64_t pointers_[jit::most_inputs + jit::most_outputs];  ///< at the first tile
  int64_t copies_[jit::most_inputs + jit::most_outputs];
};

}  // namespace

void call_tiled(const BoundNest& nest, const NestCode& code, const CallMemory& memory) {
  TileLoop(nest, code, memory).run(1);
}

}  // namespace castor::detail
