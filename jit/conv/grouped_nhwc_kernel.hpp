// SPDX-License-Identifier: Apache-2.0
// The inner kernel of depthwise and grouped convolution where the channels of a pixel lie side by
// side: neighbouring output channels in the lanes, down the rows.
//
// At each place the kernel makes a few neighbouring outputs of every row of a block. Of each input
// row it reads the pixels that these take, and shuffles give every lane a dword of what it
// multiplies: a quad. Where a group has one channel, that is four neighbouring pixels of the lane's
// channel; else channels of one pixel of the lane's group. A quad is multiplied by each row of the
// filter, into the sums of all outputs that take it; so a pixel is read once at a place. Weights
// are moved to where each output finds its taps in a quad; others are 0. What lies outside the
// image is the input's zero point: loads leave those pixels out.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <vector>

#include "ir/support/result.hpp"
#include "jit/code.hpp"
#include "jit/conv/tile_epilogue.hpp"
#include "jit/kernel/spec.hpp"
#include "jit/target.hpp"

namespace castor::jit {

/// A block of rows for which the kernel has code.
struct GroupedNhwcBlock {
  int outputs = 1;  ///< output rows
  int above = 0;    ///< input rows that lie above the image
  int below = 0;

  static constexpr auto fields() {
    return std::tuple(field("outputs", &GroupedNhwcBlock::outputs),
                      field("above", &GroupedNhwcBlock::above),
                      field("below", &GroupedNhwcBlock::below));
  }
};

struct GroupedNhwcArguments;

/// Everything that the kernel's code depends on besides the target.
struct GroupedNhwcForm {
  static constexpr std::string_view name = "grouped_nhwc";
  using Arguments = const GroupedNhwcArguments;

  static constexpr int max_pixels = 8;
  static constexpr int max_outputs = 4;
  static constexpr int max_parts = 8;
  /// Of a pixel, bytes that are read for a vector, if channels are as many.
  static constexpr int pixel_bytes = 16;

  int rows = 1;           ///< of the filter
  int row_stride = 1;     ///< input rows from an output row to the next
  int columns = 1;        ///< of the filter
  int column_stride = 1;  ///< input pixels from an output to its neighbour
  int outputs = 1;        ///< neighbours that are made at a place
  int parts = 0;          ///< quads that a group's channels make at a pixel; 0: it has one channel
  bool repeats = false;   ///< one channel in a group, but several outputs of each
  bool is_partial = false;    ///< fewer input channels than a vector reads; not without AVX-512
  bool masks_lanes = false;   ///< vectors may have fewer new channels than lanes
  bool flips_input = false;   ///< signed bytes: 128 is added
  bool signed_input = false;  ///< signed bytes as they are, by unsigned weights; not without VNNI
  /// Whether window sums times weight zero points are subtracted. Not without VNNI.
  bool subtracts_window_sums = false;
  bool adds = false;  ///< to outputs that are there
  std::vector<GroupedNhwcBlock> blocks{};

  static constexpr auto fields() {
    return std::tuple(
        field("filter_rows", &GroupedNhwcForm::rows),
        field("row_stride", &GroupedNhwcForm::row_stride),
        field("filter_columns", &GroupedNhwcForm::columns),
        field("column_stride", &GroupedNhwcForm::column_stride),
        field("outputs", &GroupedNhwcForm::outputs), field("k_groups", &GroupedNhwcForm::parts),
        field("repeats", &GroupedNhwcForm::repeats),
        field("is_partial", &GroupedNhwcForm::is_partial),
        field("masks_lanes", &GroupedNhwcForm::masks_lanes),
        field("sign_flip", &GroupedNhwcForm::flips_input),
        field("signed_input", &GroupedNhwcForm::signed_input),
        field("subtracts_window_sums", &GroupedNhwcForm::subtracts_window_sums),
        field("adds", &GroupedNhwcForm::adds), field("blocks", &GroupedNhwcForm::blocks));
  }

  /// Whether there is no code for places without padding alone: where few bytes are read, and where
  /// many products make guards cheap, but code long.
  bool always_guards() const { return is_partial || parts > 1; }
  /// Input rows of a block.
  int input_rows(const GroupedNhwcBlock& block) const {
    return (block.outputs - 1) * row_stride + rows;
  }
  /// Input pixels that a place takes of a row.
  int pixels() const { return (outputs - 1) * column_stride + columns; }
  int quads() const { return parts == 0 ? (pixels() + 3) / 4 : pixels() * parts; }
  /// Whether an output has taps in a quad.
  bool takes(int output, int quad) const {
    const int first = output * column_stride;
    if (parts == 0) return first < 4 * quad + 4 && first + columns > 4 * quad;
    return first <= quad / parts && quad / parts < first + columns;
  }
  /// Whether any output takes a pixel.
  bool is_taken(int pixel) const { return pixel % column_stride < columns; }
  /// Products of a place and a row of the filter.
  int products() const { return products_before(quads(), 0); }
  /// Weights of a row of the filter, in vectors: those of neighbouring pixels by quad, then by
  /// output that takes it; those of channels by column, then by part.
  int row_weights() const { return parts == 0 ? products() : columns * parts; }
  int weight_of(int output, int quad) const {
    return parts == 0 ? products_before(quad, output) : quad - output * column_stride * parts;
  }
  /// Zero points of weights: of each weight of a row, or of each part.
  int zero_points() const { return parts == 0 ? products() : parts; }
  int zero_point_of(int output, int quad) const {
    return parts == 0 ? weight_of(output, quad) : quad % parts;
  }
  /// Vectors that say which lane has which bytes.
  int orders() const { return parts == 0 ? int{repeats} : parts; }
  /// Output rows whose sums are under way at a time.
  int sum_rows() const { return (rows + row_stride - 1) / row_stride; }

 private:
  /// In the order of weights of neighbouring pixels.
  int products_before(int quad, int output) const {
    int count = 0;
    for (int q = 0; q <= quad; ++q) {
      for (int i = 0; i < (q < quad ? outputs : output); ++i) count += takes(i, q);
    }
    return count;
  }
};

/// Whether code of that form can be made.
bool fits(const GroupedNhwcForm& form, const Target& target);
/// Vectors that a quad's weights take. Without VNNI words are multiplied: neighbouring pixels of a
/// quad are the even ones and the odd ones, in two vectors; channels are words already.
int vectors_of_weight(const GroupedNhwcForm& form, const Target& target);
/// Vectors of what one vector of output channels has: orders; weights by row and weight; with VNNI
/// the zero points in the bytes of their taps.
int record_vectors(const GroupedNhwcForm& form, const Target& target);

/// A place: neighbouring outputs of a row.
struct NhwcPlace {
  int64_t input = 0;     ///< bytes from the row's first pixel to the first one that is taken
  int64_t output = 0;    ///< outputs, from the row's first one
  int64_t is_inner = 0;  ///< whether all pixels lie in the image, and all outputs are there
  /// Of each pixel what is loaded, all or none: the dwords of its quad, or all; of fewer channels
  /// than a vector reads, its bytes.
  uint16_t loaded[GroupedNhwcForm::max_pixels] = {};
  uint16_t stored[GroupedNhwcForm::max_outputs] = {};  ///< of each output all lanes, or none
};

/// Neighbouring output channels that a vector of sums has.
struct alignas(64) NhwcVector {
  static constexpr int max_lanes = 16;
  int32_t start[max_lanes] = {};  ///< values of the sums
  int32_t lanes_mask[8] = {};     ///< -1 in each of `lanes`, of vectors of 8
  int64_t input = 0;              ///< the first channel of x that is read
  int64_t channel = 0;            ///< the first output channel
  uint32_t lanes = 0;             ///< a bit for each that no vector before has
  /// Channels of the vector, those of vectors before it among them.
  int channels() const { return static_cast<int>(std::bit_width(lanes)); }
};

/// The argument of the kernel's code: one block of rows. Steps in bytes, but with an epilogue those
/// of the output in pixels.
struct GroupedNhwcArguments {
  int64_t block = 0;                 ///< index in the form
  const std::byte* input = nullptr;  ///< first channel of x, of the block's first row
  int64_t pixel_step = 0;            ///< from a pixel that is taken to the next
  int64_t row_step = 0;
  /// Address of the first pixel's first channel of all; with an epilogue the pixel's number.
  int64_t output = 0;
  int64_t output_pixel_step = 0;  ///< of the row's pixels
  int64_t output_step = 0;        ///< from an output of a place to its neighbour
  int64_t output_row_step = 0;
  int64_t prefetched = 0;  ///< how far ahead of stores lines of the cache are asked for
  const NhwcPlace* places = nullptr;
  const NhwcPlace* places_end = nullptr;  ///< behind at least one
  const int32_t* weights = nullptr;       ///< record of the first vector
  const NhwcVector* vectors = nullptr;
  const NhwcVector* vectors_end = nullptr;  ///< behind at least one
  /// The input's zero point, as the image has it, in each byte of 16.
  const std::byte* padding = nullptr;
  int64_t first_channel = 0;                  ///< where the epilogue's operands begin
  const EpilogueOperand* epilogue = nullptr;  ///< only with one: its operands at pixel 0
};

/// Whether registers are enough for an epilogue, which goes along channels.
bool may_apply(const TileEpilogue& epilogue, const GroupedNhwcForm& form, const Target& target);

/// Emits the kernel. A pure function of its arguments. `form` fits the target. `epilogue` may be
/// null; one that there is no room for is refused (unsupported).
Result<MachineCode> emit_kernel(const GroupedNhwcForm& form, const Target& target,
                                const TileEpilogue* epilogue = nullptr);

}  // namespace castor::jit
