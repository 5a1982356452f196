// SPDX-License-Identifier: Apache-2.0
// The literals of a constant: one, or lists of them, from text to dense data and back.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "ir/shape/shape.hpp"
#include "ir/text/cursor.hpp"

namespace castor::text {

/// Passes over one literal or over nested lists of them, whose type follows them.
void skip_literals(Cursor& cursor);

/// The dense data, in storage order, of the literals that stand here. A type of rank 0 takes one
/// literal, any other a list: flat, or nested by the shape. `type` is verified.
std::vector<std::byte> read_literals(Cursor& cursor, const TensorType& type);

/// What `read_literals` reads back to the same bytes, nested by the shape (`[]` for no elements).
std::string literals_text(std::span<const std::byte> bytes, const TensorType& type);

}  // namespace castor::text
