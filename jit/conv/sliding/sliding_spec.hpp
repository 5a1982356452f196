// SPDX-License-Identifier: Apache-2.0
// Specs and arguments of the kernels of depthwise and grouped convolutions. Both kernels go down
// the rows of a row range and multiply each input row by all rows of the filter, into the
// accumulators of all outputs that take it: so a row is loaded and shuffled once. Padding is the
// input's zero point: loads of border pixels are masked.
//
// depthwise, NCHW: lanes are output pixels. At each column position a shuffle gives every lane four
// adjacent taps of its pixel, a k group. Shuffles come in a table, so that one kernel serves images
// of many sizes.
//
// grouped_nhwc: lanes are adjacent output channels. At each place the kernel makes a few
// neighbouring outputs of every row, from the pixels that these take. A k group holds, where a
// group has one channel, four neighbouring pixels of the lane's channel, else channels of one pixel
// of the lane's group. Weights of an output are packed to where its taps are in a k group, beside
// zeros.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "ir/support/result.hpp"
#include "jit/code.hpp"
#include "jit/conv/dot_product.hpp"
#include "jit/conv/epilogue/epilogue.hpp"
#include "jit/emit/emit_options.hpp"
#include "jit/kernel/spec.hpp"
#include "jit/target.hpp"

namespace castor::jit {

/// A row range for which a kernel has code. In NCHW an input row may stand for several rows of the
/// image, whose pixels share a vector.
struct RowRange {
  int outputs = 1;  ///< output rows
  /// Input rows above the image; then, in NCHW, border rows, which are masked; the same from below.
  int above = 0;
  int border_above = 0;
  int border_below = 0;
  int below = 0;
  bool masks_rows = false;  ///< border rows stand for several, some of which are in the image

  static constexpr auto fields(const auto& list) {
    return list(field("outputs", &RowRange::outputs), field("above", &RowRange::above),
                field("border_above", &RowRange::border_above),
                field("border_below", &RowRange::border_below), field("below", &RowRange::below),
                field("masks_rows", &RowRange::masks_rows));
  }
};

/// What the code of both kernels depends on besides the target.
struct SlidingSpec {
  static constexpr int max_filter_rows = 16;

  ProductEngine engine = ProductEngine::u8_i8_dot;
  int rows = 1;               ///< of the filter, at most max_filter_rows
  int row_stride = 1;         ///< input rows between consecutive output rows, at most as many
  bool flips_input = false;   ///< sign flip of i8
  bool signed_input = false;  ///< i8 by u8 weights; with VNNI
  /// Whether the zero-point compensation is subtracted: window sums times zero points; with VNNI.
  bool subtracts_window_sums = false;
  bool adds = false;  ///< to outputs that are there
  std::vector<RowRange> ranges{};

  int input_rows(const RowRange& range) const { return (range.outputs - 1) * row_stride + rows; }
  /// Whether an input row of a range is padding altogether.
  bool is_outside(const RowRange& range, int row) const {
    return row < range.above || row >= input_rows(range) - range.below;
  }
  /// The first output row of a range that takes an input row, and the last one, which may be before
  /// it. Rows are counted from the first that any output takes; output o takes those from
  /// o * row_stride on.
  int first_output(int row) const { return row < rows ? 0 : (row - rows) / row_stride + 1; }
  int last_output(const RowRange& range, int row) const {
    return std::min(row / row_stride, range.outputs - 1);
  }
  /// Output rows whose accumulators are in use at a time.
  int sum_rows() const { return (rows + row_stride - 1) / row_stride; }
  bool sums_window_of(int) const { return subtracts_window_sums; }
  bool has_pairs() const { return engine == ProductEngine::i16_pairs; }

 protected:
  /// The fields of a spec that adds its own between these.
  template <class Spec>
  static constexpr auto with_fields(const auto& list, const auto&... own) {
    return list(field<Spec, ProductEngine>("engine", &SlidingSpec::engine),
                field<Spec, int>("filter_rows", &SlidingSpec::rows),
                field<Spec, int>("row_stride", &SlidingSpec::row_stride), own...,
                field<Spec, bool>("sign_flip", &SlidingSpec::flips_input),
                field<Spec, bool>("signed_input", &SlidingSpec::signed_input),
                field<Spec, bool>("subtracts_window_sums", &SlidingSpec::subtracts_window_sums),
                field<Spec, bool>("adds", &SlidingSpec::adds),
                field<Spec, std::vector<RowRange>>("blocks", &SlidingSpec::ranges));
  }
};

struct DepthwiseArguments;

struct DepthwiseSpec : SlidingSpec {
  static constexpr std::string_view name = "depthwise";
  using Base = SlidingSpec;
  using Arguments = const DepthwiseArguments;

  int k_groups = 1;  ///< of four taps, in a row of the filter
  /// Whether the last of them is one tap, four times. Its weight less the zero point has nine bits:
  /// where window sums are subtracted, of unsigned input, i8 weights add up to it.
  bool repeats_last_tap = false;
  int source_bytes = 64;   ///< that are read of a row at a time: 32 or 64
  int prefetch_bytes = 0;  ///< how far ahead of sources the input is prefetched; 0: it is not

  static constexpr auto fields(const auto& list) {
    return with_fields<DepthwiseSpec>(list, field("k_groups", &DepthwiseSpec::k_groups),
                                      field("repeats_last_tap", &DepthwiseSpec::repeats_last_tap),
                                      field("source_bytes", &DepthwiseSpec::source_bytes),
                                      field("prefetch_bytes", &DepthwiseSpec::prefetch_bytes));
  }

  /// As GroupedNhwcSpec has it, with one output at a place.
  static constexpr int outputs = 1;
  bool takes(int, int) const { return true; }
  bool sums_window_of(int k_group) const {
    const bool has_all = repeats_last_tap && !signed_input && k_group + 1 == k_groups;
    return subtracts_window_sums && !has_all;
  }
  int row_weights() const { return k_groups; }
  int weight_of(int, int k_group) const { return k_group; }
  int zero_points() const { return k_groups; }
  int zero_point_of(int, int k_group) const { return k_group; }
  int orders() const { return 0; }
  int weight_parts() const { return has_pairs() ? 2 : 1; }
};

struct GroupedNhwcArguments;

struct GroupedNhwcSpec : SlidingSpec {
  static constexpr std::string_view name = "grouped_nhwc";
  using Base = SlidingSpec;
  using Arguments = const GroupedNhwcArguments;

  static constexpr int max_pixels = 8;
  static constexpr int max_outputs = 4;
  static constexpr int max_k_groups = 8;
  static constexpr int pixel_bytes = 16;  ///< that are read of a pixel for a vector

  int columns = 1;           ///< of the filter
  int column_stride = 1;     ///< input pixels from an output to its neighbour
  int outputs = 1;           ///< neighbours that are made at a place
  int k_groups = 0;          ///< of a pixel of a group; 0: a group has one channel
  bool repeats = false;      ///< one channel in a group, but several outputs of each
  bool is_partial = false;   ///< fewer input channels than pixel_bytes; with AVX-512
  bool masks_lanes = false;  ///< vectors may have fewer new channels than lanes

  static constexpr auto fields(const auto& list) {
    return with_fields<GroupedNhwcSpec>(list, field("filter_columns", &GroupedNhwcSpec::columns),
                                        field("column_stride", &GroupedNhwcSpec::column_stride),
                                        field("outputs", &GroupedNhwcSpec::outputs),
                                        field("k_groups", &GroupedNhwcSpec::k_groups),
                                        field("repeats", &GroupedNhwcSpec::repeats),
                                        field("is_partial", &GroupedNhwcSpec::is_partial),
                                        field("masks_lanes", &GroupedNhwcSpec::masks_lanes));
  }

  /// Whether k groups hold neighbouring pixels of one channel.
  bool is_depthwise() const { return k_groups == 0; }
  /// Whether all code is masked: where few bytes are read, and where many products make masks
  /// cheap, but code long.
  bool always_masks() const { return is_partial || k_groups > 1; }
  /// Input pixels that a place takes of a row.
  int pixels() const { return (outputs - 1) * column_stride + columns; }
  /// Whether any output takes a pixel.
  bool is_taken(int pixel) const { return pixel % column_stride < columns; }
  /// K groups of a place and a row.
  int row_k_groups() const { return is_depthwise() ? (pixels() + 3) / 4 : pixels() * k_groups; }
  /// Whether an output has taps in a k group.
  bool takes(int output, int k_group) const {
    const int first = output * column_stride;
    if (is_depthwise()) return first < 4 * k_group + 4 && first + columns > 4 * k_group;
    return first <= k_group / k_groups && k_group / k_groups < first + columns;
  }
  /// Products of a place and a row of the filter.
  int products() const { return products_before(row_k_groups(), 0); }
  /// Weights of a row of the filter, in vectors: depthwise by k group, then by output that takes
  /// it; else by column, then by k group.
  int row_weights() const { return is_depthwise() ? products() : columns * k_groups; }
  int weight_of(int output, int k_group) const {
    return is_depthwise() ? products_before(k_group, output)
                          : k_group - output * column_stride * k_groups;
  }
  /// Zero points of weights: of each weight of a row, or of each k group of a pixel.
  int zero_points() const { return is_depthwise() ? products() : k_groups; }
  int zero_point_of(int output, int k_group) const {
    return is_depthwise() ? weight_of(output, k_group) : k_group % k_groups;
  }
  /// Vectors that say which lane has which bytes.
  int orders() const { return is_depthwise() ? int{repeats} : k_groups; }
  int weight_parts() const { return has_pairs() && is_depthwise() ? 2 : 1; }

 private:
  /// In the order of depthwise weights.
  int products_before(int k_group, int output) const {
    int count = 0;
    for (int k = 0; k <= k_group; ++k) {
      for (int i = 0; i < (k < k_group ? outputs : output); ++i) count += takes(i, k);
    }
    return count;
  }
};

/// Lanes (depthwise) or vectors (grouped NHWC) of a panel: orders; weights by row, then weight, of
/// i16 pairs of adjacent taps the even ones and the odd ones in two parts; of bytes zero points, as
/// bytes where the weights of a row have taps.
template <class Spec>
int panel_size(const Spec& spec) {
  return spec.orders() + spec.rows * spec.row_weights() * spec.weight_parts() +
         (spec.has_pairs() ? 0 : spec.zero_points());
}
/// What the code reads of it: all, or what is before the zero points.
template <class Spec>
int read_panel_size(const Spec& spec) {
  const bool has_unread = !spec.has_pairs() && !spec.subtracts_window_sums;
  return panel_size(spec) - (has_unread ? spec.zero_points() : 0);
}

/// Column positions that differ in their offset alone: each makes up to 16 neighbouring outputs.
struct ColumnPositions {
  static constexpr int max_lanes = 16;
  static constexpr int max_k_groups = 4;
  int64_t count = 0;
  int64_t input = 0;                       ///< bytes from the row's first pixel to the source
  int64_t output = 0;                      ///< from the row's first output, as steps of outputs
  uint64_t loaded = 0;                     ///< bytes of the source that are in the image
  uint64_t taken[max_k_groups] = {};       ///< bytes of each shuffle that are; others are padding
  uint64_t stored = 0;                     ///< lanes that are outputs: the first ones
  uint8_t shuffle[max_k_groups][64] = {};  ///< bytes of the source; without VBMI of `pieces`
  int32_t pieces[max_k_groups][16] = {};   ///< 32-bit parts of the source
};

/// A row range at its place in a plane. Offsets and steps in bytes.
struct DepthwiseRange {
  int64_t range = 0;  ///< index of its code in the spec
  int64_t row = 0;    ///< the first output row
  int64_t input = 0;  ///< from the image's first pixel to the range's first row
  int64_t output = 0;
  int64_t input_column_step = 0;  ///< from a column position to the next, after the last row
  int64_t output_column_step = 0;
  int64_t columns = 0;      ///< to its column positions
  int64_t rows_loaded = 0;  ///< to its border rows' masks
};

/// The argument of a depthwise kernel. Steps in bytes; with an epilogue those of the output in
/// elements of a channel.
struct DepthwiseArguments {
  const std::byte* input = nullptr;  ///< image of the first channel
  int64_t input_row_step = 0;
  int64_t input_channel_step = 0;
  int64_t output = 0;  ///< address of the first channel's first output
  int64_t output_row_step = 0;
  int64_t output_channel_step = 0;
  int64_t prefetched = 0;  ///< how far ahead of stores outputs are prefetched
  const DepthwiseRange* ranges = nullptr;
  const DepthwiseRange* ranges_end = nullptr;  ///< after at least one
  const ColumnPositions* columns = nullptr;
  int64_t column_count = 0;               ///< of each range, at least 1
  const uint64_t* rows_loaded = nullptr;  ///< bytes of border rows that are in the image
  const int32_t* weights = nullptr;       ///< panels by channel
  const int32_t* weights_end = nullptr;
  const int32_t* start = nullptr;             ///< of the accumulators, by channel
  uint64_t padding = 0;                       ///< the input's zero point in each byte
  const EpilogueOperand* epilogue = nullptr;  ///< its operands at the first channel's output
};

/// A place: neighbouring outputs of a row.
struct NhwcPlace {
  int64_t input = 0;     ///< bytes from the row's first pixel to the first one that is taken
  int64_t output = 0;    ///< outputs, from the row's first one
  int64_t is_inner = 0;  ///< whether all pixels are in the image, and all outputs are there
  /// Mask of each pixel, 0 outside the image: the 32-bit lanes of its k group, or all; of fewer
  /// channels than pixel_bytes, its bytes.
  uint16_t loaded[GroupedNhwcSpec::max_pixels] = {};
  uint16_t stored[GroupedNhwcSpec::max_outputs] = {};  ///< of each output all lanes, or none
  /// Bytes from the first pixel to each; of those outside the image, to one that is in it: a masked
  /// load from a page that is not there takes hundreds of cycles.
  int64_t offsets[GroupedNhwcSpec::max_pixels] = {};
};

/// Adjacent output channels of a vector.
struct NhwcVector {
  int32_t lanes_mask[8] = {};  ///< -1 in each of `lanes`, of vectors of 8
  int64_t input = 0;           ///< the first channel of x that is read
  int64_t channel = 0;         ///< the first output channel
  uint32_t lanes = 0;          ///< a bit for each that no vector before has
  /// Channels of the vector, those of vectors before it among them.
  int channels() const { return static_cast<int>(std::bit_width(lanes)); }
};

/// The argument of a grouped NHWC kernel: one row range. Steps in bytes, but with an epilogue those
/// of the output in pixels.
struct GroupedNhwcArguments {
  int64_t range = 0;                 ///< index in the spec
  const std::byte* input = nullptr;  ///< first channel of x, of the range's first row
  int64_t pixel_step = 0;            ///< from a pixel that is taken to the next
  int64_t row_step = 0;
  /// Address of the first pixel's first channel of all; with an epilogue the pixel's number.
  int64_t output = 0;
  int64_t output_pixel_step = 0;  ///< of the row's pixels
  int64_t output_step = 0;        ///< from an output of a place to its neighbour
  int64_t output_row_step = 0;
  int64_t prefetched = 0;  ///< how far ahead of stores outputs are prefetched
  const NhwcPlace* places = nullptr;
  const NhwcPlace* places_end = nullptr;  ///< after at least one
  const int32_t* weights = nullptr;       ///< panel of the first vector
  const int32_t* start = nullptr;         ///< of the accumulators, by output channel of all
  const NhwcVector* vectors = nullptr;
  const NhwcVector* vectors_end = nullptr;    ///< after at least one
  const std::byte* padding = nullptr;         ///< the input's zero point in each of 16 bytes
  int64_t first_channel = 0;                  ///< where the epilogue's operands begin
  const EpilogueOperand* epilogue = nullptr;  ///< only with one: its operands at pixel 0
};

/// Whether code of that spec can be made.
bool fits(const DepthwiseSpec& spec, const Target& target);
bool fits(const GroupedNhwcSpec& spec, const Target& target);

/// Whether registers and masks are enough for an epilogue: along pixels (depthwise) or channels.
bool may_apply(const TileEpilogue& epilogue, const DepthwiseSpec& spec, const Target& target);
bool may_apply(const TileEpilogue& epilogue, const GroupedNhwcSpec& spec, const Target& target);

/// Emits a kernel. A pure function of its arguments. `spec` fits the target. `epilogue` may be
/// null; else there is room for it.
Result<MachineCode> emit_kernel(const DepthwiseSpec& spec, const Target& target,
                                const TileEpilogue* epilogue = nullptr,
                                const EmitOptions& options = {});
Result<MachineCode> emit_kernel(const GroupedNhwcSpec& spec, const Target& target,
                                const TileEpilogue* epilogue = nullptr,
                                const EmitOptions& options = {});

}  // namespace castor::jit
