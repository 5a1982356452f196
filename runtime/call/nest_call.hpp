// SPDX-License-Identifier: Apache-2.0
// One call of a nest's code: where its operands begin, and the argument block that says so. Inline,
// because a call of a small tensor takes a few tens of nanoseconds.
#pragma once

#include <algorithm>
#include <span>

#include "ir/types/storage.hpp"
#include "ir/types/view.hpp"
#include "runtime/bind/elementwise_step.hpp"
#include "runtime/call/call_profile.hpp"
#include "runtime/call/call_tasks.hpp"
#include "runtime/memory/task_scratch.hpp"

namespace castor::detail {

/// Where an operand's elements are counted from, and the first one's number.
struct Origin {
  int64_t data = 0;
  int64_t offset = 0;
};

struct CallMemory;

/// Copies the periods of periodic operands to scratch, and points the arguments there.
void copy_periods(const ElementwiseStep& step, const CallMemory& memory, int64_t* arguments);

template <class Pointer>
Origin origin_of(const BasicView<Pointer>& view) {
  return {static_cast<int64_t>(reinterpret_cast<uintptr_t>(view.data)), view.offset};
}

/// The tensors and the scratch of one call.
struct CallMemory {
  std::span<const ConstView> inputs;
  std::span<const View> outputs;
  std::byte* scratch = nullptr;
  CallTasks* tasks = nullptr;      ///< null: all is done by the caller's thread
  TaskScratch task_scratch = {};   ///< scratch of all tasks but the first
  CallProfile* profile = nullptr;  ///< gets the times of what is done; null: nobody asks
};

/// Maximum number of tasks with scratch of their own, for a nest that takes one thread so long.
inline int64_t max_tasks(const CallMemory& memory, int64_t nanoseconds) {
  if (memory.tasks == nullptr) return 1;
  const auto scratch = static_cast<int64_t>(1 + memory.task_scratch.size());
  return std::min(memory.tasks->count_for(nanoseconds), scratch);
}

/// The scratch of a task: the first one's is the call's.
inline std::byte* scratch_of(const CallMemory& memory, int64_t task) {
  return task == 0 ? memory.scratch : memory.task_scratch[static_cast<size_t>(task) - 1];
}

/// Calls the code part by part, by several tasks.
void call_split(const ElementwiseStep& step, const KernelCode<jit::NestSpec>& code,
                const BoundCode& bound, const int64_t* arguments, int64_t tasks, CallTasks& by);

inline int64_t number_of(const void* address) {
  return static_cast<int64_t>(reinterpret_cast<uintptr_t>(address));
}

/// The origin of the tensor that the operand is, or is a part of.
inline Origin tensor_origin_of(const OperandOrigin& operand, const CallMemory& memory) {
  switch (operand.kind) {
    case OperandOrigin::Kind::input: return origin_of(memory.inputs[operand.index]);
    case OperandOrigin::Kind::output: return origin_of(memory.outputs[operand.index]);
    case OperandOrigin::Kind::scratch: return {number_of(memory.scratch + operand.offset), 0};
    case OperandOrigin::Kind::constant: break;
  }
  return {number_of(operand.constant), 0};
}

inline Origin origin_of(const OperandOrigin& operand, const CallMemory& memory) {
  Origin origin = tensor_origin_of(operand, memory);
  origin.data += operand.displacement;
  return origin;
}

/// Address of the first element; of sub-byte elements that of its byte.
inline int64_t address(const Origin& origin, ElementType element) {
  return origin.data + storage_byte(element, origin.offset);
}
inline int64_t address(const StepOperand& operand, const CallMemory& memory) {
  return address(origin_of(operand.origin, memory), operand.element);
}

/// Makes a copy of the argument block that has this call's pointers.
inline void fill_arguments(const LaneStep& step, const BoundCode& bound, const CallMemory& memory,
                           int64_t* arguments) {
  std::copy(bound.arguments.begin(), bound.arguments.end(), arguments);
  for (size_t k = 0; k < step.operands.size(); ++k) {
    const Origin origin = origin_of(step.operands[k].origin, memory);
    const ElementType element = step.operands[k].element;
    if (jit::counts_elements(bound.access[k], element)) {
      arguments[k] = origin.offset;
      arguments[step.first_base + k] = origin.data;
    } else {
      arguments[k] = address(origin, element);
    }
  }
}

/// Calls the code with a copy of the argument block; in parts, where the call has tasks and the
/// nest is large.
inline void call(const ElementwiseStep& step, const KernelCode<jit::NestSpec>& code,
                 const BoundCode& bound, const CallMemory& memory) {
  int64_t arguments[jit::max_argument_words];
  fill_arguments(step, bound, memory, arguments);
  if (!step.periods.empty()) copy_periods(step, memory, arguments);
  const int64_t tasks = memory.tasks == nullptr ? 1 : memory.tasks->count_for(bound.nanoseconds);
  if (tasks > 1) return call_split(step, code, bound, arguments, tasks, *memory.tasks);
  code.entry()(arguments);
}

}  // namespace castor::detail
