// SPDX-License-Identifier: Apache-2.0
#include "bench/cases/convolution_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "ir/builder.hpp"

namespace castor::bench {

namespace {

constexpr uint32_t w_seed = 2;
constexpr uint32_t zero_point_seed = 3;

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

/// A constant that has one element for each output channel.
ValueId by_channel(FunctionBuilder& builder, const ConvolutionCase& each,
                   const std::vector<float>& values) {
  Shape shape = {Dim(each.layer.out_channels)};
  if (each.variant.layout == ConvolutionLayout::nchw) {
    shape.resize(1 + static_cast<size_t>(each.layer.input.rank()), Dim(1));
  }
  return builder.constant({ElementType::f32, shape}, std::as_bytes(std::span(values)));
}

ValueId weight_zero_points(FunctionBuilder& builder, const ConvolutionCase& each,
                           const ConvolutionWeights& weights) {
  const ConvolutionVariant& variant = each.variant;
  if (!variant.has_weight_zero_points()) return no_value;
  const bool differ = variant.zero_points == ConvolutionZeroPoints::usual;
  const Shape shape = differ ? Shape{Dim(each.layer.out_channels)} : Shape{};
  const std::span zero_points(weights.zero_points);
  return builder.constant({variant.w, shape}, zero_points.first(differ ? zero_points.size() : 1));
}

ValueId with_epilogue(FunctionBuilder& builder, const ConvolutionCase& each,
                      const ConvolutionWeights& weights, ValueId y) {
  if (each.variant.epilogue == ConvolutionEpilogue::none) return y;
  const ValueId scaled = builder.binary(OpKind::mul, builder.convert(y, ElementType::f32),
                                        by_channel(builder, each, weights.scales));
  const ValueId sum =
      builder.binary(OpKind::add, scaled, by_channel(builder, each, weights.biases));
  const ValueId result = builder.unary(OpKind::relu, sum);
  if (each.variant.epilogue == ConvolutionEpilogue::dequantize) return result;
  return builder.convert(result, ElementType::u8,
                         {.overflow = Overflow::saturate, .rounding = Rounding::nearest_even});
}

}  // namespace

void fill_with_patterns(std::span<std::byte> bytes, uint32_t seed) {
  std::mt19937 random(seed);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() >> 24);
}

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

int64_t ConvolutionCase::x_zero_point() const {
  if (!variant.has_x_zero_point()) return 0;
  return variant.x == ElementType::i8 ? -7 : 121;
}

ConvolutionWeights make_weights(const ConvolutionCase& each) {
  ConvolutionWeights made;
  made.weights.resize(elements_of(each.w_shape()));
  made.zero_points.resize(static_cast<size_t>(each.layer.out_channels));
  for (int64_t m = 0; m < each.layer.out_channels; ++m) {
    made.scales.push_back(std::ldexp(1 + static_cast<float>(m % 7) / 8, -9));
    made.biases.push_back(static_cast<float>(m % 31) - 8.25F);
  }
  fill_with_patterns(made.weights, w_seed);
  if (each.variant.has_weight_zero_points()) fill_with_patterns(made.zero_points, zero_point_seed);
  if (each.variant.zero_points != ConvolutionZeroPoints::usual) {
    std::ranges::fill(made.zero_points, made.zero_points[0]);
  }
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
  const ValueId x_zero_point =
      variant.has_x_zero_point() ? builder.constant({variant.x, {}}, {&x_zero, 1}) : no_value;
  const ValueId w_zero_point = weight_zero_points(builder, each, weights);
  const ValueId y = builder.conv_integer(x, w, options_of(each), x_zero_point, w_zero_point);
  builder.result(with_epilogue(builder, each, weights, y));
  return builder.finish();
}

}  // namespace castor::bench
