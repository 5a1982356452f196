// SPDX-License-Identifier: Apache-2.0
// The inner kernel of depthwise convolution where the channels of a pixel lie side by side: 16
// channels in the lanes, down the rows.
//
// At each place the kernel makes a few neighbouring outputs of every row of a block. Of each input
// row it reads the pixels that these take, and a shuffle gives every lane four neighbouring pixels
// of its channel in a dword: a quad. A quad is multiplied by each row of the filter, into the sums
// of all outputs that take it; so a pixel is read once at a place. Weights are moved to where each
// output finds its taps in a quad; others are 0. What lies outside the image is the input's zero
// point: loads leave those pixels out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/result.hpp"
#include "jit/code.hpp"
#include "jit/conv/tile_epilogue.hpp"
#include "jit/target.hpp"

namespace castor::jit {

/// A block of rows for which the kernel has code.
struct DepthwiseNhwcBlock {
  int outputs = 1;  ///< output rows
  int above = 0;    ///< input rows that lie above the image
  int below = 0;
  friend bool operator==(const DepthwiseNhwcBlock&, const DepthwiseNhwcBlock&) = default;
};

/// Everything that the kernel's code depends on besides the target.
struct DepthwiseNhwcForm {
  static constexpr int lanes = 16;
  static constexpr int most_pixels = 8;
  static constexpr int most_outputs = 4;

  int rows = 1;               ///< of the filter
  int row_stride = 1;         ///< input rows from an output row to the next
  int columns = 1;            ///< of the filter
  int column_stride = 1;      ///< input pixels from an output to its neighbour
  int outputs = 1;            ///< neighbours that are made at a place
  bool is_partial = false;    ///< fewer channels than lanes
  bool flips_input = false;   ///< signed bytes: 128 is added
  bool signed_input = false;  ///< signed bytes as they are, by unsigned weights; not without VNNI
  /// Whether window sums times weight zero points are subtracted. Not without VNNI.
  bool subtracts_window_sums = false;
  std::vector<DepthwiseNhwcBlock> blocks{};

  /// Input rows of a block.
  int input_rows(const DepthwiseNhwcBlock& block) const {
    return (block.outputs - 1) * row_stride + rows;
  }
  /// Input pixels that a place takes of a row.
  int pixels() const { return (outputs - 1) * column_stride + columns; }
  int quads() const { return (pixels() + 3) / 4; }
  /// Whether an output has taps in a quad.
  bool takes(int output, int quad) const {
    const int first = output * column_stride;
    return first < 4 * quad + 4 && first + columns > 4 * quad;
  }
  /// Products of a place and a row of the filter come by quad, then by output that takes it: their
  /// number, or that of those before one.
  int products() const { return products_before(quads(), 0); }
  int products_before(int quad, int output) const {
    int count = 0;
    for (int q = 0; q <= quad; ++q) {
      for (int i = 0; i < (q < quad ? outputs : output); ++i) count += takes(i, q);
    }
    return count;
  }
  /// Output rows whose sums are under way at a time.
  int sum_rows() const { return (rows + row_stride - 1) / row_stride; }
};

/// Whether code of that form can be made.
bool fits(const DepthwiseNhwcForm& form, const Target& target);
/// Vectors of weights that 16 channels have: by row and product; then, with VNNI, the zero points
/// in the bytes of each product's taps. Without VNNI each dword of four taps is two of words: the
/// even taps, and the odd ones, in two vectors.
int weight_vectors(const DepthwiseNhwcForm& form, const Target& target);

/// A place: neighbouring outputs of a row.
struct DepthwisePlace {
  int64_t input = 0;     ///< bytes from the row's first pixel to the first one that is taken
  int64_t output = 0;    ///< outputs, from the row's first one
  int64_t is_inner = 0;  ///< whether all pixels lie in the image, and all outputs are there
  /// Of each pixel the dwords of its quad that are loaded, all or none; of fewer channels than
  /// lanes, its bytes.
  uint16_t loaded[DepthwiseNhwcForm::most_pixels] = {};
  uint16_t stored[DepthwiseNhwcForm::most_outputs] = {};  ///< lanes of each output
};

/// The argument of the kernel's code: one block of rows. Steps in bytes, but with an epilogue those
/// of the output in pixels.
struct DepthwiseNhwcArguments {
  int64_t block = 0;                 ///< index in the form
  const std::byte* input = nullptr;  ///< first channel of the block's first row
  int64_t pixel_step = 0;            ///< from a pixel that is taken to the next
  int64_t row_step = 0;
  /// From behind a block's last row to the next channels' first one; and what else there is in
  /// front of the last channels, which may lie over the ones before.
  int64_t input_vector_step = 0;
  int64_t input_last_step = 0;
  int64_t output = 0;             ///< address of the first one; with an epilogue the pixel's number
  int64_t output_pixel_step = 0;  ///< of the row's pixels
  int64_t output_step = 0;        ///< from an output of a place to its neighbour
  int64_t output_row_step = 0;
  int64_t prefetched = 0;  ///< how far ahead of stores lines of the cache are asked for
  int64_t output_vector_step = 0;
  int64_t output_last_step = 0;
  const DepthwisePlace* places = nullptr;
  const DepthwisePlace* places_end = nullptr;  ///< behind at least one
  const int32_t* weights = nullptr;            ///< of the first 16 channels
  const int32_t* start = nullptr;              ///< values of the sums, likewise
  const int32_t* last_start = nullptr;         ///< those of the last channels
  uint64_t padding = 0;  ///< the input's zero point, as the image has it, in each byte
  /// Lanes that are new in a vector, and in the last one of several.
  uint32_t lanes = 0xffff;
  uint32_t last_lanes = 0xffff;
  const EpilogueOperand* epilogue = nullptr;  ///< only with one: its operands at pixel 0
};
using DepthwiseNhwcFunction = void (*)(const DepthwiseNhwcArguments* arguments);

/// Whether registers are enough for an epilogue, which goes along channels.
bool may_apply(const TileEpilogue& epilogue, const DepthwiseNhwcForm& form, const Target& target);

/// Emits the kernel. A pure function of its arguments. `form` fits the target. `epilogue` may be
/// null; one that there is no room for is refused (unsupported).
Result<MachineCode> emit_depthwise_nhwc_kernel(const DepthwiseNhwcForm& form, const Target& target,
                                               const TileEpilogue* epilogue = nullptr);

}  // namespace castor::jit
