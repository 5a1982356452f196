// SPDX-License-Identifier: Apache-2.0
// The channel-vectorised convolution kernel, in every register tile that fits: its instructions
// belong to the tier, tiers that this machine cannot run included, and its code stays small.
#include "jit/conv/dense/tile_spec.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "jit/conv/dot_product.hpp"
#include "tests/support/kernel_code.hpp"

namespace castor::jit {
namespace {

/// Tiles of one row, of every size, and of several rows.
std::vector<DenseTile> tiles_of(const Target& target) {
  const int lanes = target.vector_bits() / 32;
  std::vector<DenseTile> tiles;
  for (int channels = 1; channels <= 6 * lanes; channels += channels % lanes < 2 ? 1 : lanes / 2) {
    for (int columns = 1; columns <= target.vector_registers(); ++columns) {
      for (int rows : {1, 2, 3}) {
        for (int options = 0; options < 8; ++options) {
          const bool bytes = product_engine_of(target) == ProductEngine::u8_i8_dot;
          const WindowSums some = bytes ? WindowSums::words : WindowSums::dwords;
          const DenseTile tile = {
              .vectorised = Vectorised::channels,
              .engine = product_engine_of(target),
              .channels = channels,
              .pixel_rows = rows,
              .columns = columns,
              .pixel_step = 256,
              .row_step = rows > 1 ? 4096 : 0,
              .window_sums = (options & 1) != 0 ? some : WindowSums::none,
              .store = (options & 2) != 0 ? StorePolicy::transposed : StorePolicy::rows,
              .peeled_k_steps = (options & 4) != 0 ? 4 : 0};
          if (fits(tile, target)) tiles.push_back(tile);
        }
      }
    }
  }
  return tiles;
}

std::string name_of(const DenseTile& tile) {
  return fmt::format(
      "{} channels by {} rows of {}, window sums {}, transposed {}, peeled k steps {}",
      tile.channels, tile.pixel_rows, tile.columns, static_cast<int>(tile.window_sums),
      tile.store == StorePolicy::transposed, tile.peeled_k_steps);
}

class ChannelKernel : public testing::TestWithParam<Tier> {};

TEST_P(ChannelKernel, InstructionsBelongToTheTier) {
  const Target target{GetParam()};
  for (const DenseTile& tile : tiles_of(target)) {
    test::check_kernel_code([&] { return emit_kernel(tile, target); }, target, name_of(tile));
    if (HasFatalFailure()) return;
  }
}

/// Products are those of the tier: saturating ones are nowhere.
TEST_P(ChannelKernel, MultipliesAsTheTierCan) {
  const Target target{GetParam()};
  for (const DenseTile& tile : tiles_of(target)) {
    const int64_t products = test::dot_products_in(*emit_kernel(tile, target), target);
    const int of_a_tap = tile.pixels() * tile.vectors_of(target.vector_bits() / 32);
    EXPECT_EQ(products, 3 * of_a_tap) << name_of(tile);  // two in the loop, and an odd or last one
  }
}

INSTANTIATE_TEST_SUITE_P(Tiers, ChannelKernel, testing::ValuesIn(test::all_tiers),
                         test::name_of_row);

}  // namespace
}  // namespace castor::jit
