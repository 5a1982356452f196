// SPDX-License-Identifier: Apache-2.0
// What calls of convolutions of every form share: operands, and work for tasks.
#pragma once

#include <algorithm>
#include <array>

#include "runtime/call/nest_call.hpp"
#include "runtime/conv/convolution_step.hpp"

namespace castor::detail {

/// Where the operands of a call lie, y last; null behind it.
using CallOperands = std::array<const std::byte*, 5>;

inline CallOperands operands_of(const ConvolutionStep& step, const CallMemory& memory) {
  CallOperands operands = {};
  for (size_t k = 0; k < step.operands.size(); ++k) {
    operands[k] = reinterpret_cast<const std::byte*>(address(step.operands[k], memory));
  }
  return operands;
}

/// Shares out `parts` to at most `max` tasks: each calls run.run(begin, end, scratch) once,
/// `scratch` being that offset of a scratch of its own.
template <class Run>
void share_out(const Run& run, int64_t parts, int64_t max, const CallMemory& memory,
               size_t offset) {
  const int64_t tasks = std::min(max, parts);
  if (tasks <= 1) return run.run(0, parts, memory.scratch + offset);
  memory.tasks->run(tasks, [&](int64_t index) {
    run.run(parts * index / tasks, parts * (index + 1) / tasks, scratch_of(memory, index) + offset);
  });
}

}  // namespace castor::detail
