// SPDX-License-Identifier: Apache-2.0
// conv_integer in groups of a few channels with layout = nhwc by machine code on every tier,
// against loops straight from the formula, with each tensor at the end or the beginning of its
// pages.
#include <fmt/format.h>

#include <algorithm>

#include "ir/text/text.hpp"
#include "jit/conv/sliding/sliding_plan.hpp"
#include "runtime/bind/bound_state.hpp"
#include "runtime/conv/convolution.hpp"
#include "runtime/state_access.hpp"
#include "tests/support/depthwise_cases.hpp"
#include "tests/support/function_case.hpp"
#include "tests/support/kernel_code.hpp"
#include "tests/support/on_every_engine.hpp"

namespace castor::test {
namespace {

class ConvGroupedNhwc : public DepthwiseCases {
 protected:
  ConvGroupedNhwc() : DepthwiseCases(ConvolutionLayout::nhwc, 41) {}

  /// Any number of groups, whose channels in all are at most a few vectors.
  Depthwise any_groups() {
    const int64_t channels = draw(2, 16);
    const int64_t outputs = percent(40) ? channels : draw(1, 20);
    const int64_t groups = draw(2, std::max<int64_t>(3, 64 / std::max(channels, outputs)));
    return {.channels = groups * channels, .multiplier = outputs, .group_channels = channels};
  }
};

TEST_F(ConvGroupedNhwc, AnyNumberOfChannels) {
  for (int64_t channels = 2; channels <= 17; ++channels) {
    for (int64_t outputs = 1; outputs <= 20; ++outputs) {
      const Depthwise row = {.channels = channels * draw(2, 6),
                             .multiplier = outputs,
                             .input = {draw(1, 7), draw(1, 9)},
                             .kernel = {draw(1, 3), draw(1, 3)},
                             .options = {.pads = {2, 2, 2, 2}},
                             .group_channels = channels};
      ASSERT_EQ(mistake_of(row), "") << channels << " to " << outputs;
    }
  }
}

TEST_F(ConvGroupedNhwc, KernelsStridesAndDilations) {
  for (int64_t kernel = 1; kernel <= 9; ++kernel) {
    for (int64_t stride = 1; stride <= 4; ++stride) {
      for (int64_t dilation = 1; dilation <= 3; ++dilation) {
        Depthwise row = any_groups();
        row.kernel = {draw(1, 5), kernel};
        row.input = {row.kernel[0] + draw(0, 12), (kernel - 1) * dilation + 1 + draw(0, 12)};
        row.options = {.dilations = {1, dilation},
                       .pads = {draw(0, 4), draw(0, 4), draw(0, 4), draw(0, 4)},
                       .strides = {draw(1, 3), stride}};
        ASSERT_EQ(mistake_of(row), "");
      }
    }
  }
}

TEST_F(ConvGroupedNhwc, LargePadding) {
  for (int i = 0; i < 40; ++i) {
    Depthwise row = any_groups();
    row.input = {draw(1, 9), draw(1, 15)};
    row.kernel = {draw(1, 3), draw(1, 5)};
    row.options = {.dilations = {draw(1, 3), draw(1, 2)},
                   .pads = {draw(6, 30), draw(6, 25), draw(6, 15), draw(6, 15)},
                   .strides = {draw(1, 4), draw(1, 4)}};
    ASSERT_EQ(mistake_of(row), "") << i;
  }
}

/// Lines, images, volumes and beyond.
TEST_F(ConvGroupedNhwc, AnythingAtRandom) {
  for (int i = 0; i < 400; ++i) {
    const int axes = static_cast<int>(draw(1, 10) / 3 + 1);
    const Depthwise row = any_groups();
    ASSERT_EQ(mistake_of(with_any_axes(row, axes, {.dilation = 9, .excess = 24 / axes})), "") << i;
  }
}

/// Images of several blocks and row ranges, and many channels.
TEST_F(ConvGroupedNhwc, LargeImages) {
  const ConvolutionOptions padded = {.pads = {1, 1, 1, 1}};
  const Depthwise rows[] = {
      {64, 4, {30, 40}, {3, 3}, padded, 4},   {60, 10, {23, 31}, {3, 3}, padded, 6},
      {48, 16, {20, 30}, {3, 3}, padded, 16}, {700, 2, {9, 9}, {3, 3}, padded, 2},
      {256, 24, {7, 7}, {3, 3}, padded, 16},  {48, 8, {3000}, {5}, {.pads = {2, 2}}, 8},
  };
  for (const Depthwise& row : rows) ASSERT_EQ(mistake_of(row), "");
}

TEST_F(ConvGroupedNhwc, SignsAndZeroPoints) {
  for (const auto& [channels, outputs] : {std::pair{4, 4}, {3, 5}, {16, 8}}) {
    check_signs_and_zero_points({.channels = 6 * channels,
                                 .multiplier = outputs,
                                 .input = {6, 7},
                                 .kernel = {3, 3},
                                 .options = {.pads = {1, 1, 1, 1}},
                                 .group_channels = channels});
    if (HasFatalFailure()) return;
  }
}

TEST_F(ConvGroupedNhwc, Extremes) {
  check_extremes({.channels = 32,
                  .multiplier = 5,
                  .input = {6, 5},
                  .kernel = {3, 3},
                  .options = {.pads = {1, 1, 1, 1}},
                  .group_channels = 16});
}

/// Kernels apply epilogues themselves where they have AVX-512.
TEST_F(ConvGroupedNhwc, EpiloguesAreApplied) {
  uint64_t seed = 1;
  int sliding = 0;
  for (const auto& [channels, outputs] : {std::pair{4, 4}, {2, 3}, {16, 16}, {6, 20}, {8, 2}}) {
    for (const bool is_signed : {false, true}) {
      const int64_t m = 8 * outputs;
      const Dims x = {2, 9, 13, 8 * channels};
      const Dims y = {2, 9, 13, m};
      const Dims w = {m, channels, 3, 3};
      const std::string text = fmt::format(
          "func @f(%x: {0}8{1}, %w: u8{2}, %z: {0}8[], %wz: u8{3}, %a: f32{3}, %t: i8{4}) -> "
          "(u8{4}, f32{4}) {{\n"
          "  %y = conv_integer %x, %w, %z, %wz {{auto_pad = same_upper, group = 8, layout = "
          "nhwc}}\n"
          "  %1 = convert %y : f32\n  %2 = mul %1, %a\n  %3 = convert %t : f32\n"
          "  %q = add %2, %3\n"
          "  %r = convert %q {{overflow = saturate, rounding = nearest_even}} : u8\n"
          "  return %r, %q\n}}\n",
          is_signed ? "i" : "u", to_string(x), to_string(w), to_string(Dims{m}), to_string(y));
      const FunctionCase row = {text, {{x}, {w}, {{}}, {{m}}, {{m}}, {y}}};
      check_function(row, ++seed);
      if (HasFatalFailure()) return;
      for (const auto& [tier, runtime] : tier_runtimes()) {
        const auto bound =
            runtime.compile(*parse_function(text))->bind({x, w, Dims{}, Dims{m}, Dims{m}, y});
        ASSERT_TRUE(bound) << bound.error().to_string();
        const detail::Step& step = detail::StateAccess::of(*bound).steps.front();
        const auto& convolution = *std::get<detail::ConvolutionStep>(step).convolution;
        if (convolution.grouped_nhwc() == nullptr) continue;  // a dense plan costs less
        ++sliding;
        EXPECT_EQ(convolution.applies_epilogue, jit::Target{tier}.has_avx512())
            << name_of(tier) << ": " << text;
      }
    }
  }
  EXPECT_GE(sliding, tier_runtimes().size() > 1 ? 8 : 4);
}

/// A group's channels and outputs, a filter, and whether there is a plan of this form.
struct Choice {
  int64_t channels;
  int64_t outputs;
  Dims kernel;
  bool is_planned;
};

constexpr bool planned = true;

/// There is a candidate of this kind where there should be.
TEST_F(ConvGroupedNhwc, IsPlanned) {
  const Choice rows[] = {
      {2, 2, {3, 3}, planned},   {4, 4, {3, 3}, planned},    {8, 8, {3, 3}, planned},
      {16, 16, {3, 3}, planned}, {3, 5, {5, 5}, planned},    {4, 1, {7, 7}, planned},
      {8, 2, {3, 3}, planned},   {4, 64, {3, 3}, planned},   {16, 8, {3, 3}, planned},
      {6, 20, {3}, planned},     {4, 4, {3, 3, 3}, planned}, {8, 4, {1, 1}, planned},
      {2, 2, {1, 9}, !planned},  {17, 16, {1, 1}, !planned},
  };
  for (const jit::TierInfo& tier : jit::tier_table()) {
    for (const Choice& row : rows) {
      ConvolutionGeometry geometry = {.layout = ConvolutionLayout::nhwc,
                                      .batch = 1,
                                      .channels = 8 * row.channels,
                                      .out_channels = 8 * row.outputs,
                                      .groups = 8};
      for (const int64_t kernel : row.kernel) {
        geometry.axes.push_back({.input = 20, .kernel = kernel, .output = 20 - kernel + 1});
      }
      EXPECT_EQ(jit::plan_grouped_nhwc({.geometry = geometry, .x_is_signed = true},
                                       jit::Target{tier.tier})
                    .has_value(),
                row.is_planned)
          << row.channels << " to " << row.outputs << ", " << to_string(row.kernel) << ", "
          << tier.name;
    }
  }
}

/// Every kind of code, depthwise ones among them, on tiers that this machine cannot run as well.
TEST_F(ConvGroupedNhwc, InstructionsBelongToTheTier) {
  const CodeLimits limits = {.instructions = {}, .bytes = size_t{80} << 10};
  for (const jit::TierInfo& tier : jit::tier_table()) {
    const jit::Target target{tier.tier};
    const bool has_vnni = jit::product_engine_of(target) == jit::ProductEngine::u8_i8_dot;
    int emitted = 0;
    for (int i = 0; i < 300; ++i) {
      jit::GroupedNhwcSpec spec;
      spec.engine = jit::product_engine_of(target);
      spec.rows = static_cast<int>(draw(1, 7));
      spec.row_stride = static_cast<int>(draw(1, 4));
      spec.columns = static_cast<int>(draw(1, 7));
      spec.column_stride = static_cast<int>(draw(1, 4));
      spec.outputs = static_cast<int>(draw(1, 4));
      spec.k_groups = percent(50) ? 0 : static_cast<int>(draw(1, 4));
      spec.is_partial = target.has_avx512() && percent(30);
      spec.masks_lanes = percent(50);
      spec.flips_input = percent(50);
      spec.subtracts_window_sums = has_vnni && percent(50);
      spec.adds = percent(30);
      spec.repeats = spec.is_depthwise() && percent(30);
      spec.signed_input = has_vnni && !spec.flips_input && percent(50);
      for (int64_t blocks = draw(1, 3); blocks > 0; --blocks) {
        const int max = spec.is_depthwise() ? 8 : 2;
        spec.ranges.push_back({.outputs = static_cast<int>(draw(1, max)),
                               .above = static_cast<int>(draw(0, 1)),
                               .below = static_cast<int>(draw(0, 1))});
      }
      if (!jit::fits(spec, target) || spec.rows * spec.products() > 256) continue;
      ++emitted;
      check_kernel_code([&] { return jit::emit_kernel(spec, target); }, target, name_of(tier.tier),
                        limits);
      if (HasFatalFailure()) return;
    }
    EXPECT_GE(emitted, 30) << tier.name;
  }
}

TEST_F(ConvGroupedNhwc, TasksGiveTheSameBits) {
  const ConvolutionOptions padded = {.pads = {1, 1, 1, 1}};
  const Depthwise rows[] = {
      {128, 4, {7, 7}, {3, 3}, padded, 4},
      {30, 5, {40, 30}, {3, 3}, padded, 3},
      {32, 2, {3, 9, 9}, {3, 3, 3}, {.pads = {1, 1, 1, 1, 1, 1}}, 2},
  };
  for (const Depthwise& row : rows) {
    check_tasks(row);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace castor::test
