// SPDX-License-Identifier: Apache-2.0
// Executable memory under W^X: no page is ever writable and executable through one mapping, and
// an executable page in use never loses its permission.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "ir/result.hpp"
#include "jit/code_arena.hpp"
#include "jit/fork_local.hpp"
#include "jit/system_memory.hpp"

namespace castor::jit {

/// Machine code that can be called, for as long as the object (or a copy of it) lives. Immutable,
/// thread safe; may outlive the CodeMemory that made it.
class CodeBlock {
 public:
  CodeBlock(std::shared_ptr<CodeArena> arena, const std::byte* code, size_t size)
      : arena_(std::move(arena)), code_(code), size_(size) {}
  const std::byte* code() const { return code_; }
  size_t size() const { return size_; }
  CodeMapping mapping() const { return arena_->mapping(); }
  /// What it holds of executable memory: whole pages where it has pages of its own.
  size_t held_bytes() const { return mapping() == CodeMapping::dual ? size_ : arena_->size(); }

 private:
  std::shared_ptr<CodeArena> arena_;
  const std::byte* code_;
  size_t size_;
};

/// Hands out executable memory. Thread safe (one lock, taken while code is published).
///
/// Arenas start small and double, since touching new pages is what costs: the first code pays for
/// four pages (20 us), much code some 2.5 us a page. They are filled from front to back, and
/// the bytes of a dead block are never written again; an arena is unmapped when its last block is
/// dead and it is no longer filled. Code that is larger than the largest arena gets its own. Under
/// a limit arenas are at most a sixteenth of it, or a page, and near it as small as they must be.
///
/// Fork: code published before goes on working in parent and child, which share its pages. The
/// child has no writable mapping of them, and opens arenas of its own when it publishes; the parent
/// goes on filling its own. A thread that was publishing at the moment of the fork does no harm to
/// the child: the lock and the arena that it was busy with are left alone there (the arena stays
/// mapped). A child made by vfork must not publish.
///
/// Caches: x86 keeps instruction caches coherent with stores, by physical address, so through
/// whichever mapping they are made. Code is complete before anyone learns its address, and no byte
/// of it was executed before, so nobody holds stale instructions; handing a block to another thread
/// takes the ordinary acquire and release.
class CodeMemory {
 public:
  static constexpr size_t first_arena_bytes = size_t{16} << 10;
  static constexpr size_t largest_arena_bytes = size_t{128} << 10;
  static constexpr size_t code_alignment = 64;

  /// Maps one page, nothing executable. Throws std::bad_alloc when there is no memory for itself;
  /// what the system refuses is reported by `publish`.
  /// `limit` bounds the bytes mapped at a time, whoever holds them.
  explicit CodeMemory(const SystemCalls& system = SystemCalls::real(), size_t limit = SIZE_MAX);
  /// Unmaps arenas that hold no living block.
  ~CodeMemory();
  CodeMemory(const CodeMemory&) = delete;
  CodeMemory& operator=(const CodeMemory&) = delete;

  /// Copies `code` (position independent, at least one byte) into executable memory at an address
  /// that is a multiple of `code_alignment`. Falls back from dual mapping to pages of the block's
  /// own. When the system refuses both it fails, with out_of_memory if memory is what the fallback
  /// lacked and with executable_memory otherwise; the message names both calls that failed. At the
  /// limit it fails with executable_memory, and names what is mapped and the limit.
  Result<CodeBlock> publish(std::span<const std::byte> code);

  /// Bytes of executable mappings that this object made (or inherited through fork) and that are
  /// mapped at present.
  size_t mapped_bytes() const { return budget_->mapped(); }

 private:
  struct Filling;

  Filling& own_filling();
  static void leave_to_parent(Filling* inherited);
  Result<CodeBlock> publish_dual(std::span<const std::byte> code);
  Result<CodeBlock> publish_protected(std::span<const std::byte> code);

  const SystemCalls system_;
  const size_t shared_arena_bytes_;  // at the most
  const std::shared_ptr<CodeBudget> budget_;
  ForkLocal<Filling> filling_;  // what this process fills; null after a fork
  Filling* newest_ = nullptr;   // owned: the same, or what the parent filled when it forked
};

}  // namespace castor::jit
