// SPDX-License-Identifier: Apache-2.0
// The channel-vectorised convolution kernel, in every register tile that fits: its instructions
// belong to the tier, tiers that this machine cannot run included, and its code stays small.
#include "jit/conv/channel_kernel.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "jit/conv/dot_product.hpp"
#include "tests/support/kernel_code.hpp"

namespace castor::jit {
namespace {

/// Tiles of one row, of every size, and of several rows.
std::vector<ChannelTile> tiles_of(const Target& target) {
  const int lanes = target.vector_bits() / 32;
  std::vector<ChannelTile> tiles;
  for (int channels = 1; channels <= 6 * lanes; channels += channels % lanes < 2 ? 1 : lanes / 2) {
    for (int columns = 1; columns <= target.vector_registers(); ++columns) {
      for (int rows : {1, 2, 3}) {
        for (int options = 0; options < 8; ++options) {
          const bool bytes = product_engine_of(target) == ProductEngine::u8_i8_dot;
          const WindowSums some = bytes ? WindowSums::words : WindowSums::dwords;
          const ChannelTile tile = {.channels = channels,
                                    .rows = rows,
                                    .columns = columns,
                                    .pixel_step = 256,
                                    .row_step = rows > 1 ? 4096 : 0,
                                    .window_sums = (options & 1) != 0 ? some : WindowSums::none,
                                    .turns = (options & 2) != 0,
                                    .last_taps = (options & 4) != 0 ? 4 : 0};
          if (fits(tile, target)) tiles.push_back(tile);
        }
      }
    }
  }
  return tiles;
}

std::string name_of(const ChannelTile& tile) {
  return fmt::format("{} channels by {} rows of {}, window sums {}, turns {}, last taps {}",
                     tile.channels, tile.rows, tile.columns, static_cast<int>(tile.window_sums),
                     tile.turns, tile.last_taps);
}

class ChannelKernel : public testing::TestWithParam<Tier> {};

TEST_P(ChannelKernel, InstructionsBelongToTheTier) {
  const Target target{GetParam()};
  for (const ChannelTile& tile : tiles_of(target)) {
    test::check_kernel_code([&] { return emit_kernel(tile, target); }, target, name_of(tile));
    if (HasFatalFailure()) return;
  }
}

/// Products are those of the tier: saturating ones are nowhere.
TEST_P(ChannelKernel, MultipliesAsTheTierCan) {
  const Target target{GetParam()};
  for (const ChannelTile& tile : tiles_of(target)) {
    const int64_t products = test::dot_products_in(*emit_kernel(tile, target), target);
    const int of_a_tap = tile.pixels() * channel_vectors(tile.channels, target);
    EXPECT_EQ(products, 3 * of_a_tap) << name_of(tile);  // two in the loop, and an odd or last one
  }
}

INSTANTIATE_TEST_SUITE_P(Tiers, ChannelKernel, testing::ValuesIn(test::all_tiers),
                         test::name_of_row);

}  // namespace
}  // namespace castor::jit
