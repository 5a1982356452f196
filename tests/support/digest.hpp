// SPDX-License-Identifier: Apache-2.0
// The digest of the generated code: a line for each pair of types, a column for each tier.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "ir/builder.hpp"
#include "jit/dump/dump.hpp"
#include "jit/listing/listing.hpp"

namespace castor::test {

/// What the digest says of one kernel.
struct CodeFigures {
  size_t bytes = 0;  ///< code, padding and constants
  size_t instructions = 0;
  int spills = 0;
  /// By the port model, of the main loop per 64 bytes written; none where it lacks instructions.
  std::optional<double> cycles;
  char limit = '?';  ///< first letter of what limits the loop
  friend bool operator==(const CodeFigures&, const CodeFigures&) = default;
};

inline Result<CodeFigures> figures_of(const jit::MachineCode& code) {
  const auto listed = disassemble(code);
  if (!listed) return listed.error();
  const auto loop = std::ranges::find(code.loops, "main loop", &jit::CodeLoop::name);
  if (loop == code.loops.end()) return Error{ErrorCode::internal, "there is no main loop"};
  CodeFigures figures{.bytes = code.bytes.size(),
                      .instructions = listed->size(),
                      .spills = code.spills,
                      .cycles = {}};
  if (const auto cycles = port_cycles(code, *loop)) {
    figures.cycles = cycles->bound() * 64 / static_cast<double>(loop->store_bytes);
    figures.limit = cycles->limited_by().front();
  }
  return figures;
}

/// The code of `convert` with default options for dense operands.
inline Result<jit::MachineCode> convert_code(ElementType from, ElementType to,
                                             const jit::Target& target) {
  FunctionBuilder builder("f");
  const ValueId x = builder.parameter("x", {from, {"?n"}});
  builder.result(builder.convert(x, to, {}));
  auto function = builder.finish();
  if (!function) return function.error();
  auto codes = emit_annotated(**function, target);
  if (!codes) return codes.error();
  return std::move(codes->front());
}

/// The sums over all pairs.
struct CodeTotals {
  size_t bytes = 0;
  size_t instructions = 0;
  int spills = 0;
  double cycles = 0;   ///< summed over kernels that the port model knows
  int unmodelled = 0;  ///< the other kernels

  void add(const CodeFigures& figures) {
    bytes += figures.bytes;
    instructions += figures.instructions;
    spills += figures.spills;
    cycles += figures.cycles.value_or(0);
    unmodelled += figures.cycles ? 0 : 1;
  }
};

/// One line of the digest before it is padded: a head and a cell for each tier.
struct DigestRow {
  std::string head;
  std::array<std::string, jit::tier_count> cells;
};

inline std::string cell_text(const CodeFigures& figures) {
  const std::string cycles =
      figures.cycles ? fmt::format("{:>5.2f} {}", *figures.cycles, figures.limit) : "    -";
  return fmt::format("{:>4} {:>3} {} {}", figures.bytes, figures.instructions, figures.spills,
                     cycles);
}

/// The rows as a table, each column as wide as its widest cell.
inline std::string aligned(const std::vector<DigestRow>& rows) {
  std::array<size_t, jit::tier_count> widths{};
  size_t head_width = 0;
  for (const DigestRow& row : rows) {
    head_width = std::max(head_width, row.head.size());
    for (size_t i = 0; i < widths.size(); ++i) {
      widths[i] = std::max(widths[i], row.cells[i].size());
    }
  }
  std::string text;
  for (const DigestRow& row : rows) {
    std::string line = fmt::format("{:<{}}", row.head, head_width);
    for (size_t i = 0; i < widths.size(); ++i) {
      line += fmt::format(" | {:<{}}", row.cells[i], widths[i]);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

inline Result<DigestRow> digest_row(ElementType from, ElementType to,
                                    std::array<CodeTotals, jit::tier_count>& totals) {
  DigestRow row{fmt::format("{:<7} {:<7}", name_of(from), name_of(to)), {}};
  std::vector<std::byte> last;
  for (const jit::TierInfo& tier : jit::tier_table()) {
    const auto i = static_cast<size_t>(tier.tier);
    const auto code = convert_code(from, to, {tier.tier});
    if (!code) return code.error();
    const auto figures = figures_of(*code);
    if (!figures) return figures.error();
    row.cells[i] = code->bytes == last ? "=" : cell_text(*figures);
    last = code->bytes;
    totals[i].add(*figures);
  }
  return row;
}

/// "# avx2: 81234 bytes, ..." for each tier: in which direction a change went, at one glance.
inline std::string totals_text(const std::array<CodeTotals, jit::tier_count>& totals) {
  std::string text = "# Sums over all pairs:\n";
  for (const jit::TierInfo& tier : jit::tier_table()) {
    const CodeTotals& sum = totals[static_cast<size_t>(tier.tier)];
    text += fmt::format("#   {:<12} {} bytes, {} instructions, {} spills, {:.2f} cycles{}\n",
                        tier.name, sum.bytes, sum.instructions, sum.spills, sum.cycles,
                        sum.unmodelled == 0 ? "" : fmt::format(" and {} kernels", sum.unmodelled));
  }
  return text;
}

/// The digest of every pair of these types.
inline Result<std::string> digest_text(const std::vector<ElementType>& types) {
  DigestRow head{"from    to", {}};
  for (const jit::TierInfo& tier : jit::tier_table()) {
    head.cells[static_cast<size_t>(tier.tier)] = tier.name;
  }
  std::vector<DigestRow> rows = {head};
  std::array<CodeTotals, jit::tier_count> totals{};
  for (ElementType from : types) {
    for (ElementType to : types) {
      auto row = digest_row(from, to, totals);
      if (!row) return row.error();
      rows.push_back(std::move(*row));
    }
  }
  return totals_text(totals) + aligned(rows);
}

}  // namespace castor::test
