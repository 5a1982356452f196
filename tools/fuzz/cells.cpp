// SPDX-License-Identifier: Apache-2.0
#include "tools/fuzz/cells.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ir/op.hpp"

namespace castor::fuzz {

namespace {

constexpr size_t access_kinds = 2;
constexpr size_t element_sizes = 4;  // 1, 2, 4, 8 bytes
constexpr size_t misalignments = 64;
constexpr std::array<std::string_view, call_count> call_names = {
    "in place",     "no elements",           "function compiled before", "code emitted before",
    "code emitted", "stores past the caches"};

constexpr size_t pair_number(ElementType from, ElementType to) {
  return static_cast<size_t>(from) * element_type_count + static_cast<size_t>(to);
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
  std::array<size_t, element_type_count* element_type_count + 1> first = {};

  Conversions() {
    for (const ElementInfo& from : element_table) {
      for (const ElementInfo& to : element_table) {
        first[pair_number(from.type, to.type)] = cells.size();
        if (from.implemented && to.implemented) add_conversions(from.type, to.type, cells);
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
      {CellGroup::operations, "ops", op_count, 0},
      {CellGroup::access, "access classes", access_positions * access_kinds * element_sizes, 0},
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
  const std::string operand =
      cell.position == 0 ? "input" : fmt::format("output {}", cell.position - 1);
  return fmt::format("{} {}, {}-byte elements", operand, name_of(cell.access), cell.element_bytes);
}

}  // namespace

const std::vector<ConversionCell>& conversion_cells() { return conversions().cells; }

std::optional<size_t> find_conversion(ElementType from, ElementType to,
                                      const ConvertOptions& options) {
  const Conversions& all = conversions();
  const size_t pair = pair_number(from, to);
  for (size_t i = all.first[pair]; i < all.first[pair + 1]; ++i) {
    if (all.cells[i].options == options) return i;
  }
  return {};
}

AccessCell access_cell(size_t number) {
  const size_t size = number % element_sizes;
  const size_t access = number / element_sizes % access_kinds;
  return {number / element_sizes / access_kinds, static_cast<jit::Access>(access), 1 << size};
}

size_t number_of(const AccessCell& cell) {
  const int size = cell.element_bytes == 8 ? 3 : cell.element_bytes / 2;
  return (cell.position * access_kinds + static_cast<size_t>(cell.access)) * element_sizes +
         static_cast<size_t>(size);
}

const std::vector<TailCell>& tail_cells() {
  static const std::vector<TailCell> cells = make_tails();
  return cells;
}

size_t number_of(const TailCell& cell) {
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
  if (cell.group != CellGroup::tails) return true;
  const int element_bits = jit::info(tier).vector_bits / tail_cells()[cell.number].lanes;
  return element_bits >= 8 && element_bits <= 64;
}

std::string describe(const Cell& cell) {
  switch (cell.group) {
    case CellGroup::conversions: return describe_conversion(conversion_cells()[cell.number]);
    case CellGroup::operations: return std::string(op_table()[cell.number].name);
    case CellGroup::access: return describe_access(access_cell(cell.number));
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
