// SPDX-License-Identifier: Apache-2.0
#include "bench/convolution_tensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "ir/builder.hpp"

namespace castor::bench {

namespace {

constexpr uint32_t x_seed = 1;
constexpr uint32_t w_seed = 2;
constexpr uint32_t zero_point_seed = 3;

void fill_with_patterns(std::span<std::byte> bytes, uint32_t seed) {
  std::mt19937 random(seed);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() >> 24);
}

size_t elements_of(const Dims& shape) {
  return static_cast<size_t>(element_count(shape).value_or(0));
}

/// The extents of x or y.
Dims shape_of(ConvolutionLayout layout, int64_t channels, const Dims& spatial) {
  Dims shape = {1};
  if (layout == ConvolutionLayout::nchw) shape.push_back(channels);
  for (const int64_t extent : spatial) shape.push_back(extent);
  if (layout == ConvolutionLayout::nhwc) shape.push_back(channels);
  return shape;
}

ConvolutionOptions options_of(const ConvolutionCase& each) {
  const ConvolutionLayer& layer = each.layer;
  const auto axes = static_cast<size_t>(layer.input.rank());
  ConvolutionOptions options;
  options.group = layer.groups;
  options.layout = each.variant.layout;
  options.dilations.assign(axes, layer.dilation);
  options.pads.assign(2 * axes, layer.pad);
  options.strides.assign(axes, layer.stride);
  return options;
}

}  // namespace

std::string ConvolutionCase::name() const {
  return fmt::format("ConvInteger/{}/{}", layer.name, variant.name());
}

Dims ConvolutionCase::x_shape() const {
  return shape_of(variant.layout, layer.channels, layer.input);
}

Dims ConvolutionCase::w_shape() const {
  Dims shape = {layer.out_channels, layer.group_channels()};
  for (int axis = 0; axis < layer.input.rank(); ++axis) shape.push_back(layer.kernel);
  return shape;
}

Dims ConvolutionCase::y_shape() const {
  return shape_of(variant.layout, layer.out_channels, layer.output());
}

int64_t ConvolutionCase::x_zero_point() const { return variant.x == ElementType::i8 ? -7 : 121; }

ConvolutionWeights make_weights(const ConvolutionCase& each) {
  ConvolutionWeights made;
  made.weights.resize(elements_of(each.w_shape()));
  made.zero_points.resize(static_cast<size_t>(each.layer.out_channels));
  fill_with_patterns(made.weights, w_seed);
  if (each.variant.has_weight_zero_points()) fill_with_patterns(made.zero_points, zero_point_seed);
  return made;
}

Result<FunctionPtr> convolution_function(const ConvolutionCase& each,
                                         const ConvolutionWeights& weights) {
  const ConvolutionVariant& variant = each.variant;
  FunctionBuilder builder("convolution");
  const ValueId x = builder.parameter("x", {variant.x, to_shape(each.x_shape())});
  const TensorType w_type = {variant.w, to_shape(each.w_shape())};
  const ValueId w = variant.runtime_weights ? builder.parameter("w", w_type)
                                            : builder.constant(w_type, weights.weights);
  const auto x_zero = static_cast<std::byte>(each.x_zero_point());
  const ValueId x_zero_point = builder.constant({variant.x, {}}, {&x_zero, 1});
  const ValueId w_zero_point =
      variant.has_weight_zero_points()
          ? builder.constant({variant.w, {Dim(each.layer.out_channels)}}, weights.zero_points)
          : no_value;
  builder.result(builder.conv_integer(x, w, options_of(each), x_zero_point, w_zero_point));
  return builder.finish();
}

std::vector<ConstView> ConvolutionTensors::inputs(const ConvolutionCase& each) const {
  std::vector<ConstView> views = {ConstView(x.data(), each.variant.x, each.x_shape(), x.size())};
  if (each.variant.runtime_weights) {
    views.emplace_back(w.data(), each.variant.w, each.w_shape(), w.size());
  }
  return views;
}

View ConvolutionTensors::output(const ConvolutionCase& each) const {
  return View(y.data(), ElementType::i32, each.y_shape(), y.size());
}

Result<ConvolutionTensors> place_tensors(const ConvolutionCase& each, std::span<std::byte> memory) {
  constexpr size_t page = 4096;
  size_t end = 0;
  const auto take = [&](size_t bytes) {
    const size_t begin = end;
    end += (bytes + page - 1) / page * page;
    return end <= memory.size() ? memory.subspan(begin, bytes) : std::span<std::byte>();
  };
  const ConvolutionTensors tensors = {take(elements_of(each.x_shape())),
                                      take(elements_of(each.w_shape())),
                                      take(elements_of(each.y_shape()) * sizeof(int32_t))};
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
