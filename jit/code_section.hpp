// SPDX-License-Identifier: Apache-2.0
// What a stretch of machine code is for: the sections that emitters name while they emit it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace castor::jit {

/// The sections of all kernels; `code_sections()` says what each one does.
enum class CodeSection : uint8_t {
  none,  ///< code whose emitter named no section: a mistake
  // the frame of every kernel
  entry,
  exit,
  float_state,
  tile_configuration,
  constants,
  // loops of a nest
  axis_loop,
  axis_step,
  innermost_axis,
  period_steps,
  main_loop,
  next_iteration,
  tile_of_bits,
  before_alignment,
  tail,
  next_group,
  next_chunk,
  row_blocks,
  // operands of a nest
  fill_window,
  drain_window,
  code_on_stack,
  table_registers,
  fill_staging,
  drain_staging,
  // what a nest computes
  once,
  once_per_row,
  chunk,
  partial_results,
  fold_results,
  row_table,
  scale_check,
  scale_table,
  scaled_codes,
  encoded_products,
  subnormal_codes,
  packed_copy,
  moved_bits,
  deferred,
  // microkernels
  tile_loop,
  group_loop,
  k_loop,
  peeled_k_loop,
  first_values,
  load_pixels,
  load_weights,
  products,
  pixels_in_order,
  window_sums,
  compensation,
  prefetch,
  output_address,
  stored_lanes,
  compression,
  staging,
  staging_loop,
  transposition,
  stores,
  slice,
  // sliding kernels
  channel_loop,
  range_loop,
  column_loop,
  gather,
  next_row,
  // epilogues
  epilogue_operands,
  epilogue,
  packed_results,
  // packing, look-ups and copies
  row_loop,
  vector_loop,
  weights_loop,
  receptive_fields,
  interleave,
  exchange_lanes,
  sum_weights,
  look_up,
  choice,
  copy_loop,
  load_block,
  elements,
};
inline constexpr int code_section_count = static_cast<int>(CodeSection::elements) + 1;

/// What kind of work a section is, for summaries and colours.
enum class SectionKind : uint8_t { none, frame, control, address, load, compute, store };
std::string_view name_of(SectionKind kind);

/// One row of the table of sections.
struct SectionInfo {
  CodeSection section;
  SectionKind kind;
  std::string_view name;
  std::string_view meaning;  ///< one sentence
  /// Whether it is a step within other sections, of a few instructions: listings name it beside
  /// them.
  bool is_step = false;
};
/// All rows, in the order of the enum.
std::span<const SectionInfo, code_section_count> code_sections();
const SectionInfo& info(CodeSection section);

/// "chunk 2"; `number` is left out where it is negative.
std::string text_of(CodeSection section, int number);

}  // namespace castor::jit
