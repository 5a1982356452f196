// SPDX-License-Identifier: Apache-2.0
// ReduceMin, ReduceMax and ReduceSum: each is one op of castor.
#include "tests/support/onnx_elementwise_nodes.hpp"

namespace castor::test {

namespace {

/// The axes: an attribute of old opsets, an input of new ones.
std::optional<std::vector<int64_t>> axes_of(const OnnxGraphNode& node, OnnxTranslation& into) {
  if (node.has_input(1)) {
    std::vector<int64_t> axes = into.integers_of(node.inputs[1]);
    if (!axes.empty() || node.integer("noop_with_empty_axes", 0) != 0) return axes;
    return std::nullopt;
  }
  if (const OnnxNodeAttribute* axes = node.find("axes")) return axes->ints;
  if (node.integer("noop_with_empty_axes", 0) != 0) return std::vector<int64_t>();
  return std::nullopt;
}

OnnxValue reduce(const OnnxGraphNode& node, OnnxTranslation& into, OpKind op) {
  const OnnxValue x = into.input(node, 0);
  const ReductionOptions options = {.axes = axes_of(node, into),
                                    .keep_dims = node.integer("keepdims", 1) != 0};
  if (into.refusal()) return {};
  return {into.builder().reduce(op, x.id, options), x.element, {}};
}

}  // namespace

OnnxValue onnx_reduce_min(const OnnxGraphNode& node, OnnxTranslation& into) {
  return reduce(node, into, OpKind::reduce_min);
}

OnnxValue onnx_reduce_max(const OnnxGraphNode& node, OnnxTranslation& into) {
  return reduce(node, into, OpKind::reduce_max);
}

OnnxValue onnx_reduce_sum(const OnnxGraphNode& node, OnnxTranslation& into) {
  return reduce(node, into, OpKind::reduce_sum);
}

}  // namespace castor::test
