// SPDX-License-Identifier: Apache-2.0
// Plans of rows of weights: which convolutions have one, how pixels are divided into blocks and
// tiles, and that layers whose results are bytes choose it.
#include "jit/conv/weight_rows_plan.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "jit/conv/candidates.hpp"

namespace castor::jit {
namespace {

constexpr Target amx = {.tier = Tier::amx, .core = Core::golden_cove};

ConvolutionAxis pointwise(int64_t extent) {
  return {.input = extent, .kernel = 1, .output = extent};
}

ConvolutionProblem layer(int64_t channels, int64_t out_channels, int64_t pixels,
                         int64_t groups = 1) {
  return {.geometry = {.layout = ConvolutionLayout::nchw,
                       .batch = 1,
                       .channels = channels,
                       .out_channels = out_channels,
                       .groups = groups,
                       .axes = {pointwise(1), pointwise(pixels)}}};
}

TEST(WeightRowsPlan, PointwiseNchwLayersAloneHaveOne) {
  EXPECT_TRUE(plan_weight_rows(layer(64, 64, 3136), amx));
  EXPECT_TRUE(plan_weight_rows(layer(96, 33, 49, 3), amx));
  EXPECT_FALSE(plan_weight_rows(layer(64, 64, 3136), {.tier = Tier::avx512_fp16}));
  EXPECT_FALSE(plan_weight_rows(layer(66, 64, 3136), amx)) << "no whole k groups";
  EXPECT_FALSE(plan_weight_rows(layer(116, 64, 3136), amx)) << "29 k groups: 15 and 14";
  EXPECT_FALSE(plan_weight_rows(layer(64, 64, 15), amx)) << "less than a vector";
  EXPECT_FALSE(plan_weight_rows(layer(64, int64_t{1} << 25, 16), amx)) << "2 GiB of weights";
  ConvolutionProblem nhwc = layer(64, 64, 3136);
  nhwc.geometry.layout = ConvolutionLayout::nhwc;
  EXPECT_FALSE(plan_weight_rows(nhwc, amx));
  ConvolutionProblem strided = layer(64, 64, 100);
  strided.geometry.axes.back() = {.input = 200, .kernel = 1, .stride = 2, .output = 100};
  EXPECT_FALSE(plan_weight_rows(strided, amx));
}

TEST(WeightRowsPlan, BlocksHaveWholeTilesButTheLast) {
  for (const int64_t channels : {4, 64, 144, 1024, 4096}) {
    for (const int64_t pixels : {16, 49, 196, 257, 784, 3136, 100000}) {
      const std::optional<WeightRowsPlan> plan = plan_weight_rows(layer(channels, 70, pixels), amx);
      ASSERT_TRUE(plan) << channels << ", " << pixels;
      std::vector<WeightRowsPlan> all = with_other_tiles(*plan, amx);
      all.push_back(*plan);
      for (const WeightRowsPlan& each : all) {
        ASSERT_TRUE(fits(each.product.tile, amx)) << print(each);
        EXPECT_LE(each.block_pixels(), 768) << print(each);
        EXPECT_EQ(each.steps() * each.step_bytes(), channels) << print(each);
        int64_t sum = 0;
        for (int64_t block = 0; block < each.blocks(); ++block) {
          const bool is_last = block + 1 == each.blocks();
          EXPECT_GT(each.pixels_of(block), 0) << print(each);
          EXPECT_TRUE(is_last || each.pixels_of(block) % each.tile_pixels() == 0) << print(each);
          sum += each.pixels_of(block);
        }
        EXPECT_EQ(sum, pixels) << print(each);
      }
    }
  }
}

TEST(WeightRowsPlan, LayersWithBytesAsResultsChooseIt) {
  const TileEpilogue epilogue;  // along pixels
  for (const Core core : {Core::golden_cove, Core::generic}) {
    const Target target = {.tier = Tier::amx, .core = core};
    for (const ConvolutionProblem& problem : {layer(64, 64, 3136), layer(64, 256, 3136),
                                              layer(256, 1024, 196), layer(64, 106, 270, 2)}) {
      const Candidate chosen = choose(problem, target, &epilogue);
      EXPECT_TRUE(std::holds_alternative<WeightRowsPlan>(chosen.plan))
          << problem.geometry.channels << " to " << problem.geometry.out_channels << ": "
          << name_of(chosen);
      EXPECT_TRUE(chosen.applies_epilogue);
    }
  }
}

}  // namespace
}  // namespace castor::jit
