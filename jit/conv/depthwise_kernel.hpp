// SPDX-License-Identifier: Apache-2.0
// The inner kernel of depthwise convolution: output pixels in the lanes, down the rows.
//
// At each column position the kernel walks down the rows of a block. Of each row it reads a few
// bytes, and a shuffle gives every lane the neighbouring taps of its pixel, four in a dword. That
// vector is multiplied by each row of the filter, into the sums of the outputs that take the row;
// so a row is read and shuffled once. What lies outside the image is the input's zero point: loads
// leave out its bytes. Where which lane finds its taps comes in a table, by column position, so
// that one kernel serves images of many sizes.
#pragma once

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

/// A block of rows for which the kernel has code. A row of its input may stand for several rows of
/// the image, whose pixels lie in the lanes side by side.
struct DepthwiseBlock {
  int outputs = 1;  ///< output rows
  /// Input rows that lie above the image; then those whose sources do not lie in it altogether, so
  /// that loads leave out bytes; the same from below.
  int above = 0;
  int guarded_above = 0;
  int guarded_below = 0;
  int below = 0;
  bool masks_rows = false;  ///< whether guarded rows lie in the image in part

  static constexpr auto fields() {
    return std::tuple(
        field("outputs", &DepthwiseBlock::outputs), field("above", &DepthwiseBlock::above),
        field("border_above", &DepthwiseBlock::guarded_above),
        field("border_below", &DepthwiseBlock::guarded_below),
        field("below", &DepthwiseBlock::below), field("masks_rows", &DepthwiseBlock::masks_rows));
  }
};

struct DepthwiseArguments;

/// Everything that the kernel's code depends on besides the target.
struct DepthwiseForm {
  static constexpr std::string_view name = "depthwise";
  using Arguments = const DepthwiseArguments;

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
  std::vector<DepthwiseBlock> blocks{};

  static constexpr auto fields() {
    return std::tuple(field("filter_rows", &DepthwiseForm::rows),
                      field("row_stride", &DepthwiseForm::row_stride),
                      field("k_groups", &DepthwiseForm::dwords),
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
  int input_rows(const DepthwiseBlock& block) const {
    return (block.outputs - 1) * row_stride + rows;
  }
  /// Sums that are under way at a time.
  int sums() const { return (rows + row_stride - 1) / row_stride; }
};

/// Whether code of that form can be made.
bool fits(const DepthwiseForm& form, const Target& target);
/// Dwords of weights that an output channel has: by row and dword; then, with VNNI, its zero point
/// in the bytes of each dword's taps; as signed bytes, or as unsigned ones of signed input. A dword
/// of which no window sums are made has weights less their zero point. Without VNNI each dword of
/// four taps is two of words: the even taps, and the odd ones.
int weight_dwords(const DepthwiseForm& form, const Target& target);

/// Column positions that differ in their place alone: each makes up to 16 neighbouring outputs.
struct DepthwiseColumns {
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
  /// To the first one, from the block that would come behind the blocks before; in a channel's
  /// first blocks from its image.
  int64_t input = 0;
  int64_t output = 0;
  int64_t input_block_step = 0;
  int64_t output_block_step = 0;
  int64_t input_column_step = 0;  ///< from a column position to the next, behind the last row
  int64_t output_column_step = 0;
  const DepthwiseColumns* columns = nullptr;
  const DepthwiseColumns* columns_end = nullptr;  ///< behind at least one
  const uint64_t* rows_loaded = nullptr;  ///< bytes of each guarded row that lie in the image
  int64_t prefetched = 0;  ///< how far ahead of stores lines of the cache are asked for
};

/// The argument of the kernel's code. Steps in bytes.
struct DepthwiseArguments {
  const std::byte* input = nullptr;  ///< image of the first channel
  int64_t input_row_step = 0;
  int64_t input_channel_step = 0;  ///< from behind the last block
  int64_t output = 0;  ///< address of the first channel's first output
  int64_t output_row_step = 0;
  int64_t output_channel_step = 0;
  const DepthwiseBlocks* blocks = nullptr;
  const DepthwiseBlocks* blocks_end = nullptr;  ///< behind at least one
  const int32_t* weights = nullptr;             ///< by channel
  const int32_t* weights_end = nullptr;
  const int32_t* start = nullptr;  ///< value of the sums, by channel
  uint64_t padding = 0;            ///< the input's zero point, as the image has it, in each byte
  /// Of an epilogue, by operand, at the first channel's output: that one is not written then.
  /// `output` and all its steps, but for those of column positions, count elements of a channel.
  const EpilogueOperand* epilogue = nullptr;
};

/// Whether registers and masks are enough for an epilogue, and the code of all stores is probably
/// not too long.
bool may_apply(const TileEpilogue& epilogue, const DepthwiseForm& form, const Target& target);

/// Emits the kernel. A pure function of its arguments. `form` fits the target. `epilogue` may be
/// null; one that needs more registers or stack than there are, or makes the code too long, is
/// refused (unsupported). With one outputs are not added to.
Result<MachineCode> emit_kernel(const DepthwiseForm& form, const Target& target,
                                const TileEpilogue* epilogue = nullptr);

}  // namespace castor::jit
