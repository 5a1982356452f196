// SPDX-License-Identifier: Apache-2.0
#include "runtime/observe/symbol_file.hpp"

#include <elf.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>

#include "jit/memory/system_memory.hpp"

namespace castor {

namespace {

/// The sections, in the order of their headers.
enum Section : uint16_t { none, text, unwinding, symbols, strings, section_names, section_count };

/// Names of all sections in one table, as ELF has them.
constexpr char names[] = "\0.text\0.eh_frame\0.symtab\0.strtab\0.shstrtab";
constexpr uint32_t text_name = 1;
constexpr uint32_t unwinding_name = 7;
constexpr uint32_t symbols_name = 17;
constexpr uint32_t strings_name = 25;
constexpr uint32_t section_names_name = 33;

constexpr size_t unwinding_alignment = 8;

struct Layout {
  Elf64_Ehdr header;
  std::array<Elf64_Shdr, section_count> sections;
  std::array<Elf64_Sym, 2> symbols;  // the first one is null, as ELF wants it
  char names[sizeof(castor::names)];
};

Elf64_Ehdr file_header() {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_REL;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_shoff = offsetof(Layout, sections);
  header.e_ehsize = sizeof(Elf64_Ehdr);
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = section_count;
  header.e_shstrndx = section_names;
  return header;
}

Elf64_Shdr section(uint32_t name, uint32_t type, size_t offset, size_t size) {
  Elf64_Shdr header{};
  header.sh_name = name;
  header.sh_type = type;
  header.sh_offset = offset;
  header.sh_size = size;
  header.sh_addralign = 1;
  return header;
}

}  // namespace

std::vector<std::byte> symbol_file(std::string_view name, std::span<const std::byte> code,
                                   std::span<const std::byte> eh_frame) {
  const size_t unwinding_at = jit::round_up(sizeof(Layout) + name.size() + 2, unwinding_alignment);
  std::vector<std::byte> file(unwinding_at + eh_frame.size());
  Layout layout{};
  layout.header = file_header();
  Elf64_Shdr& text_header = layout.sections[text];
  text_header = section(text_name, SHT_NOBITS, sizeof(Layout), code.size());
  text_header.sh_addr = reinterpret_cast<uintptr_t>(code.data());
  text_header.sh_flags = SHF_ALLOC | SHF_EXECINSTR;
  Elf64_Shdr& unwinding_header = layout.sections[unwinding];
  unwinding_header = section(unwinding_name, SHT_PROGBITS, unwinding_at, eh_frame.size());
  unwinding_header.sh_addr = reinterpret_cast<uintptr_t>(&file[unwinding_at]);
  unwinding_header.sh_flags = SHF_ALLOC;
  unwinding_header.sh_addralign = unwinding_alignment;
  Elf64_Shdr& symbols_header = layout.sections[symbols];
  symbols_header =
      section(symbols_name, SHT_SYMTAB, offsetof(Layout, symbols), sizeof(layout.symbols));
  symbols_header.sh_link = strings;
  symbols_header.sh_info = 1;  // the first global one
  symbols_header.sh_entsize = sizeof(Elf64_Sym);
  symbols_header.sh_addralign = alignof(Elf64_Sym);
  layout.sections[strings] = section(strings_name, SHT_STRTAB, sizeof(Layout), name.size() + 2);
  layout.sections[section_names] =
      section(section_names_name, SHT_STRTAB, offsetof(Layout, names), sizeof(names));
  Elf64_Sym& symbol = layout.symbols[1];
  symbol.st_name = 1;  // after the null at the beginning of all string tables
  symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
  symbol.st_shndx = text;
  symbol.st_size = code.size();  // its value, 0, counts from the section's address
  std::memcpy(layout.names, names, sizeof(names));

  std::memcpy(file.data(), &layout, sizeof(Layout));
  std::memcpy(file.data() + sizeof(Layout) + 1, name.data(), name.size());
  std::memcpy(&file[unwinding_at], eh_frame.data(), eh_frame.size());
  return file;
}

}  // namespace castor
