// SPDX-License-Identifier: Apache-2.0
// Drawing pooling.
#include "ir/shape/pooling.hpp"
#include "tools/fuzz/generate_operations.hpp"

namespace castor::fuzz {

namespace {

/// Elements of an operand with its padding at most, which kernels copy.
constexpr int64_t max_padded_elements = 1 << 20;

bool is_small_with_padding(const Operation& operation, const Dims& x) {
  const Result<PoolingGeometry> geometry = pooling_geometry(operation, x);
  if (!geometry) return true;  // which is refused
  Dims padded = x;
  for (size_t i = 0; i < geometry->axes.size(); ++i) {
    const ConvolutionAxis& axis = geometry->axes[i];
    padded[geometry->axis_at(i)] = axis.pad_begin + axis.input + axis.pad_end;
  }
  const std::optional<int64_t> count = element_count(padded);
  return count && *count <= max_padded_elements;
}

}  // namespace

bool OperationDrawer::draw_pooling() {
  const std::vector<size_t> values = values_of(info(OpKind::max_pool).types);
  if (values.empty()) return false;
  const size_t value = pick_value(values);
  const Dims& x = program_.shape_of(value);
  if (x.rank() < 3 || x.rank() > 2 + max_spatial_axes) return false;
  DrawnConvolution drawn = draw_convolution(random_, x);
  drawn.options.group = 1;
  drawn.options.kernel_shape.assign(drawn.w.begin() + 2, drawn.w.end());
  const Operation pooling{.op = OpKind::max_pool, .attributes = attributes_of(drawn.options)};
  if (!is_small_with_padding(pooling, x)) return false;
  return add({.op = pooling.op, .operands = {value}, .attributes = pooling.attributes});
}

}  // namespace castor::fuzz
