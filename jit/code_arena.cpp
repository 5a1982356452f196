// SPDX-License-Identifier: Apache-2.0
#include "jit/code_arena.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>

namespace castor::jit {
namespace {

constexpr unsigned memfd_noexec_seal = 8;  // MFD_NOEXEC_SEAL, Linux 6.3
constexpr int seal_future_write = 0x10;    // F_SEAL_FUTURE_WRITE, Linux 5.1

/// An open file descriptor, closed with its owner.
class Descriptor {
 public:
  Descriptor(const SystemCalls& system, int fd) : close_(system.close), fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close_(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int (*close_)(int fd);
  int fd_;
};

/// A memfd. It is never executed as a file: saying so keeps it allowed where the administrator
/// forbids executable memfds (vm.memfd_noexec); mapping it executable is another matter.
int create_memfd(const SystemCalls& system) {
  const int fd = system.memfd_create("castor-code", MFD_CLOEXEC | memfd_noexec_seal);
  if (fd >= 0 || errno != EINVAL) return fd;
  return system.memfd_create("castor-code", MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

/// Whether a file may have that many bytes; one that grows further would be killed by SIGXFSZ.
bool file_size_allowed(size_t bytes) {
  rlimit limit{};
  return ::getrlimit(RLIMIT_FSIZE, &limit) != 0 || bytes <= limit.rlim_cur;
}

/// Takes the page faults of both mappings now. By hand, since that is a fifth faster than
/// MAP_POPULATE, and the writable mapping first, whose faults clear the pages: the executable
/// mapping's faults then map sixteen pages at a time.
void touch(std::byte* writable, const std::byte* executable, size_t size) {
  for (size_t at = 0; at < size; at += page_bytes) {
    *static_cast<volatile std::byte*>(writable + at) = std::byte{0};
  }
  for (size_t at = 0; at < size; at += page_bytes) {
    [[maybe_unused]] const std::byte first =
        *static_cast<const volatile std::byte*>(executable + at);
  }
}

/// Maps the memfd to be written, by this process alone: a child does not inherit the mapping.
Result<MappedPages> map_writable(const SystemCalls& system, int fd, size_t bytes) {
  Result<MappedPages> pages = MappedPages::map(system, "mmap(PROT_READ | PROT_WRITE, memfd)", bytes,
                                               PROT_READ | PROT_WRITE, MAP_SHARED, fd);
  if (pages.ok() && system.madvise(pages->begin(), bytes, MADV_DONTFORK) != 0) {
    return refused("madvise(MADV_DONTFORK)", bytes, errno);
  }
  return pages;
}

}  // namespace

Result<OpenArena> OpenArena::map(const SystemCalls& system, size_t bytes,
                                 const std::shared_ptr<CodeBudget>& budget) {
  Result<CodeShare> share = CodeShare::take(budget, bytes);
  if (!share.ok()) return share.error();
  const Descriptor memfd(system, create_memfd(system));
  if (memfd.get() < 0) return refused("memfd_create", bytes, errno);
  if (!file_size_allowed(bytes)) return refused("memfd under RLIMIT_FSIZE", bytes, EFBIG);
  // fallocate, not ftruncate: want of memory is an error here, not SIGBUS at the first touch.
  if (system.fallocate(memfd.get(), 0, 0, static_cast<off_t>(bytes)) != 0) {
    return refused("fallocate(memfd)", bytes, errno);
  }
  Result<MappedPages> writable = map_writable(system, memfd.get(), bytes);
  if (!writable.ok()) return writable.error();
  // From here on no mapping of the memfd can be made writable, so mprotect cannot undo W^X for the
  // executable one. Older kernels lack this seal, and go without.
  system.add_seals(memfd.get(), seal_future_write);
  Result<MappedPages> executable =
      MappedPages::map(system, "mmap(PROT_READ | PROT_EXEC, memfd)", bytes, PROT_READ | PROT_EXEC,
                       MAP_SHARED, memfd.get());
  if (!executable.ok()) return executable.error();
  touch(writable->begin(), executable->begin(), bytes);
  return OpenArena(
      std::make_shared<CodeArena>(std::move(*executable), CodeMapping::dual, std::move(*share)),
      std::move(*writable));
}

const std::byte* OpenArena::append(std::span<const std::byte> code, size_t alignment) {
  std::memcpy(writable_.begin() + used_, code.data(), code.size());
  const std::byte* executable = arena_->begin() + used_;
  used_ = round_up(used_ + code.size(), alignment);
  return executable;
}

Result<std::shared_ptr<CodeArena>> map_protected(const SystemCalls& system,
                                                 std::span<const std::byte> code,
                                                 const std::shared_ptr<CodeBudget>& budget) {
  const size_t bytes = round_up(code.size(), page_bytes);
  Result<CodeShare> share = CodeShare::take(budget, bytes);
  if (!share.ok()) return share.error();
  Result<MappedPages> pages =
      MappedPages::map(system, "mmap(PROT_READ | PROT_WRITE)", bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1);
  if (!pages.ok()) return pages.error();
  std::memcpy(pages->begin(), code.data(), code.size());
  if (system.mprotect(pages->begin(), bytes, PROT_READ | PROT_EXEC) != 0) {
    return refused("mprotect(PROT_READ | PROT_EXEC)", bytes, errno);
  }
  return std::make_shared<CodeArena>(std::move(*pages), CodeMapping::protected_, std::move(*share));
}

}  // namespace castor::jit
