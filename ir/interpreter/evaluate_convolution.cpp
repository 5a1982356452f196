// SPDX-License-Identifier: Apache-2.0
// Convolutions, as their formula is written: for batch n, output channel m and output position o,
//   y[n, m, o] = sum over channels c of m's group and kernel positions k of
//                (x[n, c, o * stride - pad_begin + k * dilation] - x_zero_point) *
//                (w[m, c, k] - w_zero_point[m])
// modulo 2^32, where positions outside x add nothing.
#include <optional>
#include <vector>

#include "ir/interpreter/evaluators.hpp"
#include "ir/shape/convolution.hpp"

namespace castor {

namespace {

int32_t number_of(uint64_t bits, ElementType type) {
  return type == ElementType::i8 ? static_cast<int8_t>(bits) : static_cast<uint8_t>(bits);
}

/// The elements of a tensor less its zero point. An absent zero point is 0; one of several entries
/// has one for each of the tensor's first axis.
std::vector<int32_t> differences(const Tensor& tensor, const Tensor* zero_point) {
  const size_t count = tensor.elements.size();
  const bool is_per_row = zero_point && zero_point->elements.size() > 1;
  const size_t row = is_per_row ? count / zero_point->elements.size() : count;
  std::vector<int32_t> result;
  result.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const int32_t zero = zero_point ? number_of(zero_point->elements[i / row], tensor.element) : 0;
    result.push_back(number_of(tensor.elements[i], tensor.element) - zero);
  }
  return result;
}

/// Steps to the next position in row-major order; false after the last one, at the first again.
bool advance(Dims& at, const Dims& extents) {
  for (int axis = at.rank() - 1; axis >= 0; --axis) {
    if (++at[axis] < extents[axis]) return true;
    at[axis] = 0;
  }
  return false;
}

/// The layout of a tensor, row-major: strides in elements.
struct Strides {
  int64_t outer;    ///< the batch in x, the output channel in w
  int64_t channel;  ///< a channel in x, one of its group's in w
  Dims spatial;
};

Strides strides_of(const Tensor& tensor, ConvolutionLayout layout) {
  const Dims strides = dense_strides(tensor.shape);
  const bool channels_last = layout == ConvolutionLayout::nhwc;
  const int rank = strides.rank();
  Strides result{strides[0], strides[channels_last ? rank - 1 : 1], {}};
  const int first = channels_last ? 1 : 2;
  for (int i = 0; i < rank - 2; ++i) result.spatial.push_back(strides[first + i]);
  return result;
}

/// One convolution with elements in its result.
class Convolution {
 public:
  Convolution(const ConvolutionGeometry& geometry, Operands operands)
      : geometry_(geometry),
        x_(differences(*operands[0], operands[2])),
        w_(differences(*operands[1], operands[3])),
        x_strides_(strides_of(*operands[0], geometry.layout)),
        w_strides_(strides_of(*operands[1], ConvolutionLayout::nchw)) {
    for (const ConvolutionAxis& axis : geometry.axes) kernel_.push_back(axis.kernel);
  }

  /// The element of batch `n` and output channel `m` at an output position.
  uint32_t element(int64_t n, int64_t m, const Dims& output) const {
    const int64_t group = m / geometry_.group_out_channels();
    const int64_t x_begin =
        n * x_strides_.outer + group * geometry_.group_channels() * x_strides_.channel;
    const int64_t w_begin = m * w_strides_.outer;
    uint32_t sum = 0;
    Dims tap = Dims::filled(kernel_.rank(), 0);
    do {
      const std::optional<int64_t> x_at = offset_in_x(output, tap);
      if (x_at) sum += sum_over_channels(x_begin + *x_at, w_begin + offset_in_w(tap));
    } while (advance(tap, kernel_));
    return sum;
  }

 private:
  /// Nothing in the padding.
  std::optional<int64_t> offset_in_x(const Dims& output, const Dims& tap) const {
    int64_t offset = 0;
    for (int i = 0; i < tap.rank(); ++i) {
      const ConvolutionAxis& axis = geometry_.axes[static_cast<size_t>(i)];
      const int64_t at = output[i] * axis.stride - axis.pad_begin + tap[i] * axis.dilation;
      if (at < 0 || at >= axis.input) return std::nullopt;
      offset += at * x_strides_.spatial[i];
    }
    return offset;
  }

  int64_t offset_in_w(const Dims& tap) const {
    int64_t offset = 0;
    for (int i = 0; i < tap.rank(); ++i) offset += tap[i] * w_strides_.spatial[i];
    return offset;
  }

  uint32_t sum_over_channels(int64_t x_at, int64_t w_at) const {
    uint32_t sum = 0;
    for (int64_t c = 0; c < geometry_.group_channels(); ++c) {
      const int32_t x = x_[static_cast<size_t>(x_at + c * x_strides_.channel)];
      const int32_t w = w_[static_cast<size_t>(w_at + c * w_strides_.channel)];
      sum += static_cast<uint32_t>(x * w);
    }
    return sum;
  }

  const ConvolutionGeometry& geometry_;
  const std::vector<int32_t> x_;
  const std::vector<int32_t> w_;
  const Strides x_strides_;
  const Strides w_strides_;
  Dims kernel_;
};

/// Takes y's coordinates apart: its batch and channel, and its position.
struct OutputElement {
  int64_t n;
  int64_t m;
  Dims position;
};

OutputElement output_element(const Dims& at, ConvolutionLayout layout) {
  const bool channels_last = layout == ConvolutionLayout::nhwc;
  OutputElement target{at[0], at[channels_last ? at.rank() - 1 : 1], {}};
  const int first = channels_last ? 1 : 2;
  for (int i = 0; i < at.rank() - 2; ++i) target.position.push_back(at[first + i]);
  return target;
}

const Dims* extents_of(const Tensor* tensor) { return tensor ? &tensor->shape : nullptr; }

}  // namespace

void evaluate_conv_integer(const Operation& operation, Operands operands, Results results) {
  Tensor& result = results[0];
  const size_t count = result_count(result);
  if (count == 0) return;
  const ConvolutionGeometry geometry =
      convolution_geometry(operation, operands[0]->shape, operands[1]->shape,
                           extents_of(operands[2]), extents_of(operands[3]))
          .value();
  if (geometry.group_channels() == 0) {  // a sum of nothing, however many taps w has
    result.elements.assign(count, 0);
    return;
  }
  const Convolution convolution(geometry, operands);
  result.elements.reserve(count);
  Dims at = Dims::filled(result.shape.rank(), 0);
  do {
    const OutputElement target = output_element(at, geometry.layout);
    result.elements.push_back(convolution.element(target.n, target.m, target.position));
  } while (advance(at, result.shape));
}

}  // namespace castor
