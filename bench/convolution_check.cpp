// SPDX-License-Identifier: Apache-2.0
#include "bench/convolution_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>

namespace castor::bench {

namespace {

/// An element of the result.
struct OutputElement {
  int64_t channel = 0;
  Dims position;  ///< along the spatial axes
};

/// Moves to the next position of a box, the last axis fastest; false after the last one.
bool step(Dims& position, const Dims& extents) {
  for (int axis = extents.rank(); axis-- > 0;) {
    if (++position[axis] < extents[axis]) return true;
    position[axis] = 0;
  }
  return false;
}

int64_t number_of(std::byte byte, ElementType type) {
  return type == ElementType::i8 ? static_cast<int8_t>(byte) : static_cast<uint8_t>(byte);
}

/// The index of a channel's pixel in a tensor of that layout.
size_t index_of(ConvolutionLayout layout, int64_t channels, const Dims& extents, int64_t channel,
                const Dims& position) {
  int64_t pixel = 0;
  int64_t pixels = 1;
  for (int axis = 0; axis < extents.rank(); ++axis) {
    pixel = pixel * extents[axis] + position[axis];
    pixels *= extents[axis];
  }
  const bool nhwc = layout == ConvolutionLayout::nhwc;
  return static_cast<size_t>(nhwc ? pixel * channels + channel : channel * pixels + pixel);
}

/// Computes single elements of one convolution.
class DirectConvolution {
 public:
  DirectConvolution(const ConvolutionCase& each, const ConvolutionWeights& weights,
                    const ConvolutionTensors& tensors)
      : each_(each), layer_(each.layer), weights_(weights), tensors_(tensors) {}

  int32_t at(const OutputElement& element) const {
    int64_t sum = 0;
    const Dims taps = Dims::filled(layer_.input.rank(), layer_.kernel);
    Dims tap = Dims::filled(layer_.input.rank(), 0);
    int64_t tap_index = 0;
    do {
      if (const Dims from = input_position(element, tap); is_inside(from)) {
        sum += sum_of_channels(element.channel, from, tap_index);
      }
      ++tap_index;
    } while (step(tap, taps));
    return static_cast<int32_t>(sum);
  }

 private:
  Dims input_position(const OutputElement& element, const Dims& tap) const {
    Dims from;
    for (int axis = 0; axis < tap.rank(); ++axis) {
      from.push_back(element.position[axis] * layer_.stride + tap[axis] * layer_.dilation -
                     layer_.pad);
    }
    return from;
  }

  bool is_inside(const Dims& from) const {
    for (int axis = 0; axis < from.rank(); ++axis) {
      if (from[axis] < 0 || from[axis] >= layer_.input[axis]) return false;
    }
    return true;
  }

  int64_t sum_of_channels(int64_t m, const Dims& from, int64_t tap) const {
    const int64_t group = m / (layer_.out_channels / layer_.groups);
    const int64_t zero_point =
        number_of(weights_.zero_points[static_cast<size_t>(m)], each_.variant.w);
    int64_t sum = 0;
    for (int64_t c = 0; c < layer_.group_channels(); ++c) {
      const int64_t channel = group * layer_.group_channels() + c;
      const size_t x = index_of(each_.variant.layout, layer_.channels, layer_.input, channel, from);
      const auto w =
          static_cast<size_t>((m * layer_.group_channels() + c) * layer_.positions() + tap);
      sum += (number_of(tensors_.x[x], each_.variant.x) - each_.x_zero_point()) *
             (number_of(weights_.weights[w], each_.variant.w) - zero_point);
    }
    return sum;
  }

  const ConvolutionCase& each_;
  const ConvolutionLayer& layer_;
  const ConvolutionWeights& weights_;
  const ConvolutionTensors& tensors_;
};

/// Both ends, their neighbours and the middle, each once.
std::vector<int64_t> marks_of(int64_t extent) {
  std::vector<int64_t> marks;
  for (const int64_t mark : {int64_t{0}, int64_t{1}, extent / 2, extent - 2, extent - 1}) {
    if (mark >= 0 && mark < extent && std::ranges::find(marks, mark) == marks.end()) {
      marks.push_back(mark);
    }
  }
  return marks;
}

void add_marked(std::vector<OutputElement>& elements, const ConvolutionLayer& layer) {
  const Dims output = layer.output();
  Dims counts;
  for (const int64_t extent : output) {
    counts.push_back(static_cast<int64_t>(marks_of(extent).size()));
  }
  for (const int64_t channel : marks_of(layer.out_channels)) {
    Dims mark = Dims::filled(output.rank(), 0);
    do {
      OutputElement& element = elements.emplace_back(OutputElement{channel, {}});
      for (int axis = 0; axis < output.rank(); ++axis) {
        element.position.push_back(marks_of(output[axis])[static_cast<size_t>(mark[axis])]);
      }
    } while (step(mark, counts));
  }
}

std::vector<OutputElement> elements_to_check(const ConvolutionLayer& layer) {
  constexpr int random_elements = 1000;
  std::vector<OutputElement> elements;
  add_marked(elements, layer);
  std::mt19937_64 random(1);
  const auto below = [&](int64_t end) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(end));
  };
  for (int i = 0; i < random_elements; ++i) {
    OutputElement& element = elements.emplace_back(OutputElement{below(layer.out_channels), {}});
    for (const int64_t extent : layer.output()) element.position.push_back(below(extent));
  }
  return elements;
}

/// The bits of the result's element where the convolution's is `sum`.
uint32_t expected_bits(const ConvolutionCase& each, const ConvolutionWeights& weights,
                       const OutputElement& element, int32_t sum) {
  if (each.variant.epilogue == ConvolutionEpilogue::none) return static_cast<uint32_t>(sum);
  const auto m = static_cast<size_t>(element.channel);
  const float scaled = static_cast<float>(sum) * weights.scales[m];
  const float result = std::max(scaled + weights.biases[m], 0.0F);
  if (each.variant.epilogue == ConvolutionEpilogue::dequantize) {
    return std::bit_cast<uint32_t>(result);
  }
  return static_cast<uint32_t>(std::lrint(std::min(result, 255.0F)));
}

}  // namespace

Status run_and_check(const BoundCall& call, const ConvolutionCase& each,
                     const ConvolutionWeights& weights, const ConvolutionTensors& tensors) {
  constexpr int poison = 0xa5;
  std::memset(tensors.y.data(), poison, tensors.y.size());
  if (Status status = call.run(); !status) return status;
  const DirectConvolution direct(each, weights, tensors);
  for (const OutputElement& element : elements_to_check(each.layer)) {
    const size_t index = index_of(each.variant.layout, each.layer.out_channels, each.layer.output(),
                                  element.channel, element.position);
    uint32_t found = 0;
    const auto bytes = static_cast<size_t>(bits_of(each.variant.y()) / 8);
    std::memcpy(&found, tensors.y.data() + index * bytes, bytes);
    const uint32_t expected = expected_bits(each, weights, element, direct.at(element));
    if (found == expected) continue;
    return Error{ErrorCode::internal,
                 fmt::format("{}: channel {} at {} is 0x{:x}, expected 0x{:x}", each.name(),
                             element.channel, to_string(element.position), found, expected)};
  }
  return {};
}

}  // namespace castor::bench
