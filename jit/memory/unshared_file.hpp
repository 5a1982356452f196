// SPDX-License-Identifier: Apache-2.0
// An open file that forked children do not get.
#pragma once

#include <memory>

#include "ir/support/result.hpp"
#include "jit/memory/system_memory.hpp"

namespace castor::jit {

/// A descriptor, closed with its owner and in every child that `fork` makes (by a handler of
/// pthread_atfork; a child made by the bare system call keeps it until exec).
///
/// Programs close descriptors that are not theirs (daemons close all), and numbers are used again:
/// so a file is told by its device and inode, and a number that stands for another file is left
/// alone (unless another thread closes and reuses it between the look and the call). Not thread
/// safe, but for the fork.
class UnsharedFile {
 public:
  /// Takes the descriptor over, and closes it if it fails. The caller opened it with O_CLOEXEC.
  static Result<UnsharedFile> take(const SystemCalls& system, int fd);
  UnsharedFile(UnsharedFile&& other) noexcept;
  UnsharedFile& operator=(UnsharedFile&& other) noexcept;
  ~UnsharedFile();

  /// The descriptor's number; -1 in a child.
  int number() const;
  /// Whether a descriptor, by default this one, is open and stands for the file.
  bool is_file(int fd) const;
  bool is_open() const { return is_file(number()); }

 private:
  struct Entry;  // of the list that the handler goes through

  UnsharedFile(const SystemCalls& system, std::unique_ptr<Entry> entry);

  const SystemCalls* system_;
  std::unique_ptr<Entry> entry_;  // null after a move
};

}  // namespace castor::jit
