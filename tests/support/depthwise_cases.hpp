// SPDX-License-Identifier: Apache-2.0
// Depthwise and grouped convolutions of either layout for tests: random ones, run by machine code
// on every tier with each tensor at the end or the beginning of its pages.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>
#include <vector>

#include "tests/support/convolution_cases.hpp"
#include "tests/support/placed_tensors.hpp"

namespace castor::test {

inline constexpr std::array byte_types = {ElementType::u8, ElementType::i8};

/// What makes one depthwise or grouped convolution; lists of extents along the spatial axes.
struct Depthwise {
  int64_t channels = 3;
  int64_t multiplier = 1;  ///< output channels of a group
  Dims input{};
  Dims kernel{};
  ConvolutionOptions options{};
  int64_t group_channels = 1;

  int64_t groups() const { return channels / group_channels; }
};

/// Base of the tests of one layout. Everything is drawn from one sequence, in the order of the
/// calls. A `check_...` is fatal at the first mistake.
class DepthwiseCases : public testing::Test {
 protected:
  DepthwiseCases(ConvolutionLayout layout, uint64_t seed) : layout_(layout), random_(seed) {}

  int64_t draw(int64_t min, int64_t max) {
    return min + static_cast<int64_t>(random_() % static_cast<uint64_t>(max - min + 1));
  }
  bool percent(int64_t chance) { return draw(1, 100) <= chance; }
  ElementType byte() { return byte_types[static_cast<size_t>(draw(0, 1))]; }
  /// Vectors of channels that are partial, whole, or overlap.
  int64_t draw_channels() {
    const int64_t whole = 16 * draw(1, 3);
    return percent(30) ? draw(1, 15) : percent(40) ? whole : whole + draw(1, 15);
  }
  /// Draws channels, at most `max` of them where they are not in vectors.
  int64_t draw_channels(int64_t max) {
    return layout_ == ConvolutionLayout::nhwc ? draw_channels() : draw(1, max);
  }
  Placing draw_placing();

  /// Full-range data. Weights of one kind in four are such that they are bytes less any zero point.
  ConvolutionCase drawn(const Depthwise& of, ElementType x_type, ElementType w_type);
  ConvolutionCase drawn(const Depthwise& of) { return drawn(of, byte(), byte()); }

  /// Adds `axes` spatial axes after those that are there; images are not less than their filters.
  Depthwise with_axes(Depthwise row, int axes);
  struct AxisLimits {
    int64_t dilation;
    int64_t excess;  ///< how far an image's extent exceeds the least one
  };
  /// Adds axes with dilations and strides that are mostly 1, and filters that may fit only with the
  /// padding.
  Depthwise with_any_axes(Depthwise row, int axes, const AxisLimits& max);

  /// Runs it with parameters at the ends or beginnings of their pages.
  std::string mistake_of(const ConvolutionCase& row);
  std::string mistake_of(const Depthwise& row) { return mistake_of(drawn(row)); }
  /// What is wrong with what machine code gives for the function, and the function.
  static std::string mistake_of(const FunctionPtr& function, const std::vector<Placed>& operands,
                                const std::vector<Placed>& expected);

  /// Along the last axis.
  struct KernelLimits {
    int64_t kernel;
    int64_t stride;
    int64_t excess;  ///< how far an image's extent exceeds the filter's
  };
  /// Every kernel, stride and dilation up to these.
  void check_kernels(const KernelLimits& max);
  /// Padding larger than the filter, so that vectors, pixels and blocks are outside the image
  /// altogether: 6 to `max` on each side.
  void check_large_padding(int cases, int64_t max_columns, const std::array<int64_t, 4>& max);
  void check_signs_and_zero_points(const Depthwise& of);
  /// The extreme bytes everywhere: no product of pairs may saturate.
  void check_extremes(const Depthwise& of);
  /// Tasks give the same bits, and are there on tiers that have these kernels.
  void check_tasks(const Depthwise& of);

  const ConvolutionLayout layout_;
  std::mt19937_64 random_;
};

}  // namespace castor::test
