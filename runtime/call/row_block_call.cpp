// SPDX-License-Identifier: Apache-2.0
#include "runtime/call/row_block_call.hpp"

#include <memory>
#include <type_traits>

namespace castor::detail {

namespace {

/// One task of a call. `scratch` belongs to it.
class BlockLoop {
 public:
  BlockLoop(const RowBlockStep& step, const CallMemory& memory, std::byte* scratch,
            const RunBlock& run)
      : step_(step),
        memory_(memory),
        scratch_(scratch),
        inputs_(copy_of(memory.inputs, scratch + step.views)),
        outputs_(copy_of(memory.outputs, scratch + step.views + memory.inputs.size_bytes())),
        run_(run) {}

  void run(int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const Dims rows = first_row(block);
      for (size_t i = 0; i < inputs_.size(); ++i) {
        move_to(rows, step_.input_strides[i], memory_.inputs[i], inputs_[i]);
      }
      for (size_t o = 0; o < outputs_.size(); ++o) {
        move_to(rows, step_.output_strides[o], memory_.outputs[o], outputs_[o]);
      }
      const int last = rows.rank() - 1;
      const bool is_remainder = step_.extents[last] - rows[last] < step_.rows;
      run_(is_remainder ? *step_.remainder : *step_.block, {.inputs = inputs_,
                                                            .outputs = outputs_,
                                                            .scratch = scratch_,
                                                            .profile = memory_.profile});
    }
  }

 private:
  /// Copies in scratch, so that calls allocate nothing.
  template <class Pointer>
  static std::span<BasicView<Pointer>> copy_of(std::span<const BasicView<Pointer>> views,
                                               std::byte* at) {
    static_assert(std::is_trivially_destructible_v<BasicView<Pointer>>);
    auto* copies = reinterpret_cast<BasicView<Pointer>*>(at);
    std::uninitialized_copy(views.begin(), views.end(), copies);
    return {copies, views.size()};
  }

  /// The indices along the row axes at which a block begins.
  Dims first_row(int64_t block) const {
    Dims rows = step_.extents;
    const int last = rows.rank() - 1;
    rows[last] = block % step_.blocks_of_axis() * step_.rows;
    block /= step_.blocks_of_axis();
    for (int axis = last - 1; axis >= 0; --axis) {
      rows[axis] = block % step_.extents[axis];
      block /= step_.extents[axis];
    }
    return rows;
  }

  /// Blocks begin whole bytes apart, so that bits of a byte stay where they are.
  template <class Pointer>
  static void move_to(const Dims& rows, const RowBlockStep::Strides& strides,
                      const BasicView<Pointer>& all, BasicView<Pointer>& view) {
    int64_t elements = 0;
    for (int axis = 0; axis < rows.rank(); ++axis) elements += rows[axis] * strides[axis];
    const int64_t bytes = storage_byte(all.element, elements);
    using Byte = std::conditional_t<std::is_const_v<std::remove_pointer_t<Pointer>>,
                                    const std::byte, std::byte>;
    view.data = static_cast<Byte*>(all.data) + bytes;
  }

  const RowBlockStep& step_;
  const CallMemory& memory_;
  std::byte* const scratch_;
  const std::span<ConstView> inputs_;
  const std::span<View> outputs_;
  const RunBlock& run_;
};

/// Whether no two blocks write one byte.
bool blocks_share_no_byte(const CallMemory& memory) {
  return std::ranges::all_of(memory.outputs, [](const View& view) {
    return view.offset % aligned_elements(view.element) == 0;
  });
}

}  // namespace

void run_row_blocks(const RowBlockStep& step, const CallMemory& memory, const RunBlock& run) {
  const int64_t blocks = step.count();
  const int64_t tasks = std::min(max_tasks(memory, step.nanoseconds), blocks);
  if (tasks <= 1 || !blocks_share_no_byte(memory)) {
    return BlockLoop(step, memory, memory.scratch, run).run(0, blocks);
  }
  memory.tasks->run(tasks, [&](int64_t task) {
    BlockLoop loop(step, memory, scratch_of(memory, task), run);
    loop.run(blocks * task / tasks, blocks * (task + 1) / tasks);
  });
}

}  // namespace castor::detail
