// SPDX-License-Identifier: Apache-2.0
#include "bench/convolution_tensors.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace castor::bench {

namespace {

constexpr uint32_t x_seed = 1;

size_t elements_of(const Dims& shape) {
  return static_cast<size_t>(element_count(shape).value_or(0));
}

}  // namespace

std::vector<ConstView> ConvolutionTensors::inputs(const ConvolutionCase& each) const {
  std::vector<ConstView> views = {ConstView(x.data(), each.variant.x, each.x_shape(), x.size())};
  if (each.variant.runtime_weights) {
    views.emplace_back(w.data(), each.variant.w, each.w_shape(), w.size());
  }
  return views;
}

View ConvolutionTensors::output(const ConvolutionCase& each) const {
  return View(y.data(), each.variant.y(), each.y_shape(), y.size());
}

Result<ConvolutionTensors> place_tensors(const ConvolutionCase& each, std::span<std::byte> memory) {
  constexpr size_t page = 4096;
  size_t end = 0;
  const auto take = [&](size_t bytes) {
    const size_t begin = end;
    end += (bytes + page - 1) / page * page;
    return end <= memory.size() ? memory.subspan(begin, bytes) : std::span<std::byte>();
  };
  const auto y_bytes = static_cast<size_t>(bits_of(each.variant.y()) / 8);
  const ConvolutionTensors tensors = {take(elements_of(each.x_shape())),
                                      take(elements_of(each.w_shape())),
                                      take(elements_of(each.y_shape()) * y_bytes)};
  if (end > memory.size()) {
    return Error{ErrorCode::internal, fmt::format("{}: tensors of {} bytes, memory of {}",
                                                  each.name(), end, memory.size())};
  }
  return tensors;
}

void fill_inputs(const ConvolutionTensors& tensors, const ConvolutionWeights& weights) {
  fill_with_patterns(tensors.x, x_seed);
  std::ranges::copy(weights.weights, tensors.w.begin());
}

}  // namespace castor::bench
