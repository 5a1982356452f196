// SPDX-License-Identifier: Apache-2.0
#include "runtime/call/tiled_call.hpp"

#include <algorithm>
#include <utility>

#include "ir/support/integer_math.hpp"
#include "jit/emit/tile_copy.hpp"
#include "runtime/call/bit_rows.hpp"

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

/// Whether one side's elements are contiguous along rows, and the other's along columns.
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

/// One task of a call: iterates over the tiles and calls the code for its own ones. `scratch`
/// belongs to the task.
class TileLoop {
 public:
  TileLoop(const ElementwiseStep& step, const KernelCode<jit::NestSpec>& code,
           const CallMemory& memory, std::byte* scratch)
      : step_(step),
        code_(code.entry()),
        walk_(*step.tiles),
        layout_(step.operands.size(), step.space.form.rank) {
    std::copy(step.main.arguments.begin(), step.main.arguments.end(), arguments_);
    for (size_t k = 0; k < step.operands.size(); ++k) {
      const Origin origin = origin_of(step.operands[k].origin, memory);
      const ElementType element = step.operands[k].element;
      pointers_[k] = is_sub_byte(element) ? origin.offset : address(origin, element);
      bases_[k] = origin.data;
      if (is_sub_byte(element)) arguments_[layout_.base(k)] = origin.data;
    }
    for (size_t c = 0; c < walk_.copies.size(); ++c) {
      copies_[c] = scratch + walk_.copies[c].offset;
    }
  }

  /// The tiles of the step.
  int64_t count() const {
    int64_t tiles = ceil_div(walk_.extents[0], walk_.columns) * tile_rows();
    for (int axis = 1; axis < walk_.extents.rank(); ++axis) {
      if (axis != walk_.axis) tiles *= walk_.extents[axis];
    }
    return tiles;
  }

  /// The tiles from `begin` to `end`, which are numbered along `TileLoops::axis` first, then along
  /// the innermost axis, and then along the others, the outermost first.
  void run(int64_t begin, int64_t end) {
    const int64_t of_plane = tile_rows() * ceil_div(walk_.extents[0], walk_.columns);
    for (int64_t tile = begin; tile < end;) {
      const int64_t plane = tile / of_plane;
      const int64_t first = tile % of_plane;
      const int64_t last = std::min(first + end - tile, of_plane);
      move_to(plane, 1);
      run_tiles(first, last - first);
      move_to(plane, -1);
      tile += last - first;
    }
  }

 private:
  /// A tile's first element, and its extents.
  struct Tile {
    int64_t column;
    int64_t row;
    int64_t columns;
    int64_t rows;
  };

  /// What the copy of an operand holds: rows of that many columns.
  struct Copied {
    int64_t first = 0;  ///< address of the first element
    int64_t columns = 0;
    int64_t rows = 0;
  };

  int64_t rows() const { return walk_.axis > 0 ? walk_.extents[walk_.axis] : 1; }
  int64_t tile_rows() const { return ceil_div(rows(), walk_.rows); }

  /// The pointers go to a combination of indices along the outer axes, or (-1) back.
  void move_to(int64_t plane, int64_t direction) {
    for (int axis = walk_.extents.rank() - 1; axis > 0; --axis) {
      if (axis == walk_.axis) continue;
      const int64_t count = direction * (plane % walk_.extents[axis]);
      plane /= walk_.extents[axis];
      for (size_t k = 0; k < step_.operands.size(); ++k) pointers_[k] += count * step(k, axis);
    }
  }

  int64_t step(size_t operand, int axis) const {
    return walk_.steps[operand][static_cast<size_t>(axis)];
  }

  /// Runs n tiles along their two axes, from a given one on.
  void run_tiles(int64_t first, int64_t count) {
    int64_t column = first / tile_rows() * walk_.columns;
    int64_t row = first % tile_rows() * walk_.rows;
    for (; count > 0; --count) {
      run_tile({column, row, std::min(walk_.columns, walk_.extents[0] - column),
                std::min(walk_.rows, rows() - row)});
      row += walk_.rows;
      if (row < rows()) continue;
      row = 0;
      column += walk_.columns;
    }
  }

  void run_tile(const Tile& tile) {
    for (size_t k = 0; k < step_.operands.size(); ++k) arguments_[k] = first_element(k, tile);
    for (size_t c = 0; c < walk_.copies.size(); ++c) {
      const BoundTileCopy& operand = walk_.copies[c];
      if (!operand.is_output && !is_copied(c, tile)) {
        copy(operand, arguments_[operand.operand], copies_[c], tile);
        copied_[c] = {arguments_[operand.operand], tile.columns, tile.rows};
      }
      point_to_copy(c);
    }
    arguments_[layout_.extent(0)] = takes_one_row() ? tile.columns * tile.rows : tile.columns;
    if (!takes_one_row()) arguments_[layout_.extent(1)] = tile.rows;
    code_(arguments_);
    for (size_t c = 0; c < walk_.copies.size(); ++c) {
      const BoundTileCopy& operand = walk_.copies[c];
      if (operand.is_output) copy(operand, first_element(operand.operand, tile), copies_[c], tile);
    }
  }

  /// Has the code find an operand in its copy.
  void point_to_copy(size_t c) {
    const size_t operand = walk_.copies[c].operand;
    const bool by_numbers = step_.main.access[operand] == jit::Access::bitwise;
    arguments_[operand] = by_numbers ? 0 : number_of(copies_[c]);
    if (by_numbers) arguments_[layout_.base(operand)] = number_of(copies_[c]);
  }

  /// Whether the last copy of an operand, whose rows are all the same, is of these rows, too.
  bool is_copied(size_t c, const Tile& tile) const {
    const size_t operand = walk_.copies[c].operand;
    const Copied& last = copied_[c];
    return step(operand, walk_.axis) == 0 && walk_.axis > 0 && last.first == arguments_[operand] &&
           last.columns == tile.columns && last.rows >= tile.rows;
  }

  /// Whether the code's two axes are one.
  bool takes_one_row() const { return step_.space.form.rank == 1; }

  int64_t first_element(size_t operand, const Tile& tile) const {
    return pointers_[operand] + tile.column * step(operand, 0) +
           tile.row * step(operand, walk_.axis);
  }

  /// Copies the tile's part of an operand, which begins at `tensor`, to scratch or from there.
  void copy(const BoundTileCopy& operand, int64_t tensor, std::byte* scratch, const Tile& tile) {
    if (operand.kind == jit::TileCopyKind::packed) return copy_bits(operand, tensor, scratch, tile);
    jit::TileCopy copy;
    copy.columns = tile.columns;
    copy.rows = tile.rows;
    copy.source = reinterpret_cast<const std::byte*>(tensor);
    copy.source_step = step(operand.operand, 0);
    copy.source_row_step = step(operand.operand, walk_.axis);
    copy.destination = scratch;
    copy.destination_step = operand.element_bytes;
    // Code that takes a tile for one row wants the rows of a narrower one to follow each other,
    // too.
    const int64_t row = takes_one_row() ? tile.columns : walk_.columns;
    copy.destination_row_step = row * operand.element_bytes;
    if (operand.is_output) swap_directions(copy);
    if (goes_better_by_columns(copy, operand.element_bytes)) swap_axes(copy);
    operand.code->call(&copy);
  }

  /// Copies sub-byte elements, of which `first` is the number of the first.
  void copy_bits(const BoundTileCopy& operand, int64_t first, std::byte* scratch,
                 const Tile& tile) const {
    const size_t k = operand.operand;
    const BitRows rows = {.element = step_.operands[k].element,
                          .data = reinterpret_cast<std::byte*>(bases_[k]),
                          .first = first,
                          .row_step = step(k, walk_.axis),
                          .columns = tile.columns,
                          .rows = tile.rows};
    operand.is_output ? scatter_bit_rows(scratch, rows) : gather_bit_rows(rows, scratch);
  }

  const ElementwiseStep& step_;
  const jit::KernelFunction<jit::NestSpec> code_;
  const TileLoops& walk_;
  const jit::ArgumentLayout layout_;
  int64_t arguments_[jit::max_argument_words];
  /// At the first tile: addresses, or numbers of sub-byte elements from the bases on.
  int64_t pointers_[jit::max_inputs + jit::max_outputs];
  int64_t bases_[jit::max_inputs + jit::max_outputs];
  std::byte* copies_[jit::max_inputs + jit::max_outputs];
  Copied copied_[jit::max_inputs + jit::max_outputs] = {};
};

/// Whether no two tiles write one byte of a sub-byte output: the elements of each are in one range,
/// which begins with a byte.
bool begin_bytes(const ElementwiseStep& step, size_t k, int64_t first) {
  const TileLoops& walk = *step.tiles;
  const auto& strides = walk.steps[k];
  const int64_t aligned = aligned_elements(step.operands[k].element);
  int64_t reach = 0;  // from the first element to the last one of the axes before
  bool rows_align = first % aligned == 0;
  for (int axis = 0; axis < walk.extents.rank(); ++axis) {
    const int64_t stride = strides[static_cast<size_t>(axis)];
    if (stride <= reach) return false;
    reach += (walk.extents[axis] - 1) * stride;
    const int64_t indices = axis == 0 ? walk.columns : axis == walk.axis ? walk.rows : 1;
    const bool is_whole = indices == walk.extents[axis];
    if (!is_whole && indices * stride % aligned != 0) return false;
    // Further out, indices begin rows of which this axis' tiles are parts.
    for (int outer = axis + 1; !is_whole && outer < walk.extents.rank(); ++outer) {
      rows_align &= strides[static_cast<size_t>(outer)] % aligned == 0;
    }
  }
  return rows_align;
}

bool tiles_share_no_byte(const ElementwiseStep& step, const CallMemory& memory) {
  for (size_t k = step.first_output; k < step.operands.size(); ++k) {
    if (!is_sub_byte(step.operands[k].element)) continue;
    if (!begin_bytes(step, k, origin_of(step.operands[k].origin, memory).offset)) return false;
  }
  return true;
}

}  // namespace

void call_tiled(const ElementwiseStep& step, const KernelCode<jit::NestSpec>& code,
                const CallMemory& memory) {
  TileLoop loop(step, code, memory, memory.scratch);
  const int64_t tiles = loop.count();
  const int64_t tasks = std::min(max_tasks(memory, step.main.nanoseconds), tiles);
  if (tasks <= 1 || !tiles_share_no_byte(step, memory)) return loop.run(0, tiles);
  memory.tasks->run(tasks, [&](int64_t task) {
    TileLoop part(step, code, memory, scratch_of(memory, task));
    part.run(tiles * task / tasks, tiles * (task + 1) / tasks);
  });
}

}  // namespace castor::detail
