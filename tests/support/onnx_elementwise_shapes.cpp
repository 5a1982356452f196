// SPDX-License-Identifier: Apache-2.0
// Rules of nodes that say shapes: broadcast and reshape.
#include "tests/support/onnx_elementwise_nodes.hpp"

namespace castor::test {

namespace {

/// Axes by the node's second input or, before Squeeze-13 and Unsqueeze-13, by its attribute.
std::optional<std::vector<int64_t>> axes_of(const OnnxGraphNode& node, OnnxTranslation& into) {
  if (node.has_input(1)) return into.integers_of(node.inputs[1]);
  const OnnxNodeAttribute* axes = node.find("axes");
  if (axes == nullptr) return std::nullopt;
  return axes->ints;
}

/// Whether each axis of a shape of that rank is one of `axes`, of which negative ones count from
/// the end.
std::vector<bool> marked(const std::vector<int64_t>& axes, int rank) {
  std::vector<bool> marks(static_cast<size_t>(rank));
  for (int64_t axis : axes) marks.at(static_cast<size_t>(axis < 0 ? axis + rank : axis)) = true;
  return marks;
}

}  // namespace

OnnxValue onnx_expand(const OnnxGraphNode& node, OnnxTranslation& into) {
  const OnnxValue x = into.input(node, 0);
  const Dims target(into.integers_of(node.inputs[1]));
  return into.broadcast(x, target, BroadcastMode::bidirectional);
}

/// Reshape-14: 0 copies the extent (unless allowzero), one -1 is what the count leaves.
OnnxValue onnx_reshape(const OnnxGraphNode& node, OnnxTranslation& into) {
  const OnnxValue x = into.input(node, 0);
  const Dims from = into.extents_of(x);
  const bool zero_is_zero = node.integer("allowzero", 0) != 0;
  Shape target;
  for (int64_t wanted : into.integers_of(node.inputs[1])) {
    const auto axis = static_cast<int>(target.size());
    const bool copies = wanted == 0 && !zero_is_zero;
    target.push_back(wanted == -1 ? Dim::any() : Dim(copies ? from[axis] : wanted));
  }
  if (into.refusal()) return {};
  return {into.builder().reshape(x.id, target), x.element, {}};
}

OnnxValue onnx_flatten(const OnnxGraphNode& node, OnnxTranslation& into) {
  const OnnxValue x = into.input(node, 0);
  const Dims from = into.extents_of(x);
  const int64_t axis = node.integer("axis", 1);
  const int64_t split = axis < 0 ? axis + from.rank() : axis;
  Dims target = {1, 1};
  for (int i = 0; i < from.rank(); ++i) target[i < split ? 0 : 1] *= from[i];
  return into.reshape(x, target);
}

OnnxValue onnx_squeeze(const OnnxGraphNode& node, OnnxTranslation& into) {
  const OnnxValue x = into.input(node, 0);
  const Dims from = into.extents_of(x);
  const auto axes = axes_of(node, into);
  const std::vector<bool> goes = marked(axes.value_or(std::vector<int64_t>{}), from.rank());
  Dims target;
  for (int i = 0; i < from.rank(); ++i) {
    const bool leaves = axes ? goes[static_cast<size_t>(i)] : from[i] == 1;
    if (!leaves) target.push_back(from[i]);
  }
  return into.reshape(x, target);
}

OnnxValue onnx_unsqueeze(const OnnxGraphNode& node, OnnxTranslation& into) {
  const OnnxValue x = into.input(node, 0);
  const Dims from = into.extents_of(x);
  const auto axes = axes_of(node, into).value_or(std::vector<int64_t>{});
  const int rank = from.rank() + static_cast<int>(axes.size());
  const std::vector<bool> comes = marked(axes, rank);
  Dims target;
  int next = 0;
  for (int i = 0; i < rank; ++i) {
    target.push_back(comes[static_cast<size_t>(i)] ? 1 : from[next++]);
  }
  return into.reshape(x, target);
}

}  // namespace castor::test
