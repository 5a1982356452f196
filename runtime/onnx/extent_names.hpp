// SPDX-License-Identifier: Apache-2.0
// What extents that a graph does not know are called. Equal names say equal extents, so two names
// must never become one.
#pragma once

#include <string>
#include <string_view>

#include "runtime/onnx/graph.hpp"

namespace castor::onnx {

/// Any name as an identifier of castor's text form: letters, digits and underscores. Several names
/// may become one.
std::string identifier(std::string_view name);

/// The name of an extent that has none in the graph.
std::string generated_name(ValueIndex value, size_t axis);

/// Makes the names of all extents identifiers, equal ones where names were equal and no others, and
/// none that `generated_name` gives: "s0 + 1" and "s0 - 1" become s0___1 and s0___1_2. Changes
/// nothing the second time.
void name_extents(Graph& graph);

/// Makes every unknown extent one of its own: nothing says that any two are equal.
void forget_extent_names(Graph& graph);

/// Whether an unknown extent's name says that two axes of a function's parameters are equal.
bool has_equal_extents(const Function& function);

}  // namespace castor::onnx
