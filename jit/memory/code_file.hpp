// SPDX-License-Identifier: Apache-2.0
// The file in memory that an arena of machine code is mapped from.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "ir/support/result.hpp"
#include "jit/memory/system_memory.hpp"
#include "jit/memory/unshared_file.hpp"

namespace castor::jit {

/// Bytes, and their offset in a file.
struct FileRange {
  std::vector<std::byte> bytes;
  size_t offset = 0;
};

/// A memfd of fixed size whose pages come into being when they are written. It is written through
/// its descriptor alone (pwrite), so at no time is there a writable mapping of it; and it is mapped
/// through another descriptor, which can only read, so mprotect cannot make a mapping writable.
/// (Where /proc is missing there is no such descriptor, and mprotect could.) Forked children do not
/// get the descriptor.
///
/// Measured for code of 2,000 bytes: pwrite takes 0.25 us; a writable mapping that lasts for one
/// memcpy 5 us, and 20 us while another thread runs, whose CPU is interrupted to forget it.
class CodeFile {
 public:
  /// `bytes`: a multiple of `page_bytes`.
  static Result<CodeFile> create(const SystemCalls& system, size_t bytes);

  /// Maps all of it: the first `code_bytes` to be executed, the others to be read.
  Result<MappedPages> map(size_t code_bytes) const;
  /// Writes within the file. A failure may leave some of the bytes written.
  Status write(std::span<const FileRange> ranges) const;

 private:
  Status write(std::span<const std::byte> bytes, size_t offset) const;
  CodeFile(const SystemCalls& system, size_t size, UnsharedFile file)
      : system_(&system), size_(size), file_(std::move(file)) {}
  int open_read_only() const;

  const SystemCalls* system_;
  size_t size_;
  UnsharedFile file_;
};

}  // namespace castor::jit
