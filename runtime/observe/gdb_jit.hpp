// SPDX-License-Identifier: Apache-2.0
// GDB's JIT interface ("JIT Compilation Interface" in its manual; LLDB reads it too).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "jit/code.hpp"

extern "C" {

/// One symbol file in the list that debuggers read. The layouts and names are GDB's.
struct jit_code_entry {
  jit_code_entry* next_entry;
  jit_code_entry* prev_entry;
  const char* symfile_addr;
  uint64_t symfile_size;
};

struct jit_descriptor {
  uint32_t version;
  uint32_t action_flag;
  jit_code_entry* relevant_entry;
  jit_code_entry* first_entry;
};

// The only state that castor shares between all runtimes of a process, by GDB's contract: a
// debugger looks for one list of code in a program or library, under these names, and stops the
// process in this function whenever the list has changed. The symbols are weak, so that a program
// which links another code generator with its own (LLVM has them too) has one list for both; and
// visible, so that debuggers find them in libraries without symbol tables.
extern jit_descriptor __jit_debug_descriptor;
void __jit_debug_register_code();
}

namespace castor {

/// Registers code with debuggers for as long as it lives. Making and ending it is thread safe among
/// castor's own; other generators that change the list at the same moment have locks of their own,
/// which nobody can take for them.
class GdbRegistration {
 public:
  GdbRegistration(std::string_view name, std::span<const std::byte> code,
                  std::span<const jit::FrameChange> frame);
  ~GdbRegistration();
  GdbRegistration(const GdbRegistration&) = delete;
  GdbRegistration& operator=(const GdbRegistration&) = delete;

 private:
  struct Entry {
    std::vector<std::byte> symbols;
    jit_code_entry listed{};
  };
  std::unique_ptr<Entry> entry_;
};

}  // namespace castor
