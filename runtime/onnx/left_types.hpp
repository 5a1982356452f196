// SPDX-License-Identifier: Apache-2.0
// Types of what nodes that castor leaves compute, so that those after them can be taken.
#pragma once

#include "runtime/onnx/graph.hpp"

namespace castor::onnx {

/// Sets the types of a node's outputs that nobody declared, as far as its operator is known:
/// pooling, convolutions and products of floats, normalizations, functions of one number,
/// Transpose, Concat.
void infer_left_types(Graph& graph, NodeIndex node);

}  // namespace castor::onnx
