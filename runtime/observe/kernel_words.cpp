// SPDX-License-Identifier: Apache-2.0
// Names of the code of convolutions, of packers, of look-ups and of copies.
#include <fmt/format.h>

#include "runtime/observe/code_name.hpp"

namespace castor {

namespace {

std::string_view text_of(jit::WindowSums sums) {
  switch (sums) {
    case jit::WindowSums::none: return "";
    case jit::WindowSums::dwords: return "_dword_sums";
    case jit::WindowSums::words: return "_word_sums";
  }
  return "";
}

std::string_view text_of(jit::PixelSource source) {
  switch (source) {
    case jit::PixelSource::planes: return "";
    case jit::PixelSource::input: return "_of_input";
    case jit::PixelSource::signed_input: return "_of_signed_input";
  }
  return "";
}

std::string line(std::string_view name, int64_t value) {
  return fmt::format("  {:<22}{}\n", name, value);
}

std::string_view word_if(bool condition, std::string_view word) { return condition ? word : ""; }

std::string text_of_last_taps(int last_taps) {
  return last_taps > 0 ? fmt::format("_last_{}", last_taps) : "";
}

}  // namespace

KernelWords words_of(const jit::ConvTile& tile) {
  return {fmt::format("conv_pixels_{}x{}{}{}{}{}{}{}", tile.channels, tile.vectors,
                      text_of(tile.window_sums), word_if(tile.has_gaps, "_gaps"),
                      text_of_last_taps(tile.last_taps),
                      word_if(tile.prefetches_output, "_prefetching"), text_of(tile.source),
                      word_if(tile.loops_k_groups, "_k_groups")),
          true,
          line("channels", tile.channels) + line("vectors of pixels", tile.vectors) +
              line("window sums", static_cast<int>(tile.window_sums)) +
              line("has gaps", tile.has_gaps) + line("last taps", tile.last_taps) +
              line("prefetches output", tile.prefetches_output) +
              line("source", static_cast<int>(tile.source)) +
              line("loops over k groups", tile.loops_k_groups)};
}

KernelWords words_of(const jit::ChannelTile& tile) {
  return {fmt::format("conv_channels_{}_{}x{}_steps_{}_{}{}{}{}", tile.channels, tile.rows,
                      tile.columns, tile.pixel_step, tile.row_step, text_of(tile.window_sums),
                      word_if(tile.turns, "_turned"), text_of_last_taps(tile.last_taps)),
          true,
          line("channels", tile.channels) + line("rows", tile.rows) +
              line("columns", tile.columns) + line("bytes to next column", tile.pixel_step) +
              line("bytes to next row", tile.row_step) +
              line("window sums", static_cast<int>(tile.window_sums)) + line("turns", tile.turns) +
              line("last taps", tile.last_taps)};
}

KernelWords words_of(const jit::DepthwiseForm& form) {
  std::string parameters =
      line("filter rows", form.rows) + line("row stride", form.row_stride) +
      line("dwords", form.dwords) + line("repeats the last tap", form.repeats_last_tap) +
      line("dword step", form.dword_step) + line("source bytes", form.source_bytes) +
      line("flips input", form.flips_input) + line("signed input", form.signed_input) +
      line("subtracts window sums", form.subtracts_window_sums) + line("adds", form.adds);
  for (const jit::DepthwiseBlock& block : form.blocks) {
    parameters +=
        fmt::format("  block  {} outputs, above {} + {} guarded, below {} + {} guarded{}\n",
                    block.outputs, block.above, block.guarded_above, block.below,
                    block.guarded_below, word_if(block.masks_rows, ", masked"));
  }
  return {
      fmt::format("depthwise_rows{}_stride{}_dwords{}", form.rows, form.row_stride, form.dwords),
      false, std::move(parameters)};
}

KernelWords words_of(const jit::GroupedNhwcForm& form) {
  std::string parameters =
      line("filter rows", form.rows) + line("row stride", form.row_stride) +
      line("filter columns", form.columns) + line("column stride", form.column_stride) +
      line("outputs", form.outputs) + line("parts", form.parts) + line("repeats", form.repeats) +
      line("is partial", form.is_partial) + line("masks lanes", form.masks_lanes) +
      line("flips input", form.flips_input) + line("signed input", form.signed_input) +
      line("subtracts window sums", form.subtracts_window_sums) + line("adds", form.adds);
  for (const jit::GroupedNhwcBlock& block : form.blocks) {
    parameters += fmt::format("  block  {} outputs, above {}, below {}\n", block.outputs,
                              block.above, block.below);
  }
  return {fmt::format("grouped_nhwc_{}x{}_stride{}x{}_outputs{}", form.rows, form.columns,
                      form.row_stride, form.column_stride, form.outputs),
          false, std::move(parameters)};
}

KernelWords words_of(const jit::WeightUnit& unit) {
  return {fmt::format("pack_weights_{}x{}_step{}", unit.positions, unit.parts, unit.input_step),
          true,
          line("positions", unit.positions) + line("parts", unit.parts) +
              line("input step", unit.input_step)};
}

KernelWords words_of(const jit::PlaneForm& form) {
  return {fmt::format("fill_planes_stride{}{}{}", form.column_stride,
                      word_if(form.is_plain, "_plain"), word_if(form.holds_columns, "_columns")),
          true,
          line("column stride", form.column_stride) + line("is plain", form.is_plain) +
              line("holds columns", form.holds_columns)};
}

KernelWords words_of(const jit::WindowForm& form) {
  return {fmt::format("fill_windows_{}x{}_stride{}_dilation{}", form.rows, form.columns,
                      form.column_stride, form.dilation),
          true,
          line("rows", form.rows) + line("columns", form.columns) +
              line("column stride", form.column_stride) + line("dilation", form.dilation)};
}

KernelWords words_of(const TileCopyForm& form) {
  return {fmt::format("copy_tile_{}_byte_elements", form.element_bytes), true,
          line("bytes of an element", form.element_bytes)};
}

KernelWords words_of(const ByteTableForm&) {
  return {"byte_table", true, line("entries of the table", 256)};
}

std::string code_name(const KernelWords& words, const jit::Target* target,
                      const jit::TileEpilogue* epilogue, std::string_view key) {
  const std::string front = words.name + (epilogue == nullptr ? "" : "_epilogue");
  const std::string_view tier = target == nullptr ? "" : jit::name_of(target->tier);
  return bounded_name(front, tier, words.says_all && epilogue == nullptr, key);
}

}  // namespace castor
