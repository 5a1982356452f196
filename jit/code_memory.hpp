// SPDX-License-Identifier: Apache-2.0
// Executable memory under W^X: no page is ever writable and executable through one mapping, and
// an executable page in use never loses its permission.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "ir/result.hpp"

namespace castor::jit {

/// The system calls that code memory makes; tests replace them to refuse memory.
struct SystemCalls {
  int (*memfd_create)(const char* name, unsigned flags);
  int (*ftruncate)(int fd, off_t size);
  void* (*mmap)(void* at, size_t size, int protection, int flags, int fd, off_t offset);
  int (*mprotect)(void* at, size_t size, int protection);
  int (*munmap)(void* at, size_t size);
  int (*close)(int fd);
  pid_t (*getpid)();
  static const SystemCalls& real();
};

/// How a piece of code came to be executable.
enum class CodeMapping : uint8_t {
  dual,        ///< an arena of one memfd mapped twice: once writable, once executable
  protected_,  ///< pages of its own, written first and then made executable
};

class CodeArena;

/// Machine code that can be called, for as long as the object lives. Immutable, thread safe.
class CodeBlock {
 public:
  CodeBlock(std::shared_ptr<CodeArena> arena, const std::byte* code, size_t size)
      : arena_(std::move(arena)), code_(code), size_(size) {}
  const std::byte* code() const { return code_; }
  size_t size() const { return size_; }
  CodeMapping mapping() const;

 private:
  std::shared_ptr<CodeArena> arena_;
  const std::byte* code_;
  size_t size_;
};

/// Hands out executable memory. Thread safe (one lock, taken when code is published).
///
/// Arenas only grow: the bytes of a dead block are never written again, and an arena is unmapped
/// when its last block dies. Together with the sealing below this keeps a forked child's view of
/// its parent's code intact, and the parent's of its child's: after a fork the child writes to no
/// inherited arena, it opens its own.
class CodeMemory {
 public:
  static constexpr size_t default_arena_bytes = size_t{256} << 10;
  static constexpr size_t code_alignment = 64;

  explicit CodeMemory(const SystemCalls& system = SystemCalls::real(),
                      size_t arena_bytes = default_arena_bytes);
  ~CodeMemory();
  CodeMemory(const CodeMemory&) = delete;
  CodeMemory& operator=(const CodeMemory&) = delete;

  /// Copies `code` into executable memory at an address that is a multiple of `code_alignment`.
  /// Falls back from dual mapping to pages of the block's own; fails with executable_memory when
  /// the system refuses both, and with out_of_memory when it has none.
  Result<CodeBlock> publish(std::span<const std::byte> code);

  /// Bytes mapped at present by arenas that this object still fills or knows to be alive.
  size_t mapped_bytes() const;

 private:
  const SystemCalls& system_;
  const size_t arena_bytes_;
  mutable std::mutex mutex_;
  std::shared_ptr<CodeArena> current_;  // filled by publish; sealed by a fork
  std::vector<std::weak_ptr<CodeArena>> arenas_;
};

}  // namespace castor::jit
