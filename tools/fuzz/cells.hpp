// SPDX-License-Identifier: Apache-2.0
// What the fuzzer wants to have tried at least once: the table of coverage cells. Every cell
// counts once for each tier.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/convert_options.hpp"
#include "jit/nest.hpp"

namespace castor::fuzz {

enum class CellGroup : uint8_t {
  conversions,
  layouts,
  operations,
  access,
  lanes,
  ranks,
  loops,
  tails,
  alignments,
  calls,
};
inline constexpr size_t group_count = 10;

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

/// How an operand walks the innermost axis.
enum class Walking : uint8_t {
  contiguous,
  strided,
  unaligned_start,  ///< contiguous, from the middle of a byte on; of elements narrower than a byte
};

/// An operand of a nest: position 0 is its input, the others are its outputs in order.
struct AccessCell {
  size_t position;
  Walking walking;
  int element_bytes;  ///< 0: narrower than a byte
};
inline constexpr size_t access_positions = 7;

/// An operand's elements in lanes, as a load or a store of the lane program has them.
struct LaneCell {
  bool of_sink;
  int element_bits;
  int lane_bits;
  int lanes;  ///< of a chunk
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
};
inline constexpr size_t call_count = 11;

inline constexpr int most_rank = 6;

// Cells of a group by their numbers, which count from 0.
const std::vector<ConversionCell>& conversion_cells();
/// Nothing for a conversion whose options are not canonical, or between older layouts.
std::optional<size_t> find_conversion(ElementType from, ElementType to,
                                      const ConvertOptions& options);
LayoutCell layout_cell(size_t number);
size_t number_of(const LayoutCell& cell);
AccessCell access_cell(size_t number);
size_t number_of(const AccessCell& cell);
LaneCell lane_cell(size_t number);
/// Nothing for a shape of lanes that no tier has.
std::optional<size_t> find_lane_cell(const LaneCell& cell);
const std::vector<TailCell>& tail_cells();
/// Nothing for a chunk that no tier has.
std::optional<size_t> find_tail(const TailCell& cell);
AlignmentCell alignment_cell(size_t number);
size_t number_of(const AlignmentCell& cell);

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
