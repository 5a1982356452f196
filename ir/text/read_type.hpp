// SPDX-License-Identifier: Apache-2.0
// Reading tensor types.
#pragma once

#include <string_view>

#include "ir/builder.hpp"
#include "ir/op.hpp"
#include "ir/shape/shape.hpp"
#include "ir/text/cursor.hpp"

namespace castor::text {

/// `f32[1, ?, ?n]`, verified; `what` names its owner in messages.
TensorType read_type(Cursor& cursor, std::string_view what);

/// The type suffix of an operation, `: f32`, `: [2, 3]` or `: f32[2, 3]`, as far as the op's row
/// requires or the text gives it.
WrittenType read_suffix(Cursor& cursor, const OpInfo& row, std::string_view what);

}  // namespace castor::text
