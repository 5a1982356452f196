// SPDX-License-Identifier: Apache-2.0
// The inner kernels of depthwise and grouped convolution: both walk down the rows of a block and
// multiply what they read of a row by each row of the filter, into the sums of all outputs that
// take the row; so a row is read and shuffled once. What is outside the image is the input's zero
// point: loads leave out its bytes.
//
// depthwise, NCHW: output pixels in the lanes. At each column position a shuffle gives every lane
// the neighbouring taps of its pixel, four in a dword. Which lane finds its taps where comes in a
// table, by column position, so that one kernel serves images of many sizes.
//
// grouped_nhwc: neighbouring output channels in the lanes. At each place the kernel makes a few
// neighbouring outputs of every row. It reads the pixels that these take, and shuffles give every
// lane a dword of what it multiplies, a quad: where a group has one channel, four neighbouring
// pixels of the lane's channel; else channels of one pixel of the lane's group. Weights are moved
// to where each output finds its taps in a quad; others are 0.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <vector>

#include "ir/support/result.hpp"
#include "jit/code.hpp"
#include "jit/conv/dot_product.hpp"
#include "jit/conv/epilogue/epilogue.hpp"
#include "jit/kernel/spec.hpp"
#include "jit/target.hpp"

namespace castor::jit {

/// A block of rows for which a kernel has code. In NCHW a row of its input may stand for several
/// rows of the image, whose pixels are in the lanes side by side.
struct SlidingBlock {
  int outputs = 1;  ///< output rows
  /// Input rows above the image; then, in NCHW, those whose sources are not in it altogether, so
  /// that loads leave out bytes; the same from below.
  int above = 0;
  int guarded_above = 0;
  int guarded_below = 0;
  int below = 0;
  bool masks_rows = false;  ///< whether guarded rows are in the image in part

  static constexpr auto fields() {
    return std::tuple(
        field("outputs", &SlidingBlock::outputs), field("above", &SlidingBlock::above),
        field("border_above", &SlidingBlock::guarded_above),
        field("border_below", &SlidingBlock::guarded_below), field("below", &SlidingBlock::below),
        field("masks_rows", &SlidingBlock::masks_rows));
  }
};

struct DepthwiseArguments;

/// Everything that the kernel's code depends on besides the target.
struct DepthwiseForm {
  static constexpr std::string_view name = "depthwise";
  using Arguments = const DepthwiseArguments;

  ProductEngine engine = ProductEngine::u8_i8_dot;
  int rows = 1;        ///< of the filter
  int row_stride = 1;  ///< input rows from an output row to the next
  int dwords = 1;      ///< of four taps each, in a row of the filter
  /// Whether the last of them is one tap, in all its bytes. Its weight less the zero point has nine
  /// bits: where window sums are subtracted, of unsigned input, the weights' bytes sum up to it.
  bool repeats_last_tap = false;
  int dword_step = 0;         ///< bytes from a dword's source to the next one's; 0: they share one
  int source_bytes = 64;      ///< that are read of a row at a time: 32 or 64
  bool flips_input = false;   ///< signed bytes: 128 is added
  bool signed_input = false;  ///< signed bytes as they are, by unsigned weights; not without VNNI
  /// Whether window sums times weight zero points are subtracted. Not without VNNI.
  bool subtracts_window_sums = false;
  bool adds = false;  ///< to outputs that are there
  std::vector<SlidingBlock> blocks{};

  static constexpr auto fields() {
    return std::tuple(
        field("engine", &DepthwiseForm::engine), field("filter_rows", &DepthwiseForm::rows),
        field("row_stride", &DepthwiseForm::row_stride), field("k_groups", &DepthwiseForm::dwords),
        field("repeats_last_tap", &DepthwiseForm::repeats_last_tap),
        field("k_group_step", &DepthwiseForm::dword_step),
        field("source_bytes", &DepthwiseForm::source_bytes),
        field("sign_flip", &DepthwiseForm::flips_input),
        field("signed_input", &DepthwiseForm::signed_input),
        field("subtracts_window_sums", &DepthwiseForm::subtracts_window_sums),
        field("adds", &DepthwiseForm::adds), field("blocks", &DepthwiseForm::blocks));
  }

  /// Dwords of a row whose taps window sums are made of.
  int summed_dwords() const {
    if (!subtracts_window_sums) return 0;
    return dwords - (repeats_last_tap && !signed_input ? 1 : 0);
  }
  bool sums_windows() const { return summed_dwords() > 0; }
  /// Whether rows of window sums make up the start, an equal part each: an odd number of rows can.
  bool starts_by_row() const { return sums_windows() && rows % 2 != 0; }
  /// Input rows of a block.
  int input_rows(const SlidingBlock& block) const {
    return (block.outputs - 1) * row_stride + rows;
  }
  /// Output rows whose sums are under way at a time.
  int sum_rows() const { return (rows + row_stride - 1) / row_stride; }
  bool has_words() const { return engine == ProductEngine::i16_pairs; }
  /// Dwords of weights that four taps take. Of words they are the even taps, and the odd ones.
  int vectors_of_weight() const { return has_words() ? 2 : 1; }
  /// As GroupedNhwcForm has it, with a single output in a place: quads are dwords.
  static constexpr int outputs = 1;
  bool takes(int, int) const { return true; }
  bool sums_window_of(int dword) const { return dword < summed_dwords(); }
  int row_weights() const { return dwords; }
  int weight_of(int, int dword) const { return dword; }
  int zero_point_of(int, int dword) const { return dword; }
  int orders() const { return 0; }
  /// Dwords of weights that an output channel has: by row and dword; then, of bytes, its zero point
  /// in the bytes of each dword's taps; as signed bytes, or as unsigned ones of signed input. A
  /// dword of which no window sums are made has weights less their zero point.
  int weight_dwords() const {
    return rows * dwords * vectors_of_weight() + (has_words() ? 0 : dwords);
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

  ProductEngine engine = ProductEngine::u8_i8_dot;
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
  std::vector<SlidingBlock> blocks{};

  static constexpr auto fields() {
    return std::tuple(
        field("engine", &GroupedNhwcForm::engine), field("filter_rows", &GroupedNhwcForm::rows),
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
  int input_rows(const SlidingBlock& block) const {
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
  bool sums_windows() const { return subtracts_window_sums; }
  bool sums_window_of(int) const { return subtracts_window_sums; }
  /// Vectors that say which lane has which bytes.
  int orders() const { return parts == 0 ? int{repeats} : parts; }
  /// Output rows whose sums are under way at a time.
  int sum_rows() const { return (rows + row_stride - 1) / row_stride; }
  bool has_words() const { return engine == ProductEngine::i16_pairs; }
  /// Vectors that a quad's weights take. Where words are multiplied, neighbouring pixels of a quad
  /// are the even ones and the odd ones, in two vectors; channels are words already.
  int vectors_of_weight() const { return has_words() && parts == 0 ? 2 : 1; }
  /// Vectors of what one vector of output channels has: orders; weights by row and weight; of bytes
  /// the zero points in the bytes of their taps.
  int panel_vectors() const {
    return orders() + rows * row_weights() * vectors_of_weight() +
           (has_words() ? 0 : zero_points());
  }

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
bool fits(const DepthwiseForm& form, const Target& target);
bool fits(const GroupedNhwcForm& form, const Target& target);

/// Column positions that differ in their place alone: each makes up to 16 neighbouring outputs.
struct DepthwiseColumns {
  static constexpr int max_lanes = 16;
  static constexpr int max_dwords = 4;
  int64_t count = 0;
  int64_t input = 0;                     ///< bytes from the row's first pixel to the first source
  int64_t output = 0;                    ///< bytes from the row's first output
  uint64_t loaded[max_dwords] = {};      ///< bytes of each source that are taken
  uint64_t taken[max_dwords] = {};       ///< bytes of each shuffle that are; others are padding
  uint64_t stored = 0;                   ///< lanes that are outputs: the first ones
  uint8_t shuffle[max_dwords][64] = {};  ///< bytes of the source; without VBMI of `pieces`
  int32_t pieces[max_dwords][16] = {};   ///< dwords of the source
};

/// Blocks that follow each other. Steps in bytes.
struct DepthwiseBlocks {
  int64_t block = 0;  ///< index of their code's block
  int64_t count = 0;  ///< at least 1
  /// To the first one, from the block that would come after the blocks before; in a channel's
  /// first blocks from its image.
  int64_t input = 0;
  int64_t output = 0;
  int64_t input_block_step = 0;
  int64_t output_block_step = 0;
  int64_t input_column_step = 0;  ///< from a column position to the next, after the last row
  int64_t output_column_step = 0;
  const DepthwiseColumns* columns = nullptr;
  const DepthwiseColumns* columns_end = nullptr;  ///< after at least one
  const uint64_t* rows_loaded = nullptr;  ///< bytes of each guarded row that are in the image
  int64_t prefetched = 0;  ///< how far ahead of stores lines of the cache are asked for
};

/// The argument of the kernel's code. Steps in bytes.
struct DepthwiseArguments {
  const std::byte* input = nullptr;  ///< image of the first channel
  int64_t input_row_step = 0;
  int64_t input_channel_step = 0;  ///< from the end of the last block
  int64_t output = 0;              ///< address of the first channel's first output
  int64_t output_row_step = 0;
  int64_t output_channel_step = 0;
  const DepthwiseBlocks* blocks = nullptr;
  const DepthwiseBlocks* blocks_end = nullptr;  ///< after at least one
  const int32_t* weights = nullptr;             ///< by channel
  const int32_t* weights_end = nullptr;
  const int32_t* start = nullptr;  ///< value of the sums, by channel
  uint64_t padding = 0;            ///< the input's zero point, as the image has it, in each byte
  /// Of an epilogue, by operand, at the first channel's output: that one is not written then.
  /// `output` and all its steps, but for those of column positions, count elements of a channel.
  const EpilogueOperand* epilogue = nullptr;
};

/// A place: neighbouring outputs of a row.
struct NhwcPlace {
  int64_t input = 0;     ///< bytes from the row's first pixel to the first one that is taken
  int64_t output = 0;    ///< outputs, from the row's first one
  int64_t is_inner = 0;  ///< whether all pixels are in the image, and all outputs are there
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
  const NhwcPlace* places_end = nullptr;  ///< after at least one
  const int32_t* weights = nullptr;       ///< panel of the first vector
  const NhwcVector* vectors = nullptr;
  const NhwcVector* vectors_end = nullptr;  ///< after at least one
  /// The input's zero point, as the image has it, in each byte of 16.
  const std::byte* padding = nullptr;
  int64_t first_channel = 0;                  ///< where the epilogue's operands begin
  const EpilogueOperand* epilogue = nullptr;  ///< only with one: its operands at pixel 0
};

/// Whether registers and masks are enough for an epilogue, which goes along pixels, and the code of
/// all stores is probably not too long.
bool may_apply(const TileEpilogue& epilogue, const DepthwiseForm& form, const Target& target);
/// Whether registers are enough for an epilogue, which goes along channels.
bool may_apply(const TileEpilogue& epilogue, const GroupedNhwcForm& form, const Target& target);

/// Emits a kernel. A pure function of its arguments. `form` fits the target. `epilogue` may be
/// null; one that needs more registers or stack than there are, or, in NCHW, makes the code too
/// long, is refused (unsupported). With one outputs are not added to.
Result<MachineCode> emit_kernel(const DepthwiseForm& form, const Target& target,
                                const TileEpilogue* epilogue = nullptr);
Result<MachineCode> emit_kernel(const GroupedNhwcForm& form, const Target& target,
                                const TileEpilogue* epilogue = nullptr);

}  // namespace castor::jit
