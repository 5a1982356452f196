// SPDX-License-Identifier: Apache-2.0
#include "runtime/call/sub_byte_call.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "ir/types/elements.hpp"
#include "runtime/call/tiled_call.hpp"

namespace castor::detail {

namespace {

/// Whether a sub-byte operand that the main code takes as contiguous begins inside a byte, or
/// inside a group of the split layouts.
bool starts_inside_a_byte(const ElementwiseStep& step, const CallMemory& memory) {
  for (size_t k = 0; k < step.operands.size(); ++k) {
    if (step.main.access[k] != jit::Access::contiguous) continue;
    const int64_t aligned = aligned_elements(step.operands[k].element);
    if (origin_of(step.operands[k].origin, memory).offset % aligned != 0) return true;
  }
  return false;
}

/// Keeps the bits after the last element of an output, which code that takes the output as
/// contiguous writes as 0, over a call.
class SharedEnd {
 public:
  SharedEnd(const BoundTensor& tensor, const View& view)
      : element_(tensor.element), past_(view.offset + tensor.last_index + 1) {
    first_ = past_ - past_ % aligned_elements(element_);
    const int64_t begin = storage_byte(element_, first_);
    data_ = static_cast<std::byte*>(view.data) + begin;
    count_ = static_cast<size_t>(byte_size(element_, past_).value_or(begin) - begin);
    std::copy_n(data_, count_, before_.begin());
  }

  /// Puts the output's own last elements among what was there.
  void restore() {
    for (int64_t i = 0; i < past_ - first_; ++i) {
      write_element(before_.data(), element_, i, read_element(data_, element_, i));
    }
    std::copy_n(before_.begin(), count_, data_);
  }

 private:
  ElementType element_;
  int64_t past_;       ///< one past the last element
  int64_t first_ = 0;  ///< element with which its bytes begin
  std::byte* data_ = nullptr;
  size_t count_ = 0;  ///< 0 where the last element ends its byte, or group
  std::array<std::byte, 3> before_ = {};
};

/// Calls visit(operand, index among the outputs) for each.
template <class Visit>
void for_each_sub_byte_output(const ElementwiseStep& step, std::span<const View> outputs,
                              Visit visit) {
  for (size_t k = step.first_output; k < step.operands.size(); ++k) {
    const OperandOrigin& origin = step.operands[k].origin;
    const bool is_output = origin.kind == OperandOrigin::Kind::output;
    if (is_output && is_sub_byte(outputs[origin.index].element)) visit(k, origin.index);
  }
}

}  // namespace

void run_sub_byte_step(std::span<const BoundTensor> outputs, const ElementwiseStep& step,
                       bool streaming, const CallMemory& memory) {
  const std::span<const View> views = memory.outputs;
  const bool any_start = step.any_start && starts_inside_a_byte(step, memory);
  const BoundCode& code = any_start ? *step.any_start : step.main;
  // A dense output that begins at element 0 has the unused bits of its last byte written as 0, any
  // other keeps them (ir/README.md, Element types). Contiguous code does the one, bitwise code the
  // other; where that is not what the view asks for, it is made up for here.
  // Tiles keep them, whether their code is bitwise or copies are.
  const auto keeps_bits = [&](size_t k) {
    return step.tiles || code.access[k] == jit::Access::bitwise;
  };
  std::array<std::optional<SharedEnd>, jit::max_outputs> ends;
  size_t kept = 0;
  for_each_sub_byte_output(step, views, [&](size_t k, size_t index) {
    const bool clears = views[index].offset == 0 && is_dense(outputs[index]);
    if (clears || keeps_bits(k)) return;
    ends[kept++].emplace(outputs[index], views[index]);
  });
  const KernelCode<jit::NestSpec>& kernel = streaming && !any_start ? *step.streaming : *code.code;
  step.tiles ? call_tiled(step, kernel, memory) : call(step, kernel, code, memory);
  for (size_t i = 0; i < kept; ++i) ends[i]->restore();
  for_each_sub_byte_output(step, views, [&](size_t k, size_t index) {
    const bool clears = views[index].offset == 0 && is_dense(outputs[index]);
    if (!clears || !keeps_bits(k)) return;
    const BoundTensor& tensor = outputs[index];
    clear_unused_bits(static_cast<std::byte*>(views[index].data), tensor.element, tensor.count);
  });
}

}  // namespace castor::detail
