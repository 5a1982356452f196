// SPDX-License-Identifier: Apache-2.0
// Code memory on systems that refuse: fallback, typed errors, and nothing left behind.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cerrno>
#include <optional>
#include <vector>

#include "jit/code_memory.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/counting_allocator.hpp"
#include "tests/support/process_maps.hpp"

namespace castor::jit {
namespace {

using test::call;
using test::code_returning;

enum class Call : uint8_t {
  memfd_create,
  fallocate,
  map_writable,
  dont_fork,
  add_seals,
  map_executable,
  map_private,
  mprotect,
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
  return (protection & PROT_EXEC) != 0 ? Call::map_executable : Call::map_writable;
}

int refusing_madvise(void* at, size_t size, int advice) {
  if (advice == MADV_DONTFORK && refuse(Call::dont_fork)) return -1;
  if (advice == MADV_WIPEONFORK && refuse(Call::wipe_on_fork)) return -1;
  if (advice == -1 && refuse(Call::unknown_advice)) return 0;  // an emulator that nods
  return ::madvise(at, size, advice);
}

SystemCalls refusing_calls() {
  SystemCalls calls = SystemCalls::real();
  calls.memfd_create = [](const char* name, unsigned flags) {
    return refuse(Call::memfd_create) ? -1 : ::memfd_create(name, flags);
  };
  calls.fallocate = [](int fd, int mode, off_t offset, off_t size) {
    return refuse(Call::fallocate) ? -1 : ::fallocate(fd, mode, offset, size);
  };
  calls.add_seals = [](int fd, int seals) {
    return refuse(Call::add_seals) ? -1 : SystemCalls::real().add_seals(fd, seals);
  };
  calls.mmap = [](void* at, size_t size, int protection, int flags, int fd, off_t offset) {
    return refuse(kind_of_mmap(protection, fd)) ? MAP_FAILED
                                                : ::mmap(at, size, protection, flags, fd, offset);
  };
  calls.mprotect = [](void* at, size_t size, int protection) {
    return refuse(Call::mprotect) ? -1 : ::mprotect(at, size, protection);
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
  const CodeMapping dual = CodeMapping::dual;
  const CodeMapping own = CodeMapping::protected_;
  const ErrorCode forbidden = ErrorCode::executable_memory;
  const ErrorCode exhausted = ErrorCode::out_of_memory;
  return {
      {"nothing", {}, dual},
      {"memfd", {{Call::memfd_create, ENOSYS}}, own},
      {"memfd, no files left", {{Call::memfd_create, EMFILE}}, own},
      {"memfd flag of Linux 6.3", {{Call::memfd_create, EINVAL, 1}}, dual},
      {"size", {{Call::fallocate, ENOSPC}}, own},
      {"first mapping", {{Call::map_writable, ENOMEM}}, own},
      {"keeping from children", {{Call::dont_fork, EINVAL}}, own},
      {"seal", {{Call::add_seals, EINVAL}}, dual},
      {"second mapping", {{Call::map_executable, EACCES}}, own},
      {"wiping on fork", {{Call::wipe_on_fork, EINVAL}}, own},
      {"advice is ignored", {{Call::unknown_advice, 0}}, own},
      {"mprotect, which nobody needs", {{Call::mprotect, EACCES}}, dual},
      {"memfd and mprotect",
       {{Call::memfd_create, EPERM}, {Call::mprotect, EACCES}},
       {},
       forbidden,
       {"mprotect(PROT_READ | PROT_EXEC) of 4096 bytes: Permission denied; before that, ",
        "memfd_create of 16384 bytes: Operation not permitted"}},
      {"every executable page",
       {{Call::map_executable, EPERM}, {Call::mprotect, EPERM}},
       {},
       forbidden,
       {"mmap(PROT_READ | PROT_EXEC, memfd) of 16384 bytes: Operation not permitted"}},
      {"wiping and mprotect",
       {{Call::wipe_on_fork, EINVAL}, {Call::mprotect, EACCES}},
       {},
       forbidden,
       {"Permission denied", "madvise(MADV_WIPEONFORK)", "Invalid argument"}},
      {"memory for the fallback",
       {{Call::memfd_create, ENOSYS}, {Call::map_private, ENOMEM}},
       {},
       exhausted,
       {"mmap(PROT_READ | PROT_WRITE) of 4096 bytes: Cannot allocate memory"}},
      {"memory for mprotect",
       {{Call::fallocate, ENOMEM}, {Call::mprotect, ENOMEM}},
       {},
       exhausted,
       {"mprotect", "Cannot allocate memory", "fallocate(memfd)"}},
  };
}

/// Files and mappings of this process that code memory could have left behind.
struct Footprint {
  int files = test::count_open_files();
  size_t arenas = test::code_arena_bytes();
  int writable_arenas = test::count_writable_arenas();
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
  const Result<CodeBlock> block = memory.publish(code_returning(77));
  ASSERT_EQ(block.ok(), c.expected.has_value()) << (block.ok() ? "" : block.error().message);
  EXPECT_EQ(test::count_writable_executable(), 0);
  if (block.ok()) {
    EXPECT_EQ(block->mapping(), *c.expected);
    EXPECT_EQ(call(block->code()), 77u);
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
  blocks.push_back(*memory.publish(code_returning(0, page_bytes)));
  refusals = {{Call::memfd_create, EMFILE}, {Call::mprotect, EACCES}};
  for (uint32_t i = 1; i < 4; ++i) {  // the arena still has room
    blocks.push_back(*memory.publish(code_returning(i, page_bytes)));
  }
  const Result<CodeBlock> refused = memory.publish(code_returning(4));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::executable_memory);
  refusals.clear();
  blocks.push_back(*memory.publish(code_returning(4)));
  for (uint32_t i = 0; i < 5; ++i) {
    EXPECT_EQ(call(blocks[i].code()), i);
    EXPECT_EQ(blocks[i].mapping(), CodeMapping::dual);
  }
}

TEST(CodeMemoryRefusal, FileSizeLimitIsNoDeathSentence) {
  const int failed = test::in_child([] {
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_FSIZE, &none);
    CodeMemory memory;
    const Result<CodeBlock> block = memory.publish(code_returning(9));
    if (!block.ok() || block->mapping() != CodeMapping::protected_) return 1;
    return call(block->code()) == 9 ? 0 : 2;
  });
  EXPECT_EQ(failed, 0);
}

TEST(CodeMemoryRefusal, FailedAllocationsAreErrors) {
  const std::vector<Refusal> situations[] = {
      {},
      {{Call::memfd_create, ENOSYS}},
      {{Call::memfd_create, ENOSYS}, {Call::mprotect, EACCES}},
  };
  const std::vector<std::byte> code = code_returning(3);
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
