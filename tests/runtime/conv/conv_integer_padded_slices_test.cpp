// SPDX-License-Identifier: Apache-2.0
// Filters with several positions along outer axes, of which some are in the padding for all pixels
// of a block and are left out: whatever padding counts for in sums must be right all the same.
#include <gtest/gtest.h>

#include "tests/support/convolution_cases.hpp"
#include "tests/support/on_every_engine.hpp"
#include "tests/support/placed_tensors.hpp"

namespace castor::test {
namespace {

struct Layer {
  Dims x;  ///< [N, C, d...], whatever the layout
  Dims w;
  ConvolutionOptions options;
};

const Layer layers[] = {
    // Slices of an even number of k steps, so that peeled ones go on working.
    {{1, 16, 4, 5, 6}, {20, 16, 3, 3, 3}, {.pads = {1, 1, 1, 1, 1, 1}}},
    {{2, 24, 3, 4, 5}, {9, 24, 3, 2, 2}, {.pads = {2, 0, 0, 1, 1, 0}}},
    // Padding before or after the outer axis alone.
    {{1, 16, 4, 5, 6}, {20, 16, 3, 3, 3}, {.pads = {1, 1, 1, 0, 1, 1}}},
    {{1, 16, 4, 5, 6}, {20, 16, 3, 3, 3}, {.pads = {0, 1, 1, 1, 1, 1}}},
    // An odd number.
    {{1, 12, 4, 5, 6}, {7, 12, 3, 3, 3}, {.pads = {1, 1, 1, 1, 1, 1}}},
    {{1, 4, 4, 5, 6}, {18, 4, 3, 3, 3}, {.pads = {1, 1, 1, 1, 1, 1}}},
    // One output along the outer axis; two outer axes; gaps within the filter; slices that nothing
    // is left of; groups; channels that are no k groups.
    {{1, 16, 1, 5, 6}, {20, 16, 3, 3, 3}, {.pads = {1, 1, 1, 1, 1, 1}}},
    {{1, 5, 4, 5, 6}, {7, 5, 3, 3, 3}, {.pads = {1, 1, 1, 1, 1, 1}}},
    {{1, 8, 3, 3, 4, 4}, {6, 8, 3, 2, 2, 1}, {.pads = {1, 1, 0, 0, 1, 1, 0, 0}}},
    {{1, 8, 5, 4, 6}, {6, 8, 3, 2, 2}, {.dilations = {2, 1, 1}, .pads = {4, 0, 0, 2, 0, 0}}},
    {{1, 8, 3, 4, 4}, {6, 8, 2, 1, 1}, {.pads = {3, 0, 0, 4, 0, 0}, .strides = {2, 1, 1}}},
    {{1, 16, 4, 5, 6}, {12, 8, 3, 3, 3}, {.group = 2, .pads = {1, 1, 1, 1, 1, 1}}},
};

enum class ZeroPoints : uint8_t { none, of_x, of_both };

Patterns drawn(std::mt19937_64& random, ElementType type, Dims shape) {
  Patterns made{type, std::move(shape), {}};
  for (int64_t i = element_count(made.shape).value(); i > 0; --i) {
    made.elements.push_back(random() & 0xff);
  }
  return made;
}

ConvolutionCase case_of(const Layer& layer, ElementType x, ElementType w, ConvolutionLayout layout,
                        ZeroPoints zeros) {
  std::mt19937_64 random(static_cast<uint64_t>(layer.w[0]));
  Dims x_shape = layer.x;
  if (layout == ConvolutionLayout::nhwc) {
    std::rotate(x_shape.begin() + 1, x_shape.begin() + 2, x_shape.end());
  }
  ConvolutionCase made{
      .options = layer.options, .x = drawn(random, x, x_shape), .w = drawn(random, w, layer.w)};
  made.options.layout = layout;
  if (zeros != ZeroPoints::none) made.x_zero_point = drawn(random, x, {});
  if (zeros == ZeroPoints::of_both) made.w_zero_point = drawn(random, w, {layer.w[0]});
  return made;
}

void expect_on_every_tier(const ConvolutionCase& made, const ConvolutionForm& form) {
  const Patterns expected = direct_convolution(made);
  std::vector<Placed> operands;
  for (const Patterns& tensor : parameters_of(made, form)) {
    operands.push_back({tensor, Placing::at_end});
  }
  for (const auto& [tier, runtime] : tier_runtimes()) {
    std::vector<Placed> results = {{{ElementType::i32, expected.shape, {}}, Placing::at_end}};
    ASSERT_EQ(run_placed(runtime, function_of(made, form), operands, results), "");
    ASSERT_EQ(first_difference(expected, results[0].tensor), "")
        << name_of(tier) << ", " << to_string(made.w.shape) << ", " << name_of(made.x.type) << " x "
        << name_of(made.w.type) << (form.constant_weights ? ", constant weights" : "");
  }
}

class PaddedSlices : public testing::TestWithParam<size_t> {};

TEST_P(PaddedSlices, CountForNothing) {
  for (const ConvolutionLayout layout : {ConvolutionLayout::nchw, ConvolutionLayout::nhwc}) {
    for (const ElementType x : {ElementType::u8, ElementType::i8}) {
      for (const ElementType w : {ElementType::u8, ElementType::i8}) {
        for (const ZeroPoints zeros : {ZeroPoints::none, ZeroPoints::of_x, ZeroPoints::of_both}) {
          const ConvolutionCase made = case_of(layers[GetParam()], x, w, layout, zeros);
          for (const bool constant : {true, false}) {
            expect_on_every_tier(made,
                                 {.constant_weights = constant, .constant_zero_points = constant});
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Layers, PaddedSlices, testing::Range(size_t{0}, std::size(layers)));

}  // namespace
}  // namespace castor::test
