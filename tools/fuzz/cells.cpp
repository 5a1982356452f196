// SPDX-License-Identifier: Apache-2.0
#include "tools/fuzz/cells.hpp"

#include <algorithm>
#include <span>

#include "ir/op.hpp"
#include "jit/requantize/byte_table_kernel.hpp"
#include "tools/fuzz/planned_lanes.hpp"

namespace castor::fuzz {

namespace {

constexpr size_t element_sizes = 5;  // narrower than a byte; 1, 2, 4, 8 bytes
constexpr size_t access_kinds = 9;   // kinds of jit::Access
constexpr std::array<int, 9> element_widths = {1, 2, 3, 4, 6, 8, 16, 32, 64};
constexpr std::array<int, 4> lane_widths = {8, 16, 32, 64};
constexpr std::array<int, 5> lane_counts = {4, 8, 16, 32, 64};
constexpr size_t misalignments = 64;
constexpr size_t pair_number(ElementType from, ElementType to) {
  return value_type_index(from) * value_type_count + value_type_index(to);
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
    for (ElementType from : value_types) {
      for (ElementType to : value_types) {
        first[pair_number(from, to)] = cells.size();
        add_conversions(from, to, cells);
      }
    }
    first.back() = cells.size();
  }
};

const Conversions& conversions() {
  static const Conversions all;
  return all;
}

std::vector<OperationTypeCell> make_operation_types() {
  std::vector<OperationTypeCell> cells;
  for (const OpInfo& row : op_table()) {
    if (row.op == OpKind::convert) continue;            // convert has its own cells
    if (row.family == OpFamily::composition) continue;  // operands are of several types
    for (const ElementInfo& type : element_table) {
      if (admits(row.types, type.type)) cells.push_back({row.op, type.type});
    }
  }
  return cells;
}

std::vector<ModeCell> make_modes() {
  using enum BroadcastMode;
  std::vector<ModeCell> cells;
  for (bool both_repeat : {false, true}) {
    cells.push_back({.op = OpKind::add, .mode = numpy, .both_repeat = both_repeat});
    cells.push_back({.op = OpKind::select, .mode = numpy, .both_repeat = both_repeat});
    cells.push_back({.op = OpKind::broadcast, .mode = bidirectional, .both_repeat = both_repeat});
  }
  for (OpKind op : {OpKind::add, OpKind::broadcast}) {
    cells.push_back({.op = op, .mode = pdpd});
    cells.push_back({.op = op, .mode = pdpd, .with_axis = true});
    cells.push_back({.op = op, .mode = pdpd, .with_axis = true, .trailing_ones = true});
    cells.push_back({.op = op, .mode = blocked});
  }
  for (OpKind op : {OpKind::add, OpKind::select}) cells.push_back({.op = op, .mode = none});
  for (BroadcastMode mode : {numpy, explicitly}) {
    cells.push_back({.op = OpKind::broadcast, .mode = mode});
  }
  return cells;
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
      {CellGroup::layouts, "older layouts x directions", 2 * older_layouts.size(), 0},
      {CellGroup::operations, "ops", op_count, 0},
      {CellGroup::operation_types, "ops x element types", operation_type_cells().size(), 0},
      {CellGroup::modes, "broadcast modes", mode_cells().size(), 0},
      {CellGroup::access, "access classes", 2 * access_kinds * element_sizes, 0},
      {CellGroup::nests, "nests", nest_cell_count, 0},
      {CellGroup::periods, "periods", 2 * longest_period, 0},
      {CellGroup::lanes, "element widths x lanes",
       2 * element_widths.size() * lane_widths.size() * lane_counts.size(), 0},
      {CellGroup::ranks, "ranks", max_drawn_rank + 1, 0},
      {CellGroup::loops, "loops after merging", max_drawn_rank, 0},
      {CellGroup::tails, "tails", tail_cells().size(), 0},
      {CellGroup::alignments, "alignments", 2 * misalignments, 0},
      {CellGroup::calls, "calls", call_count, 0},
      {CellGroup::epilogues, "epilogues of convolutions", 3 * 2 * epilogue_forms, 0},
      {CellGroup::requantizations, "formats x arithmetics of requantize", requantize_cell_count, 0},
      {CellGroup::slices, "slices of requantize", slice_cell_count, 0},
  }};
  for (size_t i = 1; i < groups.size(); ++i) {
    groups[i].first = groups[i - 1].first + groups[i - 1].size;
  }
  return groups;
}

jit::Target target_of(jit::Tier tier) {
  jit::Target target;
  target.tier = tier;
  return target;
}

bool has_avx512(jit::Tier tier) { return target_of(tier).has_avx512(); }

bool nest_concerns(NestCell cell, jit::Tier tier) {
  if (cell == NestCell::bound_bytes || cell == NestCell::called_bytes) {
    return jit::has_byte_tables(target_of(tier));
  }
  if (cell == NestCell::scaled_rows || cell == NestCell::scaled_blocks ||
      cell == NestCell::encoded_blocks || cell == NestCell::divided_blocks) {
    return target_of(tier).supports(jit::Feature::avx512_vbmi);
  }
  const bool wants_avx512 = cell == NestCell::row_table || cell == NestCell::block_table ||
                            cell == NestCell::baked_period;
  return !wants_avx512 || has_avx512(tier);
}

/// Elements narrower than a byte are reached bit by bit; wider ones that are strided are copied
/// before code sees them. Outputs repeat no element.
bool access_concerns(const AccessCell& cell, jit::Tier tier) {
  const bool is_sub_byte = cell.element_bytes == 0;
  switch (cell.access) {
    case jit::Access::contiguous: return true;
    case jit::Access::strided:
    case jit::Access::column: return false;  // only where quotients are by columns
    case jit::Access::table:
    case jit::Access::tables: return !cell.of_output && !is_sub_byte;
    case jit::Access::bitwise: return is_sub_byte;
    case jit::Access::uniform:
    case jit::Access::periodic: return !cell.of_output;
    case jit::Access::repeated: break;
  }
  // Bytes are expanded by instructions of the last tiers.
  const bool can_expand = cell.element_bytes == 1
                              ? target_of(tier).supports(jit::Feature::avx512_vbmi)
                              : has_avx512(tier);
  return !cell.of_output && !is_sub_byte && can_expand;
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

LayoutCell layout_cell(size_t number) { return {older_layouts[number / 2], number % 2 != 0}; }

std::optional<size_t> find_layout(const LayoutCell& cell) {
  const std::optional<size_t> layout = index_in(older_layouts, cell.layout);
  if (!layout) return {};
  return 2 * *layout + cell.as_destination;
}

const std::vector<OperationTypeCell>& operation_type_cells() {
  static const std::vector<OperationTypeCell> cells = make_operation_types();
  return cells;
}

std::optional<size_t> find_operation_type(const OperationTypeCell& cell) {
  const auto& cells = operation_type_cells();
  const auto at = std::ranges::find_if(
      cells, [&](const auto& one) { return one.op == cell.op && one.type == cell.type; });
  if (at == cells.end()) return {};
  return static_cast<size_t>(at - cells.begin());
}

const std::vector<ModeCell>& mode_cells() {
  static const std::vector<ModeCell> cells = make_modes();
  return cells;
}

std::optional<size_t> find_mode(const ModeCell& cell) { return index_in(mode_cells(), cell); }

AccessCell access_cell(size_t number) {
  const size_t size = number % element_sizes;
  number /= element_sizes;
  return {number >= access_kinds, static_cast<jit::Access>(number % access_kinds),
          size == 0 ? 0 : 1 << (size - 1)};
}

size_t number_of(const AccessCell& cell) {
  const size_t size = cell.element_bytes == 8   ? 4
                      : cell.element_bytes == 4 ? 3
                                                : static_cast<size_t>(cell.element_bytes);
  const size_t walk = (cell.of_output ? access_kinds : 0) + static_cast<size_t>(cell.access);
  return walk * element_sizes + size;
}

PeriodCell period_cell(size_t number) {
  const int length = static_cast<int>(number % longest_period) + 1;
  return {number >= longest_period, length == 1 ? 0 : length};
}

size_t number_of(const PeriodCell& cell) {
  const bool is_short = cell.length >= 2 && cell.length <= longest_period;
  return (cell.repeated ? longest_period : 0) +
         (is_short ? static_cast<size_t>(cell.length) - 1 : 0);
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

ConvolutionKind kind_of(int64_t groups, int64_t channels) {
  if (groups == 1) return ConvolutionKind::dense;
  return groups == channels ? ConvolutionKind::depthwise : ConvolutionKind::grouped;
}

EpilogueCell epilogue_cell(size_t number) {
  const size_t place = number / epilogue_forms;
  return {static_cast<ConvolutionKind>(place / 2), static_cast<ConvolutionLayout>(place % 2),
          static_cast<EpilogueForm>(number % epilogue_forms)};
}

size_t number_of(const EpilogueCell& cell) {
  const size_t place = 2 * static_cast<size_t>(cell.kind) + static_cast<size_t>(cell.layout);
  return place * epilogue_forms + static_cast<size_t>(cell.form);
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
  const auto next = std::upper_bound(groups.begin(), groups.end(), index,
                                     [](size_t i, const GroupInfo& g) { return i < g.first; });
  const GroupInfo& group = *std::prev(next);
  return {group.group, index - group.first};
}

bool concerns(const Cell& cell, jit::Tier tier) {
  switch (cell.group) {
    case CellGroup::tails: return tail_concerns(tail_cells()[cell.number], tier);
    case CellGroup::lanes: return reachable_lanes(tier)[cell.number];
    case CellGroup::access: return access_concerns(access_cell(cell.number), tier);
    case CellGroup::periods: return !period_cell(cell.number).repeated || has_avx512(tier);
    case CellGroup::nests: return nest_concerns(static_cast<NestCell>(cell.number), tier);
    default: return true;
  }
}

}  // namespace castor::fuzz
