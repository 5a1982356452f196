// SPDX-License-Identifier: Apache-2.0
// Who is told of the code that a cache makes.
#pragma once

#include <memory>
#include <string_view>

#include "jit/code.hpp"
#include "jit/memory/code_memory.hpp"
#include "runtime/observe/code_description.hpp"

namespace castor {

/// Implementations are thread safe. A cache's watcher lives at least as long as the cache.
class CodeWatcher {
 public:
  virtual ~CodeWatcher() = default;
  /// Bytes that are to be left free after the code where it is published.
  virtual uint32_t room_after(const jit::MachineCode&) const { return 0; }
  /// Takes code that was just made, before others can find it: `key` is its specialisation key.
  /// Returns what is to be destroyed before the code is; perhaps null.
  virtual std::shared_ptr<const void> code_made(const CodeDescription& description,
                                                std::string_view key, const jit::MachineCode& code,
                                                const jit::CodeBlock& block) noexcept = 0;
};

}  // namespace castor
