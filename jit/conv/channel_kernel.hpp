// SPDX-License-Identifier: Apache-2.0
// The other inner kernel of integer convolution: output channels in the lanes, by a few pixels.
//
// Weights are whole vectors, the pixels' dwords are broadcast. So no lane is lost to the ends of
// rows, and results of one pixel lie side by side, as layout = nhwc has them; for nchw a tile is
// turned around on its way to memory.
#pragma once

#include <cstdint>
#include <string_view>
#include <tuple>

#include "ir/support/result.hpp"
#include "jit/code.hpp"
#include "jit/conv/dot_product.hpp"
#include "jit/conv/tile_epilogue.hpp"
#include "jit/kernel/spec.hpp"
#include "jit/target.hpp"

namespace castor::jit {

struct ChannelArguments;

/// Everything that the kernel's code depends on besides the target. A tile's pixels follow each
/// other in the output: a part of one row, or whole rows.
struct ChannelTile {
  static constexpr std::string_view name = "channel_vectorised";
  using Arguments = const ChannelArguments;

  int channels = 1;        ///< output channels
  int rows = 1;            ///< of pixels
  int columns = 1;         ///< pixels of each row
  int32_t pixel_step = 4;  ///< bytes of the source from one column to the next
  int32_t row_step = 0;    ///< bytes of the source from one row to the next; 0 where there is one
  WindowSums window_sums = WindowSums::none;  ///< what is subtracted at the end
  /// Whether the pixels of a channel lie side by side in the output; else the channels of a pixel.
  bool turns = false;
  /// So many taps at the end are done by groups of pixels (jit/conv/last_taps.hpp), and an even
  /// number before them; 0: any number is done at once.
  int last_taps = 0;

  int pixels() const { return rows * columns; }

  static constexpr auto fields() {
    return std::tuple(
        field("channels", &ChannelTile::channels), field("rows", &ChannelTile::rows),
        field("columns", &ChannelTile::columns), field("pixel_step", &ChannelTile::pixel_step),
        field("row_step", &ChannelTile::row_step), field("window_sums", &ChannelTile::window_sums),
        field("transposes", &ChannelTile::turns), field("peeled_k_steps", &ChannelTile::last_taps));
  }
};

/// Vectors of output channels.
int channel_vectors(int channels, const Target& target);
/// Whether the tile's accumulators and operands fit the target's registers, and what is turned
/// around one vector.
bool fits(const ChannelTile& tile, const Target& target);

/// Where one tile's pixels lie.
struct TilePlace {
  int64_t source = 0;  ///< bytes from the block's first pixel
  int64_t pixel = 0;   ///< of the output, from the block's first one
};

/// The argument of the kernel's code. All pointers are valid for all tiles.
struct ChannelArguments {
  const std::byte* source = nullptr;            ///< the first pixel's dword, tap offset 0
  const int32_t* taps = nullptr;                ///< byte offsets of all taps
  int64_t tap_count = 0;                        ///< at least 1
  const std::byte* weights = nullptr;           ///< for each tap whole vectors of dwords
  const int32_t* start = nullptr;               ///< of the accumulators; whole vectors
  const int32_t* weight_zero_points = nullptr;  ///< whole vectors
  const int32_t* window_sums = nullptr;         ///< by pixel of the output
  const TilePlace* places = nullptr;            ///< of all tiles
  int64_t tiles = 0;                            ///< at least 1
  int32_t* output = nullptr;                    ///< first channel of the block's first pixel
  int64_t output_step = 0;  ///< bytes from one channel to the next where the tile turns, else from
                            ///< one pixel to the next
  /// Instead of the output, where there is an epilogue: its operands at the output's place.
  const EpilogueOperand* epilogue = nullptr;
};

/// Emits the kernel. A pure function of its arguments. `tile` fits the target. `epilogue` may be
/// null; one that needs more stack than there is is refused (unsupported).
Result<MachineCode> emit_kernel(const ChannelTile& tile, const Target& target,
                                const TileEpilogue* epilogue = nullptr);

}  // namespace castor::jit
