// SPDX-License-Identifier: Apache-2.0
// What can be done to the pages of code and constants, by the process itself, by its mprotect, by
// its children, and through descriptors that somebody closed.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <vector>

#include "jit/memory/code_memory.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/code_returning.hpp"
#include "tests/support/process_maps.hpp"

namespace castor::jit {
namespace {

using test::call;
using test::code_reading;
using test::code_returning;
using test::permissions_at;

CodeBlock publish(CodeMemory& memory, const MachineCode& code) {
  Result<CodeBlock> block = memory.publish(code);
  if (!block.ok()) throw std::runtime_error(block.error().message);
  return *std::move(block);
}

SystemCalls without_memfds(SystemCalls calls) {
  calls.memfd_create = [](const char*, unsigned) {
    errno = ENOSYS;
    return -1;
  };
  return calls;
}

TEST(CodePermissions, ConstantsAreOnPagesThatAreOnlyRead) {
  for (const bool has_memfds : {true, false}) {
    const SystemCalls& real = SystemCalls::real();
    CodeMemory memory(has_memfds ? real : without_memfds(real));
    std::vector<CodeBlock> blocks;
    for (const size_t pool_bytes : {4, 64, 5000, 300000}) {
      blocks.push_back(publish(memory, code_reading(0x12345678, pool_bytes)));
      const CodeBlock& block = blocks.back();
      SCOPED_TRACE(pool_bytes);
      EXPECT_EQ(call(block.code()), 0x12345678u);
      EXPECT_EQ(block.pool().size(), pool_bytes);
      EXPECT_EQ(permissions_at(block.code()), has_memfds ? "r-xs" : "r-xp");
      EXPECT_EQ(permissions_at(block.pool().data()), has_memfds ? "r--s" : "r--p");
      EXPECT_EQ(permissions_at(&block.pool().back()), has_memfds ? "r--s" : "r--p");
    }
  }
}

/// What system calls saw; they are plain functions.
struct Watch {
  int calls = 0;
  int both_asked = 0;
  int both_mapped = 0;
  int writable_arenas = 0;
};
Watch watch;

template <class Outcome>
Outcome watched(Outcome outcome, int protection) {
  const int saved = errno;
  ++watch.calls;
  watch.both_asked += (protection & PROT_WRITE) != 0 && (protection & PROT_EXEC) != 0;
  watch.both_mapped += test::count_writable_executable();
  watch.writable_arenas += test::count_writable_arenas();
  errno = saved;
  return outcome;
}

SystemCalls watching_calls() {
  SystemCalls calls = SystemCalls::real();
  calls.mmap = [](void* at, size_t size, int protection, int flags, int fd, off_t offset) {
    return watched(::mmap(at, size, protection, flags, fd, offset), protection);
  };
  calls.pwrite = [](int fd, const void* bytes, size_t size, off_t offset) {
    return watched(::pwrite(fd, bytes, size, offset), 0);
  };
  calls.mprotect = [](void* at, size_t size, int protection) {
    return watched(::mprotect(at, size, protection), protection);
  };
  calls.madvise = [](void* at, size_t size, int advice) {
    return watched(::madvise(at, size, advice), 0);
  };
  calls.munmap = [](void* at, size_t size) { return watched(::munmap(at, size), 0); };
  return calls;
}

TEST(CodePermissions, NothingIsWritableAndExecutableAndNoArenaIsWritable) {
  ASSERT_EQ(test::count_writable_executable(), 0);
  for (const SystemCalls& calls : {watching_calls(), without_memfds(watching_calls())}) {
    watch = {};
    {
      CodeMemory memory(calls);
      std::vector<CodeBlock> blocks;
      for (uint32_t i = 0; i < 20; ++i) {
        blocks.push_back(publish(memory, code_returning(i, 1 << 12)));
        blocks.push_back(publish(memory, code_reading(i, 2000)));
      }
      blocks.push_back(publish(memory, code_returning(5, 200 << 10)));
      for (uint32_t i = 0; i < 20; ++i) EXPECT_EQ(call(blocks[2 * i + 1].code()), i);
      EXPECT_EQ(test::count_writable_executable(), 0);
    }
    EXPECT_GE(watch.calls, 40);
    EXPECT_EQ(watch.both_asked, 0);
    EXPECT_EQ(watch.both_mapped, 0);
    EXPECT_EQ(watch.writable_arenas, 0);
  }
}

int reopened = 0;

TEST(CodePermissions, MprotectCannotMakeThemWritable) {
  SystemCalls calls = SystemCalls::real();
  calls.open = [](const char* path, int flags) {
    const int fd = ::open(path, flags);
    reopened += fd >= 0;
    return fd;
  };
  CodeMemory memory(calls);
  const CodeBlock block = publish(memory, code_reading(7));
  if (reopened == 0) GTEST_SKIP() << "there is no /proc here";
  for (const std::byte* at : {block.code(), block.pool().data()}) {
    void* page = const_cast<std::byte*>(at);
    EXPECT_EQ(::mprotect(page, page_bytes, PROT_READ | PROT_WRITE), -1);
    EXPECT_EQ(::mprotect(page, page_bytes, PROT_READ | PROT_WRITE | PROT_EXEC), -1);
  }
  EXPECT_EQ(call(block.code()), 7u);
}

/// The number of this process's descriptor for code; nothing if it has none.
std::optional<int> code_descriptor() {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;  // the iterator's own
    const std::filesystem::path file = std::filesystem::read_symlink(entry.path(), gone);
    if (file.string().find("/memfd:castor-code") == 0) return std::stoi(entry.path().filename());
  }
  return std::nullopt;
}

TEST(CodePermissions, ChildrenGetNoDescriptor) {
  CodeMemory memory;
  const CodeBlock first = publish(memory, code_reading(1));
  const int fd = code_descriptor().value();
  EXPECT_EQ(::fcntl(fd, F_GETFD), FD_CLOEXEC);
  EXPECT_EQ(test::in_child([] { return code_descriptor() ? 1 : 0; }), 0);
  // The number is another file's in the child, which must stay open.
  EXPECT_EQ(test::in_child([&] {
              const int other = ::open("/dev/null", O_RDWR);
              if (other != fd) return 1;
              const CodeBlock mine = publish(memory, code_reading(2));
              if (call(mine.code()) != 2 || call(first.code()) != 1) return 2;
              return ::fcntl(other, F_GETFD) >= 0 ? 0 : 3;
            }),
            0);
  EXPECT_EQ(code_descriptor(), fd);
  EXPECT_EQ(call(publish(memory, code_reading(3)).code()), 3u);
}

/// Programs that become daemons close all descriptors, and open others with the same numbers.
TEST(CodePermissions, OthersFilesAreNotWrittenOrClosed) {
  auto memory = std::make_optional<CodeMemory>();
  const CodeBlock first = publish(*memory, code_reading(1));
  const int fd = code_descriptor().value();
  for (const bool is_open_again : {false, true}) {
    std::FILE* others = std::tmpfile();
    if (is_open_again) {
      ASSERT_EQ(::dup2(::fileno(others), code_descriptor().value_or(fd)), fd);
    } else {
      ::close(fd);
    }
    const CodeBlock lost = publish(*memory, code_reading(2));
    EXPECT_EQ(lost.mapping(), CodeMapping::own_pages);
    EXPECT_EQ(std::filesystem::file_size("/proc/self/fd/" + std::to_string(::fileno(others))), 0u);
    EXPECT_EQ(::close(fd), is_open_again ? 0 : -1);  // as this test left it
    std::fclose(others);
    const CodeBlock found = publish(*memory, code_reading(3));
    EXPECT_EQ(found.mapping(), CodeMapping::arena);
    EXPECT_EQ(call(first.code()) + call(lost.code()) + call(found.code()), 6u);
  }
  std::FILE* others = std::tmpfile();
  const int last = code_descriptor().value();
  ASSERT_EQ(::dup2(::fileno(others), last), last);
  memory.reset();
  EXPECT_EQ(::close(last), 0);
  std::fclose(others);
}

}  // namespace
}  // namespace castor::jit
