// SPDX-License-Identifier: Apache-2.0
#include "runtime/call_scratch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace castor::detail {

namespace {

Error invalid(std::string message) { return {ErrorCode::invalid_argument, std::move(message)}; }

/// Whether the tensor has bytes between two addresses.
template <class Pointer>
bool reaches_into(const BoundTensor& tensor, const BasicView<Pointer>& view, uintptr_t begin,
                  uintptr_t end) {
  const Footprint at = footprint(tensor, view);
  return at.begin < end && begin < at.end && !at.empty();
}

Status check_apart(const BoundState& bound, std::span<const std::byte> given,
                   std::span<const ConstView> inputs, std::span<const View> outputs) {
  const auto begin = reinterpret_cast<uintptr_t>(given.data());
  const uintptr_t end = begin + given.size();
  const auto overlaps = [](const BoundTensor& tensor) {
    return invalid(fmt::format("scratch overlaps {}; expected memory of its own", tensor.what));
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (reaches_into(bound.inputs[i], inputs[i], begin, end)) return overlaps(bound.inputs[i]);
  }
  for (size_t o = 0; o < outputs.size(); ++o) {
    if (reaches_into(bound.outputs[o], outputs[o], begin, end)) return overlaps(bound.outputs[o]);
  }
  return {};
}

std::string in_words(int tasks) {
  return tasks <= 1 ? std::string() : fmt::format(" for {} tasks", tasks);
}

}  // namespace

size_t more_tasks(const BoundState& bound, int tasks) {
  if (tasks <= 1) return 0;
  const bool has_convolution = std::ranges::any_of(
      bound.nests, [](const BoundNest& nest) { return nest.convolution != nullptr; });
  return has_convolution ? static_cast<size_t>(tasks - 1) : 0;
}

size_t scratch_bytes(const BoundState& bound, int tasks) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(bound.scratch_bytes, 1 + more_tasks(bound, tasks), &bytes)) {
    return SIZE_MAX;
  }
  return bytes;
}

Status check_scratch(const BoundState& bound, std::span<const std::byte> given, int tasks,
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
    return invalid(fmt::format("scratch at {}, {} behind a multiple of {}; expected a multiple",
                               static_cast<const void*>(given.data()), past, scratch_alignment));
  }
  return check_apart(bound, given.first(needed), inputs, outputs);
}

}  // namespace castor::detail
