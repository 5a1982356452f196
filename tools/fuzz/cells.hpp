// SPDX-License-Identifier: Apache-2.0
// What the fuzzer wants to have tried at least once: the table of coverage cells. Every cell
// counts once for each tier.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/op.hpp"
#include "ir/shape/broadcast.hpp"
#include "ir/shape/convolution.hpp"
#include "ir/types/convert_options.hpp"
#include "jit/plan/nest.hpp"
#include "tools/fuzz/requantize_cells.hpp"

namespace castor::fuzz {

enum class CellGroup : uint8_t {
  conversions,
  layouts,
  operations,
  operation_types,
  modes,
  access,
  nests,
  periods,
  lanes,
  ranks,
  loops,
  tails,
  alignments,
  calls,
  epilogues,
  requantizations,
  slices,
};
inline constexpr size_t group_count = 17;

/// A pair of value types with options; of all spellings that mean the same, the canonical one.
struct ConversionCell {
  ElementType from;
  ElementType to;
  ConvertOptions options;
};

/// An older layout of a type as the source or the destination of a conversion.
struct LayoutCell {
  ElementType layout;
  bool as_destination;
};

/// An op on operands of a type; of `select`, on values.
struct OperationTypeCell {
  OpKind op;
  ElementType type;
};

/// How the operands of an op are broadcast.
struct ModeCell {
  OpKind op;  ///< `broadcast`, `select`, or `add` for all ops of two operands
  BroadcastMode mode;
  bool with_axis = false;      ///< pdpd: an axis is given
  bool trailing_ones = false;  ///< pdpd: B has ones after A's last axis
  bool both_repeat = false;    ///< numpy, bidirectional: each side repeats elements
  friend bool operator==(const ModeCell&, const ModeCell&) = default;
};

/// An operand of a nest with the access pattern of the code that runs.
struct AccessCell {
  bool of_output;
  jit::Access access;
  int element_bytes;  ///< 0: narrower than a byte
};

/// What a bound function consists of.
enum class NestCell : uint8_t {
  one,
  two,
  three,
  four_and_more,
  through_scratch,  ///< a nest reads what another has left in scratch
  copied_periods,
  any_start,  ///< an operand begins inside a byte
  excess_precision,
  transposed_tiles,
  strided_tiles,
  packed_tiles,
  several_tiles,
  row_table,       ///< each row's results are looked up by the codes of an operand
  block_table,     ///< each block's are
  scaled_rows,     ///< codes are scaled by emit/scaled_codes.hpp, with one scale for each row
  scaled_blocks,   ///< and with one for each block
  encoded_blocks,  ///< floats times powers are encoded by emit/power_codes.hpp
  divided_blocks,  ///< floats over divisors are encoded by emit/quotient_codes.hpp
  baked_period,    ///< the code is for periods of one length
  // requantizations
  bound_bytes,   ///< bytes looked up in tables that were made when the kernel was bound
  called_bytes,  ///< in tables that the call makes
  bound_slices,  ///< by a method whose constants were computed when the kernel was bound
  called_slices  ///< by the call
};
inline constexpr size_t nest_cell_count = 23;

/// An operand of an axis that is made of periods (of rows, as a rule).
struct PeriodCell {
  bool repeated;  ///< one element for each period; else the same elements in each
  int length;     ///< 2 to longest_period; 0: any other
};
inline constexpr int longest_period = 8;

/// An operand's elements in lanes, as a load or a store of the lane program has them.
struct LaneCell {
  bool of_sink;
  int element_bits;
  int lane_bits;
  int lanes;  ///< lanes per chunk
};

/// The extent of an innermost axis modulo the chunk.
struct TailCell {
  int lanes;
  int remainder;
};

/// The address of an operand's first element modulo 64.
struct AlignmentCell {
  bool of_output;
  int misalignment;
};

enum class CallCell : uint8_t {
  in_place,
  no_elements,
  repeated_function,
  repeated_code,
  new_code,
  streaming,
  interleaved_outputs,
  refused_shape,
  refused_bytes,
  refused_overlap,
  refused_null,
  refused_extents,
  refused_in_place,
  refused_scale,
};
inline constexpr size_t call_count = 14;

enum class ConvolutionKind : uint8_t { dense, grouped, depthwise };
ConvolutionKind kind_of(int64_t groups, int64_t channels);

/// What becomes of a convolution's result.
enum class EpilogueForm : uint8_t {
  sub_byte,  ///< taken slice by slice, to elements narrower than a byte, or of the size in the name
  one_byte,
  two_bytes,
  four_bytes,
  eight_bytes,
  is_result,  ///< for these see jit::Fusion
  reshaped,
  several_nests,
  other_convolution,
  other_shape,
  partly_repeated,
  split_bytes,
  apart,  ///< the tensors do not allow what was planned
};
inline constexpr size_t epilogue_forms = 13;

struct EpilogueCell {
  ConvolutionKind kind;
  ConvolutionLayout layout;
  EpilogueForm form;
};

inline constexpr int max_drawn_rank = 6;

// Cells of a group by their numbers, which count from 0.
const std::vector<ConversionCell>& conversion_cells();
/// Nothing for a conversion whose options are not canonical, or between older layouts.
std::optional<size_t> find_conversion(ElementType from, ElementType to,
                                      const ConvertOptions& options);
LayoutCell layout_cell(size_t number);
/// Nothing where the type is no older layout.
std::optional<size_t> find_layout(const LayoutCell& cell);
const std::vector<OperationTypeCell>& operation_type_cells();
/// Nothing for a type that the op does not take.
std::optional<size_t> find_operation_type(const OperationTypeCell& cell);
const std::vector<ModeCell>& mode_cells();
std::optional<size_t> find_mode(const ModeCell& cell);
AccessCell access_cell(size_t number);
size_t number_of(const AccessCell& cell);
PeriodCell period_cell(size_t number);
size_t number_of(const PeriodCell& cell);
LaneCell lane_cell(size_t number);
/// Nothing for a shape of lanes that no tier has.
std::optional<size_t> find_lane_cell(const LaneCell& cell);
const std::vector<TailCell>& tail_cells();
/// Nothing for a chunk that no tier has.
std::optional<size_t> find_tail(const TailCell& cell);
AlignmentCell alignment_cell(size_t number);
size_t number_of(const AlignmentCell& cell);
EpilogueCell epilogue_cell(size_t number);
size_t number_of(const EpilogueCell& cell);

/// A cell without its tier.
struct Cell {
  CellGroup group;
  size_t number;
};

/// One group of the table.
struct GroupInfo {
  CellGroup group;
  std::string_view name;
  size_t size;
  size_t first;  ///< cells of the groups before
};
const std::array<GroupInfo, group_count>& group_table();
size_t cell_count();

/// Cells of all groups in a row.
size_t index_of(const Cell& cell);
Cell cell_at(size_t index);

/// Whether code for the tier can hit the cell: chunks depend on the vectors' size, and lanes are
/// those that some single conversion is planned with.
bool concerns(const Cell& cell, jit::Tier tier);

/// "f32 -> u8 {overflow = wrap}", "output 2 strided, 4 bytes".
std::string describe(const Cell& cell);

}  // namespace castor::fuzz
