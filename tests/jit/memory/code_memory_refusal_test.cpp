// SPDX-License-Identifier: Apache-2.0
// Code memory on systems that refuse: fallback, typed errors, and nothing left over.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <vector>

#include "jit/memory/code_memory.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/code_returning.hpp"
#include "tests/support/counting_allocator.hpp"
#include "tests/support/process_maps.hpp"

namespace castor::jit {
namespace {

using test::call;
using test::code_returning;

enum class Call : uint8_t {
  memfd_create,
  fstat,
  ftruncate,
  add_seals,
  open,
  map_readable,
  map_executable,
  pwrite,
  map_private,
  mprotect,
  mprotect_executable,
  wipe_on_fork,
  unknown_advice,
};

/// One system call that the system refuses; times < 0: always.
struct Refusal {
  Call call;
  int error;
  int times = -1;
};

/// What is refused at present; system calls are plain functions.
std::vector<Refusal> refusals;

bool refuse(Call which) {
  for (Refusal& refusal : refusals) {
    if (refusal.call != which || refusal.times == 0) continue;
    if (refusal.times > 0) --refusal.times;
    errno = refusal.error;
    return true;
  }
  return false;
}

Call kind_of_mmap(int protection, int fd) {
  if (fd < 0) return Call::map_private;
  return (protection & PROT_EXEC) != 0 ? Call::map_executable : Call::map_readable;
}

int refusing_madvise(void* at, size_t size, int advice) {
  if (advice == MADV_WIPEONFORK && refuse(Call::wipe_on_fork)) return -1;
  if (advice == -1 && refuse(Call::unknown_advice)) return 0;  // an emulator that nods
  return ::madvise(at, size, advice);
}

SystemCalls refusing_calls() {
  SystemCalls calls = SystemCalls::real();
  calls.memfd_create = [](const char* name, unsigned flags) {
    return refuse(Call::memfd_create) ? -1 : ::memfd_create(name, flags);
  };
  calls.fstat = [](int fd, struct stat* status) {
    return refuse(Call::fstat) ? -1 : ::fstat(fd, status);
  };
  calls.ftruncate = [](int fd, off_t size) {
    return refuse(Call::ftruncate) ? -1 : ::ftruncate(fd, size);
  };
  calls.open = [](const char* path, int flags) {
    return refuse(Call::open) ? -1 : ::open(path, flags);
  };
  calls.pwrite = [](int fd, const void* bytes, size_t size, off_t offset) -> ssize_t {
    // Never more than 1000 bytes at a time: a system may write less than it is asked to.
    return refuse(Call::pwrite) ? -1 : ::pwrite(fd, bytes, std::min<size_t>(size, 1000), offset);
  };
  calls.add_seals = [](int fd, int seals) {
    return refuse(Call::add_seals) ? -1 : SystemCalls::real().add_seals(fd, seals);
  };
  calls.mmap = [](void* at, size_t size, int protection, int flags, int fd, off_t offset) {
    return refuse(kind_of_mmap(protection, fd)) ? MAP_FAILED
                                                : ::mmap(at, size, protection, flags, fd, offset);
  };
  calls.mprotect = [](void* at, size_t size, int protection) {
    if (refuse(Call::mprotect)) return -1;
    if ((protection & PROT_EXEC) != 0 && refuse(Call::mprotect_executable)) return -1;
    return ::mprotect(at, size, protection);
  };
  calls.madvise = refusing_madvise;
  return calls;
}

struct Case {
  const char* label;
  std::vector<Refusal> refused;
  std::optional<CodeMapping> expected;  ///< nothing: an error
  ErrorCode code = ErrorCode::internal;
  std::vector<const char*> fragments{};  ///< what the message says
};

std::vector<Case> cases() {
  const CodeMapping arena = CodeMapping::arena;
  const CodeMapping own = CodeMapping::own_pages;
  const ErrorCode forbidden = ErrorCode::executable_memory;
  const ErrorCode exhausted = ErrorCode::out_of_memory;
  return {
      {"nothing", {}, arena},
      {"memfd", {{Call::memfd_create, ENOSYS}}, own},
      {"memfd, no files left", {{Call::memfd_create, EMFILE}}, own},
      {"memfd flag of Linux 6.3", {{Call::memfd_create, EINVAL, 1}}, arena},
      {"status of the memfd", {{Call::fstat, EACCES}}, own},
      {"size", {{Call::ftruncate, EPERM}}, own},
      {"seals", {{Call::add_seals, EINVAL}}, arena},
      {"descriptor that only reads", {{Call::open, ENOENT}}, arena},
      {"mapping", {{Call::map_readable, ENOMEM}}, own},
      {"executable mapping", {{Call::map_executable, EACCES}}, own},
      {"pages", {{Call::pwrite, ENOSPC}}, own},
      {"pages, interrupted", {{Call::pwrite, EINTR, 3}}, arena},
      {"wiping on fork", {{Call::wipe_on_fork, EINVAL}}, own},
      {"advice is ignored", {{Call::unknown_advice, 0}}, own},
      {"mprotect, which nobody needs", {{Call::mprotect, EACCES}}, arena},
      {"memfd and mprotect",
       {{Call::memfd_create, EPERM}, {Call::mprotect, EACCES}},
       {},
       forbidden,
       {"mprotect(PROT_READ) of 4096 bytes: Permission denied; before that, ",
        "memfd_create of 262144 bytes: Operation not permitted"}},
      {"every executable page",
       {{Call::map_executable, EPERM}, {Call::mprotect, EPERM}},
       {},
       forbidden,
       {"mmap(PROT_READ | PROT_EXEC, memfd) of 131072 bytes: Operation not permitted"}},
      {"wiping and mprotect",
       {{Call::wipe_on_fork, EINVAL}, {Call::mprotect, EACCES}},
       {},
       forbidden,
       {"Permission denied", "madvise(MADV_WIPEONFORK)", "Invalid argument"}},
      {"memory for the fallback",
       {{Call::memfd_create, ENOSYS}, {Call::map_private, ENOMEM}},
       {},
       exhausted,
       {"mmap(PROT_READ | PROT_WRITE) of 8192 bytes: Cannot allocate memory"}},
      {"memory for mprotect",
       {{Call::pwrite, ENOMEM}, {Call::mprotect, ENOMEM}},
       {},
       exhausted,
       {"mprotect", "Cannot allocate memory", "pwrite(memfd) of 16384 bytes"}},
      {"mprotect of the code alone",
       {{Call::memfd_create, EPERM}, {Call::mprotect_executable, EACCES}},
       {},
       forbidden,
       {"mprotect(PROT_READ | PROT_EXEC) of 4096 bytes: Permission denied"}},
  };
}

/// Files and mappings of this process that code memory could have left open.
struct Footprint {
  int files = test::count_open_files();
  size_t arenas = test::code_arena_bytes();
  int arena_mappings = test::count_arena_mappings();
  int executable = count_executable();
  bool operator==(const Footprint&) const = default;

  static int count_executable() {
    int count = 0;
    for (const test::ProcessMapping& m : test::process_maps()) count += m.executable();
    return count;
  }
};

void check(const Case& c) {
  CodeMemory memory(refusing_calls());
  const Result<CodeBlock> block = memory.publish(test::code_reading(77, 2100));
  ASSERT_EQ(block.ok(), c.expected.has_value()) << (block.ok() ? "" : block.error().message);
  EXPECT_EQ(test::count_writable_executable(), 0);
  if (block.ok()) {
    EXPECT_EQ(block->mapping(), *c.expected);
    EXPECT_EQ(call(block->code()), 77u);
    const bool has_arena = block->mapping() == CodeMapping::arena;
    const size_t code_bytes = has_arena ? OpenArena::code_step : page_bytes;
    EXPECT_EQ(memory.mapped_bytes(), code_bytes + page_bytes);
    return;
  }
  EXPECT_EQ(memory.mapped_bytes(), 0u);
  EXPECT_EQ(block.error().code, c.code);
  for (const char* fragment : c.fragments) {
    EXPECT_NE(block.error().message.find(fragment), std::string::npos)
        << '"' << fragment << "\" is missing from \"" << block.error().message << '"';
  }
}

TEST(CodeMemoryRefusal, FallsBackOrFailsAndLeavesNothing) {
  { CodeMemory().publish(code_returning(1)).ok(); }  // whatever the first use of all leaves
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.label);
    const Footprint before;
    refusals = c.refused;
    check(c);
    refusals.clear();
    EXPECT_EQ(Footprint(), before);
  }
}

TEST(CodeMemoryRefusal, FallbackPagesGoWithTheirBlock) {
  refusals = {{Call::memfd_create, ENOSYS}};
  CodeMemory memory(refusing_calls());
  std::optional<CodeBlock> block = *memory.publish(code_returning(5, 5000));
  const std::byte* code = block->code();
  EXPECT_EQ(memory.mapped_bytes(), 2 * page_bytes);
  EXPECT_TRUE(test::is_executable(code));
  EXPECT_EQ(call(code), 5u);
  block.reset();
  EXPECT_EQ(memory.mapped_bytes(), 0u);
  EXPECT_FALSE(test::is_executable(code));
  refusals.clear();
}

TEST(CodeMemoryRefusal, RefusedLaterAndAllowedAgain) {
  CodeMemory memory(refusing_calls());
  std::vector<CodeBlock> blocks;
  const size_t quarter = CodeMemory::largest_arena_bytes / 4;
  blocks.push_back(*memory.publish(code_returning(0, quarter)));
  refusals = {{Call::memfd_create, EMFILE}, {Call::mprotect, EACCES}};
  for (uint32_t i = 1; i < 4; ++i) {  // the arena still has room
    blocks.push_back(*memory.publish(code_returning(i, quarter)));
  }
  const Result<CodeBlock> refused = memory.publish(code_returning(4));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::executable_memory);
  refusals.clear();
  blocks.push_back(*memory.publish(code_returning(4)));
  for (uint32_t i = 0; i < 5; ++i) {
    EXPECT_EQ(call(blocks[i].code()), i);
    EXPECT_EQ(blocks[i].mapping(), CodeMapping::arena);
  }
}

TEST(CodeMemoryRefusal, FileSizeLimitIsNoDeathSentence) {
  for (const bool has_arena : {false, true}) {
    const int failed = test::in_child([&] {
      CodeMemory memory;
      if (has_arena && !memory.publish(code_returning(8)).ok()) return 1;
      const rlimit none{0, 0};
      ::setrlimit(RLIMIT_FSIZE, &none);
      const Result<CodeBlock> block = memory.publish(code_returning(9));
      if (!block.ok() || block->mapping() != CodeMapping::own_pages) return 2;
      return call(block->code()) == 9 ? 0 : 3;
    });
    EXPECT_EQ(failed, 0);
  }
}

/// Half of a code may be written when the system refuses the other half.
TEST(CodeMemoryRefusal, ArenasThatRefuseAreLeft) {
  CodeMemory memory(refusing_calls());
  const CodeBlock first = *memory.publish(code_returning(1));
  refusals = {{Call::pwrite, ENOSPC, 1}};
  const CodeBlock second = *memory.publish(code_returning(2));
  refusals.clear();
  const CodeBlock third = *memory.publish(code_returning(3));
  EXPECT_EQ(second.mapping(), CodeMapping::own_pages);
  EXPECT_EQ(third.mapping(), CodeMapping::arena);
  EXPECT_GE(std::abs(third.code() - first.code()), 4096);
  EXPECT_EQ(call(first.code()) + call(second.code()) + call(third.code()), 6u);
}

TEST(CodeMemoryRefusal, FailedAllocationsAreErrors) {
  const std::vector<Refusal> situations[] = {
      {},
      {{Call::memfd_create, ENOSYS}},
      {{Call::memfd_create, ENOSYS}, {Call::mprotect, EACCES}},
  };
  const MachineCode code = test::code_reading(3);
  for (const std::vector<Refusal>& situation : situations) {
    const Footprint before;
    int failed = 0;
    for (bool done = false; !done; ++failed) {
      ASSERT_LT(failed, 100);
      CodeMemory memory(refusing_calls());
      refusals = situation;
      test::allocations_left = failed;
      const Result<CodeBlock> block = memory.publish(code);
      done = block.ok() || block.error().code != ErrorCode::out_of_memory;
      test::allocations_left = -1;
      refusals.clear();
      if (block.ok()) {
        EXPECT_EQ(call(block->code()), 3u);
      } else {
        EXPECT_EQ(memory.mapped_bytes(), 0u);
      }
    }
    EXPECT_GT(failed, 1) << "no allocation was refused";
    EXPECT_EQ(Footprint(), before);
  }
}

}  // namespace
}  // namespace castor::jit
