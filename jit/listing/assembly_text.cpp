// SPDX-License-Identifier: Apache-2.0
#include "jit/listing/assembly_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <span>

#include "jit/listing/listing.hpp"

namespace castor::jit {

namespace {

constexpr size_t bytes_a_line = 16;

void replace_all(std::string& text, std::string_view old, std::string_view replacement) {
  for (size_t at = text.find(old); at != std::string::npos;
       at = text.find(old, at + replacement.size())) {
    text.replace(at, old.size(), replacement);
  }
}

/// "L12" as a word of its own becomes "NAME_L12".
void name_label(std::string& text, std::string_view name) {
  const size_t at = text.rfind(" L");
  if (at == std::string::npos || at + 2 >= text.size()) return;
  if (std::isdigit(static_cast<unsigned char>(text[at + 2])) == 0) return;
  text.insert(at + 1, fmt::format("{}_", name));
}

/// Zydis's text as assemblers have it: rounding is an operand of its own, constants are found from
/// rip by a symbol. GNU as 2.40 takes no size for tile configurations.
std::string assembler_text(const ListedInstruction& listed, std::string_view name) {
  std::string text = listed.text;
  for (const std::string_view rounding :
       {"{sae}", "{rn-sae}", "{rd-sae}", "{ru-sae}", "{rz-sae}"}) {
    replace_all(text, fmt::format(" {}", rounding), fmt::format(", {}", rounding));
  }
  replace_all(text, "tilecfg zmmword ptr ", "tilecfg ");
  replace_all(text, "[pool+", fmt::format("[rip+{}_pool+", name));
  name_label(text, name);
  return text;
}

std::string bytes_text(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    text += fmt::format("{}{:#04x}", text.empty() ? "" : ", ", std::to_integer<int>(byte));
  }
  return text;
}

std::string region_name(const CodeLoop& loop, std::string_view name) {
  std::string text = fmt::format("{}_{}_{:x}", name, loop.name, loop.begin);
  std::ranges::replace(text, ' ', '_');
  return text;
}

/// Writes "# LLVM-MCA-BEGIN ..." and "-END" where loops begin and end at the offset.
std::string regions_at(const MachineCode& code, uint32_t offset, std::string_view name) {
  std::string text;
  for (const CodeLoop& loop : code.loops) {
    if (loop.end == offset) text += fmt::format("# LLVM-MCA-END {}\n", region_name(loop, name));
  }
  for (const CodeLoop& loop : code.loops) {
    if (loop.begin == offset) text += fmt::format("# LLVM-MCA-BEGIN {}\n", region_name(loop, name));
  }
  return text;
}

std::string label_text(const ListedInstruction& listed, std::string_view name) {
  return listed.label ? fmt::format("{}_L{}:\n", name, *listed.label) : "";
}

}  // namespace

Result<std::string> gas_text(const MachineCode& code, std::string_view name) {
  const auto listed = disassemble(code, true);
  if (!listed) return listed.error();
  std::string text = fmt::format(
      "  .intel_syntax noprefix\n  .text\n  .p2align 6\n  .globl {0}\n  .type {0}, "
      "@function\n{0}:\n",
      name);
  for (const ListedInstruction& each : *listed) {
    text += label_text(each, name);
    if (each.mnemonic == "nop") {
      const auto bytes = std::span(code.bytes).subspan(each.offset, each.length);
      text += fmt::format("  .byte {}  # padding\n", bytes_text(bytes));
    } else {
      text += fmt::format("  {}\n", assembler_text(each, name));
    }
  }
  text += fmt::format("  .size {0}, . - {0}\n", name);
  const auto pool = code.pool();
  if (pool.empty()) return text;
  text += fmt::format("  .section .rodata\n  .p2align 6\n{}_pool:\n", name);
  for (size_t at = 0; at < pool.size(); at += bytes_a_line) {
    const size_t count = std::min(bytes_a_line, pool.size() - at);
    text += fmt::format("  .byte {}\n", bytes_text(pool.subspan(at, count)));
  }
  return text;
}

Result<std::string> mca_text(const MachineCode& code, std::string_view name) {
  const auto listed = disassemble(code, true);
  if (!listed) return listed.error();
  std::string text = "  .intel_syntax noprefix\n";
  for (const ListedInstruction& each : *listed) {
    text += regions_at(code, each.offset, name) + label_text(each, name);
    text += fmt::format("  {}\n", each.mnemonic == "nop" ? "nop" : assembler_text(each, name));
  }
  return text + regions_at(code, code.instruction_bytes, name);
}

std::string hex_text(const MachineCode& code) {
  std::string text;
  for (size_t i = 0; i < code.bytes.size(); ++i) {
    const bool ends = (i + 1) % bytes_a_line == 0 || i + 1 == code.bytes.size();
    text += fmt::format("{:02x}{}", std::to_integer<int>(code.bytes[i]), ends ? "\n" : " ");
  }
  return text;
}

}  // namespace castor::jit
