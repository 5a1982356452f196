// SPDX-License-Identifier: Apache-2.0
// Register tiles of the dense microkernel: all that fit a target, for tests of its code.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "jit/conv/dense/tile_spec.hpp"
#include "jit/kernel/spec_words.hpp"
#include "jit/memory/code_memory.hpp"

namespace castor::jit {

/// Ways to subtract window sums.
inline std::vector<WindowSums> sums_of(const Target& target) {
  std::vector<WindowSums> all = {WindowSums::none, WindowSums::products, WindowSums::i32};
  if (product_engine_of(target) == ProductEngine::u8_i8_dot) all.push_back(WindowSums::i16_pairs);
  return all;
}

/// Pixel-vectorised tiles.
inline std::vector<DenseTile> tiles_of(const Target& target) {
  std::vector<DenseTile> tiles;
  for (int channels = 1; channels <= target.vector_registers(); ++channels) {
    for (int vectors = 1; vectors <= target.vector_registers(); ++vectors) {
      for (const WindowSums sums : sums_of(target)) {
        for (const bool gaps : {false, true}) {
          for (const int peeled : {0, 1, 3, 4}) {
            if (peeled > 0 && (gaps || !target.has_avx512())) continue;
            DenseTile tile = {.engine = product_engine_of(target),
                              .channels = channels,
                              .vectors = vectors,
                              .window_sums = sums,
                              .store = gaps ? StorePolicy::compressed : StorePolicy::rows,
                              .peeled_k_steps = peeled,
                              .group_rows = rows_of_group(vectors, target)};
            if (!fits(tile, target)) continue;
            tiles.push_back(tile);
            if (tile.engine != ProductEngine::u8_i8_dot || channels % 3 != 2) continue;
            tile.engine = ProductEngine::i8_u8_dot;
            tiles.push_back(tile);
          }
        }
      }
    }
  }
  return tiles;
}

/// Channel-vectorised tiles: of one row of pixels, of every size, and of several rows.
inline std::vector<DenseTile> channel_tiles_of(const Target& target) {
  const int lanes = target.vector_bits() / 32;
  const std::vector<WindowSums> sums = sums_of(target);
  std::vector<DenseTile> tiles;
  for (int channels = 1; channels <= 6 * lanes; channels += channels % lanes < 2 ? 1 : lanes / 2) {
    for (int columns = 1; columns <= target.vector_registers(); ++columns) {
      for (int rows : {1, 2, 3}) {
        for (int options = 0; options < 32; ++options) {
          const size_t way = 1 + static_cast<size_t>(channels + columns) % (sums.size() - 1);
          DenseTile tile = {
              .vectorised = Vectorised::channels,
              .engine = product_engine_of(target),
              .channels = channels,
              .pixel_rows = rows,
              .columns = columns,
              .pixel_step = 8,
              .row_step = rows > 1 ? 512 : 0,
              .window_sums = (options & 1) != 0 ? sums[way] : WindowSums::none,
              .store = (options & 2) != 0 ? StorePolicy::transposed : StorePolicy::rows,
              .peeled_k_steps = (options & 4) != 0 ? 4 : 0,
              .group_rows = rows_of_group(1 + (channels - 1) / lanes, target)};
          const bool has_pairs = tile.engine == ProductEngine::i16_pairs;
          tile.has_sign_flip = !has_pairs && (options & 8) != 0;
          tile.transposes_registers = (options & 16) != 0;
          if (fits(tile, target)) tiles.push_back(tile);
        }
      }
    }
  }
  return tiles;
}

inline bool has_dead_lanes(const DenseTile& tile) { return tile.store == StorePolicy::compressed; }

/// Peeled k steps follow an even number of others.
inline bool can_have_k_steps(const DenseTile& tile, int k_steps) {
  if (tile.peeled_k_steps == 0) return true;
  return k_steps >= tile.peeled_k_steps && (k_steps - tile.peeled_k_steps) % 2 == 0;
}

inline std::string name_of(const DenseTile& tile) { return short_name(spec_words(tile)); }

/// The same tile, of packed pixels.
inline DenseTile tile_of_packed(DenseTile once) {
  once.source = PixelSource::packed;
  once.reads_input_once = false;
  return once;
}

/// Tiles that take their pixels from the input.
inline std::vector<DenseTile> input_tiles_of(const Target& target) {
  std::vector<DenseTile> tiles;
  for (DenseTile tile : tiles_of(target)) {
    if (has_dead_lanes(tile) || tile.window_sums != WindowSums::none) continue;
    for (const PixelSource source : {PixelSource::input, PixelSource::signed_input}) {
      tile.source = source;
      if (fits(tile, target)) tiles.push_back(tile);
      DenseTile stores_sums = tile;
      stores_sums.window_sums = WindowSums::own_products;
      if (fits(stores_sums, target)) tiles.push_back(stores_sums);
      DenseTile once = tile;
      once.reads_input_once = true;
      once.peeled_k_steps = once.group_rows = 0;
      if (!fits(once, target)) continue;
      tiles.push_back(once);
      while (once.passes_pixels() && fits(once, target)) {  // wider ones than of packed pixels
        ++once.vectors;
        if (fits(once, target) && !fits(tile_of_packed(once), target)) tiles.push_back(once);
      }
      once.vectors = tile.vectors;
      once.window_sums = WindowSums::own;
      if (fits(once, target)) tiles.push_back(once);
    }
  }
  return tiles;
}

/// A kernel that can be called.
class PublishedKernel {
 public:
  PublishedKernel(const DenseTile& tile, const Target& target)
      : block_(memory_.publish(*emit_kernel(tile, target))) {}
  void operator()(const DenseArguments* arguments) const {
    reinterpret_cast<KernelFunction<DenseTile>>(reinterpret_cast<uintptr_t>(block_->code()))(
        arguments);
  }
  bool ok() const { return block_.ok(); }

 private:
  CodeMemory memory_;
  Result<CodeBlock> block_;
};

}  // namespace castor::jit
