// SPDX-License-Identifier: Apache-2.0
#include "jit/memory/code_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstdio>

namespace castor::jit {
namespace {

constexpr unsigned memfd_noexec_seal = 8;  // MFD_NOEXEC_SEAL, Linux 6.3

/// A memfd. It is never executed as a file: saying so keeps it allowed where the administrator
/// forbids executable memfds (vm.memfd_noexec); mapping it executable is another matter.
int create_memfd(const SystemCalls& system) {
  const int fd = system.memfd_create("castor-code", MFD_CLOEXEC | memfd_noexec_seal);
  if (fd >= 0 || errno != EINVAL) return fd;
  return system.memfd_create("castor-code", MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

/// Whether a file may have that many bytes; whoever writes beyond the limit is killed by SIGXFSZ.
bool file_size_allowed(size_t bytes) {
  rlimit limit{};
  return ::getrlimit(RLIMIT_FSIZE, &limit) != 0 || bytes <= limit.rlim_cur;
}

}  // namespace

Result<CodeFile> CodeFile::create(const SystemCalls& system, size_t bytes) {
  if (!file_size_allowed(bytes)) return refused("memfd under RLIMIT_FSIZE", bytes, EFBIG);
  const int fd = create_memfd(system);
  if (fd < 0) return refused("memfd_create", bytes, errno);
  Result<UnsharedFile> file = UnsharedFile::take(system, fd);
  if (!file.ok()) return file.error();
  if (system.ftruncate(fd, static_cast<off_t>(bytes)) != 0) {
    return refused("ftruncate(memfd)", bytes, errno);
  }
  // What is mapped keeps its pages, whoever gets hold of the descriptor. Works without, too.
  system.add_seals(fd, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
  return CodeFile(system, bytes, std::move(file).value());
}

/// Opens the file again, to be read only; -1 where that fails. `thread-self`, since a thread may
/// have descriptors of its own.
int CodeFile::open_read_only() const {
  char path[48];
  std::snprintf(path, sizeof path, "/proc/thread-self/fd/%d", file_.number());
  const int fd = system_->open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || file_.is_file(fd)) return fd;
  system_->close(fd);
  return -1;
}

Result<MappedPages> CodeFile::map(size_t code_bytes) const {
  const int read_only = open_read_only();
  const int fd = read_only >= 0 ? read_only : file_.number();
  Result<MappedPages> pages =
      MappedPages::map(*system_, "mmap(PROT_READ, memfd)", size_, PROT_READ, MAP_SHARED, fd);
  if (pages.ok() && system_->mmap(pages->begin(), code_bytes, PROT_READ | PROT_EXEC,
                                  MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
    pages = refused("mmap(PROT_READ | PROT_EXEC, memfd)", code_bytes, errno);
  }
  if (read_only >= 0) system_->close(read_only);
  return pages;
}

Status CodeFile::write(std::span<const FileRange> ranges) const {
  if (!file_.is_open()) return refused("fstat(memfd)", size_, EBADF);
  if (!file_size_allowed(size_)) return refused("pwrite(memfd) under RLIMIT_FSIZE", size_, EFBIG);
  for (const FileRange& range : ranges) {
    if (Status written = write(range.bytes, range.offset); !written) return written;
  }
  return {};
}

Status CodeFile::write(std::span<const std::byte> bytes, size_t offset) const {
  while (!bytes.empty()) {
    const ssize_t written =
        system_->pwrite(file_.number(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return refused("pwrite(memfd)", bytes.size(), written < 0 ? errno : EIO);
    bytes = bytes.subspan(static_cast<size_t>(written));
    offset += static_cast<size_t>(written);
  }
  return {};
}

}  // namespace castor::jit
