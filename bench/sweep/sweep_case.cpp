// SPDX-License-Identifier: Apache-2.0
#include "bench/sweep/sweep_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "bench/cases/convolution_layers.hpp"

namespace castor::bench {

namespace {

constexpr double max_products = 1 << 26;

ConvolutionGeometry geometry_of(const ConvolutionLayer& layer, ConvolutionLayout layout) {
  ConvolutionGeometry geometry = {.layout = layout,
                                  .batch = 1,
                                  .channels = layer.channels,
                                  .out_channels = layer.out_channels,
                                  .groups = layer.groups,
                                  .axes = {}};
  const Dims output = layer.output();
  for (int axis = 0; axis < layer.input.rank(); ++axis) {
    geometry.axes.push_back({.input = layer.input[axis],
                             .kernel = layer.kernel,
                             .stride = layer.stride,
                             .dilation = layer.dilation,
                             .pad_begin = layer.pad,
                             .pad_end = layer.pad,
                             .output = output[axis]});
  }
  return geometry;
}

/// Draws one convolution at a time.
class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {}

  jit::ConvolutionProblem problem() {
    for (;;) {
      jit::ConvolutionProblem drawn = {.geometry = geometry(),
                                       .x_is_signed = percent(40),
                                       .w_is_signed = percent(80),
                                       .has_weight_zero_points = percent(20),
                                       .has_constant_weights = percent(75)};
      if (products_of(drawn.geometry) <= max_products) return drawn;
    }
  }

 private:
  int64_t from(int64_t min, int64_t max) {
    return min + static_cast<int64_t>(random_() % static_cast<uint64_t>(max - min + 1));
  }
  bool percent(int64_t chance) { return from(1, 100) <= chance; }
  /// Numbers of each length in bits are equally likely.
  int64_t number(int max_bits) {
    const int64_t bits = from(0, max_bits - 1);
    return (int64_t{1} << bits) + from(0, (int64_t{1} << bits) - 1);
  }
  template <size_t n>
  int64_t one_of(const std::array<int64_t, n>& values) {
    return values[static_cast<size_t>(from(0, n - 1))];
  }

  ConvolutionGeometry geometry() {
    ConvolutionGeometry drawn;
    drawn.layout = percent(50) ? ConvolutionLayout::nchw : ConvolutionLayout::nhwc;
    drawn.batch = percent(80) ? 1 : from(2, 4);
    draw_channels(drawn);
    const int rank = percent(75) ? 2 : (percent(50) ? 1 : 3);
    const int64_t kernel = one_of(std::array<int64_t, 8>{1, 1, 2, 3, 3, 3, 5, 7});
    const int64_t max_input = rank == 1 ? 2000 : (rank == 2 ? 112 : 24);
    const int64_t stride = one_of(std::array<int64_t, 6>{1, 1, 1, 1, 2, 3});
    const int64_t dilation = percent(85) ? 1 : from(2, 3);
    for (int axis = 0; axis < rank; ++axis) {
      drawn.axes.push_back(draw_axis(max_input, kernel, stride, dilation));
    }
    return drawn;
  }

  void draw_channels(ConvolutionGeometry& drawn) {
    if (percent(25)) {  // depthwise
      drawn.groups = number(9);
      drawn.channels = drawn.groups;
      drawn.out_channels = drawn.groups * (percent(85) ? 1 : 2);
    } else if (percent(25)) {
      drawn.groups = from(2, 32);
      drawn.channels = drawn.groups * from(2, 40);
      drawn.out_channels = drawn.groups * from(1, 40);
    } else {
      drawn.groups = 1;
      drawn.channels = percent(15) ? from(1, 4) : number(10);
      drawn.out_channels = number(10);
    }
  }

  ConvolutionAxis draw_axis(int64_t max_input, int64_t kernel, int64_t stride, int64_t dilation) {
    const int64_t window = (kernel - 1) * dilation + 1;
    const int64_t pad = percent(70) ? window / 2 : 0;
    const int64_t input = std::max(from(1, max_input), window - 2 * pad);
    return {.input = input,
            .kernel = kernel,
            .stride = stride,
            .dilation = dilation,
            .pad_begin = pad,
            .pad_end = pad,
            .output = (input + 2 * pad - window) / stride + 1};
  }

  static double products_of(const ConvolutionGeometry& geometry) {
    auto products = static_cast<double>(geometry.batch * geometry.out_channels) *
                    static_cast<double>(geometry.group_channels());
    for (const ConvolutionAxis& axis : geometry.axes) {
      products *= static_cast<double>(axis.kernel) * static_cast<double>(axis.output);
    }
    return products;
  }

  std::mt19937_64 random_;
};

/// "nchw 2x64x56x56 -> 128 g1 k3 s1 d1 p1 u8i8 zero_points runtime_weights".
std::string text_of(const jit::ConvolutionProblem& problem) {
  const ConvolutionGeometry& geometry = problem.geometry;
  const bool nhwc = geometry.layout == ConvolutionLayout::nhwc;
  std::string input = fmt::format("{}x{}", geometry.batch, geometry.channels);
  for (const ConvolutionAxis& axis : geometry.axes) input += fmt::format("x{}", axis.input);
  const ConvolutionAxis& axis = geometry.axes.back();
  return fmt::format("{} {} -> {} g{} k{} s{} d{} p{} {}{}{}{}", nhwc ? "nhwc" : "nchw", input,
                     geometry.out_channels, geometry.groups, axis.kernel, axis.stride,
                     axis.dilation, axis.pad_begin, problem.x_is_signed ? "i8" : "u8",
                     problem.w_is_signed ? "i8" : "u8",
                     problem.has_weight_zero_points ? " zero_points" : "",
                     problem.has_constant_weights ? "" : " runtime_weights");
}

}  // namespace

std::vector<SweepCase> layer_cases() {
  std::vector<SweepCase> cases;
  for (const ConvolutionLayer& layer : convolution_layers()) {
    for (const ConvolutionLayout layout : {ConvolutionLayout::nchw, ConvolutionLayout::nhwc}) {
      const bool nhwc = layout == ConvolutionLayout::nhwc;
      cases.push_back({fmt::format("{}{}", layer.name, nhwc ? "/nhwc" : ""),
                       {.geometry = geometry_of(layer, layout)}});
    }
    cases.push_back(
        {fmt::format("{}/runtime_weights", layer.name),
         {.geometry = geometry_of(layer, ConvolutionLayout::nchw), .has_constant_weights = false}});
  }
  return cases;
}

std::vector<SweepCase> random_cases(uint64_t seed, int count) {
  Draw draw(seed);
  std::vector<SweepCase> cases;
  for (int i = 0; i < count; ++i) {
    const jit::ConvolutionProblem problem = draw.problem();
    cases.push_back({fmt::format("random/{}/{} {}", seed, i, text_of(problem)), problem});
  }
  return cases;
}

}  // namespace castor::bench
