// SPDX-License-Identifier: Apache-2.0
// Plans of convolutions: blocks, nchw4c planes within their bound, tiles that fit, offsets of taps,
// and lines whose lanes are stored each once and in order.
#include "jit/conv/dense_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "ir/shape/convolution.hpp"
#include "jit/conv/candidates.hpp"
#include "tests/support/kernel_code.hpp"

namespace castor::jit {
namespace {

constexpr auto& tiers = test::all_tiers;
constexpr int64_t max_scratch = int64_t{1} << 20;

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

/// Calls visit(plan, target) for every possible plan of every layer, in either layout, on every
/// tier.
template <class Visit>
void for_each_plan(Visit visit) {
  for (ConvolutionGeometry geometry : layers()) {
    for (Tier tier : tiers) {
      const Target target{tier};
      for (ConvolutionLayout layout : {ConvolutionLayout::nchw, ConvolutionLayout::nhwc}) {
        geometry.layout = layout;
        for (const DensePlan& plan : possible_plans({geometry}, target)) {
          visit(plan, target);
          if (testing::Test::HasFatalFailure()) FAIL() << name_of(tier) << "\n" << print(plan);
        }
      }
    }
  }
}

/// The pixel-vectorised plan.
template <class Visit>
void for_each_line(Visit visit) {
  for_each_plan([&](const DensePlan& plan, const Target& target) {
    if (plan.is_pixel_vectorised()) visit(plan, target);
  });
}

TEST(DensePlans, BlocksStayWithinTheBoundOfScratch) {
  for_each_plan([](const DensePlan& plan, const Target&) {
    ASSERT_GE(plan.block.rows, 1);
    ASSERT_LE(plan.block.rows, plan.rows.output);
    ASSERT_GE(plan.block.columns, 1);
    ASSERT_LE(plan.block.columns, plan.columns.output);
    ASSERT_LE(plan.source_bytes(), max_scratch);
  });
}

TEST(DensePlans, TilesFitAndTheLastOneHoldsTheRest) {
  for_each_plan([](const DensePlan& plan, const Target& target) {
    ASSERT_TRUE(fits(plan.tile, target));
    ASSERT_GE(plan.last_channels(), 1);
    ASSERT_LE(plan.last_channels(), plan.tile.channels);
    ASSERT_EQ((plan.channel_tiles - 1) * plan.tile.channels + plan.last_channels(),
              plan.geometry.group_out_channels());
  });
}

TEST(DensePlans, KStepsStayInsideThePlanes) {
  for_each_line([](const DensePlan& plan, const Target&) {
    const ConvolutionGeometry& geometry = plan.geometry;
    int64_t positions = 1;
    for (const ConvolutionAxis& axis : geometry.axes) positions *= axis.kernel;
    const int64_t held = channels_of_k_group(plan.engine);
    const int64_t dwords = (geometry.group_channels() + held - 1) / held;
    const int64_t columns = plan.columns.kernel;
    const int64_t of_columns =
        geometry.group_channels() * positions / columns * ((columns + held - 1) / held);
    const int64_t of_taps = (geometry.group_channels() * positions + held - 1) / held;
    ASSERT_EQ(static_cast<int64_t>(plan.k_steps.size()),
              plan.planes()->layout == PackedLayout::nchw4c     ? positions * dwords
              : plan.planes()->layout == PackedLayout::columns4 ? of_columns
                                                                : of_taps);
    std::vector<int32_t> sorted = plan.k_steps;
    std::ranges::sort(sorted);
    ASSERT_TRUE(std::ranges::adjacent_find(sorted) == sorted.end())
        << "two k steps read one k group";
    ASSERT_GE(sorted.front(), 0);
    const int64_t last_vector = vector_stores(plan, plan.block, plan.tile.vectors).back().source;
    ASSERT_LE(sorted.back() + last_vector + 4 * plan.lanes, plan.source_bytes());
  });
}

/// Every weight is in one k step, and the k groups of all pixels are inside the source.
TEST(DensePlans, ListedKStepsMeetEachWeightOnce) {
  for_each_plan([](const DensePlan& plan, const Target&) {
    if (plan.k_step_weights.empty()) return;
    ASSERT_EQ(std::ssize(plan.k_step_weights), plan.weight_k_groups());
    int64_t weights = plan.geometry.group_channels();
    for (const ConvolutionAxis& axis : plan.geometry.axes) weights *= axis.kernel;
    std::vector<int> met(static_cast<size_t>(weights), 0);
    for (const KStepWeights& tap : plan.k_step_weights) {
      for (int32_t weight : tap) {
        if (weight >= 0) ++met[static_cast<size_t>(weight)];
      }
    }
    ASSERT_EQ(std::ranges::count(met, 1), weights);
  });
}

TEST(DensePlans, TilesOfChannelsCoverEachPixelInOrderInsideTheSource) {
  for_each_plan([](const DensePlan& plan, const Target&) {
    if (plan.is_pixel_vectorised()) return;
    const int32_t last_tap = *std::ranges::max_element(plan.k_steps);
    for (const int64_t rows : {plan.block.rows, int64_t{1}}) {
      const CacheBlock block = {rows, plan.block.columns};
      int64_t covered = 0;  // pixels, as the output has them
      for (const TileRun& run : tile_runs(plan, block)) {
        for (const TileOrigin& place : run.places) {
          const int64_t row = place.pixel / plan.columns.output;
          const int64_t column = place.pixel % plan.columns.output;
          ASSERT_LE(place.pixel, covered == 0 || column > 0 ? covered : place.pixel);
          ASSERT_LE(column + run.tile.columns, block.columns);
          ASSERT_LE(row + run.tile.pixel_rows, block.rows);
          ASSERT_EQ(place.source,
                    row * plan.source_row_step() + column * plan.source_column_step());
          const int64_t last = place.source + (run.tile.pixel_rows - 1) * plan.source_row_step() +
                               (run.tile.columns - 1) * plan.source_column_step() + last_tap + 4;
          ASSERT_TRUE(std::holds_alternative<jit::DirectInput>(plan.source) ||
                      last <= plan.source_bytes());
          covered = place.pixel + run.tile.pixels();
        }
      }
      ASSERT_EQ(covered, (block.rows - 1) * plan.columns.output + block.columns);
    }
  });
}

TEST(DensePlans, LinesStoreEachPixelOnceAndInOrder) {
  for_each_line([](const DensePlan& plan, const Target&) {
    const int64_t lanes = plan.lanes;
    for (const int64_t rows : {plan.block.rows, int64_t{1}}) {
      const CacheBlock block = {rows, plan.block.columns};
      int64_t stored = 0;
      int64_t vector = 0;
      for (const ConvStore& store : vector_stores(plan, block, plan.tile.vectors)) {
        int count = 0;
        for (int64_t lane = 0; lane < lanes; ++lane) {
          const int64_t row_vectors =
              plan.tiles_of(block, plan.tile.vectors) * plan.tile.vectors / block.rows;
          const int64_t row = plan.planes()->has_aligned_rows ? vector / row_vectors : 0;
          const int64_t column =
              (plan.planes()->has_aligned_rows ? vector % row_vectors : vector) * lanes + lane;
          const int64_t pixel = row * plan.planes()->pitch + column;
          ASSERT_EQ(store.source, 4 * (pixel - lane));
          const bool is_output =
              plan.planes()->has_aligned_rows
                  ? column < block.columns
                  : pixel < plan.lane_count(block) && pixel % plan.planes()->pitch < block.columns;
          ASSERT_EQ((store.lanes >> lane & 1) != 0, is_output) << pixel;
          if (!is_output) continue;
          ASSERT_EQ(store.order[count], lane);
          ASSERT_EQ(store.stored[count], -1);
          ++count;
        }
        ASSERT_EQ(store.first_lanes, (1u << count) - 1);
        ASSERT_TRUE(count == 0 || store.pixel == stored);
        const bool has_gap = (store.lanes & (store.lanes + 1)) != 0;
        ASSERT_TRUE(plan.tile.store == StorePolicy::compressed || !has_gap);
        stored += count;
        ++vector;
      }
      ASSERT_EQ(stored, block.rows * block.columns);
      ASSERT_EQ(vector, plan.tiles_of(block, plan.tile.vectors) * plan.tile.vectors);
    }
  });
}

/// The plan that is pixel-vectorised.
DensePlan line_plan(const ConvolutionGeometry& geometry, const Target& target) {
  std::vector<DensePlan> plans = possible_plans({geometry}, target);
  return *std::ranges::find_if(plans, &DensePlan::is_pixel_vectorised);
}

/// Layers that the tests of values rely on: blocks of rows, blocks of columns, a last one smaller.
TEST(DensePlans, LargeLayersSplit) {
  const Target target{Tier::avx512_vnni};
  const DensePlan rows = line_plan(geometry_of({1, 256, 56, 56}, {9, 256, 1, 1}), target);
  EXPECT_LT(rows.block.rows, 56);
  EXPECT_EQ(rows.block.columns, 56);
  const DensePlan columns =
      line_plan(geometry_of({1, 384, 3000}, {7, 384, 3}, {.strides = {2}}), target);
  EXPECT_EQ(columns.block.rows, 1);
  EXPECT_LT(columns.block.columns, columns.columns.output);
}

/// Padding that ends one row and begins the next is stored once.
TEST(DensePlans, RowsShareTheirPadding) {
  const Target target{Tier::avx512_vnni};
  const auto pitch = [&](ConvolutionOptions options) {
    return line_plan(geometry_of({1, 8, 14, 14}, {8, 8, 3, 3}, std::move(options)), target)
        .planes()
        ->pitch;
  };
  EXPECT_EQ(pitch({}), 14);
  EXPECT_EQ(pitch({.pads = {1, 1, 1, 1}}), 15);
  EXPECT_EQ(pitch({.pads = {1, 2, 1, 0}}), 16);
  EXPECT_EQ(pitch({.pads = {0, 0, 0, 2}}), 16);
  EXPECT_GE(pitch({.pads = {0, 5, 0, 3}}), 20);
}

TEST(DensePlans, PrintsWhatItIs) {
  const Target target{Tier::avx512_vnni};
  const std::string text =
      print(line_plan(geometry_of({1, 12, 9, 9}, {10, 6, 3, 3}, {.group = 2}), target));
  for (const char* part : {"2 of 6 to 5 channels", "planes", "block", "tile", "k steps"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  }
}

/// Filters that no plan has room for are refused before anything is listed.
TEST(DensePlans, RefusesHugeFilters) {
  ConvolutionGeometry geometry = geometry_of({1, 4, 10, 10}, {1, 4, 3, 3});
  EXPECT_TRUE(check_filter(geometry).ok());
  geometry.axes[1].kernel = int64_t{1} << 31;
  const Status status = check_filter(geometry);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::unsupported);
  EXPECT_NE(status.error().message.find("kernel being 2147483648 along spatial axis 1"),
            std::string::npos)
      << status.error().message;
  geometry.axes[1].kernel = max_filter_positions / geometry.axes[0].kernel;
  EXPECT_TRUE(check_filter(geometry).ok());
  geometry.axes[1].kernel += 1;
  EXPECT_EQ(check_filter(geometry).error().message,
            "conv_integer: the filter has 1048578 positions, expected at most 1048576");
}

/// Which form layers get on the tier that figures are given for.
TEST(DensePlans, ChoosesTheFormByShape) {
  struct Row {
    Dims x, w;
    ConvolutionOptions options;
    const char* name;
  };
  const ConvolutionOptions padded = {.pads = {1, 1, 1, 1}};
  const ConvolutionOptions last = {.layout = ConvolutionLayout::nhwc};
  const ConvolutionOptions last_padded = {.layout = ConvolutionLayout::nhwc, .pads = {1, 1, 1, 1}};
  const Row rows[] = {
      {{1, 64, 56, 56}, {64, 64, 1, 1}, {}, "pixel_vectorised nchw4c"},
      {{1, 512, 7, 7}, {512, 512, 3, 3}, padded, "channel_vectorised nchw4c"},
      {{1, 3, 224, 224}, {768, 3, 16, 16}, {.strides = {16, 16}}, "channel_vectorised input"},
      {{1, 56, 56, 64}, {64, 64, 1, 1}, last, "channel_vectorised input"},
      {{1, 56, 56, 64}, {64, 64, 3, 3}, last_padded, "channel_vectorised copied_rows"},
      {{1, 56, 56, 64}, {1, 64, 3, 3}, last_padded, "pixel_vectorised nchw4c"},
  };
  const Target target{Tier::avx512_vbmi};
  for (const Row& row : rows) {
    const ConvolutionProblem problem = {geometry_of(row.x, row.w, row.options)};
    const Candidate chosen = choose(problem, target);
    EXPECT_EQ(name_of(chosen), row.name) << print(std::get<DensePlan>(chosen.plan));
  }
}

/// Only cores on which the sign flip was measured read signed input where it is.
TEST(DensePlans, ReadsSignedInputInPlaceWhereThatCostsLess) {
  const ConvolutionOptions last = {.layout = ConvolutionLayout::nhwc};
  const ConvolutionProblem problem = {
      .geometry = geometry_of({1, 28, 28, 512}, {128, 512, 1, 1}, last),
      .x_is_signed = true,
      .w_is_signed = true,
      .has_constant_weights = true};
  for (int core = 0; core < core_count; ++core) {
    const Target target{.tier = Tier::avx512_vbmi, .core = static_cast<Core>(core)};
    const Candidate chosen = choose(problem, target);
    const bool in_place = target.core == Core::zen4 || target.core == Core::zen5;
    EXPECT_EQ(name_of(chosen),
              in_place ? "channel_vectorised input" : "channel_vectorised copied_rows")
        << name_of(target.core);
    EXPECT_EQ(std::get<DensePlan>(chosen.plan).tile.has_sign_flip, in_place)
        << name_of(target.core);
  }
}

/// Without products of bytes, rows along K are multiplied by weights as they are stored, as bytes:
/// constant ones that come from beyond L2 for few pixels, and those of the call.
TEST(DensePlans, LeavesRowsAlongKToDotKernels) {
  struct Row {
    int64_t pixels;
    int64_t channels;
    bool is_constant;
    bool is_dot;       ///< by i16 pairs
    bool is_byte_dot;  ///< by products of bytes
  };
  const Row rows[] = {
      {1, 1024, true, true, false}, {8, 1024, true, true, false},
      {1, 1024, false, true, true}, {8, 1024, false, true, true},
      {20, 200, false, true, true}, {1, 8, false, false, false},  // less than a step
  };
  const ConvolutionOptions last = {.layout = ConvolutionLayout::nhwc};
  for (const Tier tier : tiers) {
    for (const Row& row : rows) {
      for (const bool has_zero_points : {false, true}) {
        // What is known of other cores decides for single pixels alone.
        const Core core = row.pixels == 1 && has_zero_points ? Core::generic : Core::zen3;
        const Target target{.tier = tier, .core = core};
        const bool has_pairs = product_engine_of(target) == ProductEngine::i16_pairs;
        const ConvolutionProblem problem = {
            .geometry =
                geometry_of({1, row.pixels, row.channels}, {row.channels, row.channels, 1}, last),
            .has_weight_zero_points = has_zero_points,
            .has_constant_weights = row.is_constant};
        const Candidate chosen = choose(problem, target);
        EXPECT_EQ(name_of(chosen) == "dot", has_pairs ? row.is_dot : row.is_byte_dot)
            << name_of(tier) << ", " << row.pixels << " pixels of " << row.channels << ": "
            << name_of(chosen);
      }
    }
  }
}

/// Kernels with an epilogue transpose by way of memory on every core.
TEST(DensePlans, TransposesInRegistersWhereThatCostsLess) {
  const ConvolutionProblem problem = {geometry_of({1, 64, 14, 14}, {384, 64, 1, 1}, {})};
  for (int core = 0; core < core_count; ++core) {
    const Target target{.tier = Tier::avx512_vbmi, .core = static_cast<Core>(core)};
    for (const Candidate& candidate : candidates(problem, target)) {
      const auto* plan = std::get_if<DensePlan>(&candidate.plan);
      if (plan == nullptr) continue;
      const DenseTile tile = kernel_tile(plan->tile, false);
      const bool is_transposed = tile.store == StorePolicy::transposed;
      EXPECT_EQ(tile.transposes_registers, is_transposed && target.core == Core::zen5)
          << name_of(candidate);
      EXPECT_EQ(tile.peeled_k_steps > 0, !tile.transposes_registers) << name_of(candidate);
      const DenseTile with_epilogue = kernel_tile(plan->tile, true);
      EXPECT_FALSE(with_epilogue.transposes_registers) << name_of(candidate);
      EXPECT_GT(with_epilogue.peeled_k_steps, 0) << name_of(candidate);
    }
  }
}

}  // namespace
}  // namespace castor::jit
