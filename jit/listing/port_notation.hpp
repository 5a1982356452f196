// SPDX-License-Identifier: Apache-2.0
// Reads the notation of cores' tables (CoreRow) while the compiler runs: a mistake in a table does
// not compile.
#pragma once

#include <span>
#include <stdexcept>
#include <string_view>

#include "jit/listing/port_core.hpp"

namespace castor::jit::notation {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// "1.17". There are few decimals, so that quotients of two small integers are exact to the last
/// bit.
constexpr double number(std::string_view text) {
  double value = 0;
  double scale = 1;
  bool in_fraction = false;
  for (const char c : text) {
    if (c == '.' && !in_fraction) {
      in_fraction = true;
      continue;
    }
    if (!is_digit(c)) throw std::invalid_argument("a number is expected");
    value = value * 10 + (c - '0');
    if (in_fraction) scale *= 10;
  }
  if (text.empty()) throw std::invalid_argument("a number is expected");
  return value / scale;
}

/// The text before the first of `mark`, which is cut off `text` together with the mark.
constexpr std::string_view cut(std::string_view& text, char mark) {
  const size_t end = text.find(mark);
  const std::string_view front = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  return front;
}

/// The port of that name: its bit; 0 where there is none.
constexpr Ports port_named(std::span<const std::string_view> ports, std::string_view prefix,
                           std::string_view name) {
  for (size_t i = 0; i < ports.size(); ++i) {
    if (ports[i].starts_with(prefix) && ports[i].substr(prefix.size()) == name) {
      return static_cast<Ports>(1u << i);
    }
  }
  return 0;
}

/// "branch": the port of that name; "FP012": FP0, FP1 and FP2.
constexpr Ports port_group(std::span<const std::string_view> ports, std::string_view text) {
  if (const Ports whole = port_named(ports, "", text)) return whole;
  size_t letters = 0;
  while (letters < text.size() && !is_digit(text[letters])) ++letters;
  Ports set = 0;
  for (size_t i = letters; i < text.size(); ++i) {
    const Ports port = port_named(ports, text.substr(0, letters), text.substr(i, 1));
    if (port == 0) throw std::invalid_argument("the core has no such port");
    set |= port;
  }
  if (set == 0) throw std::invalid_argument("the core has no such port");
  return set;
}

/// "FP12", "FP12*2", "FP0123@2", "FP0123*2@2", "ALU0|branch".
constexpr PortUse port_use(std::span<const std::string_view> ports, std::string_view text) {
  PortUse use;
  std::string_view count = text;
  std::string_view cycles = cut(count, '@');
  std::string_view sets = cut(cycles, '*');
  use.at_most = count.empty() ? 0 : static_cast<int>(number(count));
  use.cycles = cycles.empty() ? 1 : number(cycles);
  while (!sets.empty()) use.ports |= port_group(ports, cut(sets, '|'));
  return use;
}

constexpr CostRow::Form form(std::span<const std::string_view> ports, std::string_view text,
                             double latency) {
  CostRow::Form made;
  made.latency = latency;
  made.is_measured = text != "?";
  if (text == "?" || text == "-") return made;
  if (text.empty()) throw std::invalid_argument("micro-operations are expected");
  while (!text.empty()) {
    std::string_view micro_operation = cut(text, ' ');
    ++made.micro_operations;
    while (!micro_operation.empty()) {
      if (made.count == CostRow::max_uses) throw std::invalid_argument("too many ports");
      made.uses[made.count++] = port_use(ports, cut(micro_operation, '+'));
    }
  }
  return made;
}

/// Writes the rows over `costs`. Each class may come once.
constexpr std::array<CostRow, cost_count> with_rows(std::array<CostRow, cost_count> costs,
                                                    std::span<const std::string_view> ports,
                                                    std::span<const CoreRow> rows) {
  std::array<bool, cost_count> seen{};
  for (const CoreRow& row : rows) {
    const auto i = static_cast<size_t>(row.cost);
    if (seen[i]) throw std::invalid_argument("a class comes twice");
    seen[i] = true;
    costs[i].up_to_256 = form(ports, row.up_to_256, row.latency_256);
    costs[i].in_512 = form(ports, row.in_512.empty() ? row.up_to_256 : row.in_512,
                           row.latency_512 == 0 ? row.latency_256 : row.latency_512);
  }
  return costs;
}

/// The rows as a whole table, in the order of `Cost` without `same`, `unmeasured` and `none`.
constexpr std::array<CostRow, cost_count> table_of(std::span<const std::string_view> ports,
                                                   std::span<const CoreRow> rows) {
  constexpr size_t first = static_cast<size_t>(Cost::none) + 1;
  if (rows.size() != cost_count - first) throw std::invalid_argument("a class has no row");
  for (size_t i = 0; i < rows.size(); ++i) {
    if (static_cast<size_t>(rows[i].cost) != first + i) {
      throw std::invalid_argument("the rows are not in the order of the classes");
    }
  }
  std::array<CostRow, cost_count> costs = with_rows({}, ports, rows);
  CostRow& none = costs[static_cast<size_t>(Cost::none)];
  none.up_to_256.is_measured = none.in_512.is_measured = true;
  return costs;
}

}  // namespace castor::jit::notation
