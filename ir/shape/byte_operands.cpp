// SPDX-License-Identifier: Apache-2.0
#include "ir/shape/byte_operands.hpp"

#include <fmt/format.h>

namespace castor::detail {

namespace {

Error mistake(OpKind op, std::string_view name, ElementType found, const std::string& expected) {
  return {ErrorCode::invalid_function,
          fmt::format("{}: {} is {}, expected {}", name_of(op), name, name_of(found), expected)};
}

}  // namespace

Status check_byte_operands(OpKind op, const ByteOperandNames& names,
                           std::span<const TensorType* const> operands) {
  for (size_t i = 0; i < 2; ++i) {
    const ElementType found = operands[i]->element;
    if (admits(OperandClass::byte, found)) continue;
    return mistake(op, names[i], found, std::string(name_of(OperandClass::byte)));
  }
  for (size_t i = 2; i < 4; ++i) {
    const ElementType expected = operands[i - 2]->element;
    if (!operands[i] || operands[i]->element == expected) continue;
    return mistake(op, names[i], operands[i]->element,
                   fmt::format("{} as {} is", name_of(expected), names[i - 2]));
  }
  return {};
}

Dims known_extents(const Shape& shape) {
  Dims extents;
  for (const Dim& dim : shape) extents.push_back(dim.extent);
  return extents;
}

}  // namespace castor::detail
