// SPDX-License-Identifier: Apache-2.0
// The pages that machine code and its constants live in.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ir/support/result.hpp"
#include "jit/code.hpp"
#include "jit/memory/code_budget.hpp"
#include "jit/memory/code_file.hpp"
#include "jit/memory/system_memory.hpp"

namespace castor::jit {

/// The instructions as published: for a pool that begins `pool_distance` bytes after the first.
std::vector<std::byte> instructions_for(const MachineCode& code, size_t pool_distance);

/// How the pages of code are mapped.
enum class CodeMapping : uint8_t {
  arena,      ///< in a memfd with other code: mapped to be executed, written as a file
  own_pages,  ///< on private pages of its own, written first and then made executable
};

/// A mapping: pages that can be executed, then pages that can only be read. Shared by the blocks of
/// code in it and by whoever still fills it, and unmapped with the last of them.
class CodeArena {
 public:
  CodeArena(MappedPages pages, CodeMapping mapping) : pages_(std::move(pages)), mapping_(mapping) {}
  CodeArena(const CodeArena&) = delete;
  CodeArena& operator=(const CodeArena&) = delete;

  const std::byte* begin() const { return pages_.begin(); }
  size_t size() const { return pages_.size(); }
  CodeMapping mapping() const { return mapping_; }
  /// Counts pages that hold code or constants from now on. Called by who fills the arena alone.
  void add(CodeReservation reservation) {
    reservation.set_mapped();
    reservation_.add(std::move(reservation));
  }

 private:
  CodeReservation reservation_;  // released when the pages are unmapped
  MappedPages pages_;
  CodeMapping mapping_;
};

/// Machine code that can be called, for as long as the object (or a copy of it) lives. Immutable,
/// thread safe; may outlive the CodeMemory that made it.
class CodeBlock {
 public:
  CodeBlock(std::shared_ptr<CodeArena> arena, std::span<const std::byte> code,
            std::span<const std::byte> pool)
      : arena_(std::move(arena)), code_(code), pool_(pool) {}
  /// The instructions, which begin with the entry.
  const std::byte* code() const { return code_.data(); }
  size_t code_size() const { return code_.size(); }
  /// The constants, on pages that cannot be executed; perhaps none.
  std::span<const std::byte> pool() const { return pool_; }
  size_t size() const { return code_.size() + pool_.size(); }
  CodeMapping mapping() const { return arena_->mapping(); }
  /// What it holds of code memory: whole pages where it has pages of its own.
  size_t held_bytes() const { return mapping() == CodeMapping::arena ? size() : arena_->size(); }

 private:
  std::shared_ptr<CodeArena> arena_;
  std::span<const std::byte> code_;
  std::span<const std::byte> pool_;
};

/// An arena being filled: code from its beginning, constants from the beginning of the pages that
/// are only read. Bytes once written are never written again.
class OpenArena {
 public:
  static constexpr size_t alignment = 64;              ///< of each code and of each pool
  static constexpr size_t code_step = 4 * page_bytes;  ///< of pages taken at a time

  /// An arena with room for that many bytes of code and of constants (multiples of `page_bytes`).
  /// Takes address space; memory comes with `append`.
  static Result<OpenArena> open(const SystemCalls& system, size_t code_bytes, size_t pool_bytes);

  const std::shared_ptr<CodeArena>& arena() const { return arena_; }
  bool fits(const MachineCode& code) const;
  bool is_empty() const { return code_.used == 0; }
  /// Publishes code that fits, and takes the page faults of running it. Fails where the budget has
  /// no pages left (`is_limit_reached`: then nothing has changed), and where the system refuses:
  /// then the arena must not be filled any more.
  Result<CodeBlock> append(const MachineCode& code, const std::shared_ptr<CodeBudget>& budget);

 private:
  /// One of its two parts; `begin` counts from the beginning of the arena, the others from there.
  struct Part {
    size_t begin;
    size_t size;
    size_t step;         // bytes of pages that are taken at a time, as long as the budget has them
    size_t used = 0;     // the next code, or pool, begins here
    size_t written = 0;  // the pages that there are

    size_t end() const { return begin + used; }
    bool fits(size_t bytes) const { return bytes <= size - used; }
    /// Bytes of pages that `bytes` more need at least, and those that are wanted.
    size_t min(size_t bytes) const { return std::max(written, round_up(used + bytes, page_bytes)); }
    size_t wanted(size_t bytes) const {
      const size_t needed = min(bytes);
      return needed == written ? written : std::min(size, round_up(needed, step));
    }
  };

  OpenArena(std::shared_ptr<CodeArena> arena, CodeFile file, size_t code_bytes, size_t pool_bytes)
      : arena_(std::move(arena)),
        file_(std::move(file)),
        code_{.begin = 0, .size = code_bytes, .step = code_step},
        pool_{.begin = code_bytes, .size = pool_bytes, .step = page_bytes} {}
  /// Bytes of pages that both parts will have, and the reservation of those that are new.
  struct Pages {
    size_t code;
    size_t pool;
    CodeReservation reservation;
  };
  Result<Pages> take_pages(size_t code_size, size_t pool_size,
                           const std::shared_ptr<CodeBudget>& budget);
  static FileRange range_for(const Part& part, std::span<const std::byte> bytes, size_t pages);
  /// `taken`: with the room after it.
  std::span<const std::byte> publish(Part& part, size_t size, size_t taken, size_t pages);

  std::shared_ptr<CodeArena> arena_;
  CodeFile file_;
  Part code_;
  Part pool_;
};

/// Private pages for `code` alone: written, then made executable or, where the constants are,
/// readable alone, and never changed again.
Result<CodeBlock> publish_on_own_pages(const SystemCalls& system, const MachineCode& code,
                                       const std::shared_ptr<CodeBudget>& budget);

}  // namespace castor::jit
