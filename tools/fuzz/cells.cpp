// SPDX-License-Identifier: Apache-2.0
#include "tools/fuzz/cells.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "ir/op.hpp"
#include "tools/fuzz/planned_lanes.hpp"

namespace castor::fuzz {

namespace {

constexpr size_t element_sizes = 5;  // narrower than a byte; 1, 2, 4, 8 bytes
constexpr size_t access_kinds = 2;   // of every size; one more of elements narrower than a byte
constexpr size_t accesses = element_sizes * access_kinds + 1;
constexpr std::array<int, 9> element_widths = {1, 2, 3, 4, 6, 8, 16, 32, 64};
constexpr std::array<int, 4> lane_widths = {8, 16, 32, 64};
constexpr std::array<int, 5> lane_counts = {4, 8, 16, 32, 64};
constexpr size_t older_layouts = element_type_count - value_type_count;
constexpr size_t misalignments = 64;
constexpr std::array<std::string_view, call_count> call_names = {"in place",
                                                                 "no elements",
                                                                 "function compiled before",
                                                                 "code emitted before",
                                                                 "code emitted",
                                                                 "stores past the caches",
                                                                 "interleaved outputs",
                                                                 "refused: shape",
                                                                 "refused: too few bytes",
                                                                 "refused: overlap",
                                                                 "refused: null"};

constexpr size_t pair_number(ElementType from, ElementType to) {
  return static_cast<size_t>(from) * value_type_count + static_cast<size_t>(to);
}

constexpr bool is_older_layout(ElementType type) {
  return static_cast<size_t>(type) >= value_type_count;
}

template <class Array, class T>
std::optional<size_t> index_in(const Array& all, T value) {
  const auto at = std::find(all.begin(), all.end(), value);
  if (at == all.end()) return {};
  return static_cast<size_t>(at - all.begin());
}

void add_conversions(ElementType from, ElementType to, std::vector<ConversionCell>& cells) {
  for (size_t overflow = 0; overflow < overflow_names.size(); ++overflow) {
    for (size_t rounding = 0; rounding < rounding_names.size(); ++rounding) {
      for (size_t nan = 0; nan < nan_mode_names.size(); ++nan) {
        const ConvertOptions options{static_cast<Overflow>(overflow),
                                     static_cast<Rounding>(rounding), static_cast<NanMode>(nan)};
        if (!check_convert_options(from, to, options).ok()) continue;
        if (canonical_options(from, to, options) == options) cells.push_back({from, to, options});
      }
    }
  }
}

/// All conversions, and where those of each pair begin.
struct Conversions {
  std::vector<ConversionCell> cells;
  std::array<size_t, value_type_count* value_type_count + 1> first = {};

  Conversions() {
    const auto value_types = std::span(element_table).first<value_type_count>();
    for (const ElementInfo& from : value_types) {
      for (const ElementInfo& to : value_types) {
        first[pair_number(from.type, to.type)] = cells.size();
        add_conversions(from.type, to.type, cells);
      }
    }
    first.back() = cells.size();
  }
};

const Conversions& conversions() {
  static const Conversions all;
  return all;
}

std::vector<TailCell> make_tails() {
  std::vector<TailCell> cells;
  for (int lanes = 4; lanes <= 64; lanes *= 2) {
    for (int remainder = 0; remainder < lanes; ++remainder) cells.push_back({lanes, remainder});
  }
  return cells;
}

std::array<GroupInfo, group_count> make_groups() {
  std::array<GroupInfo, group_count> groups = {{
      {CellGroup::conversions, "pairs x options", conversion_cells().size(), 0},
      {CellGroup::layouts, "older layouts x directions", 2 * older_layouts, 0},
      {CellGroup::operations, "ops", op_count, 0},
      {CellGroup::access, "access classes", access_positions * accesses, 0},
      {CellGroup::lanes, "element widths x lanes",
       2 * element_widths.size() * lane_widths.size() * lane_counts.size(), 0},
      {CellGroup::ranks, "ranks", most_rank + 1, 0},
      {CellGroup::loops, "loops after merging", most_rank, 0},
      {CellGroup::tails, "tails", tail_cells().size(), 0},
      {CellGroup::alignments, "alignments", 2 * misalignments, 0},
      {CellGroup::calls, "calls", call_count, 0},
  }};
  for (size_t i = 1; i < groups.size(); ++i) {
    groups[i].first = groups[i - 1].first + groups[i - 1].size;
  }
  return groups;
}

std::string describe_conversion(const ConversionCell& cell) {
  const std::string options = to_string(cell.options);
  return fmt::format("{} -> {}{}", name_of(cell.from), name_of(cell.to),
                     options.empty() ? "" : " {" + options + "}");
}

std::string describe_access(const AccessCell& cell) {
  constexpr std::array<std::string_view, 3> walks = {"contiguous", "strided", "unaligned start"};
  const std::string operand =
      cell.position == 0 ? "input" : fmt::format("output {}", cell.position - 1);
  const std::string size =
      cell.element_bytes == 0 ? "sub-byte" : fmt::format("{}-byte", cell.element_bytes);
  return fmt::format("{} {}, {} elements", operand, walks[static_cast<size_t>(cell.walking)], size);
}

std::string describe_lanes(const LaneCell& cell) {
  return fmt::format("{} of {} bits, {} lanes of {} bits", cell.of_sink ? "sink" : "source",
                     cell.element_bits, cell.lanes, cell.lane_bits);
}

bool tail_concerns(const TailCell& cell, jit::Tier tier) {
  const int element_bits = jit::info(tier).vector_bits / cell.lanes;
  return element_bits >= 8 && element_bits <= 64;
}

}  // namespace

const std::vector<ConversionCell>& conversion_cells() { return conversions().cells; }

std::optional<size_t> find_conversion(ElementType from, ElementType to,
                                      const ConvertOptions& options) {
  if (is_older_layout(from) || is_older_layout(to)) return {};
  const Conversions& all = conversions();
  const size_t pair = pair_number(from, to);
  for (size_t i = all.first[pair]; i < all.first[pair + 1]; ++i) {
    if (all.cells[i].options == options) return i;
  }
  return {};
}

LayoutCell layout_cell(size_t number) {
  return {static_cast<ElementType>(value_type_count + number / 2), number % 2 != 0};
}

size_t number_of(const LayoutCell& cell) {
  return 2 * (static_cast<size_t>(cell.layout) - value_type_count) + cell.as_destination;
}

AccessCell access_cell(size_t number) {
  const size_t position = number / accesses;
  const size_t access = number % accesses;
  if (access == accesses - 1) return {position, Walking::unaligned_start, 0};
  const size_t size = access % element_sizes;
  return {position, static_cast<Walking>(access / element_sizes), size == 0 ? 0 : 1 << (size - 1)};
}

size_t number_of(const AccessCell& cell) {
  const size_t first = cell.position * accesses;
  if (cell.walking == Walking::unaligned_start) return first + accesses - 1;
  const size_t size = cell.element_bytes == 8   ? 4
                      : cell.element_bytes == 4 ? 3
                                                : static_cast<size_t>(cell.element_bytes);
  return first + static_cast<size_t>(cell.walking) * element_sizes + size;
}

LaneCell lane_cell(size_t number) {
  LaneCell cell;
  cell.lanes = lane_counts[number % lane_counts.size()];
  number /= lane_counts.size();
  cell.lane_bits = lane_widths[number % lane_widths.size()];
  number /= lane_widths.size();
  cell.element_bits = element_widths[number % element_widths.size()];
  cell.of_sink = number >= element_widths.size();
  return cell;
}

std::optional<size_t> find_lane_cell(const LaneCell& cell) {
  const std::optional<size_t> element = index_in(element_widths, cell.element_bits);
  const std::optional<size_t> lane = index_in(lane_widths, cell.lane_bits);
  const std::optional<size_t> count = index_in(lane_counts, cell.lanes);
  if (!element || !lane || !count) return {};
  const size_t width = (cell.of_sink ? element_widths.size() : 0) + *element;
  return (width * lane_widths.size() + *lane) * lane_counts.size() + *count;
}

const std::vector<TailCell>& tail_cells() {
  static const std::vector<TailCell> cells = make_tails();
  return cells;
}

std::optional<size_t> find_tail(const TailCell& cell) {
  if (!index_in(lane_counts, cell.lanes)) return {};
  return static_cast<size_t>(cell.lanes - 4 + cell.remainder);  // 4 + 8 + ... + lanes / 2 before
}

AlignmentCell alignment_cell(size_t number) {
  return {number >= misalignments, static_cast<int>(number % misalignments)};
}

size_t number_of(const AlignmentCell& cell) {
  return (cell.of_output ? misalignments : 0) + static_cast<size_t>(cell.misalignment);
}

const std::array<GroupInfo, group_count>& group_table() {
  static const std::array<GroupInfo, group_count> groups = make_groups();
  return groups;
}

size_t cell_count() { return group_table().back().first + group_table().back().size; }

size_t index_of(const Cell& cell) {
  return group_table()[static_cast<size_t>(cell.group)].first + cell.number;
}

Cell cell_at(size_t index) {
  const auto& groups = group_table();
  const auto behind = std::upper_bound(groups.begin(), groups.end(), index,
                                       [](size_t i, const GroupInfo& g) { return i < g.first; });
  const GroupInfo& group = *std::prev(behind);
  return {group.group, index - group.first};
}

bool concerns(const Cell& cell, jit::Tier tier) {
  switch (cell.group) {
    case CellGroup::tails: return tail_concerns(tail_cells()[cell.number], tier);
    case CellGroup::lanes: return reachable_lanes(tier)[cell.number];
    default: return true;
  }
}

std::string describe(const Cell& cell) {
  switch (cell.group) {
    case CellGroup::conversions: return describe_conversion(conversion_cells()[cell.number]);
    case CellGroup::layouts: {
      const LayoutCell layout = layout_cell(cell.number);
      return fmt::format("{} {}", layout.as_destination ? "to" : "from", name_of(layout.layout));
    }
    case CellGroup::operations: return std::string(op_table()[cell.number].name);
    case CellGroup::access: return describe_access(access_cell(cell.number));
    case CellGroup::lanes: return describe_lanes(lane_cell(cell.number));
    case CellGroup::ranks: return fmt::format("rank {}", cell.number);
    case CellGroup::loops: return fmt::format("{} loops", cell.number + 1);
    case CellGroup::tails: {
      const TailCell tail = tail_cells()[cell.number];
      return fmt::format("{} modulo {}", tail.remainder, tail.lanes);
    }
    case CellGroup::alignments: {
      const AlignmentCell cell_of = alignment_cell(cell.number);
      return fmt::format("{} at {} modulo 64", cell_of.of_output ? "output" : "input",
                         cell_of.misalignment);
    }
    case CellGroup::calls: return std::string(call_names[cell.number]);
  }
  return {};
}

}  // namespace castor::fuzz
