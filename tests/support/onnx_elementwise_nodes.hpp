// SPDX-License-Identifier: Apache-2.0
// ONNX's nodes as castor's ops: one rule for each op_type that ops of castor express exactly.
#pragma once

#include <string_view>

#include "tests/support/onnx_elementwise_translation.hpp"

namespace castor::test {

/// Whether there is a rule for nodes of this kind.
bool has_onnx_rule(std::string_view op_type);

/// Whether every node computes each element from one element of each input, or moves elements as
/// `broadcast` and `reshape` do, whatever castor can do of it; and not all are constants and casts.
bool is_onnx_elementwise(const OnnxGraphTest& test);

/// Appends what the node computes and defines its output.
void translate(const OnnxGraphNode& node, OnnxTranslation& into);

// Rules of their own files.
OnnxValue onnx_expand(const OnnxGraphNode& node, OnnxTranslation& into);
OnnxValue onnx_reshape(const OnnxGraphNode& node, OnnxTranslation& into);
OnnxValue onnx_flatten(const OnnxGraphNode& node, OnnxTranslation& into);
OnnxValue onnx_squeeze(const OnnxGraphNode& node, OnnxTranslation& into);
OnnxValue onnx_unsqueeze(const OnnxGraphNode& node, OnnxTranslation& into);
OnnxValue onnx_quantize_linear(const OnnxGraphNode& node, OnnxTranslation& into);
OnnxValue onnx_dequantize_linear(const OnnxGraphNode& node, OnnxTranslation& into);
OnnxValue onnx_dynamic_quantize_linear(const OnnxGraphNode& node, OnnxTranslation& into);
OnnxValue onnx_reduce_min(const OnnxGraphNode& node, OnnxTranslation& into);
OnnxValue onnx_reduce_max(const OnnxGraphNode& node, OnnxTranslation& into);
OnnxValue onnx_reduce_sum(const OnnxGraphNode& node, OnnxTranslation& into);

}  // namespace castor::test
