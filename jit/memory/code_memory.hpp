// SPDX-License-Identifier: Apache-2.0
// Executable memory under W^X: what can be executed can be written through no mapping, and an
// executable page in use never loses its permission. Constants are on pages of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "ir/support/result.hpp"
#include "jit/code.hpp"
#include "jit/memory/code_arena.hpp"
#include "jit/memory/fork_local.hpp"
#include "jit/memory/system_memory.hpp"

namespace castor::jit {

/// Hands out memory for machine code and its constants. Thread safe (one lock, taken while code is
/// published).
///
/// W^X: code is on pages that can be executed, its constants on pages that can only be read, and
/// neither can be written through any mapping, also not while code is published (see CodeFile).
/// Private pages, where memfds are refused, are written before they become executable.
///
/// Arenas are filled from front to back. Their pages come into being, and take their page faults,
/// when they are needed: 16 KiB for code at a time (3 us), 4 KiB for constants (1.5 us).
/// The bytes of a dead block are never written again; an arena is unmapped
/// when its last block is dead and it is no longer filled. Code that is larger than an arena gets
/// its own. Under a limit arenas are at most a sixteenth of it, or a page. While it fills an arena
/// an object has one file open.
///
/// Fork: code published before goes on working in parent and child, which share its pages. The
/// child cannot write them, and opens arenas of its own when it publishes; the parent goes on
/// filling its own. A thread that was publishing at the moment of the fork does no harm to the
/// child: the lock and the arena that it was busy with are left alone there (the arena stays
/// mapped). A child made by vfork must not publish.
///
/// Caches: x86 keeps instruction caches coherent with stores, by physical address, so
/// the mapping through which they are made does not matter. Code is complete before anyone learns
/// its address, and no byte of it was executed before, so no core holds stale instructions; handing
/// a block to another thread takes the ordinary acquire and release.
class CodeMemory {
 public:
  /// Most bytes of code in an arena; it has the same room for constants.
  static constexpr size_t largest_arena_bytes = size_t{128} << 10;
  static constexpr size_t code_alignment = OpenArena::alignment;

  /// Maps one page, nothing executable. Throws std::bad_alloc when there is no memory for itself;
  /// what the system refuses is reported by `publish`.
  /// `limit` bounds the bytes of pages that hold code and constants, whoever holds those.
  explicit CodeMemory(const SystemCalls& system = SystemCalls::real(), size_t limit = SIZE_MAX);
  /// Unmaps arenas that hold no living block.
  ~CodeMemory();
  CodeMemory(const CodeMemory&) = delete;
  CodeMemory& operator=(const CodeMemory&) = delete;

  /// Copies `code` (at least one instruction) to memory where it can be executed, at an address
  /// that is a multiple of `code_alignment`, and its constants to memory that is read. Falls back
  /// from arenas to pages of the block's own. When the system refuses both it fails, with
  /// out_of_memory if memory is what the fallback lacked and with executable_memory otherwise; the
  /// message names both calls that failed. At the limit it fails with executable_memory, and names
  /// what is mapped and the limit.
  Result<CodeBlock> publish(const MachineCode& code);

  /// Bytes of pages with code or constants that this object made (or inherited through fork) and
  /// that are mapped at present.
  size_t mapped_bytes() const { return budget_->mapped(); }

 private:
  struct Filling;

  Filling& own_filling();
  static void leave_to_parent(Filling* inherited);
  Result<CodeBlock> publish_in_arena(const MachineCode& code);

  const SystemCalls system_;
  const size_t shared_arena_bytes_;  // the largest size
  const std::shared_ptr<CodeBudget> budget_;
  ForkLocal<Filling> filling_;  // what this process fills; null after a fork
  Filling* newest_ = nullptr;   // owned: the same, or what the parent filled when it forked
};

}  // namespace castor::jit
