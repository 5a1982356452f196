// SPDX-License-Identifier: Apache-2.0
// Convolutions that are done in several blocks of rows or columns: tiers against each other in
// full, and against loops from the formula in elements drawn at random and at the borders.
#include <gtest/gtest.h>

#include <algorithm>

#include "ir/text/text.hpp"
#include "jit/conv/candidates.hpp"
#include "tests/support/convolution_loops.hpp"
#include "tests/support/on_every_engine.hpp"
#include "tests/support/placed_tensors.hpp"

namespace castor::test {
namespace {

/// What a layer must be split into, for the test to be about that.
enum class Split : uint8_t { none, rows, columns };

struct Layer {
  Dims x;  ///< [N, C, d...], whatever the layout
  Dims w;
  ConvolutionOptions options;
  Split split;
};

const std::vector<Layer>& layers() {
  static const std::vector<Layer> all = {
      {{1, 256, 56, 56}, {9, 256, 1, 1}, {}, Split::rows},
      {{1, 384, 3000}, {5, 384, 3}, {.pads = {1, 1}, .strides = {2}}, Split::columns},
      {{1, 128, 58, 57}, {7, 128, 3, 3}, {.pads = {1, 1, 1, 1}}, Split::rows},
      {{1, 200, 41, 43}, {6, 200, 3, 3}, {.pads = {2, 0, 1, 3}, .strides = {2, 2}}, Split::rows},
      {{2, 160, 60, 50}, {5, 160, 2, 3}, {.dilations = {3, 2}, .pads = {3, 5, 0, 1}}, Split::rows},
      {{1, 40, 90, 83}, {4, 10, 5, 3}, {.group = 4, .pads = {7, 4, 6, 0}, .strides = {3, 1}}, {}},
      {{1, 3, 150, 149}, {10, 3, 7, 7}, {.pads = {3, 3, 3, 3}, .strides = {2, 2}}, Split::none},
      {{1, 3, 130, 160}, {9, 3, 16, 16}, {.strides = {16, 16}}, Split::none},
      {{1, 2100, 3, 250}, {3, 2100, 2, 3}, {.pads = {1, 0, 0, 2}}, Split::columns},
      {{1, 9000, 2, 190}, {2, 9000, 1, 1}, {}, Split::columns},
      // A block of padding alone, as wide as the input.
      {{1, 40'000, 3, 16}, {3, 40'000, 1, 1}, {.pads = {0, 0, 0, 16}}, Split::columns},
      {{1, 7, 40'000}, {3, 7, 9}, {.dilations = {3}, .pads = {11, 29}, .strides = {3}}, {}},
      {{1, 160, 5, 30, 31}, {4, 160, 3, 3, 3}, {.pads = {1, 1, 1, 1, 1, 1}}, Split::rows},
      {{1, 48, 70, 71}, {96, 1, 3, 3}, {.group = 48, .pads = {1, 1, 1, 1}}, Split::none},
      {{1, 64, 40, 41}, {9, 64, 3, 3}, {.auto_pad = AutoPad::same_lower, .strides = {1, 2}}, {}},
  };
  return all;
}

class Blocks : public testing::TestWithParam<size_t> {
 protected:
  /// The layer with drawn data; signs differ from layer to layer.
  ConvolutionCase row(ConvolutionLayout layout) {
    const Layer& layer = layers()[GetParam()];
    const ElementType x_type = GetParam() % 2 == 0 ? ElementType::u8 : ElementType::i8;
    const ElementType w_type = GetParam() % 4 < 2 ? ElementType::u8 : ElementType::i8;
    ConvolutionCase made{
        .options = layer.options,
        .x = {x_type, layer.x, {}},
        .w = {w_type, layer.w, {}},
        .x_zero_point = Patterns{x_type, {}, {byte()}},
        .w_zero_point = Patterns{w_type, has_one_zero_point() ? Dims{} : Dims{layer.w[0]}, {}}};
    made.options.layout = layout;
    if (layout == ConvolutionLayout::nhwc) {
      std::rotate(made.x.shape.begin() + 1, made.x.shape.begin() + 2, made.x.shape.end());
    }
    for (Patterns* tensor : {&made.x, &made.w, &*made.w_zero_point}) {
      for (int64_t i = element_count(tensor->shape).value(); i > 0; --i) {
        tensor->elements.push_back(byte());
      }
    }
    return made;
  }

  uint64_t byte() { return random_() & 0xff; }
  /// Whether w has one zero point: then window sums are multiplied once a pixel, and are part of
  /// first values.
  static bool has_one_zero_point() { return GetParam() % 3 == 0; }

  /// The first of the elements looked at that differs: random ones, and pixels of the borders.
  std::string difference(const ConvolutionLoops& loops, const Patterns& y) {
    constexpr int64_t max_products = 12'000'000;
    const Dims& w = layers()[GetParam()].w;
    const int64_t looked_at = max_products / (element_count(w).value() / w[0]);
    for (int64_t i = 0; i < looked_at; ++i) {
      const int64_t number = draw_number(loops.shape(), i % 3);
      const uint64_t expected = loops.element(number);
      const uint64_t found = y.elements[static_cast<size_t>(number)];
      if (found == expected) continue;
      return fmt::format("element {} of {}: found 0x{:x}, expected 0x{:x}", number,
                         to_string(loops.shape()), found, expected);
    }
    return {};
  }

  /// Draws an element at the first or last position of `borders` axes.
  int64_t draw_number(const Dims& shape, int64_t borders) {
    std::vector<int64_t> at;
    for (int64_t extent : shape) at.push_back(static_cast<int64_t>(random_() % uint64_t(extent)));
    for (; borders > 0; --borders) {
      const size_t axis = random_() % at.size();
      at[axis] = random_() % 2 == 0 ? 0 : shape[static_cast<int>(axis)] - 1;
    }
    int64_t number = 0;
    for (size_t axis = 0; axis < at.size(); ++axis) {
      number = number * shape[static_cast<int>(axis)] + at[axis];
    }
    return number;
  }

  void check(const ConvolutionCase& made, const ConvolutionForm& form) {
    const FunctionPtr function = function_of(made, form);
    ASSERT_TRUE(function);
    std::vector<Placed> operands;
    for (const Patterns& tensor : parameters_of(made, form)) {
      operands.push_back({tensor, Placing::at_begin});
    }
    const ConvolutionLoops loops(made);
    std::optional<Patterns> first;
    for (const auto& [tier, runtime] : tier_runtimes()) {
      std::vector<Placed> results = {{{ElementType::i32, loops.shape(), {}}}};
      ASSERT_EQ(run_placed(runtime, function, operands, results), "") << name_of(tier);
      if (first) {
        ASSERT_EQ(first_difference(*first, results[0].tensor), "") << name_of(tier);
        continue;
      }
      first = std::move(results[0].tensor);
      ASSERT_EQ(difference(loops, *first), "") << name_of(tier) << "\n" << print(*function);
    }
  }

  std::mt19937_64 random_{GetParam() + 1};
};

TEST_P(Blocks, SplitAsMeant) {
  const Layer& layer = layers()[GetParam()];
  const Operation operation{.op = OpKind::conv_integer, .attributes = attributes_of(layer.options)};
  const auto geometry = convolution_geometry(operation, layer.x, layer.w, nullptr, nullptr);
  ASSERT_TRUE(geometry) << geometry.error().to_string();
  for (const auto& [tier, runtime] : tier_runtimes()) {
    const std::vector<jit::Candidate> all = candidates({*geometry}, jit::Target{tier});
    const auto dense = std::ranges::find_if(all, [](const jit::Candidate& candidate) {
      return std::holds_alternative<jit::DensePlan>(candidate.plan);
    });
    const auto& plan = std::get<jit::DensePlan>(dense->plan);
    if (layer.split == Split::rows && plan.rows.output > 1) {
      EXPECT_LT(plan.block.rows, plan.rows.output);
    } else if (layer.split == Split::rows) {  // rows follow each other as one
      EXPECT_LT(plan.block.columns, plan.columns.output);
    } else if (layer.split == Split::columns) {
      EXPECT_LT(plan.block.columns, plan.columns.output);
    }
  }
}

TEST_P(Blocks, ConstantWeights) {
  check(row(ConvolutionLayout::nchw), {.constant_weights = true, .constant_zero_points = true});
}

TEST_P(Blocks, WeightsAtRunTimeAndChannelsLast) {
  check(row(ConvolutionLayout::nhwc), {.unknown_extents = true});
}

INSTANTIATE_TEST_SUITE_P(Layers, Blocks, testing::Range(size_t{0}, layers().size()));

}  // namespace
}  // namespace castor::test
