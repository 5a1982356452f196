// SPDX-License-Identifier: Apache-2.0
// Every instruction of the golden kernels has an origin: a named section, and where it computes
// lanes their operations. (golden_kernels_test checks the kernels of kernels.txt.)
#include <gtest/gtest.h>

#include <set>

#include "jit/emit/nest_emitter.hpp"
#include "jit/listing/origins.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/golden_kernel.hpp"

namespace castor::test {
namespace {

using jit::CodeNote;
using jit::CodeSection;

/// Sections that run lane programs: their notes name a lane operation.
bool runs_lanes(CodeSection section) {
  return section == CodeSection::chunk || section == CodeSection::once ||
         section == CodeSection::once_per_row;
}

/// What one file's codes show of notes.
struct Shown {
  std::set<CodeSection> sections;
  size_t instructions = 0;
};

void expect_lanes(const jit::MachineCode& code, const CodeNote& note, const std::string& where) {
  if (!runs_lanes(note.section)) return;
  EXPECT_FALSE(note.text.empty()) << where << ": lanes without operation";
  const auto names = [&](const jit::CodeLane& lane) { return lane.text == note.text; };
  EXPECT_TRUE(std::ranges::any_of(code.lanes, names)) << where << " lacks lane " << note.text;
}

void expect_origins(const jit::MachineCode& code, const std::string& where, Shown& shown) {
  const auto found = jit::origins(code);
  ASSERT_TRUE(found.ok()) << where << ": " << found.error().message;
  shown.instructions += found->size();
  for (const size_t index : *found) {
    const CodeNote& note = code.notes[index];
    shown.sections.insert(note.section);
    expect_lanes(code, note, where);
  }
}

/// What no listing shows: row tables, blocks of rows, copies of tiles, tables of bytes.
constexpr const char* more_kernels[] = {
    "// kernel: tile_copy element_bytes=1\n",
    "// kernel: tile_copy element_bytes=8\n",
    "// kernel: byte_table\n",
    "// form: likely\n"
    "func @by_row(%q: u4[?n, 64], %s: f16[?n, 1], %z: u4[?n, 1]) -> (f16[?n, 64]) {\n"
    "  %a = convert %q : f16\n  %b = convert %z : f16\n  %d = sub %a, %b\n  %y = mul %d, %s\n"
    "  return %y\n}\n",
    "// form: likely\n"
    "func @short_rows(%x: u8[?n, 16]) -> (u8[?n]) {\n"
    "  %a = reduce_max %x {axes = [1]}\n  return %a\n}\n",
};

TEST(GoldenOrigins, EveryInstructionHasOne) {
  Shown shown;
  const auto expect_file = [&](const std::string& text, const std::string& name) {
    const auto kernel = read_golden_kernel(text);
    ASSERT_TRUE(kernel.ok()) << name << ": " << kernel.error().message;
    const auto codes = golden_codes(*kernel);
    ASSERT_TRUE(codes.ok()) << name << ": " << codes.error().message;
    for (const jit::MachineCode& code : *codes) expect_origins(code, name, shown);
  };
  for (const auto& file : listing_files()) {
    expect_file(text_of_file(file), file.filename().string());
  }
  EXPECT_GT(shown.instructions, 10'000u);
  for (const std::string text : more_kernels) {
    expect_file("// tier: avx512_vbmi\n" + text + "----\n", text);
  }
  for (const jit::SectionInfo& row : jit::code_sections()) {
    if (row.section == CodeSection::none) continue;
    EXPECT_TRUE(shown.sections.contains(row.section)) << "no kernel has: " << row.name;
  }
}

/// In listings of functions, code outside of the frame names the function's operations.
TEST(GoldenOrigins, NameTheOperationsOfFunctions) {
  size_t named = 0;
  for (const auto& file : listing_files()) {
    const auto kernel = read_golden_kernel(text_of_file(file));
    ASSERT_TRUE(kernel.ok()) << file;
    if (!kernel->function || kernel->spec) continue;
    const auto codes = golden_codes(*kernel);
    ASSERT_TRUE(codes.ok()) << file;
    for (const jit::MachineCode& code : *codes) {
      for (const CodeNote& note : code.notes) {
        if (!runs_lanes(note.section)) continue;
        EXPECT_FALSE(note.origin.empty()) << file << ": " << note.text;
        EXPECT_TRUE(note.operation >= 0 &&
                    static_cast<size_t>(note.operation) < kernel->function->operations.size());
        ++named;
      }
    }
  }
  EXPECT_GT(named, 1'000u);
}

/// What notes say changes no byte.
TEST(GoldenOrigins, ChangeNoCode) {
  for (const auto& file : listing_files()) {
    const auto kernel = read_golden_kernel(text_of_file(file));
    ASSERT_TRUE(kernel.ok()) << file;
    if (!kernel->spec || kernel->function) continue;
    const auto noted = emit_spec(*kernel->spec, kernel->target, nullptr, {.annotate = true});
    const auto plain = emit_spec(*kernel->spec, kernel->target, nullptr);
    ASSERT_TRUE(noted.ok() && plain.ok()) << file;
    EXPECT_EQ(noted->bytes, plain->bytes) << file;
    EXPECT_TRUE(plain->notes.empty() && plain->loops.empty() && plain->lanes.empty()) << file;
  }
}

// ---- what the check itself finds

TEST(Origins, AreMissedWhereThereAreNone) {
  auto code = emit_spec(jit::TileCopySpec{}, {jit::Tier::avx2}, nullptr, {.annotate = true});
  ASSERT_TRUE(code.ok());
  ASSERT_TRUE(jit::origins(*code).ok());
  const CodeNote first = code->notes.front();
  code->notes.erase(code->notes.begin());
  EXPECT_FALSE(jit::origins(*code).ok()) << "the first instruction has no note";
  code->notes.insert(code->notes.begin(), first);
  code->notes.back().section = CodeSection::none;
  EXPECT_FALSE(jit::origins(*code).ok()) << "the last ones are of no section";
  code->notes.back().section = CodeSection::row_loop;
  EXPECT_FALSE(jit::origins(*code).ok()) << "a loop does not return";
  code->notes = {{0, CodeSection::entry, -1, "", ""}};
  EXPECT_FALSE(jit::origins(*code).ok()) << "an entry has no vectors";
}

}  // namespace
}  // namespace castor::test
