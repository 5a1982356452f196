// SPDX-License-Identifier: Apache-2.0
// How tasks share a convolution: all of it, nothing twice, and nearly equal parts.
#include <gtest/gtest.h>

#include <array>

#include "ir/support/integer_math.hpp"
#include "jit/memory/system_memory.hpp"
#include "runtime/cache/code_store.hpp"
#include "runtime/conv/convolution.hpp"

namespace castor::detail {
namespace {

struct Row {
  std::string_view name;
  Dims x;
  Dims w;
  ConvolutionOptions options;
  double max_tasks = 16;  ///< for which shares are nearly equal
};

std::vector<Row> rows() {
  const ConvolutionOptions same = {.pads = {1, 1, 1, 1}};
  ConvolutionOptions last = same;
  last.layout = ConvolutionLayout::nhwc;
  return {
      {"56 x 56", {1, 64, 56, 56}, {64, 64, 3, 3}, same},
      {"28 x 28", {1, 128, 28, 28}, {128, 128, 3, 3}, same},
      {"14 x 14", {1, 256, 14, 14}, {256, 256, 3, 3}, same},
      {"7 x 7", {1, 512, 7, 7}, {512, 512, 3, 3}, same},
      {"56 x 56, channels last", {1, 56, 56, 64}, {64, 64, 3, 3}, last},
      {"28 x 28, channels last", {1, 28, 28, 128}, {128, 128, 3, 3}, last},
      {"14 x 14, channels last", {1, 14, 14, 256}, {256, 256, 3, 3}, last},
      {"7 x 7, channels last", {1, 7, 7, 512}, {512, 512, 3, 3}, last},
      {"many channels", {1, 1024, 14, 14}, {256, 1024, 1, 1}, {}},
      {"three blocks", {3, 64, 20, 20}, {64, 64, 3, 3}, same},
      {"signal", {1, 80, 3000}, {384, 80, 3}, {.pads = {1, 1}}},
      {"few outputs", {1, 32, 40, 40}, {5, 32, 3, 3}, same, 8},
      {"two pixels", {1, 512, 1, 2}, {1000, 512, 1, 1}, {}, 2},
  };
}

/// Products of tasks, and what they cover.
class Shares {
 public:
  explicit Shares(const BoundDense& convolution)
      : convolution_(convolution), plan_(convolution.plan), blocks_(convolution) {}

  /// Output elements of each task.
  std::vector<int64_t> of(const TaskTeams& teams) {
    std::vector<int64_t> elements;
    const int64_t pixels = plan_.outer_outputs * plan_.rows.output * plan_.columns.output;
    met_.assign(static_cast<size_t>(plan_.geometry.batch * plan_.geometry.out_channels * pixels),
                0);
    for (int64_t task = 0; task < teams.tasks(); ++task) {
      const int64_t member = task % teams.members;
      elements.push_back(0);
      blocks_.for_each_part(task / teams.members, teams.teams, [&](const BlockPart& part) {
        elements.back() += share(part, blocks_.share_of(part, member, teams.members),
                                 blocks_.share_of(part, member + 1, teams.members));
      });
    }
    return elements;
  }
  bool meets_all_once() const {
    return std::ranges::all_of(met_, [](int count) { return count == 1; });
  }

 private:
  int64_t share(const BlockPart& part, const ShareStart& begin, const ShareStart& end) {
    int64_t elements = 0;
    for (int64_t tile = begin.channel_tile; tile <= end.channel_tile; ++tile) {
      const PixelTiles tiles = {tile == begin.channel_tile ? begin.pixel_tile : part.tiles.begin,
                                tile == end.channel_tile ? end.pixel_tile : part.tiles.end};
      if (tiles.count() > 0) elements += meet(part, tile, tiles);
    }
    return elements;
  }

  int64_t meet(const BlockPart& part, int64_t tile, const PixelTiles& tiles) {
    const BlockPlace& place = part.place;
    const PixelRange pixels = part.tables->pixels_of(tiles);
    const int64_t all = plan_.outer_outputs * plan_.rows.output * plan_.columns.output;
    const int64_t first =
        (place.outer * plan_.rows.output + place.row) * plan_.columns.output + place.column;
    const int64_t begin = tile * plan_.tile.channels;
    const int64_t end =
        std::min<int64_t>(begin + plan_.tile.channels, plan_.geometry.group_out_channels());
    for (int64_t m = begin; m < end; ++m) {
      const int64_t channel = place.group * plan_.geometry.group_out_channels() + m;
      const int64_t of_channel =
          (place.image * plan_.geometry.out_channels + channel) * all + first;
      for (int64_t i = pixels.begin; i < pixels.end; ++i) {
        ++met_[static_cast<size_t>(of_channel + i)];
      }
    }
    return (end - begin) * (pixels.end - pixels.begin);
  }

  const BoundDense& convolution_;
  const jit::DensePlan& plan_;
  const DenseBlocks blocks_;
  std::vector<int> met_;
};

/// What is transposed is cut between tiles of channels alone: of 20, some of 9 tasks have 3. Pixels
/// are cut between whole tiles, of which AMX makes few: of 7, one of 2 regions has 4.
double best_fraction(const jit::DensePlan& plan, const TaskTeams& teams) {
  if (plan.tile.has_tiles()) {
    const int64_t tiles = ceil_div(plan.block.rows, plan.tile.pixel_rows) *
                          ceil_div(plan.block.columns, plan.tile.columns);
    const int64_t of_region = ceil_div(tiles, teams.teams) * plan.channel_tiles;
    const int64_t of_task = ceil_div(of_region, teams.members);
    return static_cast<double>(tiles * plan.channel_tiles) /
           static_cast<double>(of_task * teams.tasks());
  }
  if (!plan.transposes()) return 1;
  const int64_t tiles_of_task = ceil_div(plan.channel_tiles, teams.members);
  return static_cast<double>(plan.geometry.group_out_channels()) /
         static_cast<double>(tiles_of_task * plan.tile.channels * teams.members);
}

TEST(ConvShares, CoverAllOnceInNearlyEqualParts) {
  CodeStore store{jit::SystemCalls::real(), size_t{64} << 20};
  for (const Row& row : rows()) {
    const Operation operation{.op = OpKind::conv_integer, .attributes = attributes_of(row.options)};
    const auto geometry = convolution_geometry(operation, row.x, row.w, nullptr, nullptr);
    ASSERT_TRUE(geometry.ok()) << row.name << ": " << geometry.error().message;
    for (const jit::TierInfo& tier : jit::tier_table()) {
      if (!jit::host().runs(tier.tier)) continue;
      const std::array<const std::byte*, 4> constants = {};
      ScratchPlan scratch;
      const auto bound = bind_convolution(*geometry, {.w_is_signed = true}, constants,
                                          jit::Target{tier.tier}, store.cache, scratch);
      ASSERT_TRUE(bound.ok()) << row.name << ": " << bound.error().message;
      if ((*bound)->dense() == nullptr) {  // whose tasks divide tiles in order
        EXPECT_NE((*bound)->weight_rows(), nullptr) << row.name << ", " << tier.name;
        continue;
      }
      const BoundDense& dense = *(*bound)->dense();
      Shares shares(dense);
      for (int tasks = 1; tasks <= 16; ++tasks) {
        const TaskTeams teams = choose_teams(dense, tasks);
        ASSERT_LE(teams.tasks(), tasks) << row.name;
        const std::vector<int64_t> elements = shares.of(teams);
        EXPECT_TRUE(shares.meets_all_once()) << row.name << ", " << tier.name << ", " << tasks;
        const auto max = static_cast<double>(std::ranges::max(elements));
        double all = 0;
        for (const int64_t of_task : elements) all += static_cast<double>(of_task);
        const double fraction = all / max / static_cast<double>(teams.tasks());
        if (tasks <= row.max_tasks) {
          constexpr double rounding = 1e-9;
          EXPECT_GT(fraction + rounding,
                    std::min(tasks <= 4 ? 0.9 : 0.75, best_fraction(dense.plan, teams)))
              << row.name << ", " << tier.name << ": " << teams.teams << " teams of "
              << teams.members << "\n"
              << print(dense.plan);
        }
      }
    }
  }
}

}  // namespace
}  // namespace castor::detail
