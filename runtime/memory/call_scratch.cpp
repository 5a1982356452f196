// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory/call_scratch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace castor::detail {

namespace {

Error invalid(std::string message) { return {ErrorCode::invalid_argument, std::move(message)}; }

/// Whether scratch shares a byte with a tensor, as far as that can be told.
template <class Pointer>
bool may_share(std::span<const std::byte> scratch, const BoundTensor& tensor,
               const BasicView<Pointer>& view, int64_t& steps) {
  const auto begin = reinterpret_cast<uintptr_t>(scratch.data());
  const Footprint at = footprint(tensor, view);
  return find_overlap(tensor, at, begin, scratch.size(), steps) != Overlap::apart;
}

Status check_apart(const BoundState& bound, std::span<const std::byte> given,
                   std::span<const ConstView> inputs, std::span<const View> outputs) {
  int64_t steps = max_overlap_steps;
  const auto overlaps = [](const BoundTensor& tensor) {
    return invalid(fmt::format("scratch overlaps {}; expected memory of its own", tensor.what));
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (may_share(given, bound.inputs[i], inputs[i], steps)) return overlaps(bound.inputs[i]);
  }
  for (size_t o = 0; o < outputs.size(); ++o) {
    if (may_share(given, bound.outputs[o], outputs[o], steps)) return overlaps(bound.outputs[o]);
  }
  return {};
}

std::string in_words(int64_t tasks) {
  return tasks <= 1 ? std::string() : fmt::format(" for {} tasks", tasks);
}

/// Tasks that a step may be split into and that write to scratch of their own: 1 for all but
/// convolutions, tiles and blocks of rows.
struct TasksWithScratch {
  const CallTasks& tasks;

  int64_t operator()(const EmptyStep&) const { return 1; }
  int64_t operator()(const PaddingStep&) const { return 1; }
  int64_t operator()(const ElementwiseStep& step) const {
    return step.tiles ? tasks.count_for(step.main.nanoseconds) : 1;
  }
  int64_t operator()(const FoldStep& step) const {
    return step.tiles ? tasks.count_for(step.main.nanoseconds) : 1;
  }
  int64_t operator()(const RowBlockStep& step) const { return tasks.count_for(step.nanoseconds); }
  int64_t operator()(const ConvolutionStep& step) const {
    return tasks.count_for(step.nanoseconds);
  }
  int64_t operator()(const BoundRequantization& requantization) const {
    int64_t max = 1;
    for (const BoundMethod& method : requantization.methods) {
      max = std::max(max, (*this)(method.step));
    }
    return max;
  }
  int64_t operator()(const RequantizeStep& step) const { return (*this)(step.requantization); }
  int64_t operator()(const TableStep& step) const {
    const auto* tables = std::get_if<CallTables>(&step.tables);
    return tables == nullptr ? 1 : (*this)(tables->requantization);
  }
};

/// Whether there may be several of those.
struct SplitsScratch {
  bool operator()(const EmptyStep&) const { return false; }
  bool operator()(const PaddingStep&) const { return false; }
  bool operator()(const ElementwiseStep& step) const { return step.tiles.has_value(); }
  bool operator()(const FoldStep& step) const { return step.tiles.has_value(); }
  bool operator()(const RowBlockStep&) const { return true; }
  bool operator()(const ConvolutionStep&) const { return true; }
  bool operator()(const BoundRequantization& requantization) const {
    return std::ranges::any_of(requantization.methods, *this, &BoundMethod::step);
  }
  bool operator()(const RequantizeStep& step) const { return (*this)(step.requantization); }
  bool operator()(const TableStep& step) const {
    const auto* tables = std::get_if<CallTables>(&step.tables);
    return tables != nullptr && (*this)(tables->requantization);
  }
};

}  // namespace

size_t more_tasks(const BoundState& bound, const CallTasks& tasks) {
  int64_t max = 1;
  for (const Step& step : bound.steps) {
    max = std::max(max, std::visit(TasksWithScratch{tasks}, step));
  }
  return static_cast<size_t>(max - 1);
}

size_t scratch_bytes(const BoundState& bound, int64_t tasks) {
  const bool splits = tasks > 1 && std::ranges::any_of(bound.steps, [](const Step& step) {
                        return std::visit(SplitsScratch(), step);
                      });
  const int64_t blocks = splits ? std::min(tasks, CallTasks::max_tasks) : 1;
  size_t bytes = 0;
  if (__builtin_mul_overflow(bound.scratch_bytes, blocks, &bytes)) return SIZE_MAX;
  return bytes;
}

Status check_scratch(const BoundState& bound, std::span<const std::byte> given, int64_t tasks,
                     std::span<const ConstView> inputs, std::span<const View> outputs) {
  if (given.empty() && bound.keeps_scratch) return {};
  const size_t needed = scratch_bytes(bound, tasks);
  if (needed == 0) return {};
  if (given.empty()) {
    return invalid(
        fmt::format("no scratch; expected {} bytes{}, as the kernel was bound to scratch "
                    "of the caller",
                    needed, in_words(tasks)));
  }
  if (given.size() < needed) {
    return invalid(fmt::format("scratch of {} bytes; expected {} or more{}", given.size(), needed,
                               in_words(tasks)));
  }
  const size_t past = reinterpret_cast<uintptr_t>(given.data()) % scratch_alignment;
  if (past != 0) {
    return invalid(fmt::format("scratch at {}, {} above a multiple of {}; expected a multiple",
                               static_cast<const void*>(given.data()), past, scratch_alignment));
  }
  return check_apart(bound, given.first(needed), inputs, outputs);
}

}  // namespace castor::detail
