// SPDX-License-Identifier: Apache-2.0
#include "runtime/sub_byte_call.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "runtime/nest_call.hpp"

namespace castor::detail {

namespace {

/// Whether a sub-byte operand that the main code takes as contiguous begins inside a byte, or
/// inside a group of the split layouts.
bool starts_inside_a_byte(const BoundNest& nest, std::span<const ConstView> inputs,
                          std::span<const View> outputs) {
  for (size_t k = 0; k < nest.operands.size(); ++k) {
    const OperandOrigin& operand = nest.operands[k];
    if (operand.kind == OperandOrigin::Kind::constant) continue;
    if (nest.main.access[k] == jit::Access::bitwise) continue;
    const int64_t aligned = jit::aligned_elements(element_of(operand, inputs, outputs));
    if (origin_of(operand, inputs, outputs).offset % aligned != 0) return true;
  }
  return false;
}

/// The end of a sub-byte output that does not fill its last byte (of the split layouts, its last
/// group of three bytes). A dense view that begins at element 0 has the unused bits written as 0,
/// any other leaves them alone (DESIGN.md, Element types); code does the one where it takes the
/// output as contiguous, the other where it goes bit by bit.
class LastBytes {
 public:
  /// `bitwise`: whether the code goes bit by bit.
  LastBytes(const BoundTensor& tensor, const View& view, bool bitwise) {
    const bool clears = view.offset == 0 && is_dense(tensor);
    if (bitwise && !clears) return;
    const int64_t past = view.offset + tensor.last_index + 1;
    const int64_t rest = past % jit::aligned_elements(tensor.element);
    if (rest == 0) return;
    const int64_t first = past - rest;
    const int64_t begin = first * bits_of(tensor.element) / 8;
    at_ = static_cast<uint8_t*>(view.data) + begin;
    count_ = static_cast<size_t>(byte_size(tensor.element, past).value_or(0) - begin);
    for (int64_t index = first; index < past; ++index) {
      for (int bit = 0; bit < bits_of(tensor.element); ++bit) {
        const int64_t place = storage_bit(tensor.element, index, bit) - begin * 8;
        own_[static_cast<size_t>(place / 8)] |= static_cast<uint8_t>(1 << place % 8);
      }
    }
    if (!clears) std::copy_n(at_, count_, before_.begin());
  }

  /// After the code has run.
  void finish() const {
    for (size_t i = 0; i < count_; ++i) {
      at_[i] = static_cast<uint8_t>((at_[i] & own_[i]) | (before_[i] & ~own_[i]));
    }
  }

 private:
  uint8_t* at_ = nullptr;
  size_t count_ = 0;
  std::array<uint8_t, 3> own_ = {};     ///< bits of the output's elements
  std::array<uint8_t, 3> before_ = {};  ///< what the other bits are to be
};

}  // namespace

void run_sub_byte_nest(const BoundState& bound, const BoundNest& nest, bool streaming,
                       std::span<const ConstView> inputs, std::span<const View> outputs) {
  const bool any_start =
      nest.any_start.code != nullptr && starts_inside_a_byte(nest, inputs, outputs);
  const BoundCode& code = any_start ? nest.any_start : nest.main;
  std::array<std::optional<LastBytes>, jit::most_outputs> ends;
  size_t count = 0;
  for (size_t k = 0; k < nest.operands.size(); ++k) {
    const OperandOrigin& operand = nest.operands[k];
    if (operand.kind != OperandOrigin::Kind::output) continue;
    const View& view = outputs[operand.index];
    if (!is_sub_byte(view.element)) continue;
    ends[count++].emplace(bound.outputs[operand.index], view,
                          code.access[k] == jit::Access::bitwise);
  }
  call(nest, streaming && !any_start ? *nest.streaming : *code.code, code, inputs, outputs);
  for (size_t i = 0; i < count; ++i) ends[i]->finish();
}

}  // namespace castor::detail
