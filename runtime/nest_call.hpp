// SPDX-License-Identifier: Apache-2.0
// One call of a nest's code: where its operands begin, and the argument block that says so. Inline,
// because a call of a small tensor takes a few tens of nanoseconds.
#pragma once

#include <algorithm>
#include <span>

#include "ir/storage.hpp"
#include "runtime/state.hpp"

namespace castor::detail {

/// Where an operand's elements are counted from, and the first one's number.
struct Origin {
  int64_t data = 0;
  int64_t offset = 0;
};

template <class Pointer>
Origin origin_of(const BasicView<Pointer>& view) {
  return {static_cast<int64_t>(reinterpret_cast<uintptr_t>(view.data)), view.offset};
}

inline Origin origin_of(const OperandOrigin& operand, std::span<const ConstView> inputs,
                        std::span<const View> outputs) {
  switch (operand.kind) {
    case OperandOrigin::Kind::input: return origin_of(inputs[operand.index]);
    case OperandOrigin::Kind::output: return origin_of(outputs[operand.index]);
    case OperandOrigin::Kind::constant: break;
  }
  return {static_cast<int64_t>(reinterpret_cast<uintptr_t>(operand.constant)), 0};
}

inline ElementType element_of(const OperandOrigin& operand, std::span<const ConstView> inputs,
                              std::span<const View> outputs) {
  return operand.kind == OperandOrigin::Kind::input ? inputs[operand.index].element
                                                    : outputs[operand.index].element;
}

/// Address of the first element; of sub-byte elements that of its byte.
inline int64_t address(const Origin& origin, ElementType element) {
  return origin.data + storage_byte(element, origin.offset);
}

/// Calls the code with a copy of the argument block that has this call's pointers.
inline void call(const BoundNest& nest, const NestCode& code, const BoundCode& bound,
                 std::span<const ConstView> inputs, std::span<const View> outputs) {
  int64_t arguments[jit::most_argument_words];
  std::copy(bound.arguments.begin(), bound.arguments.end(), arguments);
  for (size_t k = 0; k < nest.operands.size(); ++k) {
    const OperandOrigin& operand = nest.operands[k];
    const Origin origin = origin_of(operand, inputs, outputs);
    if (bound.access[k] == jit::Access::bitwise) {
      arguments[k] = origin.offset;
      arguments[nest.first_base + k] = origin.data;
    } else if (operand.kind == OperandOrigin::Kind::constant) {
      arguments[k] = origin.data;
    } else {
      arguments[k] = address(origin, element_of(operand, inputs, outputs));
    }
  }
  code.entry()(arguments);
}

}  // namespace castor::detail
