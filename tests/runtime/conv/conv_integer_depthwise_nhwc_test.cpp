// SPDX-License-Identifier: Apache-2.0
// Depthwise conv_integer with layout = nhwc by machine code on every tier, against loops straight
// from the formula, with each tensor at the end or the beginning of its pages.
#include <algorithm>
#include <bit>

#include "ir/text/text.hpp"
#include "jit/conv/sliding/sliding_plan.hpp"
#include "tests/support/depthwise_cases.hpp"
#include "tests/support/on_every_engine.hpp"

namespace castor::test {
namespace {

using enum ElementType;

class ConvDepthwiseNhwc : public DepthwiseCases {
 protected:
  using DepthwiseCases::mistake_of;

  ConvDepthwiseNhwc() : DepthwiseCases(ConvolutionLayout::nhwc, 37) {}

  /// Checks a function of parameters against the interpreter.
  std::string mistake_of(const FunctionPtr& function) {
    std::vector<Patterns> tensors;
    std::vector<Placed> operands;
    for (const ValueId id : function->parameters) {
      const TensorType& type = function->values[id].type;
      Dims shape;
      for (const Dim& dim : type.shape) shape.push_back(dim.extent);
      tensors.push_back(random_patterns(type.element, shape));
      operands.push_back({tensors.back(), draw_placing()});
    }
    std::vector<Placed> expected;
    for (Patterns& result : interpreted_results(*function, tensors)) {
      expected.push_back({std::move(result), draw_placing()});
    }
    return mistake_of(function, operands, expected);
  }
  /// Floats are moderate.
  Patterns random_patterns(ElementType type, const Dims& shape) {
    Patterns tensor{type, shape, {}};
    for (int64_t i = 0; i < element_count(shape).value(); ++i) {
      const auto scale = static_cast<float>(draw(-1000, 1000)) / 4096;
      tensor.elements.push_back(type == f32   ? std::bit_cast<uint32_t>(scale)
                                : type == i32 ? static_cast<uint32_t>(draw(-5000, 5000))
                                              : static_cast<uint64_t>(draw(0, 255)));
    }
    return tensor;
  }
};

TEST_F(ConvDepthwiseNhwc, AnyNumberOfChannels) {
  for (int64_t channels = 1; channels <= 70; ++channels) {
    const Depthwise row = {.channels = channels,
                           .input = {draw(1, 12), draw(1, 12)},
                           .kernel = {draw(1, 3), draw(1, 3)},
                           .options = {.pads = {2, 2, 2, 2}}};
    ASSERT_EQ(mistake_of(row), "") << channels;
  }
}

TEST_F(ConvDepthwiseNhwc, RowsOfAnyLength) {
  for (int64_t width = 1; width <= 40; ++width) {
    for (int64_t stride = 1; stride <= 3; ++stride) {
      const Depthwise row = {.channels = draw_channels(),
                             .input = {draw(4, 25), width},
                             .kernel = {draw(1, 4), std::min<int64_t>(draw(1, 5), width)},
                             .options = {.pads = {draw(0, 2), draw(0, 2), draw(0, 2), draw(0, 2)},
                                         .strides = {draw(1, 3), stride}}};
      ASSERT_EQ(mistake_of(row), "");
    }
  }
}

TEST_F(ConvDepthwiseNhwc, KernelsStridesAndDilations) {
  check_kernels({.kernel = 9, .stride = 4, .excess = 15});
}

TEST_F(ConvDepthwiseNhwc, LargePadding) { check_large_padding(60, 20, {40, 30, 20, 20}); }

/// Several outputs of each channel: vectors begin and end anywhere among them.
TEST_F(ConvDepthwiseNhwc, AnyMultiplier) {
  for (int64_t multiplier = 2; multiplier <= 40; multiplier += multiplier < 18 ? 1 : 5) {
    for (int i = 0; i < 6; ++i) {
      const Depthwise row = {.channels = draw_channels(), .multiplier = multiplier};
      ASSERT_EQ(mistake_of(with_axes(row, static_cast<int>(draw(1, 2)))), "") << multiplier;
    }
  }
}

/// Lines, and volumes, whose filters have several slices.
TEST_F(ConvDepthwiseNhwc, OtherNumbersOfAxes) {
  for (int axes : {1, 3, 4}) {
    for (int i = 0; i < 60; ++i) {
      const Depthwise row = {.channels = draw_channels(), .multiplier = percent(80) ? 1 : 3};
      ASSERT_EQ(mistake_of(with_axes(row, axes)), "") << axes << " axes, " << i;
    }
  }
}

/// Images of several blocks and row ranges, and rows of several parts.
TEST_F(ConvDepthwiseNhwc, LargeImages) {
  const Depthwise rows[] = {
      {.channels = 32, .input = {112, 112}, .kernel = {3, 3}, .options = {.pads = {1, 1, 1, 1}}},
      {.channels = 40, .input = {50, 61}, .kernel = {5, 5}, .options = {.pads = {2, 2, 2, 2}}},
      {.channels = 20, .input = {33, 70}, .kernel = {7, 7}, .options = {.pads = {3, 3, 3, 3}}},
      {.channels = 17,
       .input = {50, 60},
       .kernel = {3, 3},
       .options = {.dilations = {2, 2}, .pads = {2, 2, 2, 2}}},
      {.channels = 96,
       .input = {31, 40},
       .kernel = {3, 3},
       .options = {.pads = {1, 1, 1, 1}, .strides = {2, 2}}},
      {.channels = 16, .input = {9'000}, .kernel = {7}, .options = {.pads = {4, 4}}},
      {.channels = 100, .input = {900}, .kernel = {3}, .options = {.pads = {4, 4}}},
      {.channels = 700, .input = {14, 14}, .kernel = {3, 3}, .options = {.pads = {1, 1, 1, 1}}},
      {.channels = 1030, .input = {7, 7}, .kernel = {3, 3}, .options = {.pads = {1, 1, 1, 1}}},
  };
  for (const Depthwise& row : rows) ASSERT_EQ(mistake_of(row), "");
}

TEST_F(ConvDepthwiseNhwc, SignsAndZeroPointsOfSeveralOutputs) {
  check_signs_and_zero_points({.channels = 10,
                               .multiplier = 3,
                               .input = {8, 9},
                               .kernel = {3, 3},
                               .options = {.pads = {1, 1, 1, 1}}});
}

TEST_F(ConvDepthwiseNhwc, SignsAndZeroPoints) {
  check_signs_and_zero_points(
      {.channels = 21, .input = {8, 9}, .kernel = {3, 3}, .options = {.pads = {1, 1, 1, 1}}});
}

TEST_F(ConvDepthwiseNhwc, Extremes) {
  check_extremes(
      {.channels = 18, .input = {9, 5}, .kernel = {7, 7}, .options = {.pads = {3, 3, 3, 3}}});
}

TEST_F(ConvDepthwiseNhwc, AnythingAtRandom) {
  for (int i = 0; i < 500; ++i) {
    const int axes = static_cast<int>(draw(1, 2));
    const Depthwise row = {.channels = draw_channels()};
    ASSERT_EQ(mistake_of(with_any_axes(row, axes, {.dilation = 18, .excess = 20})), "") << i;
  }
}

/// Kernels apply epilogues themselves, and leave out channels that they have done before.
TEST_F(ConvDepthwiseNhwc, Epilogues) {
  for (int64_t channels : {1, 7, 16, 17, 31, 40, 64, 100}) {
    for (int64_t kernel : {1, 3, 5, 7}) {
      for (bool is_signed : {false, true}) {
        const Dims y = {2, draw(1, 20), draw(1, 9), channels};
        const Dims w = {channels, 1, kernel, kernel};
        const Dims by_pixel = {2, y[1], y[2], 1};
        const auto function = parse_function(fmt::format(
            "func @f(%x: {}8{}, %w: {}8{}, %z: {}8[], %a: f32{}, %p: i32{}, %t: u8{}) -> (u8{}, "
            "f32{}) {{\n"
            "  %y = conv_integer %x, %w, %z {{auto_pad = same_upper, group = {}, layout = nhwc}}\n"
            "  %1 = add %y, %p\n  %2 = convert %1 : f32\n  %3 = mul %2, %a\n"
            "  %4 = convert %t : f32\n  %q = add %3, %4\n"
            "  %r = convert %q {{overflow = saturate, rounding = nearest_even}} : u8\n"
            "  return %r, %q\n}}\n",
            is_signed ? "i" : "u", to_string(y), percent(50) ? "i" : "u", to_string(w),
            is_signed ? "i" : "u", to_string(Dims{channels}), to_string(by_pixel), to_string(y),
            to_string(y), to_string(y), channels));
        ASSERT_TRUE(function) << function.error().to_string();
        ASSERT_EQ(mistake_of(*function), "");
      }
    }
  }
}

/// A residual's memory is the result's: what was written is not read again.
TEST_F(ConvDepthwiseNhwc, ResidualsInPlace) {
  for (int64_t channels : {16, 17, 37, 200}) {
    const Dims y = {1, 9, 7, channels};
    const auto function = *parse_function(fmt::format(
        "func @f(%x: u8{}, %w: i8[{}, 1, 3, 3], %t: i32{}) -> i32{} {{\n"
        "  %y = conv_integer %x, %w {{auto_pad = same_upper, group = {}, layout = nhwc}}\n"
        "  %r = add %y, %t\n  return %r\n}}\n",
        to_string(y), channels, to_string(y), to_string(y), channels));
    const std::vector<Patterns> operands = {random_bytes(random_, u8, y),
                                            random_bytes(random_, i8, {channels, 1, 3, 3}),
                                            random_patterns(i32, y)};
    const Patterns expected = interpreted_results(*function, operands).front();
    for (const auto& [tier, runtime] : tier_runtimes()) {
      PlacedTensor x(Placed{operands[0]});
      PlacedTensor w(Placed{operands[1]});
      PlacedTensor t(Placed{operands[2]});
      const std::vector<ConstView> inputs = {x.view(), w.view(), t.view()};
      const std::vector<View> outputs = {t.view()};
      const auto bound = runtime.compile(function)->bind(inputs, outputs);
      ASSERT_TRUE(bound) << bound.error().to_string();
      ASSERT_TRUE(bound->run(inputs, outputs));
      ASSERT_EQ(first_difference(expected, t.take()), "") << name_of(tier) << ", " << channels;
    }
  }
}

/// The form is chosen where it should be: what the other tests run is not another form.
TEST_F(ConvDepthwiseNhwc, FormIsChosen) {
  for (const jit::TierInfo& tier : jit::tier_table()) {
    const jit::Target target{tier.tier};
    for (int64_t kernel = 1; kernel <= 7; ++kernel) {
      for (int64_t stride : {1, 2}) {
        for (int64_t dilation : {1, 2}) {
          for (int64_t channels : {5, 16, 50}) {
            const int64_t pad = (kernel - 1) * dilation / 2;
            const ConvolutionAxis axis = {
                .input = 56,
                .kernel = kernel,
                .stride = stride,
                .dilation = dilation,
                .pad_begin = pad,
                .pad_end = pad,
                .output = (56 + 2 * pad - (kernel - 1) * dilation - 1) / stride + 1};
            const ConvolutionGeometry geometry = {.layout = ConvolutionLayout::nhwc,
                                                  .batch = 1,
                                                  .channels = channels,
                                                  .out_channels = channels,
                                                  .groups = channels,
                                                  .axes = {2, axis}};
            EXPECT_EQ(jit::plan_grouped_nhwc({.geometry = geometry, .x_is_signed = true}, target)
                          .has_value(),
                      target.has_avx512() || channels >= 8)
                << kernel << " " << stride << " " << dilation << " " << channels;
          }
        }
      }
    }
  }
}

TEST_F(ConvDepthwiseNhwc, TasksGiveTheSameBits) {
  const Depthwise rows[] = {
      {.channels = 300, .input = {7, 7}, .kernel = {3, 3}, .options = {.pads = {1, 1, 1, 1}}},
      {.channels = 20, .input = {40, 30}, .kernel = {3, 3}, .options = {.pads = {1, 1, 1, 1}}},
      {.channels = 5, .input = {20'000}, .kernel = {5}, .options = {.pads = {2, 2}}},
  };
  for (const Depthwise& row : rows) {
    check_tasks(row);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace castor::test
