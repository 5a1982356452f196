// SPDX-License-Identifier: Apache-2.0
// The dense microkernel in every register tile that takes its pixels from the input: sums, what it
// packs for other tiles, and the window sums that it stores for them.
#include <gtest/gtest.h>

#include <random>

#include "jit/conv/dense/tile_spec.hpp"
#include "tests/support/conversions.hpp"
#include "tests/support/dense_tiles.hpp"
#include "tools/testing/guarded_pages.hpp"

namespace castor::jit {
namespace {

/// The elements of a k group, of which lower ones have lower bits.
std::vector<int> elements_of(uint32_t k_group, int bits, bool are_signed) {
  std::vector<int> elements;
  for (int low = 0; low < 32; low += bits) {
    const uint32_t element = k_group >> low & ((1u << bits) - 1);
    const bool is_negative = are_signed && (element >> (bits - 1)) != 0;
    elements.push_back(static_cast<int>(element) - (is_negative ? 1 << bits : 0));
  }
  return elements;
}

/// A byte of the input as kernels multiply it.
uint32_t multiplied(const DenseTile& tile, std::byte x) {
  const auto byte = static_cast<uint8_t>(x);
  if (tile.source == PixelSource::input) return byte;
  return multiplies_bytes(tile.engine) ? byte ^ 0x80u
                                       : static_cast<uint16_t>(static_cast<int8_t>(byte));
}

/// A call of a kernel that takes its pixels from the input: channels between pages that nobody may
/// touch, nchw4c planes that must hold them afterwards.
void check_tile_of_input(const DenseTile& tile, int lanes, const PublishedKernel& run, int taps,
                         int tiles, std::mt19937_64& random) {
  const int pixels = tiles * tile.vectors * lanes;
  const int held = channels_of_k_group(tile.engine);
  const int bits = 8 * bytes_of_channel(tile.engine);
  const int input_bytes = held * taps * pixels;
  test::GuardedPages pages(static_cast<size_t>(input_bytes));
  std::byte* input = pages.at_end(static_cast<size_t>(input_bytes));
  for (int i = 0; i < input_bytes; ++i) input[i] = static_cast<std::byte>(random());
  std::vector<int32_t> weights(static_cast<size_t>(taps * tile.channels));
  for (int32_t& weight : weights) weight = static_cast<int32_t>(random());
  std::vector<int32_t> start(static_cast<size_t>(tile.channels));
  for (int32_t& value : start) value = static_cast<int32_t>(random());
  std::vector<int32_t> zero_points(static_cast<size_t>(tile.channels));
  for (int32_t& value : zero_points) value = static_cast<int32_t>(random() % 511) - 255;
  std::vector<uint32_t> planes(static_cast<size_t>(taps * pixels));
  std::vector<int32_t> output(static_cast<size_t>(tile.channels * pixels));
  std::vector<int32_t> offsets;
  for (int tap = 0; tap < taps; ++tap) offsets.push_back(4 * tap * pixels);
  std::vector<ConvStore> stores(static_cast<size_t>(tiles * tile.vectors));
  for (size_t i = 0; i < stores.size(); ++i) {
    stores[i].pixel = static_cast<int64_t>(i) * lanes;
    stores[i].source = 4 * stores[i].pixel;
    stores[i].lanes = stores[i].first_lanes = (1u << lanes) - 1;
  }
  std::vector<int32_t> stored_sums(static_cast<size_t>(pixels), 0x5a5a5a5a);
  const auto zero_point = static_cast<int8_t>(random());
  const DenseArguments arguments = {
      .source = reinterpret_cast<const std::byte*>(planes.data()),
      .k_steps = offsets.data(),
      .k_step_count = taps,
      .weights = reinterpret_cast<const std::byte*>(weights.data()),
      .start = start.data(),
      .weight_zero_points = zero_points.data(),
      .window_sums = stored_sums.data(),
      .stores = stores.data(),
      .output = output.data(),
      .output_step = 4 * pixels,
      .tiles = tiles,
      .input = input,
      .input_step = pixels,
      .zero_point_bytes = static_cast<uint8_t>(zero_point) * 0x01010101u};
  run(&arguments);
  const bool is_exchanged = tile.engine == ProductEngine::i8_u8_dot;
  const bool has_signed_pixels = tile.engine != ProductEngine::u8_i8_dot;
  for (int pixel = 0; pixel < pixels; ++pixel) {
    std::vector<uint32_t> sums(start.begin(), start.end());
    uint32_t window_sum = 0;
    for (int tap = 0; tap < taps; ++tap) {
      uint32_t dword = 0;
      for (int i = 0; i < held; ++i) {
        dword |= multiplied(tile, input[(held * tap + i) * pixels + pixel]) << (bits * i);
      }
      const std::vector<int> x = elements_of(dword, bits, has_signed_pixels);
      for (const int value : x) window_sum += static_cast<uint32_t>(value);
      for (int m = 0; m < tile.channels; ++m) {
        const auto k_group =
            static_cast<uint32_t>(weights[static_cast<size_t>(tap * tile.channels + m)]);
        const std::vector<int> w = elements_of(k_group, bits, !is_exchanged);
        for (size_t i = 0; i < x.size(); ++i) {
          sums[static_cast<size_t>(m)] += static_cast<uint32_t>(int64_t{x[i]} * w[i]);
        }
      }
      const uint32_t packed = planes[static_cast<size_t>(tap * pixels + pixel)];
      ASSERT_EQ(packed, tile.reads_input_once ? 0 : dword) << name_of(tile);
    }
    const uint32_t products = window_sum * static_cast<uint32_t>(int32_t{zero_point});
    const bool stores_sums = tile.window_sums == WindowSums::own_products;
    ASSERT_EQ(static_cast<uint32_t>(stored_sums[static_cast<size_t>(pixel)]),
              stores_sums ? products : 0x5a5a5a5a)
        << name_of(tile);
    for (int m = 0; m < tile.channels; ++m) {
      if (stores_sums) sums[static_cast<size_t>(m)] -= products;
      if (tile.window_sums == WindowSums::own) {
        sums[static_cast<size_t>(m)] -=
            window_sum * static_cast<uint32_t>(zero_points[static_cast<size_t>(m)]);
      }
      ASSERT_EQ(static_cast<uint32_t>(output[static_cast<size_t>(m * pixels + pixel)]),
                sums[static_cast<size_t>(m)])
          << name_of(tile) << ", " << taps << " taps";
    }
  }
}

TEST(DenseInput, EveryTile) {
  std::mt19937_64 random(8);
  for (const auto& [tier, runtime] : test::tier_runtimes()) {
    const Target target{tier};
    const std::vector<DenseTile> tiles = input_tiles_of(target);
    EXPECT_EQ(tiles.empty(), tier == Tier::avx512);
    for (const DenseTile& tile : tiles) {
      const PublishedKernel run(tile, target);
      ASSERT_TRUE(run.ok()) << name_of(tile);
      for (const int taps : {1, 3, 4, 6, 7}) {
        if (!can_have_k_steps(tile, taps)) continue;
        check_tile_of_input(tile, target.vector_bits() / 32, run, taps, 2, random);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

}  // namespace
}  // namespace castor::jit
