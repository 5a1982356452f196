// SPDX-License-Identifier: Apache-2.0
#include "bench/cases/convolution_layers.hpp"

#include <fmt/format.h>

#include <array>

namespace castor::bench {

namespace {

const std::array all_layers = {
    ConvolutionLayer{"resnet50_stem", 3, {224, 224}, 64, 7, 2, 3},
    ConvolutionLayer{"resnet50_1_1x1", 64, {56, 56}, 64},
    ConvolutionLayer{"resnet50_2_3x3", 64, {56, 56}, 64, 3, 1, 1},
    ConvolutionLayer{"resnet50_3_1x1", 64, {56, 56}, 256},
    ConvolutionLayer{"resnet50_4_1x1", 256, {56, 56}, 64},
    ConvolutionLayer{"resnet50_5_3x3_s2", 128, {56, 56}, 128, 3, 2, 1},
    ConvolutionLayer{"resnet50_6_3x3", 128, {28, 28}, 128, 3, 1, 1},
    ConvolutionLayer{"resnet50_7_1x1", 128, {28, 28}, 512},
    ConvolutionLayer{"resnet50_8_1x1", 512, {28, 28}, 128},
    ConvolutionLayer{"resnet50_9_3x3", 256, {14, 14}, 256, 3, 1, 1},
    ConvolutionLayer{"resnet50_10_1x1", 256, {14, 14}, 1024},
    ConvolutionLayer{"resnet50_11_1x1", 1024, {14, 14}, 256},
    ConvolutionLayer{"resnet50_12_3x3", 512, {7, 7}, 512, 3, 1, 1},
    ConvolutionLayer{"resnet50_13_1x1", 512, {7, 7}, 2048},
    ConvolutionLayer{"resnet50_14_1x1", 2048, {7, 7}, 512},
    ConvolutionLayer{"resnet50_15_1x1_s2", 256, {56, 56}, 512, 1, 2},
    ConvolutionLayer{"mobilenet_stem", 3, {224, 224}, 32, 3, 2, 1},
    ConvolutionLayer{"mobilenet_1_depthwise", 32, {112, 112}, 32, 3, 1, 1, 32},
    ConvolutionLayer{"mobilenet_2_depthwise_s2", 96, {112, 112}, 96, 3, 2, 1, 96},
    ConvolutionLayer{"mobilenet_3_depthwise", 144, {56, 56}, 144, 3, 1, 1, 144},
    ConvolutionLayer{"mobilenet_4_depthwise", 384, {14, 14}, 384, 3, 1, 1, 384},
    ConvolutionLayer{"mobilenet_5_1x1", 24, {56, 56}, 144},
    ConvolutionLayer{"mobilenet_6_1x1", 64, {14, 14}, 384},
    ConvolutionLayer{"mobilenet_7_1x1", 320, {7, 7}, 1280},
    ConvolutionLayer{"depthwise_5x5", 144, {56, 56}, 144, 5, 1, 2, 144},
    ConvolutionLayer{"depthwise_7x7", 96, {56, 56}, 96, 7, 1, 3, 96},
    ConvolutionLayer{"depthwise_dilated", 144, {56, 56}, 144, 3, 1, 2, 144, 2},
    ConvolutionLayer{"depthwise_twice", 64, {56, 56}, 128, 3, 1, 1, 64},
    ConvolutionLayer{"depthwise_3d", 32, {8, 28, 28}, 32, 3, 1, 1, 32},
    ConvolutionLayer{"grouped_3x3", 128, {56, 56}, 128, 3, 1, 1, 32},
    ConvolutionLayer{"grouped_2", 128, {56, 56}, 128, 3, 1, 1, 64},
    ConvolutionLayer{"grouped_8", 256, {28, 28}, 256, 3, 1, 1, 32},
    ConvolutionLayer{"grouped_16", 256, {28, 28}, 256, 3, 1, 1, 16},
    ConvolutionLayer{"grouped_8_to_4", 256, {28, 28}, 128, 3, 1, 1, 32},
    ConvolutionLayer{"grouped_16_to_2", 256, {28, 28}, 32, 3, 1, 1, 16},
    ConvolutionLayer{"whisper_1", 80, {3000}, 384, 3, 1, 1},
    ConvolutionLayer{"whisper_2", 384, {3000}, 384, 3, 2, 1},
    ConvolutionLayer{"patch_embedding", 3, {224, 224}, 768, 16, 16},
    ConvolutionLayer{"conv3d", 64, {8, 56, 56}, 64, 3, 1, 1},
    ConvolutionLayer{"unusual_dilated", 64, {30, 30}, 48, 3, 1, 2, 1, 2},
    ConvolutionLayer{"unusual_stride_3", 20, {57, 57}, 33, 5, 3, 1},
    ConvolutionLayer{"unusual_one_channel", 1, {61, 61}, 24, 8, 1, 3},
    ConvolutionLayer{"unusual_one_output", 64, {28, 28}, 1, 3, 1, 1},
    ConvolutionLayer{"unusual_one_pixel", 512, {1, 1}, 1000},
    ConvolutionLayer{"unusual_groups", 96, {14, 14}, 72, 3, 1, 1, 12},
    ConvolutionLayer{"unusual_5d", 12, {5, 5, 5, 5}, 10, 2},
};

}  // namespace

Dims ConvolutionLayer::output() const {
  Dims result;
  for (const int64_t extent : input) {
    result.push_back((extent + 2 * pad - (kernel - 1) * dilation - 1) / stride + 1);
  }
  return result;
}

int64_t ConvolutionLayer::positions() const {
  int64_t count = 1;
  for (int axis = 0; axis < input.rank(); ++axis) count *= kernel;
  return count;
}

int64_t ConvolutionLayer::products() const {
  int64_t count = out_channels * group_channels() * positions();
  for (const int64_t extent : output()) count *= extent;
  return count;
}

std::span<const ConvolutionLayer> convolution_layers() { return all_layers; }

std::string ConvolutionVariant::name() const {
  constexpr std::string_view epilogues[] = {"", "/dequantize", "/requantize"};
  constexpr std::string_view with[] = {"", "/zero_points_none", "/zero_points_x", "/zero_points_w",
                                       "/zero_points_xw"};
  return fmt::format(
      "{}{}{}{}{}{}", name_of(x), name_of(w), layout == ConvolutionLayout::nhwc ? "/nhwc" : "",
      runtime_weights ? "/runtime_weights" : "", epilogues[static_cast<size_t>(epilogue)],
      with[static_cast<size_t>(zero_points)]);
}

bool ConvolutionVariant::has_x_zero_point() const {
  using enum ConvolutionZeroPoints;
  return zero_points == usual || zero_points == of_x || zero_points == of_both;
}

bool ConvolutionVariant::has_weight_zero_points() const {
  using enum ConvolutionZeroPoints;
  if (zero_points == usual) return w == ElementType::u8;
  return zero_points == of_w || zero_points == of_both;
}

ElementType ConvolutionVariant::y() const {
  using enum ElementType;
  constexpr ElementType types[] = {i32, f32, u8};
  return types[static_cast<size_t>(epilogue)];
}

std::vector<ConvolutionVariant> convolution_variants(const ConvolutionLayer& layer) {
  using enum ElementType;
  std::vector<ConvolutionVariant> variants;
  for (const ElementType x : {u8, i8}) {
    for (const ElementType w : {i8, u8}) {
      variants.push_back({.x = x, .w = w});
      variants.push_back({.x = x, .w = w, .layout = ConvolutionLayout::nhwc});
      variants.push_back({.x = x, .w = w, .runtime_weights = true});
    }
  }
  for (const auto layout : {ConvolutionLayout::nchw, ConvolutionLayout::nhwc}) {
    for (const auto epilogue : {ConvolutionEpilogue::dequantize, ConvolutionEpilogue::requantize}) {
      variants.push_back({.x = u8, .w = i8, .layout = layout, .epilogue = epilogue});
    }
  }
  const bool is_depthwise = layer.groups > 1 && layer.group_channels() == 1;
  if (!is_depthwise && !(layer.name.starts_with("resnet50") && layer.kernel == 3)) return variants;
  for (const ElementType x : {u8, i8}) {
    for (const ElementType w : {i8, u8}) {
      for (const auto zero_points : {ConvolutionZeroPoints::none, ConvolutionZeroPoints::of_x,
                                     ConvolutionZeroPoints::of_w, ConvolutionZeroPoints::of_both}) {
        variants.push_back({.x = x, .w = w, .zero_points = zero_points});
      }
    }
  }
  return variants;
}

}  // namespace castor::bench
