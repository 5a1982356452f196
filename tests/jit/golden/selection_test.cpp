// SPDX-License-Identifier: Apache-2.0
// Which instructions are chosen: a table of "this IR selects this mnemonic"
// (tests/data/golden/selection.txt), and rules that the code of every conversion keeps.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "ir/text/text.hpp"
#include "jit/dump/dump.hpp"
#include "jit/emit/nest_emitter.hpp"
#include "jit/listing/listing.hpp"
#include "tests/support/conversion_code.hpp"
#include "tests/support/golden.hpp"

namespace castor::test {
namespace {

using Words = std::vector<std::string>;

Words words_of(const std::string& text, char separator = ' ') {
  Words words;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, separator);) {
    const size_t first = word.find_first_not_of(' ');
    if (first == std::string::npos) continue;
    words.push_back(word.substr(first, word.find_last_not_of(' ') + 1 - first));
  }
  return words;
}

/// Whether the name is the pattern, or begins with it where it ends in '*'.
bool matches(std::string_view name, std::string_view pattern) {
  if (!pattern.ends_with('*')) return name == pattern;
  return name.starts_with(pattern.substr(0, pattern.size() - 1));
}

bool any_matches(const Words& names, std::string_view pattern) {
  return std::ranges::any_of(names, [&](const auto& name) { return matches(name, pattern); });
}

Words mnemonics_of(const jit::MachineCode& code) {
  Words mnemonics;
  const auto listed = disassemble(code);
  EXPECT_TRUE(listed.ok()) << (listed ? "" : listed.error().message);
  if (!listed) return mnemonics;
  for (const jit::ListedInstruction& instruction : *listed) {
    mnemonics.push_back(instruction.mnemonic);
  }
  return mnemonics;
}

Words main_loop_mnemonics(const jit::MachineCode& code) {
  Words mnemonics;
  const auto listed = disassemble(code);
  const auto loop = std::ranges::find(code.loops, "main loop", &jit::CodeLoop::name);
  EXPECT_TRUE(listed.ok() && loop != code.loops.end());
  if (!listed || loop == code.loops.end()) return mnemonics;
  for (const jit::ListedInstruction& instruction : *listed) {
    if (instruction.offset < loop->begin || instruction.offset >= loop->end) continue;
    mnemonics.push_back(instruction.mnemonic);
  }
  return mnemonics;
}

// ---- the table

struct SelectionRow {
  std::string source;
  std::string operation;
  std::string tiers;
  Words must;      ///< patterns; a word may be alternatives, parted by '/'
  Words must_not;  ///< patterns
};

std::vector<SelectionRow> read_selection_rows() {
  std::vector<SelectionRow> rows;
  for (const std::string& line : lines_of(text_of_file(golden_folder() / "selection.txt"))) {
    if (line.empty() || line.starts_with('#')) continue;
    Words cells = words_of(line, '|');
    if (cells.size() == 4) cells.emplace_back();  // nothing is forbidden
    EXPECT_EQ(cells.size(), 5u) << line;
    if (cells.size() != 5) continue;
    rows.push_back({cells[0], cells[1], cells[2], words_of(cells[3]), words_of(cells[4])});
  }
  return rows;
}

/// The result has the type that the operation names, or the source's.
Result<FunctionPtr> function_of(const SelectionRow& row) {
  const bool names_type = row.operation.find(" : ") != std::string::npos;
  const std::string result =
      names_type ? row.operation.substr(row.operation.rfind(' ') + 1) : row.source;
  return parse_function(
      fmt::format("func @f(%x: {}[?n]) -> ({}[?n]) {{\n  %y = {}\n  return %y\n}}\n", row.source,
                  result, row.operation));
}

void expect_selection(const SelectionRow& row, const Function& function, jit::Tier tier) {
  const auto codes = jit::emit_annotated(function, {tier});
  ASSERT_TRUE(codes.ok()) << codes.error().message;
  const Words loop = main_loop_mnemonics(codes->front());
  const std::string where = fmt::format("{}: {} on {}, whose main loop is {}", row.source,
                                        row.operation, name_of(tier), fmt::join(loop, " "));
  for (const std::string& pattern : row.must) {
    const Words alternatives = words_of(pattern, '/');
    EXPECT_TRUE(
        std::ranges::any_of(alternatives, [&](const auto& one) { return any_matches(loop, one); }))
        << "expected " << pattern << " in " << where;
  }
  for (const std::string& pattern : row.must_not) {
    EXPECT_FALSE(any_matches(loop, pattern)) << "expected no " << pattern << " in " << where;
  }
}

TEST(Selection, MainLoopsHaveTheMnemonicsOfTheTable) {
  const std::vector<SelectionRow> rows = read_selection_rows();
  EXPECT_GE(rows.size(), 40u);
  for (const SelectionRow& row : rows) {
    const auto function = function_of(row);
    ASSERT_TRUE(function.ok()) << row.operation << ": " << function.error().to_string();
    int tiers = 0;
    for (const jit::TierInfo& tier : jit::tier_table()) {
      if (!matches(tier.name, row.tiers)) continue;
      ++tiers;
      expect_selection(row, **function, tier.tier);
    }
    EXPECT_GT(tiers, 0) << "no tier is called " << row.tiers;
  }
}

// ---- rules for all code

/// One nest's code, and what the rules need to know of it.
struct Emitted {
  std::string name;
  bool floats = false;  ///< a float takes part in the conversion
  bool streaming = false;
  bool packs_bits = false;   ///< to a sub-byte type
  bool joins_bytes = false;  ///< from 16 bits to 8, where f16 has lanes
  Words mnemonics;
};

/// Calls `check` with the code of every conversion in every form.
template <class Check>
void for_all_code(const jit::Target& target, const Check& check) {
  for (const Conversion& conversion : all_conversions()) {
    for (const jit::Nest& nest : plan_nests(*function_of(conversion), target)) {
      for (const jit::NestForm& form : forms_of(nest, target)) {
        const Result<jit::MachineCode> code = emit_nest(nest, form, target);
        ASSERT_TRUE(code.ok()) << conversion.name() << ": " << code.error().message;
        Emitted emitted;
        emitted.name = conversion.name();
        const auto is_real = [](ElementType type) {
          return !is_integer(type) && !is_boolean(type);
        };
        emitted.floats = is_real(conversion.from) || is_real(conversion.to);
        emitted.packs_bits = is_sub_byte(conversion.to);
        emitted.joins_bytes = target.supports(jit::Feature::avx512_fp16) &&
                              bits_of(conversion.from) == 16 && bits_of(conversion.to) == 8;
        emitted.streaming = form.stores == jit::Stores::streaming;
        emitted.mnemonics = mnemonics_of(*code);
        check(emitted);
      }
    }
  }
}

class CodeRules : public testing::TestWithParam<jit::Tier> {};

/// The last instructions: vzeroupper, the stack given back, ret; nothing returns elsewhere.
void expect_clean_exit(const Emitted& code) {
  EXPECT_EQ(std::ranges::count(code.mnemonics, "ret"), 1) << code.name;
  EXPECT_EQ(std::ranges::count(code.mnemonics, "vzeroupper"), 1) << code.name;
  const auto at = std::ranges::find(code.mnemonics, "vzeroupper");
  ASSERT_NE(at, code.mnemonics.end());
  EXPECT_EQ(code.mnemonics.back(), "ret") << code.name;
  for (auto after = at + 1; after != code.mnemonics.end(); ++after) {
    const bool gives_back = *after == "add" || *after == "mov";  // mov where it was aligned
    EXPECT_TRUE(gives_back || *after == "pop" || *after == "ret") << code.name << ": " << *after;
  }
}

/// MXCSR is saved, set and given back where an instruction heeds it, and else left alone.
void expect_float_state(const Emitted& code) {
  const auto heeds = [](const std::string& mnemonic) {
    for (const char* pattern : {"vcvt*", "vadd*", "vsub*", "vmul*", "vmin*", "vmax*", "vcmpp*",
                                "vround*", "vrndscale*", "vrange*", "vfixupimm*", "vfmadd*"}) {
      if (matches(mnemonic, pattern)) return true;
    }
    return false;
  };
  const bool needs = std::ranges::any_of(code.mnemonics, heeds);
  const auto saved = std::ranges::count(code.mnemonics, "stmxcsr");
  const auto set = std::ranges::count(code.mnemonics, "ldmxcsr");
  const std::string found = fmt::format("{}: {} stmxcsr, {} ldmxcsr", code.name, saved, set);
  if (needs) {
    EXPECT_TRUE(saved == 1 && set == 2) << found;
  }
  if (!code.floats) {
    EXPECT_TRUE(saved == 0 && set == 0) << found;
  }
}

TEST_P(CodeRules, HoldForEveryConversion) {
  for_all_code({GetParam()}, [](const Emitted& code) {
    expect_clean_exit(code);
    expect_float_state(code);
    // They saturate, flush subnormals, or are slow on the reference machine.
    for (const char* pattern : {"vcvtne*", "vpgather*", "vpscatter*", "vdiv*", "call"}) {
      EXPECT_FALSE(any_matches(code.mnemonics, pattern)) << code.name << " has " << pattern;
    }
    // Two adjacent codes of at most six bits are far from where vpmaddubsw saturates, and so are a
    // byte and twice another one (encode_f16_lanes).
    EXPECT_LE(any_matches(code.mnemonics, "vpmaddubsw"), code.packs_bits || code.joins_bytes)
        << code.name;
    // Stores of less than 16 bytes stay cached ones.
    EXPECT_LE(any_matches(code.mnemonics, "vmovnt*"), code.streaming) << code.name;
    EXPECT_EQ(any_matches(code.mnemonics, "sfence"), code.streaming) << code.name;
  });
}

INSTANTIATE_TEST_SUITE_P(Tiers, CodeRules, testing::ValuesIn(test::all_tiers),
                         [](const auto& row) { return std::string(name_of(row.param)); });

}  // namespace
}  // namespace castor::test
