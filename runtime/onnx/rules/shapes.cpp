// SPDX-License-Identifier: Apache-2.0
// Constants, and nodes that say shapes: castor's `broadcast` and `reshape`.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/onnx/rules/rules.hpp"

namespace castor::onnx {

namespace {

template <class Number>
Tensor vector_of(ElementType type, const Dims& shape, const std::vector<Number>& numbers) {
  ConstantData data;
  data.bytes.resize(numbers.size() * sizeof(Number));
  if (!numbers.empty()) std::memcpy(data.bytes.data(), numbers.data(), data.bytes.size());
  return {type, shape, std::make_shared<const ConstantData>(std::move(data))};
}

Dims extent_of(size_t count) { return {static_cast<int64_t>(count)}; }

/// The tensor that a Constant node's one attribute says.
std::optional<Tensor> constant_of(const Node& node) {
  using enum ElementType;
  if (const auto* tensor = node.find<Tensor>("value")) return *tensor;
  if (const auto* number = node.find<float>("value_float")) {
    return vector_of<float>(f32, {}, {*number});
  }
  if (const auto* number = node.find<int64_t>("value_int")) {
    return vector_of<int64_t>(i64, {}, {*number});
  }
  if (const auto* list = node.find<std::vector<float>>("value_floats")) {
    return vector_of(f32, extent_of(list->size()), *list);
  }
  if (const auto* list = node.find<std::vector<int64_t>>("value_ints")) {
    return vector_of(i64, extent_of(list->size()), *list);
  }
  return std::nullopt;
}

/// The extents of input 0, which must all be known.
std::vector<int64_t> known_extents(const Node& node, Translation& into) {
  const auto type = into.type_of_input(node, 0);
  std::vector<int64_t> extents;
  if (!type.shape || !is_fixed(*type.shape)) {
    into.refuse("it asks for extents that are not known");
    return extents;
  }
  for (const Dim& dim : *type.shape) extents.push_back(dim.extent);
  return extents;
}

/// Axes as input 1 or, before Squeeze-13 and Unsqueeze-13, as an attribute.
std::optional<std::vector<int64_t>> axes_of(const Node& node, Translation& into) {
  if (node.has_input(1)) return into.known_integers(node, 1);
  const auto* axes = node.find<std::vector<int64_t>>("axes");
  return axes == nullptr ? std::nullopt : std::optional(*axes);
}

/// Whether each axis of a shape of that rank is one of `axes`, of which negative ones count from
/// the end.
std::vector<bool> marked(const std::vector<int64_t>& axes, int64_t rank, Translation& into) {
  std::vector<bool> marks(static_cast<size_t>(std::max<int64_t>(rank, 0)));
  for (const int64_t axis : axes) {
    const int64_t index = axis < 0 ? axis + rank : axis;
    if (index < 0 || index >= rank) {
      into.refuse(fmt::format("axis {} of a tensor of rank {}", axis, rank));
      return marks;
    }
    marks[static_cast<size_t>(index)] = true;
  }
  return marks;
}

/// One extent for several: what they multiply to, as far as that can be said.
Dim product_of(std::span<const Dim> dims) {
  Dim product = 1;
  for (const Dim& dim : dims) {
    if (dim.is_fixed() && dim.extent == 1) continue;
    int64_t extent = 0;
    if (product.is_fixed() && product.extent == 1) {
      product = dim;
    } else if (product.is_fixed() && dim.is_fixed() &&
               !__builtin_mul_overflow(product.extent, dim.extent, &extent)) {
      product = extent;
    } else {
      return Dim::any();
    }
  }
  return product;
}

Outputs reshaped(Translation& into, ValueId x, const Shape& target) {
  const auto is_unnamed = [](const Dim& dim) { return !dim.is_fixed() && dim.name.empty(); };
  if (std::ranges::count_if(target, is_unnamed) > 1) {
    into.refuse(fmt::format("more than one extent of {} is unknown", to_string(target)));
  }
  if (into.refusal()) return {};
  return {into.builder().reshape(x, target)};
}

}  // namespace

Outputs constant(const Node& node, Translation& into) {
  const std::optional<Tensor> tensor = constant_of(node);
  if (!tensor) into.refuse("a constant of a kind that castor lacks");
  if (into.refusal()) return {};
  return {into.constant(*tensor)};
}

/// Shape-15 brings start and end.
Outputs shape(const Node& node, Translation& into) {
  std::vector<int64_t> extents = known_extents(node, into);
  const auto rank = static_cast<int64_t>(extents.size());
  const auto index_of = [&](int64_t axis) {
    return std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank);
  };
  const int64_t begin = index_of(node.integer("start", 0));
  const int64_t end = std::max(begin, index_of(node.integer("end", rank)));
  extents = {extents.begin() + begin, extents.begin() + end};
  if (into.refusal()) return {};
  return {into.constant(vector_of(ElementType::i64, extent_of(extents.size()), extents))};
}

Outputs size(const Node& node, Translation& into) {
  const std::vector<int64_t> extents = known_extents(node, into);
  const std::optional<int64_t> count = element_count(Dims(extents));
  if (!count) into.refuse("the number of elements exceeds 2^63 - 1");
  if (into.refusal()) return {};
  return {into.constant(vector_of<int64_t>(ElementType::i64, {}, {*count}))};
}

Outputs expand(const Node& node, Translation& into) {
  const ValueId x = into.input(node, 0);
  const std::vector<int64_t> target = into.known_integers(node, 1);
  if (std::ranges::any_of(target, [](int64_t extent) { return extent < 0; })) {
    into.refuse("a negative extent");
  }
  if (into.refusal()) return {};
  return {
      into.builder().broadcast(x, to_shape(Dims(target)), {.mode = BroadcastMode::bidirectional})};
}

/// 0 copies the extent (unless allowzero, from Reshape-14 on), one -1 is what the count leaves.
Outputs reshape(const Node& node, Translation& into) {
  const ValueId x = into.input(node, 0);
  const Shape from = into.shape(x);
  const bool copies = node.integer("allowzero", 0) == 0;
  Shape target;
  for (const int64_t wanted : into.known_integers(node, 1)) {
    const size_t axis = target.size();
    if (wanted < -1) into.refuse(fmt::format("an extent of {}", wanted));
    if (wanted == 0 && copies && axis >= from.size())
      into.refuse("0 for an axis that is not there");
    if (into.refusal()) return {};
    const Dim copied = wanted == 0 && copies ? from[axis] : Dim(wanted);
    target.push_back(wanted == -1 ? Dim::any() : copied);
  }
  return reshaped(into, x, target);
}

Outputs flatten(const Node& node, Translation& into) {
  const ValueId x = into.input(node, 0);
  const Shape from = into.shape(x);
  const auto rank = static_cast<int64_t>(from.size());
  const int64_t axis = node.integer("axis", 1);
  const int64_t split = axis < 0 ? axis + rank : axis;
  if (split < 0 || split > rank)
    into.refuse(fmt::format("axis {} of a tensor of rank {}", axis, rank));
  if (into.refusal()) return {};
  const std::span<const Dim> dims = from;
  const auto first = static_cast<size_t>(split);
  return reshaped(into, x, {product_of(dims.first(first)), product_of(dims.subspan(first))});
}

Outputs squeeze(const Node& node, Translation& into) {
  const ValueId x = into.input(node, 0);
  const Shape from = into.shape(x);
  const auto axes = axes_of(node, into);
  if (!axes && !is_fixed(from)) into.refuse("which extents are 1 is not known");
  // ONNX does not say whether these are no axes or all that are 1; engines differ.
  if (axes && axes->empty()) into.refuse("its list of axes is empty");
  const std::vector<bool> goes = marked(axes.value_or(std::vector<int64_t>()), into.rank(x), into);
  Shape target;
  for (size_t i = 0; i < from.size(); ++i) {
    const bool leaves = axes ? goes[i] : from[i].extent == 1;
    if (!leaves) target.push_back(from[i]);
  }
  return reshaped(into, x, target);
}

Outputs unsqueeze(const Node& node, Translation& into) {
  const ValueId x = into.input(node, 0);
  const Shape from = into.shape(x);
  const auto axes = axes_of(node, into).value_or(std::vector<int64_t>());
  const size_t rank = from.size() + axes.size();
  const std::vector<bool> comes = marked(axes, static_cast<int64_t>(rank), into);
  if (static_cast<size_t>(std::ranges::count(comes, true)) != axes.size()) {
    into.refuse("an axis is there twice");
  }
  if (into.refusal()) return {};
  Shape target;
  size_t next = 0;
  for (size_t i = 0; i < rank; ++i) target.push_back(comes[i] ? Dim(1) : from[next++]);
  return reshaped(into, x, target);
}

}  // namespace castor::onnx
