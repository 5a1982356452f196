// SPDX-License-Identifier: Apache-2.0
// Code as text for other tools: GNU as makes the same instructions of it.
#include "jit/listing/assembly_text.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <sstream>

#include "jit/listing/listing.hpp"
#include "tests/support/command.hpp"
#include "tests/support/golden_loops.hpp"

namespace castor::test {
namespace {

/// What the golden codes are called in one file.
std::string symbol_of(size_t listing, size_t nest) { return fmt::format("k{}_n{}", listing, nest); }

/// An instruction without what a linker would fill in, and without the name of a label, which
/// counts from the start of the code.
std::string plain_text(const jit::ListedInstruction& listed) {
  static const std::regex from_rip("\\[(pool|code)\\+0x[0-9a-f]+\\]|\\[L[0-9]+\\]");
  return std::regex_replace(listed.text, from_rip, "[rip]");
}

/// Without padding, whose length is the assembler's.
std::vector<std::string> plain_texts(const jit::MachineCode& code) {
  std::vector<std::string> texts;
  const auto listed = disassemble(code);
  EXPECT_TRUE(listed.ok()) << (listed ? "" : listed.error().message);
  if (!listed) return texts;
  for (const jit::ListedInstruction& each : *listed) {
    if (each.mnemonic != "nop") texts.push_back(plain_text(each));
  }
  return texts;
}

/// The instructions of each symbol that the object file defines.
std::map<std::string, jit::MachineCode> codes_of(const TemporaryFolder& folder) {
  const std::string object = folder.path("golden.o");
  const std::string binary = folder.path("golden.bin");
  EXPECT_EQ(run_command({"/usr/bin/env", "objcopy", "-O", "binary", "-j", ".text", object, binary})
                .status,
            0);
  const std::string bytes = read_text(binary);
  std::map<std::string, jit::MachineCode> codes;
  std::istringstream symbols(run_command({"/usr/bin/env", "nm", "-S", object}).out);
  for (std::string line; std::getline(symbols, line);) {
    std::istringstream words(line);
    size_t offset = 0;
    size_t size = 0;
    char kind = 0;
    std::string name;
    if (!(words >> std::hex >> offset >> size >> kind >> name) || kind != 'T') continue;
    jit::MachineCode& code = codes[name];
    const auto* begin = reinterpret_cast<const std::byte*>(bytes.data()) + offset;
    code.bytes.assign(begin, begin + size);
    code.instruction_bytes = code.pool_begin = static_cast<uint32_t>(size);
    // Constants are not linked: their operands name up to 64 bytes after the instruction.
    constexpr size_t largest_operand = 64;
    code.bytes.resize(size + largest_operand);
  }
  return codes;
}

TEST(AssemblyText, GasMakesTheSameInstructions) {
  const auto all = golden_loops();
  ASSERT_TRUE(all.ok()) << all.error().to_string();
  std::string source;
  for (size_t i = 0; i < all->size(); ++i) {
    for (size_t nest = 0; nest < (*all)[i].codes.size(); ++nest) {
      const auto text = jit::gas_text((*all)[i].codes[nest], symbol_of(i, nest));
      ASSERT_TRUE(text.ok()) << text.error().message;
      source += *text;
    }
  }
  const TemporaryFolder folder;
  write_text(folder.path("golden.s"), source);
  const auto assembled = run_command(
      {"/usr/bin/env", "as", "--64", folder.path("golden.s"), "-o", folder.path("golden.o")});
  ASSERT_EQ(assembled.status, 0) << assembled.err;
  const auto codes = codes_of(folder);
  for (size_t i = 0; i < all->size(); ++i) {
    for (size_t nest = 0; nest < (*all)[i].codes.size(); ++nest) {
      SCOPED_TRACE((*all)[i].listing);
      const auto found = codes.find(symbol_of(i, nest));
      ASSERT_NE(found, codes.end());
      EXPECT_EQ(plain_texts(found->second), plain_texts((*all)[i].codes[nest]));
    }
  }
}

}  // namespace
}  // namespace castor::test
