// SPDX-License-Identifier: Apache-2.0
#include "jit/memory/system_memory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace castor::jit {

const SystemCalls& SystemCalls::real() {
  static constexpr SystemCalls calls = {
      .memfd_create = ::memfd_create,
      .ftruncate = ::ftruncate,
      .add_seals = [](int fd, int seals) { return ::fcntl(fd, F_ADD_SEALS, seals); },
      .fstat = ::fstat,
      .open = [](const char* path, int flags) { return ::open(path, flags); },
      .pwrite = ::pwrite,
      .close = ::close,
      .mmap = ::mmap,
      .mprotect = ::mprotect,
      .madvise = ::madvise,
      .munmap = ::munmap,
  };
  return calls;
}

Error refused(std::string_view call, size_t bytes, int error_number) {
  char buffer[128];
  const char* text = ::strerror_r(error_number, buffer, sizeof buffer);  // GNU's: any thread
  return Error{error_number == ENOMEM ? ErrorCode::out_of_memory : ErrorCode::executable_memory,
               fmt::format("{} of {} bytes: {}", call, bytes, text)};
}

Result<MappedPages> MappedPages::map(const SystemCalls& system, std::string_view call, size_t size,
                                     int protection, int flags, int fd) {
  void* at = system.mmap(nullptr, size, protection, flags, fd, 0);
  if (at == MAP_FAILED) return refused(call, size, errno);
  MappedPages pages;
  pages.munmap_ = system.munmap;
  pages.at_ = static_cast<std::byte*>(at);
  pages.size_ = size;
  return pages;
}

MappedPages::~MappedPages() {
  if (at_ != nullptr) munmap_(at_, size_);
}

}  // namespace castor::jit
