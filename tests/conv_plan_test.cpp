// SPDX-License-Identifier: Apache-2.0
// Plans of convolutions: blocks, planes within their bound, tiles that fit, offsets of taps, and
// lines whose lanes are stored each once and in order.
#include "jit/conv/conv_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "ir/convolution.hpp"

namespace castor::jit {
namespace {

constexpr Tier tiers[] = {Tier::avx2, Tier::avx2_vnni, Tier::avx512, Tier::avx512_vnni,
                          Tier::avx512_vbmi};
constexpr int64_t most_scratch = int64_t{1} << 20;

ConvolutionGeometry geometry_of(const Dims& x, const Dims& w, ConvolutionOptions options = {}) {
  const Operation operation{.op = OpKind::conv_integer, .attributes = attributes_of(options)};
  const auto geometry = convolution_geometry(operation, x, w, nullptr, nullptr);
  EXPECT_TRUE(geometry.ok()) << geometry.error().to_string();
  return *geometry;
}

/// Layers of all kinds, large and small.
std::vector<ConvolutionGeometry> layers() {
  return {
      geometry_of({1, 3, 224, 224}, {64, 3, 7, 7}, {.pads = {3, 3, 3, 3}, .strides = {2, 2}}),
      geometry_of({1, 64, 56, 56}, {64, 64, 3, 3}, {.pads = {1, 1, 1, 1}}),
      geometry_of({1, 256, 56, 56}, {64, 256, 1, 1}),
      geometry_of({1, 512, 14, 14}, {512, 512, 3, 3}, {.pads = {1, 1, 1, 1}, .strides = {2, 2}}),
      geometry_of({1, 2048, 7, 7}, {512, 2048, 1, 1}),
      geometry_of({1, 3, 224, 224}, {384, 3, 16, 16}, {.strides = {16, 16}}),
      geometry_of({1, 80, 3000}, {384, 80, 3}, {.pads = {1, 1}}),
      geometry_of({1, 384, 3000}, {384, 384, 3}, {.pads = {1, 1}, .strides = {2}}),
      geometry_of({1, 16, 12, 20, 20}, {24, 16, 3, 3, 3}, {.pads = {1, 1, 1, 1, 1, 1}}),
      geometry_of({2, 48, 30, 31}, {96, 1, 3, 3}, {.group = 48, .dilations = {2, 3}}),
      geometry_of({1, 64, 58, 57}, {5, 64, 3, 3}, {.pads = {0, 2, 1, 0}}),
      geometry_of({1, 1, 1}, {1, 1, 1}),
      geometry_of({1, 5, 100'000}, {3, 5, 9}, {.dilations = {7}, .strides = {3}}),
      geometry_of({1, 4000, 1, 900}, {2, 4000, 1, 3}),
      geometry_of({1, 64, 100'000}, {2, 64, 3}, {.dilations = {20'000}}),
      geometry_of({1, 2048, 33, 33}, {256, 2048, 3, 3},
                  {.dilations = {12, 12}, .pads = {12, 12, 12, 12}}),
      geometry_of({1, 1, 2}, {1, 1, 2},
                  {.dilations = {int64_t{1} << 61}, .pads = {int64_t{1} << 61, 0}}),
  };
}

/// Calls visit(plan, target) for every layer on every tier.
template <class Visit>
void for_each_plan(Visit visit) {
  for (const ConvolutionGeometry& geometry : layers()) {
    for (Tier tier : tiers) {
      const Target target{tier};
      const ConvPlan plan = plan_convolution(geometry, target);
      visit(plan, target);
      if (testing::Test::HasFatalFailure()) {
        FAIL() << name_of(tier) << "\n" << print(plan, target);
      }
    }
  }
}

TEST(ConvPlan, BlocksStayWithinTheBoundOfScratch) {
  for_each_plan([](const ConvPlan& plan, const Target&) {
    ASSERT_GE(plan.block.rows, 1);
    ASSERT_LE(plan.block.rows, plan.output_rows());
    ASSERT_GE(plan.block.columns, 1);
    ASSERT_LE(plan.block.columns, plan.output_columns());
    ASSERT_LE(4 * plan.planes_dwords(), most_scratch);
  });
}

TEST(ConvPlan, TilesFitAndTheLastOneHoldsTheRest) {
  for_each_plan([](const ConvPlan& plan, const Target& target) {
    ASSERT_TRUE(fits(plan.tile, target));
    ASSERT_GE(plan.last_channels, 1);
    ASSERT_LE(plan.last_channels, plan.tile.channels);
    ASSERT_EQ((plan.channel_tiles - 1) * plan.tile.channels + plan.last_channels,
              plan.geometry.group_out_channels());
  });
}

TEST(ConvPlan, TapsStayInsideThePlanes) {
  for_each_plan([](const ConvPlan& plan, const Target& target) {
    const ConvolutionGeometry& geometry = plan.geometry;
    int64_t positions = 1;
    for (const ConvolutionAxis& axis : geometry.axes) positions *= axis.kernel;
    const int64_t held = channels_of_dword(plan.dot);
    const int64_t dwords = (geometry.group_channels() + held - 1) / held;
    ASSERT_EQ(static_cast<int64_t>(plan.taps.size()), positions * dwords);
    std::vector<int32_t> sorted = plan.taps;
    std::ranges::sort(sorted);
    ASSERT_TRUE(std::ranges::adjacent_find(sorted) == sorted.end()) << "two taps read one dword";
    ASSERT_GE(sorted.front(), 0);
    const int64_t lanes =
        plan.line_tiles(plan.block, target) * plan.tile.vectors * plan.lanes(target);
    ASSERT_LE(sorted.back() / 4 + lanes, plan.planes_dwords());
  });
}

TEST(ConvPlan, LinesStoreEachPixelOnceAndInOrder) {
  for_each_plan([](const ConvPlan& plan, const Target& target) {
    const int64_t lanes = plan.lanes(target);
    for (const int64_t rows : {plan.block.rows, int64_t{1}}) {
      const ConvBlock block = {rows, plan.block.columns};
      int64_t stored = 0;
      int64_t vector = 0;
      for (const ConvStore& store : line_stores(plan, block, target)) {
        int count = 0;
        for (int64_t lane = 0; lane < lanes; ++lane) {
          const int64_t pixel = vector * lanes + lane;
          const bool is_output =
              pixel < plan.line_pixels(block) && pixel % plan.pitch < block.columns;
          ASSERT_EQ((store.lanes >> lane & 1) != 0, is_output) << pixel;
          if (!is_output) continue;
          ASSERT_EQ(store.order[count], lane);
          ASSERT_EQ(store.stored[count], -1);
          ++count;
        }
        ASSERT_EQ(store.first_lanes, (1u << count) - 1);
        ASSERT_TRUE(count == 0 || store.offset == 4 * stored);
        const bool has_gap = (store.lanes & (store.lanes + 1)) != 0;
        ASSERT_TRUE(plan.tile.has_gaps || !has_gap);
        stored += count;
        ++vector;
      }
      ASSERT_EQ(stored, block.rows * block.columns);
      ASSERT_EQ(vector, plan.line_tiles(block, target) * plan.tile.vectors);
    }
  });
}

/// Layers that the tests of values rely on: blocks of rows, blocks of columns, a last one smaller.
TEST(ConvPlan, LargeLayersSplit) {
  const Target target{Tier::avx512_vnni};
  const ConvPlan rows = plan_convolution(geometry_of({1, 256, 56, 56}, {9, 256, 1, 1}), target);
  EXPECT_LT(rows.block.rows, 56);
  EXPECT_EQ(rows.block.columns, 56);
  const ConvPlan columns =
      plan_convolution(geometry_of({1, 384, 3000}, {7, 384, 3}, {.strides = {2}}), target);
  EXPECT_EQ(columns.block.rows, 1);
  EXPECT_LT(columns.block.columns, columns.output_columns());
}

/// Padding that ends one row and begins the next lies in memory once.
TEST(ConvPlan, RowsShareTheirPadding) {
  const Target target{Tier::avx512_vnni};
  const auto pitch = [&](ConvolutionOptions options) {
    return plan_convolution(geometry_of({1, 8, 14, 14}, {8, 8, 3, 3}, std::move(options)), target)
        .pitch;
  };
  EXPECT_EQ(pitch({}), 14);
  EXPECT_EQ(pitch({.pads = {1, 1, 1, 1}}), 15);
  EXPECT_EQ(pitch({.pads = {1, 2, 1, 0}}), 16);
  EXPECT_EQ(pitch({.pads = {0, 0, 0, 2}}), 16);
  EXPECT_GE(pitch({.pads = {0, 5, 0, 3}}), 20);
}

TEST(ConvPlan, PrintsWhatItIs) {
  const Target target{Tier::avx512_vnni};
  const std::string text = print(
      plan_convolution(geometry_of({1, 12, 9, 9}, {10, 6, 3, 3}, {.group = 2}), target), target);
  for (const char* part : {"2 of 6 to 5 channels", "planes", "block", "tile", "taps"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  }
}

}  // namespace
}  // namespace castor::jit
