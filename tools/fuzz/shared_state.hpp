// SPDX-License-Identifier: Apache-2.0
// What a run's processes share: progress, the latest finding, coverage.
#pragma once

#include <sys/mman.h>

#include <new>
#include <span>

#include "tools/fuzz/finding.hpp"

namespace castor::fuzz {

/// Where the child is, for the parent to read when it has ended.
struct Progress {
  static constexpr size_t no_tier = ~size_t{0};

  uint64_t next = 0;      ///< index of the program that runs, or of the first that has not
  uint64_t seed = 0;      ///< seed of the program that runs
  size_t tier = no_tier;  ///< that it runs on; none while it is prepared
  uint64_t programs = 0;  ///< that have run
  uint64_t mismatches = 0;
  double seconds = 0;        ///< spent on them
  size_t cursor = 0;         ///< where the search for cells not hit goes on
  bool only_counts = false;  ///< findings no longer end the child
  Finding finding;           ///< that ended the child
};

/// Zeroed memory that children share with their parent.
class SharedMemory {
 public:
  explicit SharedMemory(size_t bytes) : bytes_(bytes) {
    constexpr int protection = PROT_READ | PROT_WRITE;
    at_ = ::mmap(nullptr, bytes, protection, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at_ == MAP_FAILED) throw std::bad_alloc();
  }
  ~SharedMemory() { ::munmap(at_, bytes_); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  std::span<uint8_t> bytes() { return {static_cast<uint8_t*>(at_), bytes_}; }

 private:
  size_t bytes_;
  void* at_;
};

/// An object in memory that children share with their parent.
template <class T>
class Shared {
 public:
  Shared() : memory_(sizeof(T)), object_(new (memory_.bytes().data()) T()) {}
  T* operator->() { return object_; }
  T& operator*() { return *object_; }

 private:
  SharedMemory memory_;
  T* object_;
};

}  // namespace castor::fuzz
