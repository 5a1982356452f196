// SPDX-License-Identifier: Apache-2.0
// Operands of ops on 8-bit integers with zero points, as far as they are known: inside ir/ only.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "ir/op.hpp"
#include "ir/shape/shape.hpp"

namespace castor::detail {

/// Two operands, then their zero points.
using ByteOperandNames = std::array<std::string_view, 4>;

/// The first two are i8 or u8, each for itself; a zero point, null where absent, has its operand's
/// type. The error names the operand, what was found and what was expected.
Status check_byte_operands(OpKind op, const ByteOperandNames& names,
                           std::span<const TensorType* const> operands);

/// The extents of a shape; of an unknown one Dim::unknown_extent.
Dims known_extents(const Shape& shape);

}  // namespace castor::detail
