// SPDX-License-Identifier: Apache-2.0
#include "jit/code_section.hpp"

#include <fmt/format.h>

#include <array>

namespace castor::jit {

namespace {

using Kind = SectionKind;

constexpr std::array<SectionInfo, code_section_count> rows = {{
    {CodeSection::none, Kind::none, "", "No section was named."},
    {CodeSection::entry, Kind::frame, "entry",
     "Saves registers, makes room on the stack and loads what the call passes."},
    {CodeSection::exit, Kind::frame, "exit",
     "Restores the caller's registers and stack, and returns."},
    {CodeSection::float_state, Kind::frame, "float state",
     "Saves the caller's MXCSR, sets the one that results are defined for, or restores it."},
    {CodeSection::tile_configuration, Kind::frame, "tile configuration",
     "Keeps the caller's configuration of tile registers, sets the kernel's, or restores it."},
    {CodeSection::constants, Kind::frame, "constants",
     "Loads constants that stay in registers across the loops."},
    {CodeSection::axis_loop, Kind::control, "loop over axis",
     "Counts the iterations of an outer axis."},
    {CodeSection::axis_step, Kind::address, "step along axis",
     "Moves each operand's pointer to the next row along an outer axis."},
    {CodeSection::innermost_axis, Kind::control, "innermost axis",
     "Begins a row: its extent, and index 0."},
    {CodeSection::period_steps, Kind::frame, "steps within a period",
     "Computes how far an iteration and a chunk move within a period."},
    {CodeSection::main_loop, Kind::control, "main loop",
     "Repeats whole iterations while enough elements are left."},
    {CodeSection::next_iteration, Kind::control, "next iteration",
     "Goes on to the next iteration's elements, and compares with the last one."},
    {CodeSection::tile_of_bits, Kind::control, "next tile",
     "Begins a tile of sub-byte elements, which are unpacked to windows."},
    {CodeSection::before_alignment, Kind::control, "elements before the first aligned store",
     "Counts the elements up to the first address that streaming stores may use."},
    {CodeSection::tail, Kind::control, "tail",
     "Runs the elements after the main loop, chunk by chunk."},
    {CodeSection::next_group, Kind::control, "next group",
     "Begins a group of sub-byte elements that share bytes."},
    {CodeSection::next_chunk, Kind::control, "next chunk",
     "Counts the elements of a chunk of the tail, and makes its mask."},
    {CodeSection::row_blocks, Kind::control, "blocks of rows",
     "Counts blocks of short rows that are folded together."},
    {CodeSection::fill_window, Kind::load, "fill the window of operand",
     "Unpacks sub-byte elements to bytes on the stack."},
    {CodeSection::drain_window, Kind::store, "drain the window of operand",
     "Packs bytes from the stack to sub-byte elements."},
    {CodeSection::code_on_stack, Kind::load, "code on the stack of operand",
     "Unpacks the one code that a whole row reads."},
    {CodeSection::table_registers, Kind::load, "registers of table",
     "Loads a table into registers, for all elements of a row."},
    {CodeSection::fill_staging, Kind::load, "copy to the staging buffer of operand",
     "Copies a chunk's elements one by one to the stack."},
    {CodeSection::drain_staging, Kind::store, "copy from the staging buffer of operand",
     "Copies a chunk's elements one by one from the stack."},
    {CodeSection::once, Kind::compute, "once", "Computes what does not change in the whole nest."},
    {CodeSection::once_per_row, Kind::compute, "once per row",
     "Computes what does not change in a row."},
    {CodeSection::chunk, Kind::compute, "chunk", "Runs the lane program on one chunk of elements."},
    {CodeSection::partial_results, Kind::compute, "partial results",
     "Sets or keeps the partial results that a row is folded into."},
    {CodeSection::fold_results, Kind::compute, "fold partial results",
     "Folds partial results into one element, or a vector of elements, in memory."},
    {CodeSection::row_table, Kind::compute, "look up codes",
     "Looks up a row's codes in the table that the lane program made.", true},
    {CodeSection::scale_check, Kind::compute, "check scales",
     "Leaves scales with which results might not be normal numbers to the lane program.", true},
    {CodeSection::scale_table, Kind::compute, "products of a scale",
     "Multiplies a scale, or those of four blocks, by each significand that codes have.", true},
    {CodeSection::scaled_codes, Kind::compute, "scale codes",
     "Looks up codes as words, and adds the products that these number.", true},
    {CodeSection::encoded_products, Kind::compute, "encode products",
     "Encodes products by powers of two from bytes with exponents and mantissas.", true},
    {CodeSection::subnormal_codes, Kind::compute, "codes of small results",
     "Encodes groups that have results which are no normal numbers, or too large."},
    {CodeSection::packed_copy, Kind::compute, "copy bytes",
     "Copies the bytes of sub-byte elements that are stored as they are."},
    {CodeSection::moved_bits, Kind::compute, "move bits",
     "Multiplies bytes of sub-byte elements by matrices of bits, which make bytes of the result."},
    {CodeSection::deferred, Kind::compute, "division by what has no good reciprocal",
     "Divides where the product with the reciprocal would not be exact; seldom run."},
    {CodeSection::tile_loop, Kind::control, "loop over register tiles",
     "Goes on to the next register tile."},
    {CodeSection::group_loop, Kind::control, "loop over k groups",
     "Goes on to the next k group's plane."},
    {CodeSection::k_loop, Kind::control, "loop over k steps",
     "Reads the next k step's offset, and counts k steps."},
    {CodeSection::peeled_k_loop, Kind::control, "peeled k steps",
     "Counts the last k steps, which are done row group by row group."},
    {CodeSection::first_values, Kind::load, "first values",
     "Loads what accumulators begin with: corrections by zero points."},
    {CodeSection::load_pixels, Kind::load, "load pixels", "Loads pixels of the input.", true},
    {CodeSection::load_weights, Kind::load, "load weights", "Loads weights.", true},
    {CodeSection::products, Kind::compute, "products",
     "Multiplies a broadcast operand by vectors, and adds to accumulators.", true},
    {CodeSection::pixels_in_order, Kind::compute, "pixels in order",
     "Puts accumulators in the order of pixels, once a tile."},
    {CodeSection::window_sums, Kind::compute, "window sums",
     "Adds up the inputs of each receptive field.", true},
    {CodeSection::compensation, Kind::compute, "zero-point compensation",
     "Subtracts window sums times the weights' zero points.", true},
    {CodeSection::prefetch, Kind::load, "prefetch", "Prefetches cache lines that are used soon.",
     true},
    {CodeSection::output_address, Kind::address, "output address",
     "Computes where accumulators are stored.", true},
    {CodeSection::stored_lanes, Kind::address, "stored lanes", "Makes the mask of stored lanes.",
     true},
    {CodeSection::compression, Kind::compute, "compression",
     "Moves the stored lanes to the front of their vectors.", true},
    {CodeSection::staging, Kind::store, "staging buffer",
     "Stores accumulators to the stack, where the epilogue or a transposition reads them."},
    {CodeSection::staging_loop, Kind::control, "loop over the staging buffer",
     "Counts rows or channels of the staging buffer."},
    {CodeSection::transposition, Kind::compute, "transposition",
     "Transposes channels of pixels to pixels of channels."},
    {CodeSection::stores, Kind::store, "stores", "Stores results.", true},
    {CodeSection::slice, Kind::control, "slice of results",
     "Leaves the results of a tile for its next products, or goes on with them.", true},
    {CodeSection::channel_loop, Kind::control, "loop over channels",
     "Goes on to the next channel, or vector of channels."},
    {CodeSection::range_loop, Kind::control, "loop over row ranges",
     "Chooses the code of a row range, and goes on to the next one."},
    {CodeSection::column_loop, Kind::control, "loop over columns",
     "Goes on to the next vector of pixels, or group of pixels, of a row range."},
    {CodeSection::gather, Kind::compute, "gather",
     "Brings the taps of a k group together in each lane, with padding and signs.", true},
    {CodeSection::next_row, Kind::address, "next row", "Goes on to the next row.", true},
    {CodeSection::epilogue_operands, Kind::address, "operands of the epilogue",
     "Computes addresses of the epilogue's operands.", true},
    {CodeSection::epilogue, Kind::compute, "epilogue",
     "Runs the fused operations on a vector of accumulators."},
    {CodeSection::packed_results, Kind::store, "packed results",
     "Stores 8-bit results, which are packed from several vectors.", true},
    {CodeSection::row_loop, Kind::control, "loop over rows", "Goes on to the next row."},
    {CodeSection::vector_loop, Kind::control, "loop over vectors",
     "Goes on to the next packed vector, and loads its masks."},
    {CodeSection::weights_loop, Kind::control, "loop over weights",
     "Goes on to the next k groups of sixteen channels."},
    {CodeSection::receptive_fields, Kind::compute, "receptive fields",
     "Brings together the taps of a k group (im2col).", true},
    {CodeSection::interleave, Kind::compute, "interleave",
     "Interleaves channels, columns or rows by shuffles.", true},
    {CodeSection::exchange_lanes, Kind::compute, "exchange lanes",
     "Exchanges lanes between vectors, one round of a transposition.", true},
    {CodeSection::sum_weights, Kind::compute, "sums of weights",
     "Adds up each channel's weights, for the input's zero point.", true},
    {CodeSection::look_up, Kind::compute, "look up", "Looks up bytes in a table in registers.",
     true},
    {CodeSection::choice, Kind::control, "choice of the copy",
     "Compares strides and extents with those that blocks are for."},
    {CodeSection::copy_loop, Kind::control, "loop over blocks",
     "Counts blocks or elements of a copy, and goes on to the next."},
    {CodeSection::load_block, Kind::load, "load a block", "Loads the rows of a block.", true},
    {CodeSection::elements, Kind::load, "copy elements", "Copies single elements.", true},
}};

constexpr bool are_in_order() {
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].section != static_cast<CodeSection>(i)) return false;
  }
  return true;
}
static_assert(are_in_order());

}  // namespace

std::string_view name_of(SectionKind kind) {
  constexpr std::array<std::string_view, 7> names = {"none", "frame",   "control", "address",
                                                     "load", "compute", "store"};
  return names.at(static_cast<size_t>(kind));
}

std::span<const SectionInfo, code_section_count> code_sections() { return rows; }

const SectionInfo& info(CodeSection section) { return rows.at(static_cast<size_t>(section)); }

std::string text_of(CodeSection section, int number) {
  const std::string_view name = info(section).name;
  return number < 0 ? std::string(name) : fmt::format("{} {}", name, number);
}

}  // namespace castor::jit
