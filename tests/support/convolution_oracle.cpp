// SPDX-License-Identifier: Apache-2.0
#include "tests/support/convolution_cases.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

namespace castor::test {

namespace {

using Numbers = std::vector<int64_t>;

int64_t product(const Numbers& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), int64_t{1}, std::multiplies<>());
}

Numbers numbers_of(const Patterns& tensor) {
  Numbers numbers;
  for (uint64_t bits : tensor.elements) {
    const auto byte = static_cast<uint8_t>(bits);
    numbers.push_back(tensor.type == ElementType::i8 ? static_cast<int8_t>(byte) : byte);
  }
  return numbers;
}

/// Calls visit(coordinates, number of the position) for every position, in row-major order.
template <class Visit>
void for_each_position(const Numbers& extents, Visit visit) {
  const int64_t count = product(extents);
  Numbers at(extents.size());
  for (int64_t number = 0; number < count; ++number) {
    int64_t left = number;
    for (size_t axis = extents.size(); axis-- > 0;) {
      at[axis] = left % extents[axis];
      left /= extents[axis];
    }
    visit(at, number);
  }
}

/// One spatial axis of the oracle.
struct Axis {
  int64_t input, kernel, stride, dilation, begin, end, output;
};

int64_t entry(const Numbers& list, size_t i, int64_t otherwise) {
  return list.empty() ? otherwise : list[i];
}

/// How many outputs there are is counted, one by one.
Axis axis_of(const ConvolutionOptions& options, size_t i, size_t axes, int64_t input,
             int64_t kernel) {
  Axis axis{input,
            kernel,
            entry(options.strides, i, 1),
            entry(options.dilations, i, 1),
            entry(options.pads, i, 0),
            entry(options.pads, i + axes, 0),
            0};
  const int64_t last_tap = (kernel - 1) * axis.dilation;
  const bool upper = options.auto_pad == AutoPad::same_upper;
  if (upper || options.auto_pad == AutoPad::same_lower) {
    while (axis.output * axis.stride < input) ++axis.output;
    int64_t total = 0;
    while (axis.output > 0 && (axis.output - 1) * axis.stride + last_tap >= input + total) ++total;
    axis.begin = upper ? total / 2 : (total + 1) / 2;
    axis.end = total - axis.begin;
    return axis;
  }
  const int64_t padded = axis.begin + input + axis.end;
  while (axis.output * axis.stride + last_tap < padded) ++axis.output;
  return axis;
}

/// The parts of a tensor's extents.
struct Extents {
  int64_t outer;
  int64_t channels;
  Numbers spatial;
};

Extents extents_of(const Dims& shape, bool channels_last) {
  Numbers all(shape.begin(), shape.end());
  const size_t channel = channels_last ? all.size() - 1 : 1;
  Extents extents{all[0], all[channel], {}};
  all.erase(all.begin() + static_cast<std::ptrdiff_t>(channel));
  extents.spatial.assign(all.begin() + 1, all.end());
  return extents;
}

/// The index of an element of x or y.
int64_t index_of(const Extents& extents, bool channels_last, int64_t n, int64_t channel,
                 int64_t position) {
  const int64_t positions = product(extents.spatial);
  return channels_last ? (n * positions + position) * extents.channels + channel
                       : (n * extents.channels + channel) * positions + position;
}

/// The number of the output that takes this input position by this tap, or nothing.
std::optional<int64_t> output_of(const std::vector<Axis>& axes, const Numbers& position,
                                 const Numbers& tap) {
  int64_t number = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t from = position[i] + axes[i].begin - tap[i] * axes[i].dilation;
    if (from < 0 || from % axes[i].stride != 0) return std::nullopt;
    const int64_t output = from / axes[i].stride;
    if (output >= axes[i].output) return std::nullopt;
    number = number * axes[i].output + output;
  }
  return number;
}

Dims shape_of(const Extents& y, bool channels_last) {
  Dims shape{y.outer};
  if (!channels_last) shape.push_back(y.channels);
  for (int64_t extent : y.spatial) shape.push_back(extent);
  if (channels_last) shape.push_back(y.channels);
  return shape;
}

/// One convolution, by the formula.
class Oracle {
 public:
  explicit Oracle(const ConvolutionCase& row)
      : channels_last_(row.options.layout == ConvolutionLayout::nhwc),
        x_extents_(extents_of(row.x.shape, channels_last_)),
        w_extents_(extents_of(row.w.shape, false)),
        y_extents_{x_extents_.outer, w_extents_.outer, {}},
        x_(numbers_of(row.x)),
        w_(numbers_of(row.w)),
        x_zero_(row.x_zero_point ? numbers_of(*row.x_zero_point)[0] : 0),
        w_zeros_(row.w_zero_point ? numbers_of(*row.w_zero_point) : Numbers{0}),
        outputs_of_group_(w_extents_.outer / row.options.group) {
    const size_t count = x_extents_.spatial.size();
    for (size_t i = 0; i < count; ++i) {
      axes_.push_back(axis_of(row.options, i, count, x_extents_.spatial[i], w_extents_.spatial[i]));
      y_extents_.spatial.push_back(axes_.back().output);
    }
  }

  Patterns result() {
    Patterns y{ElementType::i32, shape_of(y_extents_, channels_last_), {}};
    sums_.assign(static_cast<size_t>(element_count(y.shape).value()), 0);
    for_each_position(x_extents_.spatial, [&](const Numbers& position, int64_t place) {
      for_each_position(w_extents_.spatial, [&](const Numbers& tap, int64_t number) {
        const std::optional<int64_t> output = output_of(axes_, position, tap);
        if (output) scatter(place, number, *output);
      });
    });
    for (int64_t sum : sums_) y.elements.push_back(static_cast<uint32_t>(sum));
    return y;
  }

 private:
  /// Adds all products of an input position and a tap.
  void scatter(int64_t position, int64_t tap, int64_t output) {
    const int64_t taps = product(w_extents_.spatial);
    for (int64_t m = 0; m < w_extents_.outer; ++m) {
      for (int64_t c = 0; c < w_extents_.channels; ++c) {
        const int64_t weight = w_[static_cast<size_t>((m * w_extents_.channels + c) * taps + tap)];
        const int64_t channel = m / outputs_of_group_ * w_extents_.channels + c;
        for (int64_t n = 0; n < x_extents_.outer; ++n) {
          const int64_t from = index_of(x_extents_, channels_last_, n, channel, position);
          const int64_t to = index_of(y_extents_, channels_last_, n, m, output);
          sums_[static_cast<size_t>(to)] +=
              (x_[static_cast<size_t>(from)] - x_zero_) * (weight - w_zero(m));
        }
      }
    }
  }

  int64_t w_zero(int64_t m) const {
    return w_zeros_.size() == 1 ? w_zeros_[0] : w_zeros_[static_cast<size_t>(m)];
  }

  const bool channels_last_;
  const Extents x_extents_;
  const Extents w_extents_;
  Extents y_extents_;
  const Numbers x_;
  const Numbers w_;
  const int64_t x_zero_;
  const Numbers w_zeros_;
  const int64_t outputs_of_group_;
  std::vector<Axis> axes_;
  Numbers sums_;
};

}  // namespace

Patterns direct_convolution(const ConvolutionCase& row) { return Oracle(row).result(); }

}  // namespace castor::test
