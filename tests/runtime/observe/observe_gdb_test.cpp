// SPDX-License-Identifier: Apache-2.0
// GDB's list of code: followed as GDB does, and the ELF files in it read.
#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <thread>

#include "runtime/observe/code_name.hpp"
#include "runtime/observe/gdb_jit.hpp"
#include "runtime/observe/symbol_file.hpp"
#include "runtime/observe/unwind_records.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/observed.hpp"
#include "tests/support/process_maps.hpp"

namespace castor {
namespace {

using test::ObservedRuntime;

constexpr std::span<const jit::FrameChange> no_frame;

struct Symbol {
  uintptr_t address = 0;
  size_t size = 0;
};

template <class T>
T read_at(std::span<const std::byte> file, size_t offset) {
  T value{};
  EXPECT_LE(offset + sizeof value, file.size());
  if (offset + sizeof value <= file.size()) {
    std::memcpy(&value, file.data() + offset, sizeof value);
  }
  return value;
}

std::string text_at(std::span<const std::byte> file, size_t offset) {
  std::string text;
  for (; offset < file.size() && file[offset] != std::byte{0}; ++offset) {
    text += static_cast<char>(file[offset]);
  }
  EXPECT_LT(offset, file.size());  // its end is in the file
  return text;
}

/// The file's only function, found the way that the ELF specification says.
std::pair<std::string, Symbol> symbol_in(std::span<const std::byte> file) {
  const auto header = read_at<Elf64_Ehdr>(file, 0);
  EXPECT_EQ(std::memcmp(header.e_ident, ELFMAG, SELFMAG), 0);
  EXPECT_EQ(header.e_ident[EI_CLASS], ELFCLASS64);
  EXPECT_EQ(header.e_machine, EM_X86_64);
  const auto section = [&](size_t index) {
    return read_at<Elf64_Shdr>(file, header.e_shoff + index * header.e_shentsize);
  };
  std::map<std::string, Elf64_Shdr> sections;
  for (size_t i = 1; i < header.e_shnum; ++i) {
    const std::string name =
        text_at(file, section(header.e_shstrndx).sh_offset + section(i).sh_name);
    sections[name] = section(i);
  }
  const Elf64_Shdr symbols = sections[".symtab"];
  EXPECT_EQ(symbols.sh_size, 2 * symbols.sh_entsize);
  const auto symbol = read_at<Elf64_Sym>(file, symbols.sh_offset + symbols.sh_entsize);
  EXPECT_EQ(ELF64_ST_TYPE(symbol.st_info), STT_FUNC);
  const Elf64_Shdr text = section(symbol.st_shndx);
  EXPECT_EQ(text.sh_type, static_cast<Elf64_Word>(SHT_NOBITS));
  EXPECT_EQ(text.sh_flags, static_cast<Elf64_Xword>(SHF_ALLOC | SHF_EXECINSTR));
  EXPECT_EQ(text.sh_size, symbol.st_size);
  const std::string name = text_at(file, section(symbols.sh_link).sh_offset + symbol.st_name);
  return {name, {text.sh_addr + symbol.st_value, symbol.st_size}};
}

/// All code that a debugger would see now; back links are checked on the way.
std::map<std::string, Symbol> registered() {
  std::map<std::string, Symbol> found;
  const jit_code_entry* before = nullptr;
  EXPECT_EQ(__jit_debug_descriptor.version, 1u);
  for (const jit_code_entry* entry = __jit_debug_descriptor.first_entry; entry != nullptr;
       before = entry, entry = entry->next_entry) {
    EXPECT_EQ(entry->prev_entry, before);
    found.insert(symbol_in({reinterpret_cast<const std::byte*>(entry->symfile_addr),
                            static_cast<size_t>(entry->symfile_size)}));
  }
  return found;
}

ObserveOptions with_gdb() {
  ObserveOptions options;
  options.gdb = true;
  return options;
}

TEST(Gdb, SeesCodeAsLongAsItLives) {
  EXPECT_EQ(registered().size(), 0u);
  KernelCodePtr<jit::NestSpec> survivor;
  {
    const ObservedRuntime runtime(with_gdb());
    survivor = runtime.code_of(test::to_i8_text);
    runtime.code_of(test::to_u8_text);
    runtime.code_of(test::to_u8_text);
    const auto symbols = registered();
    ASSERT_EQ(symbols.size(), 2u);
    const Symbol symbol = symbols.at("castor_convert_f32_i8_contiguous_avx2");
    EXPECT_EQ(symbol.address, reinterpret_cast<uintptr_t>(survivor->block.code()));
    EXPECT_EQ(symbol.size, survivor->block.code_size());
    EXPECT_EQ(symbols.count("castor_convert_f32_u8_contiguous_avx2"), 1u);
  }
  EXPECT_EQ(registered().size(), 1u);  // what is held outlives the runtime
  survivor.reset();
  EXPECT_EQ(registered().size(), 0u);
  EXPECT_EQ(__jit_debug_descriptor.action_flag, 0u);
  EXPECT_EQ(__jit_debug_descriptor.relevant_entry, nullptr);
}

TEST(Gdb, CodeLiesWhereBreakpointsCanBeWritten) {  // not in sealed mappings of a memfd
  const ObservedRuntime runtime(with_gdb());
  const KernelCodePtr<jit::NestSpec> code = runtime.code_of(test::to_i8_text);
  const auto address = reinterpret_cast<uintptr_t>(code->block.code());
  const std::vector<test::ProcessMapping> maps = test::process_maps();
  const auto around = std::ranges::find_if(maps, [&](const test::ProcessMapping& mapping) {
    return mapping.begin <= address && address < mapping.end;
  });
  ASSERT_NE(around, maps.end());
  EXPECT_EQ(around->permissions, "r-xp");
}

TEST(Gdb, SeesNothingThatIsNotAskedFor) {
  const ObservedRuntime runtime({});
  const KernelCodePtr<jit::NestSpec> code = runtime.code_of(test::to_i8_text);
  EXPECT_EQ(registered().size(), 0u);
  EXPECT_EQ(runtime.state().observer, nullptr);
  EXPECT_EQ(code->watch, nullptr);
}

TEST(Gdb, AnyOrderOfEndsKeepsTheList) {
  constexpr std::byte code[16] = {};
  for (const std::array<size_t, 3> order :
       {std::array<size_t, 3>{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {1, 2, 0}}) {
    std::vector<std::unique_ptr<GdbRegistration>> all;
    for (const char* name : {"a", "b", "c"}) {
      all.push_back(std::make_unique<GdbRegistration>(name, code, no_frame));
    }
    for (size_t left = all.size(); left > 0; --left) {
      EXPECT_EQ(registered().size(), left);
      all[order[all.size() - left]].reset();
    }
    EXPECT_EQ(registered().size(), 0u);
  }
}

TEST(Gdb, ManyThreadsMayMakeAndEndCode) {
  constexpr std::byte code[16] = {};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        const GdbRegistration first("first", code, no_frame);
        const GdbRegistration second("second", code, no_frame);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(registered().size(), 0u);
}

TEST(Gdb, AChildGoesOnWithTheList) {
  const ObservedRuntime runtime(with_gdb());
  const KernelCodePtr<jit::NestSpec> code = runtime.code_of(test::to_i8_text);
  EXPECT_EQ(test::in_child([&] {
              const KernelCodePtr<jit::NestSpec> own = runtime.code_of(test::to_u8_text);
              return registered().size() == 2 ? 0 : 1;
            }),
            0);
  EXPECT_EQ(registered().size(), 1u);
}

TEST(SymbolFile, TakesAnyName) {
  constexpr std::byte code[3] = {};
  for (const std::string& name : {std::string("f"), std::string(max_name_characters, 'n')}) {
    const auto [found, symbol] = symbol_in(symbol_file(name, code, eh_frame(no_frame, code)));
    EXPECT_EQ(found, name);
    EXPECT_EQ(symbol.address, reinterpret_cast<uintptr_t>(code));
    EXPECT_EQ(symbol.size, 3u);
  }
}

}  // namespace
}  // namespace castor
