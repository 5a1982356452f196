// SPDX-License-Identifier: Apache-2.0
// Reductions over axes: castor's own, and those that follow from its sum.
#include <algorithm>

#include "runtime/onnx/rules/rules.hpp"

namespace castor::onnx {

namespace {

/// The axes: an attribute of old versions (sums before 13, the others before 18), then an input.
/// Nothing: all axes.
std::optional<std::vector<int64_t>> axes_of(const Node& node, Translation& into) {
  std::vector<int64_t> axes = node.integers("axes");
  if (node.has_input(1)) axes = into.known_integers(node, 1);
  const bool reduces_none = node.integer("noop_with_empty_axes", 0) != 0;
  if (axes.empty() && !reduces_none) return std::nullopt;
  return axes;
}

ReductionOptions options_of(const Node& node, Translation& into) {
  return {.axes = axes_of(node, into), .keep_dims = node.integer("keepdims", 1) != 0};
}

/// All axes but those of batch and channels.
ReductionOptions spatial_axes(Translation& into, ValueId x) {
  const size_t rank = into.shape(x).size();
  if (rank < 2) into.refuse("the operand has no channels");
  std::vector<int64_t> axes;
  for (size_t axis = 2; axis < rank; ++axis) axes.push_back(static_cast<int64_t>(axis));
  return {.axes = std::move(axes), .keep_dims = true};
}

ValueId reduced(Translation& into, OpKind op, ValueId x, const ReductionOptions& options) {
  return into.refusal() ? no_value : into.builder().reduce(op, x, options);
}

/// noop_with_empty_axes: the operand itself is the result, where a sum would change zeros and NaNs.
ValueId reduced(const Node& node, Translation& into, OpKind op, ValueId x) {
  const ReductionOptions options = options_of(node, into);
  if (options.axes && options.axes->empty()) return x;
  return reduced(into, op, x, options);
}

/// Booleans are compared by their numbers: false is below true.
ValueId extreme(const Node& node, Translation& into, OpKind op) {
  const ValueId x = into.input(node, 0);
  if (into.refusal() || into.element(x) != ElementType::boolean) return reduced(node, into, op, x);
  const ValueId number = into.builder().convert(x, ElementType::u8);
  const ValueId result = reduced(node, into, op, number);
  return into.refusal() ? no_value : into.builder().convert(result, ElementType::boolean);
}

/// How many elements each sum has.
std::optional<int64_t> count_of(const Translation& into, ValueId x,
                                const ReductionOptions& options) {
  const auto& axes = options.axes;
  const Shape shape = into.shape(x);
  Dims extents;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const auto from_start = static_cast<int64_t>(axis);
    const int64_t from_end = from_start - static_cast<int64_t>(shape.size());
    const auto is_it = [&](int64_t wanted) { return wanted == from_start || wanted == from_end; };
    if (axes && std::ranges::none_of(*axes, is_it)) continue;
    if (!shape[axis].is_fixed()) return std::nullopt;
    extents.push_back(shape[axis].extent);
  }
  return element_count(extents);
}

/// The sum divided by the number of elements, of 16-bit floats in f32: their types hold few sums.
Outputs mean(Translation& into, ValueId x, const ReductionOptions& options) {
  const std::optional<int64_t> count = count_of(into, x, options);
  if (!count) into.refuse("the number of elements is not known");
  if (options.axes && options.axes->empty()) return {x};
  if (into.refusal()) return {};
  const ElementType type = into.element(x);
  const bool is_wide = bits_of(type) > 16 || !is_float(type);
  const ValueId numbers = is_wide ? x : into.builder().convert(x, ElementType::f32);
  const ValueId sum = reduced(into, OpKind::reduce_sum, numbers, options);
  if (into.refusal()) return {};
  const ValueId divisor = into.scalar(static_cast<float>(*count), into.element(numbers));
  const ValueId result = into.binary(OpKind::div, sum, divisor);
  return {is_wide ? result : into.builder().convert(result, type)};
}

}  // namespace

Outputs reduce_min(const Node& node, Translation& into) {
  return {extreme(node, into, OpKind::reduce_min)};
}

Outputs reduce_max(const Node& node, Translation& into) {
  return {extreme(node, into, OpKind::reduce_max)};
}

Outputs reduce_sum(const Node& node, Translation& into) {
  return {reduced(node, into, OpKind::reduce_sum, into.input(node, 0))};
}

Outputs reduce_mean(const Node& node, Translation& into) {
  return mean(into, into.input(node, 0), options_of(node, into));
}

Outputs global_average_pool(const Node& node, Translation& into) {
  const ValueId x = into.input(node, 0);
  return mean(into, x, spatial_axes(into, x));
}

Outputs global_max_pool(const Node& node, Translation& into) {
  const ValueId x = into.input(node, 0);
  return {reduced(into, OpKind::reduce_max, x, spatial_axes(into, x))};
}

Outputs reduce_l1(const Node& node, Translation& into) {
  const ValueId magnitude = into.unary(OpKind::abs, into.input(node, 0));
  return {reduced(node, into, OpKind::reduce_sum, magnitude)};
}

Outputs reduce_sum_square(const Node& node, Translation& into) {
  const ValueId x = into.input(node, 0);
  return {reduced(node, into, OpKind::reduce_sum, into.binary(OpKind::mul, x, x))};
}

Outputs reduce_l2(const Node& node, Translation& into) {
  const ValueId sum = reduce_sum_square(node, into)[0];
  return {into.unary(OpKind::sqrt, sum)};
}

}  // namespace castor::onnx
