// SPDX-License-Identifier: Apache-2.0
// The inner kernel of integer convolution: a tile of output channels by vectors of output pixels.
//
// The input has been laid out, or is while the kernel runs, as planes of dwords
// (jit/conv/conv_plan.hpp), so that a tap of the filter on as many input channels as a dword holds
// is one offset from the pixel's dword, the same for all pixels. The kernel knows no geometry:
// offsets come in a table, and so does where the lanes of each vector are stored. One kernel serves
// every layer that uses its tile.
#pragma once

#include <array>
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

/// Where a tile's pixels come from.
enum class PixelSource : uint8_t {
  planes,
  /// From the input itself, of one plane after the other: four channels each, whose pixels lie side
  /// by side. The kernel lays out the planes meanwhile, for others to read. All lanes are stored.
  input,
  signed_input,  ///< the same of signed bytes, to which 128 is added
};

/// Words of the sources, in order.
constexpr std::array<std::string_view, 3> names_of(PixelSource) {
  return {"packed", "input", "signed_input"};
}

struct ConvArguments;

/// Everything that the kernel's code depends on besides the target.
struct ConvTile {
  static constexpr std::string_view name = "pixel_vectorised";
  using Arguments = const ConvArguments;

  int channels = 1;                           ///< output channels
  int vectors = 1;                            ///< of output pixels
  WindowSums window_sums = WindowSums::none;  ///< what is subtracted at the end
  /// Whether lanes may have to be left out; else only the last ones of a line.
  bool has_gaps = false;
  /// So many taps at the end are done by groups of channels (jit/conv/last_taps.hpp), and an even
  /// number before them; 0 with gaps: then any number is done at once.
  int last_taps = 0;
  /// Whether the lines that a tile is stored to are fetched when it begins; not with an epilogue.
  bool prefetches_output = false;
  /// Not planes: with neither gaps nor window sums, and not without VBMI.
  PixelSource source = PixelSource::planes;
  /// Whether the taps are those of one k group, and done for each of `ConvArguments::k_groups`;
  /// then there are no last taps, and pixels come from planes.
  bool loops_k_groups = false;

  static constexpr auto fields() {
    return std::tuple(
        field("channels", &ConvTile::channels), field("vectors", &ConvTile::vectors),
        field("window_sums", &ConvTile::window_sums), field("dead_lanes", &ConvTile::has_gaps),
        field("peeled_k_steps", &ConvTile::last_taps),
        field("prefetch", &ConvTile::prefetches_output), field("source", &ConvTile::source),
        field("loops_k_groups", &ConvTile::loops_k_groups));
  }
};

/// Whether the tile's accumulators and operands fit the target's registers.
bool fits(const ConvTile& tile, const Target& target);

/// Where the lanes of one vector of pixels go. Lanes that are stored go side by side.
struct ConvStore {
  static constexpr int max_lanes = 16;
  int64_t offset = 0;              ///< bytes from the output of the line's first pixel
  int64_t source = 0;              ///< bytes from the line's first dword to the first lane's
  uint32_t lanes = 0;              ///< a bit for each lane that is stored
  uint32_t first_lanes = 0;        ///< as many low bits
  int32_t order[max_lanes] = {};   ///< the lanes that are stored, in order
  int32_t stored[max_lanes] = {};  ///< as many times -1, then 0
};

/// The argument of the kernel's code. All pointers are valid for the whole line: a number of
/// `tiles` tiles, each of vectors side by side, whose last ones may store no lane but are read.
struct ConvArguments {
  const std::byte* planes = nullptr;   ///< dword of the line's first pixel, tap offset 0
  const int32_t* taps = nullptr;       ///< byte offsets of all taps
  int64_t tap_count = 0;               ///< at least 1
  const std::byte* weights = nullptr;  ///< for each tap a dword for each channel of the tile
  const int32_t* start = nullptr;      ///< value of the accumulators, by channel
  const int32_t* weight_zero_points = nullptr;  ///< by channel
  const int32_t* window_sums = nullptr;         ///< by dword of the line
  const ConvStore* stores = nullptr;            ///< by vector
  int32_t* output = nullptr;                    ///< first channel
  int64_t channel_step = 0;                     ///< bytes between the outputs of two channels
  /// Instead of the output, where there is an epilogue: its operands at the output's place.
  const EpilogueOperand* epilogue = nullptr;
  int64_t tiles = 0;  ///< at least 1
  /// Where pixels come from the input: the line's first pixel, first channel; to be laid out in
  /// `planes`, one for each tap.
  const std::byte* input = nullptr;
  int64_t input_step = 0;  ///< bytes from one channel to the next
  /// Where the tile loops over k groups: how many there are (at least 1), and the bytes from the
  /// planes of one to those of the next.
  int64_t k_groups = 1;
  int64_t k_group_step = 0;
};

/// Emits the kernel. A pure function of its arguments. `tile` fits the target. `epilogue` may be
/// null; one that needs more stack than there is is refused (unsupported).
Result<MachineCode> emit_kernel(const ConvTile& tile, const Target& target,
                                const TileEpilogue* epilogue = nullptr);

}  // namespace castor::jit
