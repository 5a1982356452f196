// SPDX-License-Identifier: Apache-2.0
// The pages that machine code lives in: one mapping to execute, and while filling one to write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "ir/result.hpp"
#include "jit/code_budget.hpp"
#include "jit/system_memory.hpp"

namespace castor::jit {

/// How a piece of code came to be executable.
enum class CodeMapping : uint8_t {
  dual,        ///< an arena of one memfd mapped twice: once writable, once executable
  protected_,  ///< pages of its own, written first and then made executable
};

/// The executable mapping. Shared by the blocks of code in it and by whoever still fills it, and
/// unmapped with the last of them.
class CodeArena {
 public:
  /// `share` is as large as `pages`.
  CodeArena(MappedPages pages, CodeMapping mapping, CodeShare share)
      : share_(std::move(share)), pages_(std::move(pages)), mapping_(mapping) {
    share_.set_mapped();
  }
  CodeArena(const CodeArena&) = delete;
  CodeArena& operator=(const CodeArena&) = delete;

  const std::byte* begin() const { return pages_.begin(); }
  size_t size() const { return pages_.size(); }
  CodeMapping mapping() const { return mapping_; }

 private:
  CodeShare share_;  // given back when the pages are unmapped
  MappedPages pages_;
  CodeMapping mapping_;
};

/// An arena being filled, front to back; bytes once written are never written again. Its writable
/// mapping goes with this object, and is not inherited by forked children.
class OpenArena {
 public:
  /// Maps an arena of `bytes` bytes (a multiple of `page_bytes`) and takes the page faults of both
  /// mappings.
  static Result<OpenArena> map(const SystemCalls& system, size_t bytes,
                               const std::shared_ptr<CodeBudget>& budget);

  const std::shared_ptr<CodeArena>& arena() const { return arena_; }
  bool fits(size_t code_bytes) const { return code_bytes <= arena_->size() - used_; }
  /// Copies code that fits; returns where it can be executed. The next code begins at the next
  /// multiple of `alignment` (a power of two up to `page_bytes`).
  const std::byte* append(std::span<const std::byte> code, size_t alignment);
  /// In a forked child: the writable mapping is the parent's and does not exist here.
  void forget_writable() { writable_.forget(); }

 private:
  OpenArena(std::shared_ptr<CodeArena> arena, MappedPages writable)
      : arena_(std::move(arena)), writable_(std::move(writable)) {}

  std::shared_ptr<CodeArena> arena_;
  MappedPages writable_;
  size_t used_ = 0;
};

/// Private pages that hold `code` alone: written, then made executable, and never changed again.
Result<std::shared_ptr<CodeArena>> map_protected(const SystemCalls& system,
                                                 std::span<const std::byte> code,
                                                 const std::shared_ptr<CodeBudget>& budget);

}  // namespace castor::jit
