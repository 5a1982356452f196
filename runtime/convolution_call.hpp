// SPDX-License-Identifier: Apache-2.0
// What calls of convolutions of every form share: operands, and work for tasks.
#pragma once

#include <algorithm>
#include <array>

#include "runtime/nest_call.hpp"

namespace castor::detail {

/// Where the operands of a call lie, y last; null behind it.
using CallOperands = std::array<const std::byte*, 5>;

inline CallOperands operands_of(const BoundNest& nest, const CallMemory& memory) {
  CallOperands operands = {};
  for (size_t k = 0; k < nest.operands.size(); ++k) {
    operands[k] = reinterpret_cast<const std::byte*>(
        address(origin_of(nest.operands[k], memory), nest.elements[k]));
  }
  return operands;
}

/// Tasks of a call at the most.
inline int64_t most_tasks(const CallMemory& memory) {
  return static_cast<int64_t>(1 + memory.task_scratch.size());
}

/// Shares out `parts` to the call's tasks: each calls run.run(begin, end, scratch) once, `scratch`
/// being that offset of a scratch of its own.
template <class Run>
void share_out(const Run& run, int64_t parts, const CallMemory& memory, size_t offset) {
  const int64_t tasks = std::min(most_tasks(memory), parts);
  if (tasks == 1) return run.run(0, parts, memory.scratch + offset);
  struct Share {
    const Run& run;
    const CallMemory& memory;
    int64_t parts;
    int64_t tasks;
    size_t offset;
  } share = {run, memory, parts, tasks, offset};
  const auto task = [](void* context, int index) {
    const auto& of = *static_cast<const Share*>(context);
    std::byte* scratch =
        index == 0 ? of.memory.scratch : of.memory.task_scratch[static_cast<size_t>(index) - 1];
    of.run.run(of.parts * index / of.tasks, of.parts * (index + 1) / of.tasks, scratch + of.offset);
  };
  memory.executor->run(static_cast<int>(tasks), task, &share);
}

}  // namespace castor::detail
