// SPDX-License-Identifier: Apache-2.0
// Memory from the operating system: the calls that code memory makes, and mappings with an owner.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <string_view>
#include <utility>

#include "ir/support/result.hpp"

namespace castor::jit {

/// Size of a page of x86-64, in bytes.
inline constexpr size_t page_bytes = 4096;

/// The smallest multiple of `unit` (a power of two) that is not below `size`.
constexpr size_t round_up(size_t size, size_t unit) { return (size + unit - 1) & ~(unit - 1); }

/// The system calls that code memory makes; tests replace them to refuse memory. All report a
/// failure as the calls of the same name do: -1 or MAP_FAILED, and errno.
struct SystemCalls {
  int (*memfd_create)(const char* name, unsigned flags);
  int (*ftruncate)(int fd, off_t size);
  int (*add_seals)(int fd, int seals);  ///< fcntl F_ADD_SEALS
  int (*fstat)(int fd, struct stat* status);
  int (*open)(const char* path, int flags);
  ssize_t (*pwrite)(int fd, const void* bytes, size_t size, off_t offset);
  int (*close)(int fd);
  void* (*mmap)(void* at, size_t size, int protection, int flags, int fd, off_t offset);
  int (*mprotect)(void* at, size_t size, int protection);
  int (*madvise)(void* at, size_t size, int advice);
  int (*munmap)(void* at, size_t size);
  CASTOR_API static const SystemCalls& real();  ///< shown for castor_mli alone, as what follows
};

/// The error of a system call that failed: out_of_memory for ENOMEM, else executable_memory. The
/// message names the call, the bytes asked for, and what the system said of `error_number`.
CASTOR_API Error refused(std::string_view call, size_t bytes, int error_number);

/// A mapping, unmapped when its owner dies.
class MappedPages {
 public:
  MappedPages() = default;
  MappedPages(MappedPages&& other) noexcept
      : munmap_(other.munmap_),
        at_(std::exchange(other.at_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  MappedPages& operator=(MappedPages&& other) noexcept {
    std::swap(munmap_, other.munmap_);
    std::swap(at_, other.at_);
    std::swap(size_, other.size_);
    return *this;
  }
  CASTOR_API ~MappedPages();

  /// Maps `size` bytes (a multiple of `page_bytes`) where the system likes. The error names the
  /// call as `call`.
  CASTOR_API static Result<MappedPages> map(const SystemCalls& system, std::string_view call,
                                            size_t size, int protection, int flags, int fd);

  std::byte* begin() const { return at_; }
  size_t size() const { return size_; }

 private:
  int (*munmap_)(void* at, size_t size) = nullptr;
  std::byte* at_ = nullptr;
  size_t size_ = 0;
};

}  // namespace castor::jit
