// SPDX-License-Identifier: Apache-2.0
// Reading attribute lists.
#pragma once

#include "ir/attribute.hpp"
#include "ir/op.hpp"
#include "ir/text/cursor.hpp"

namespace castor::text {

/// The attributes of an operation, `{key = value, ...}` or nothing: those of its row, each once.
/// The row's kind decides what `nan`, `inf`, `true`, `false` (an identifier where it wants one) and
/// `1` (a float where it wants one) stand for.
Attributes read_attributes(Cursor& cursor, const OpInfo& row);

/// The attributes of a function, in braces, with any names.
Attributes read_function_attributes(Cursor& cursor);

}  // namespace castor::text
