// SPDX-License-Identifier: Apache-2.0
// Pooling, as its formula is written: for output position o of each batch and channel,
//   y[n, c, o] = the largest of x[n, c, o * stride - pad_begin + k * dilation]
// over all kernel positions k for which that is inside x.
#include <vector>

#include "ir/interpreter/evaluators.hpp"
#include "ir/shape/pooling.hpp"

namespace castor {

namespace {

/// The input positions that an output position takes, inside the input.
std::vector<int64_t> positions(const ConvolutionAxis& axis, int64_t output) {
  std::vector<int64_t> inside;
  const int64_t begin = output * axis.stride - axis.pad_begin;
  // The first kernel position that is not in the padding.
  const int64_t first = begin >= 0 ? 0 : -begin / axis.dilation + (-begin % axis.dilation != 0);
  for (int64_t k = first; k < axis.kernel; ++k) {
    const int64_t position = begin + k * axis.dilation;
    if (position >= axis.input) break;
    inside.push_back(position);
  }
  return inside;
}

/// Appends the elements of a window from `axis` on, whose other indices are added up in `offset`.
void collect(const Tensor& x, const Dims& strides, const std::vector<std::vector<int64_t>>& window,
             int axis, int64_t offset, std::vector<uint64_t>& elements) {
  if (axis == strides.rank()) {
    elements.push_back(x.elements[static_cast<size_t>(offset)]);
    return;
  }
  for (const int64_t index : window[static_cast<size_t>(axis)]) {
    collect(x, strides, window, axis + 1, offset + index * strides[axis], elements);
  }
}

/// For each axis of the operand the indices that the result's element takes.
std::vector<std::vector<int64_t>> window_of(const PoolingGeometry& geometry, const Dims& result) {
  std::vector<std::vector<int64_t>> window;
  for (const int64_t index : result) window.push_back({index});
  for (size_t i = 0; i < geometry.axes.size(); ++i) {
    const int axis = geometry.axis_at(i);
    window[static_cast<size_t>(axis)] = positions(geometry.axes[i], result[axis]);
  }
  return window;
}

}  // namespace

void evaluate_max_pool(const Operation& operation, Operands operands, Results results) {
  const Tensor& x = *operands[0];
  const PoolingGeometry geometry = pooling_geometry(operation, x.shape).value();
  const Dims strides = dense_strides(x.shape);
  const Dims& extents = results[0].shape;
  Dims at = Dims::filled(extents.rank(), 0);
  for (size_t left = result_count(results[0]); left > 0; --left) {
    std::vector<uint64_t> elements;
    collect(x, strides, window_of(geometry, at), 0, 0, elements);
    results[0].elements.push_back(largest_of(elements, x.element));
    for (int axis = extents.rank() - 1; axis >= 0 && ++at[axis] == extents[axis]; --axis) {
      at[axis] = 0;
    }
  }
}

}  // namespace castor
