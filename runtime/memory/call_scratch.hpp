// SPDX-License-Identifier: Apache-2.0
// The scratch of one call: what the caller gives, or what the bound kernel keeps.
#pragma once

#include <span>

#include "runtime/bind/bound_state.hpp"
#include "runtime/call/call_tasks.hpp"

namespace castor::detail {

/// Tasks of a call that need scratch of their own, beside the first.
size_t more_tasks(const BoundState& bound, const CallTasks& tasks);
/// Bytes of scratch that a call by `tasks` tasks may need; SIZE_MAX where they cannot be counted.
size_t scratch_bytes(const BoundState& bound, int64_t tasks);

/// Refuses scratch that is too small for `tasks` tasks, not aligned, or not apart from the tensors,
/// whose views are checked; and no scratch where the kernel keeps none.
Status check_scratch(const BoundState& bound, std::span<const std::byte> given, int64_t tasks,
                     std::span<const ConstView> inputs, std::span<const View> outputs);

/// The scratch of a call, for its duration. Inline, because a call of a small tensor takes a few
/// tens of nanoseconds.
class CallScratch {
 public:
  /// `given` is checked, or empty. Throws std::bad_alloc.
  CallScratch(const BoundState& bound, std::span<std::byte> given, const CallTasks& tasks)
      : bytes_(bound.scratch_bytes),
        more_(tasks.max() <= 1 ? 0 : more_tasks(bound, tasks)),
        given_(given.empty() ? nullptr : given.data()),
        kept_(bytes_ > 0 && given_ == nullptr ? &bound.scratch : nullptr),
        kept_of_tasks_(kept_.data() != nullptr && more_ > 0 ? &bound.task_scratch : nullptr,
                       more_) {}

  std::byte* data() const { return given_ != nullptr ? given_ : kept_.data(); }
  /// The scratch of each task but the first, equally many bytes per task.
  TaskScratch of_tasks() const {
    if (kept_.data() != nullptr && more_ > 0) return kept_of_tasks_.data();
    return {given_ == nullptr ? nullptr : given_ + bytes_, bytes_, more_};
  }

 private:
  const size_t bytes_;
  const size_t more_;
  std::byte* const given_;
  const ScratchPool::Block kept_;
  const TaskScratchPool::Blocks kept_of_tasks_;
};

}  // namespace castor::detail
