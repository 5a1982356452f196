// SPDX-License-Identifier: Apache-2.0
#include "runtime/call/fold_call.hpp"

#include <cstring>

namespace castor::detail {

namespace {

template <class Word>
void fill_with(void* begin, int64_t count, uint64_t value) {
  std::fill_n(static_cast<Word*>(begin), count, static_cast<Word>(value));
}

/// The elements of accumulators are in scratch, which is aligned for them.
void start(const FoldStep& step, const CallMemory& memory) {
  for (const auto& [operand, initial, elements] : step.starts) {
    const StepOperand& accumulator = step.operands[operand];
    void* begin = memory.scratch + accumulator.origin.offset;
    switch (bits_of(accumulator.element)) {
      case 8: fill_with<uint8_t>(begin, elements, initial); break;
      case 16: fill_with<uint16_t>(begin, elements, initial); break;
      case 32: fill_with<uint32_t>(begin, elements, initial); break;
      default: fill_with<uint64_t>(begin, elements, initial); break;
    }
  }
}

/// Does partitions of a pass, through an argument block of its own.
class PartitionRunner {
 public:
  PartitionRunner(const FoldStep& step, const FoldStep::Cut& cut, const int64_t* arguments)
      : step_(step),
        cut_(cut),
        layout_(step.operands.size(), step.space.form.rank),
        all_(arguments) {
    std::copy_n(arguments, layout_.words(), arguments_);
  }

  void run(int64_t begin, int64_t end) {
    const int64_t extent = step_.space.extents[cut_.axis];
    for (int64_t partition = begin; partition < end; ++partition) {
      const int64_t indices = std::min(cut_.partition, extent - partition * cut_.partition);
      for (size_t k = 0; k < step_.operands.size(); ++k) {
        arguments_[k] = all_[k] + partition * cut_.steps[k];
        if (!steps_back()) continue;
        const size_t next = layout_.step(k, cut_.axis + 1);
        arguments_[next] = all_[next] + (extent - indices) * cut_.strides[k];
      }
      arguments_[layout_.extent(cut_.axis)] = indices;
      step_.main.code->entry()(arguments_);
    }
  }

 private:
  /// Whether the next axis steps from the end of the one that is cut (see pack_arguments).
  bool steps_back() const { return cut_.axis >= 1 && cut_.axis + 1 < step_.space.form.rank; }

  const FoldStep& step_;
  const FoldStep::Cut& cut_;
  const jit::ArgumentLayout layout_;
  const int64_t* all_;
  int64_t arguments_[jit::max_argument_words];
};

void run_partitions(const FoldStep& step, const FoldStep::Cut& cut, const int64_t* arguments,
                    int64_t tasks, CallTasks* by) {
  const int64_t count = std::min(tasks, cut.count);
  if (count <= 1) return PartitionRunner(step, cut, arguments).run(0, cut.count);
  by->run(count, [&](int64_t task) {
    PartitionRunner(step, cut, arguments)
        .run(cut.count * task / count, cut.count * (task + 1) / count);
  });
}

/// One task of a pass that is done tile by tile. `scratch` belongs to the task.
class FoldTileLoop {
 public:
  FoldTileLoop(const FoldStep& step, const int64_t* arguments, std::byte* scratch)
      : step_(step),
        tiles_(*step.tiles),
        layout_(step.operands.size(), step.space.form.rank),
        all_(arguments),
        scratch_(scratch) {
    std::copy_n(arguments, layout_.words(), arguments_);
  }

  /// The tiles from `begin` to `end`: those of a part first, then parts, then the outer axes.
  void run(int64_t begin, int64_t end) {
    for (int64_t tile = begin; tile < end; ++tile) {
      const int64_t row = tile % tiles_.row_tiles() * tiles_.rows;
      int64_t outer = tile / tiles_.row_tiles();
      const int64_t part = outer % tiles_.parts();
      outer /= tiles_.parts();
      for (size_t k = 0; k < step_.operands.size(); ++k) {
        arguments_[k] = all_[k] + part * tiles_.part_steps[k] + row * tiles_.steps[k][1] +
                        outer_distance(k, outer);
      }
      run_tile(std::min(tiles_.columns, tiles_.extents[0] - part * tiles_.columns),
               std::min(tiles_.rows, tiles_.extents[1] - row));
    }
  }

 private:
  /// From the first element to that of a combination of indices along the outer axes.
  int64_t outer_distance(size_t k, int64_t outer) const {
    int64_t bytes = 0;
    for (int axis = 2; axis < tiles_.extents.rank(); ++axis) {
      bytes += outer % tiles_.extents[axis] * tiles_.steps[k][static_cast<size_t>(axis)];
      outer /= tiles_.extents[axis];
    }
    return bytes;
  }

  void run_tile(int64_t columns, int64_t rows) {
    for (const BoundTileCopy& operand : tiles_.copies) {
      const auto& steps = tiles_.steps[operand.operand];
      std::byte* copied = scratch_ + operand.offset;
      // Rows of the copy are columns of the tensor.
      const jit::TileCopy copy = {
          .source = reinterpret_cast<const std::byte*>(arguments_[operand.operand]),
          .source_step = steps[0],
          .source_row_step = steps[1],
          .destination = copied,
          .destination_step = operand.element_bytes,
          .destination_row_step = tiles_.columns * operand.element_bytes,
          .columns = columns,
          .rows = rows};
      operand.code->call(&copy);
      arguments_[operand.operand] = number_of(copied);
    }
    arguments_[layout_.extent(0)] = columns;
    arguments_[layout_.extent(1)] = rows;
    step_.main.code->entry()(arguments_);
  }

  const FoldStep& step_;
  const FoldTiles& tiles_;
  const jit::ArgumentLayout layout_;
  const int64_t* all_;
  std::byte* const scratch_;
  int64_t arguments_[jit::max_argument_words];
};

void run_tiles(const FoldStep& step, const int64_t* arguments, const CallMemory& memory) {
  const int64_t tiles = step.tiles->count();
  const int64_t tasks = std::min(max_tasks(memory, step.main.nanoseconds), tiles);
  if (tasks <= 1) return FoldTileLoop(step, arguments, memory.scratch).run(0, tiles);
  memory.tasks->run(tasks, [&](int64_t task) {
    FoldTileLoop loop(step, arguments, scratch_of(memory, task));
    loop.run(tiles * task / tasks, tiles * (task + 1) / tasks);
  });
}

}  // namespace

void run_fold(const FoldStep& step, const CallMemory& memory) {
  start(step, memory);
  if (step.main.code == nullptr) return;  // there is nothing to fold
  int64_t arguments[jit::max_argument_words];
  fill_arguments(step, step.main, memory, arguments);
  if (step.tiles) return run_tiles(step, arguments, memory);
  const int64_t tasks =
      memory.tasks == nullptr ? 1 : memory.tasks->count_for(step.main.nanoseconds);
  if (step.partitions)
    return run_partitions(step, *step.partitions, arguments, tasks, memory.tasks);
  if (step.shared && tasks > 1) {
    return run_partitions(step, *step.shared, arguments, tasks, memory.tasks);
  }
  step.main.code->entry()(arguments);
}

}  // namespace castor::detail
