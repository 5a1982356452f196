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

}  // namespace

void run_fold(const FoldStep& step, const CallMemory& memory) {
  start(step, memory);
  if (step.main.code == nullptr) return;  // there is nothing to fold
  int64_t arguments[jit::max_argument_words];
  fill_arguments(step, step.main, memory, arguments);
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
