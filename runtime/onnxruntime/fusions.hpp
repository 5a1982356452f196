// SPDX-License-Identifier: Apache-2.0
// What ONNX Runtime makes one operator of, as far as castor leaves it alone.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "runtime/onnx/graph.hpp"

namespace castor::onnxruntime {

/// Whether a node is an operator of ONNX's own of one of these names: other domains, functions of a
/// model among them, have others.
bool is_one_of(const onnx::Node& node, std::initializer_list<std::string_view> names);

/// A product of integers for which castor is faster: ONNX Runtime has fast ones with i8 weights
/// alone.
bool is_product(const onnx::Graph& graph, const onnx::Node& node);

/// Operators that are fused with what follows them: products with their bias and activation,
/// activations with their product.
bool leads_fusions(const onnx::Graph& graph, const onnx::Node& node);
/// Those that are fused with what comes before them alone.
bool ends_fusions(const onnx::Node& node);

/// What becomes one quantized operator with a float one that is left: DequantizeLinear nodes that
/// it alone reads, QuantizeLinear nodes that read it, perhaps through an activation. A maximum pool
/// runs channels last together with the quantized convolution before it, and slowly alone: then
/// that belongs to it, too. Empty where there is no such unit.
std::vector<onnx::NodeIndex> quantized_unit_around(const onnx::Graph& graph,
                                                   onnx::NodeIndex operation);

}  // namespace castor::onnxruntime
