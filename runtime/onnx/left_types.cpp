// SPDX-License-Identifier: Apache-2.0
#include "runtime/onnx/left_types.hpp"

#include <algorithm>

namespace castor::onnx {

namespace {

using MaybeShape = std::optional<Shape>;

const Value* input(const Graph& graph, const Node& node, size_t i) {
  return node.has_input(i) ? &graph.values[node.inputs[i]] : nullptr;
}

MaybeShape shape_of(const Graph& graph, const Node& node, size_t i) {
  const Value* value = input(graph, node, i);
  return value == nullptr ? std::nullopt : value->shape;
}

// ---- One function for each kind of operator: the shape of output 0.

MaybeShape same(const Graph& graph, const Node& node) { return shape_of(graph, node, 0); }

/// An extent of a convolution or pooling.
Dim window_extent(const Node& node, const Dim& in, size_t axis, size_t axes, int64_t kernel) {
  const auto entry = [&](std::string_view name, size_t at, int64_t otherwise) {
    const std::vector<int64_t> list = node.integers(name);
    return at < list.size() ? list[at] : otherwise;
  };
  const int64_t stride = entry("strides", axis, 1);
  const int64_t dilation = entry("dilations", axis, 1);
  const int64_t before = entry("pads", axis, 0);
  const int64_t after = entry("pads", axis + axes, 0);
  const auto is_sensible = [](int64_t number, int64_t least) {
    constexpr int64_t most = 1 << 30;  // products of two fit
    return least <= number && number <= most;
  };
  if (!in.is_fixed() || !is_sensible(in.extent, 0) || !is_sensible(stride, 1) ||
      !is_sensible(kernel, 1) || !is_sensible(dilation, 1) || !is_sensible(before, 0) ||
      !is_sensible(after, 0)) {
    return Dim::any();
  }
  const std::string_view auto_pad = node.text("auto_pad", "NOTSET");
  if (auto_pad.starts_with("SAME")) return (in.extent + stride - 1) / stride;
  const int64_t pads = auto_pad == "NOTSET" ? before + after : 0;
  const int64_t span = in.extent + pads - ((kernel - 1) * dilation + 1);
  if (span < 0) return Dim::any();
  const bool rounds_up = node.integer("ceil_mode", 0) != 0;
  // Rounded up, the last window may begin after the input: left open.
  return rounds_up && span % stride != 0 ? Dim::any() : Dim(span / stride + 1);
}

MaybeShape windows(const Node& node, const Shape& x, const Dim& channels,
                   const std::vector<int64_t>& kernel) {
  if (x.size() < 2) return std::nullopt;
  const size_t axes = x.size() - 2;
  Shape shape = {x[0], channels};
  for (size_t axis = 0; axis < axes; ++axis) {
    const int64_t extent = axis < kernel.size() ? kernel[axis] : 0;
    shape.push_back(window_extent(node, x[axis + 2], axis, axes, extent));
  }
  return shape;
}

MaybeShape pooling(const Graph& graph, const Node& node) {
  const MaybeShape x = shape_of(graph, node, 0);
  return x && x->size() >= 2 ? windows(node, *x, (*x)[1], node.integers("kernel_shape"))
                             : std::nullopt;
}

MaybeShape convolution(const Graph& graph, const Node& node) {
  const MaybeShape x = shape_of(graph, node, 0);
  const MaybeShape w = shape_of(graph, node, 1);
  if (!x || !w || w->empty()) return std::nullopt;
  std::vector<int64_t> kernel;
  for (size_t axis = 2; axis < w->size(); ++axis) {
    kernel.push_back((*w)[axis].is_fixed() ? (*w)[axis].extent : 0);
  }
  return windows(node, *x, (*w)[0], kernel);
}

MaybeShape matmul(const Graph& graph, const Node& node) {
  const MaybeShape a = shape_of(graph, node, 0);
  const MaybeShape b = shape_of(graph, node, 1);
  if (!a || !b || a->size() < 2 || b->size() < 2 || b->size() > a->size()) return std::nullopt;
  Shape shape(a->begin(), a->end() - 1);
  for (size_t axis = 0; axis + 1 < shape.size(); ++axis) {  // batches may broadcast
    const bool is_batch_of_b = axis + b->size() >= a->size();
    const Dim* other = is_batch_of_b ? &(*b)[axis + b->size() - a->size()] : nullptr;
    if (other != nullptr && *other != Dim(1) && *other != shape[axis]) shape[axis] = Dim::any();
  }
  shape.push_back(b->back());
  return shape;
}

MaybeShape gemm(const Graph& graph, const Node& node) {
  const MaybeShape a = shape_of(graph, node, 0);
  const MaybeShape b = shape_of(graph, node, 1);
  if (!a || !b || a->size() != 2 || b->size() != 2) return std::nullopt;
  return Shape{(*a)[node.integer("transA", 0) != 0 ? 1 : 0],
               (*b)[node.integer("transB", 0) != 0 ? 0 : 1]};
}

MaybeShape transpose(const Graph& graph, const Node& node) {
  const MaybeShape x = shape_of(graph, node, 0);
  if (!x) return std::nullopt;
  std::vector<int64_t> order = node.integers("perm");
  if (order.empty()) return Shape(x->rbegin(), x->rend());
  Shape shape;
  for (const int64_t axis : order) {
    if (axis < 0 || axis >= static_cast<int64_t>(x->size())) return std::nullopt;
    shape.push_back((*x)[static_cast<size_t>(axis)]);
  }
  return shape.size() == x->size() ? MaybeShape(shape) : std::nullopt;
}

MaybeShape concat(const Graph& graph, const Node& node) {
  MaybeShape shape = shape_of(graph, node, 0);
  if (!shape) return std::nullopt;
  const auto rank = static_cast<int64_t>(shape->size());
  const int64_t axis = node.integer("axis", 0);
  const int64_t at = axis < 0 ? axis + rank : axis;
  if (at < 0 || at >= rank) return std::nullopt;
  Dim& sum = (*shape)[static_cast<size_t>(at)];
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    const MaybeShape other = shape_of(graph, node, i);
    const bool is_known = other && other->size() == shape->size() && sum.is_fixed() &&
                          (*other)[static_cast<size_t>(at)].is_fixed();
    int64_t both = 0;
    const bool fits = is_known && !__builtin_add_overflow(
                                      sum.extent, (*other)[static_cast<size_t>(at)].extent, &both);
    sum = fits ? Dim(both) : Dim::any();
  }
  return shape;
}

/// Only the element type follows.
MaybeShape unknown(const Graph&, const Node&) { return std::nullopt; }

struct Row {
  std::string_view op_type;
  MaybeShape (*shape)(const Graph& graph, const Node& node);
};

/// Output 0 has the element type of input 0.
constexpr Row rows[] = {
    {"Exp", same},
    {"Log", same},
    {"Erf", same},
    {"Tanh", same},
    {"Sigmoid", same},
    {"Softmax", same},
    {"LogSoftmax", same},
    {"QLinearSoftmax", same},
    {"Gelu", same},
    {"Elu", same},
    {"Selu", same},
    {"Celu", same},
    {"Softplus", same},
    {"Mish", same},
    {"Sin", same},
    {"Cos", same},
    {"Dropout", same},
    {"BatchNormalization", same},
    {"InstanceNormalization", same},
    {"LayerNormalization", same},
    {"GroupNormalization", same},
    {"SimplifiedLayerNormalization", same},
    {"LpNormalization", same},
    {"LRN", same},
    {"MaxPool", pooling},
    {"AveragePool", pooling},
    {"LpPool", pooling},
    {"Conv", convolution},
    {"MatMul", matmul},
    {"Gemm", gemm},
    {"Transpose", transpose},
    {"Concat", concat},
    {"Pow", unknown},
    {"Slice", unknown},
    {"Gather", unknown},
    {"Pad", unknown},
    {"Resize", unknown},
    {"Split", unknown},
    {"ConvTranspose", unknown},
};

}  // namespace

void infer_left_types(Graph& graph, NodeIndex index) {
  const Node& node = graph.nodes[index];
  const auto row = std::ranges::find(rows, node.op_type, &Row::op_type);
  const Value* first = input(graph, node, 0);
  if (row == std::end(rows) || first == nullptr || !node.has_output(0)) return;
  Value& output = graph.values[node.outputs[0]];
  if (!output.element) output.element = first->element;
  if (!output.shape) output.shape = row->shape(graph, node);
}

}  // namespace castor::onnx
