// SPDX-License-Identifier: Apache-2.0
// Depthwise conv_integer by machine code on every tier, against loops straight from the formula and
// the interpreter, with each tensor at the end or the beginning of its pages.
#include <algorithm>

#include "jit/conv/sliding/sliding_plan.hpp"
#include "tests/support/depthwise_cases.hpp"
#include "tests/support/kernel_code.hpp"

namespace castor::test {
namespace {

class ConvDepthwise : public DepthwiseCases {
 protected:
  ConvDepthwise() : DepthwiseCases(ConvolutionLayout::nchw, 31) {}
};

/// Rows of every length, so that vectors hold many rows, one, or a part of one.
TEST_F(ConvDepthwise, RowsOfAnyLength) {
  for (int64_t width = 1; width <= 70; ++width) {
    for (int64_t stride = 1; stride <= 3; ++stride) {
      const int64_t kernel = std::min<int64_t>(draw(1, 5), width);
      const Depthwise row = {.channels = draw(1, 4),
                             .input = {draw(1, 12) + 3, width},
                             .kernel = {draw(1, 4), kernel},
                             .options = {.pads = {draw(0, 2), draw(0, 2), draw(0, 2), draw(0, 2)},
                                         .strides = {draw(1, 3), stride}}};
      ASSERT_EQ(mistake_of(row), "");
    }
  }
}

TEST_F(ConvDepthwise, KernelsStridesAndDilations) {
  check_kernels({.kernel = 7, .stride = 3, .excess = 40});
}

TEST_F(ConvDepthwise, LargePadding) { check_large_padding(80, 40, {40, 70, 20, 40}); }

TEST_F(ConvDepthwise, SeveralOutputsForAChannel) {
  for (int64_t multiplier = 2; multiplier <= 5; ++multiplier) {
    for (int64_t channels : {1, 2, 7, 33}) {
      const Depthwise row = {.channels = channels,
                             .multiplier = multiplier,
                             .input = {draw(3, 9), draw(3, 30)},
                             .kernel = {3, 3},
                             .options = {.pads = {1, 1, 1, 1}}};
      ASSERT_EQ(mistake_of(row), "");
    }
  }
}

/// Lines, volumes and beyond.
TEST_F(ConvDepthwise, OtherNumbersOfAxes) {
  for (int axes : {1, 3, 4}) {
    for (int i = 0; i < 60; ++i) {
      const Depthwise row = {.channels = draw(1, 4), .multiplier = draw(1, 2)};
      ASSERT_EQ(mistake_of(with_axes(row, axes)), "") << axes << " axes, " << i;
    }
  }
}

/// Images of several blocks and row ranges, and rows of several parts.
TEST_F(ConvDepthwise, LargeImages) {
  const Depthwise rows[] = {
      {.channels = 3, .input = {112, 112}, .kernel = {3, 3}, .options = {.pads = {1, 1, 1, 1}}},
      {.channels = 2, .input = {150, 131}, .kernel = {5, 5}, .options = {.pads = {2, 2, 2, 2}}},
      {.channels = 2, .input = {33, 700}, .kernel = {7, 7}, .options = {.pads = {3, 3, 3, 3}}},
      {.channels = 2,
       .input = {90, 300},
       .kernel = {3, 3},
       .options = {.dilations = {2, 2}, .pads = {2, 2, 2, 2}}},
      {.channels = 2,
       .input = {131, 140},
       .kernel = {3, 3},
       .options = {.pads = {1, 1, 1, 1}, .strides = {2, 2}}},
      {.channels = 2, .input = {5, 20'000}, .kernel = {3, 3}, .options = {.pads = {1, 1, 1, 1}}},
      {.channels = 2, .input = {40'000}, .kernel = {9}, .options = {.pads = {4, 4}}},
      {.channels = 40, .input = {14, 14}, .kernel = {3, 3}, .options = {.pads = {1, 1, 1, 1}}},
      {.channels = 90, .input = {7, 7}, .kernel = {3, 3}, .options = {.pads = {1, 1, 1, 1}}},
      {.channels = 2,
       .input = {9, 40, 60},
       .kernel = {3, 3, 3},
       .options = {.pads = {1, 1, 1, 1, 1, 1}}},
  };
  for (const Depthwise& row : rows) ASSERT_EQ(mistake_of(row), "");
}

TEST_F(ConvDepthwise, SignsAndZeroPoints) {
  check_signs_and_zero_points(
      {.channels = 5, .input = {8, 21}, .kernel = {3, 3}, .options = {.pads = {1, 1, 1, 1}}});
}

/// A row's last tap that is a k group of its own subtracts its zero point separately.
TEST_F(ConvDepthwise, LastTapsAlone) {
  for (int64_t kernel : {1, 5, 9, 13}) {
    for (int64_t rows : {2, 3}) {
      const int64_t dilation = kernel == 9 ? 4 : 1;  // then each k group has a source of its own
      const int64_t pad = dilation * (kernel / 2);
      const Depthwise row = {
          .channels = 3,
          .multiplier = rows == 2 ? 2 : 1,
          .input = {4, 19},
          .kernel = {rows, kernel},
          .options = {.dilations = {1, dilation}, .pads = {1, pad, rows - 2, pad}}};
      check_signs_and_zero_points(row);
      if (HasFatalFailure()) return;
      check_extremes(row);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_F(ConvDepthwise, Extremes) {
  check_extremes(
      {.channels = 2, .input = {9, 35}, .kernel = {7, 7}, .options = {.pads = {3, 3, 3, 3}}});
}

TEST_F(ConvDepthwise, AnythingAtRandom) {
  for (int i = 0; i < 600; ++i) {
    const int axes = static_cast<int>(draw(1, 3));
    const Depthwise row = {.channels = draw(1, 9), .multiplier = percent(70) ? 1 : draw(2, 4)};
    const AxisLimits max = {.dilation = 6, .excess = 40 / axes};
    ASSERT_EQ(mistake_of(with_any_axes(row, axes, max)), "") << i;
  }
}

/// The form is chosen where it should be: what the other tests run is not another form.
TEST_F(ConvDepthwise, FormIsChosen) {
  const auto is_served = [](const jit::Target& target, const ConvolutionAxis& axis, int axes) {
    const ConvolutionGeometry geometry = {.batch = 1,
                                          .channels = 8,
                                          .out_channels = 8,
                                          .groups = 8,
                                          .axes = {static_cast<size_t>(axes), axis}};
    return jit::plan_depthwise({.geometry = geometry, .x_is_signed = true}, target).has_value();
  };
  for (const jit::TierInfo& tier : jit::tier_table()) {
    const jit::Target target{tier.tier};
    for (int64_t kernel = 1; kernel <= 7; ++kernel) {
      for (int64_t width : {7, 14, 56, 112, 500}) {
        for (int axes = 1; axes <= 3; ++axes) {
          const ConvolutionAxis plain = {.input = width,
                                         .kernel = kernel,
                                         .pad_begin = kernel / 2,
                                         .pad_end = kernel / 2,
                                         .output = width - kernel + 1 + kernel / 2 * 2};
          ConvolutionAxis strided = plain;
          strided.stride = 2;
          strided.output = (plain.output + 1) / 2;
          ConvolutionAxis dilated = plain;
          dilated.dilation = 2;
          dilated.pad_begin = dilated.pad_end = kernel - 1;
          dilated.output = width;
          EXPECT_EQ(is_served(target, plain, axes), target.has_avx512()) << kernel << " " << width;
          EXPECT_EQ(is_served(target, strided, axes), target.has_avx512());
          EXPECT_EQ(is_served(target, dilated, axes), target.has_avx512());
        }
      }
    }
  }
}

/// Every kind of code, on tiers that this machine cannot run as well.
TEST_F(ConvDepthwise, InstructionsBelongToTheTier) {
  const CodeLimits limits = {.instructions = {}, .bytes = size_t{64} << 10};
  for (const jit::TierInfo& tier : jit::tier_table()) {
    const jit::Target target{tier.tier};
    if (!target.has_avx512()) continue;
    const bool has_vnni = target.supports(jit::Feature::avx512_vnni);
    for (int i = 0; i < 200; ++i) {
      jit::DepthwiseSpec spec;
      spec.engine = jit::product_engine_of(target);
      spec.rows = static_cast<int>(draw(1, 7));
      spec.row_stride = static_cast<int>(draw(1, 4));
      spec.k_groups = static_cast<int>(draw(1, 4));
      spec.repeats_last_tap = has_vnni && percent(30);
      spec.source_bytes = percent(50) ? 32 : 64;
      spec.prefetch_bytes = static_cast<int>(draw(0, 1)) * 4096;
      spec.flips_input = percent(50);
      spec.subtracts_window_sums = has_vnni && percent(50);
      spec.adds = percent(50);
      spec.signed_input = has_vnni && !spec.flips_input && percent(50);
      for (int64_t blocks = draw(1, 3); blocks > 0; --blocks) {
        const int max = std::min({32, 448 / (spec.rows * spec.k_groups),
                                  (64 - spec.rows) / spec.row_stride + 1});  // as plans have them
        spec.ranges.push_back({.outputs = static_cast<int>(draw(1, max)),
                               .above = static_cast<int>(draw(0, 1)),
                               .border_above = static_cast<int>(draw(0, 1)),
                               .masks_rows = percent(50)});
      }
      if (!jit::fits(spec, target)) continue;
      check_kernel_code([&] { return jit::emit_kernel(spec, target); }, target, name_of(tier.tier),
                        limits);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_F(ConvDepthwise, TasksGiveTheSameBits) {
  const Depthwise rows[] = {
      {.channels = 40, .input = {14, 14}, .kernel = {3, 3}, .options = {.pads = {1, 1, 1, 1}}},
      {.channels = 3, .input = {112, 112}, .kernel = {3, 3}, .options = {.pads = {1, 1, 1, 1}}},
      {.channels = 1, .input = {70'000}, .kernel = {5}, .options = {.pads = {2, 2}}},
      // Tasks begin inside of channels, which have several row ranges.
      {.channels = 5, .input = {150, 131}, .kernel = {3, 3}, .options = {.pads = {1, 1, 1, 1}}},
      {.channels = 5, .input = {40'000}, .kernel = {9}, .options = {.pads = {4, 4}}},
  };
  for (const Depthwise& row : rows) {
    check_tasks(row);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace castor::test
