// SPDX-License-Identifier: Apache-2.0
// Code memory across fork: neither side can disturb the other's code.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <thread>

#include "jit/memory/code_memory.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/code_returning.hpp"
#include "tests/support/process_maps.hpp"

namespace castor::jit {
namespace {

using test::call;
using test::code_returning;
using test::in_child;
using test::Signal;
using test::start_child;
using test::wait_for;

CodeBlock publish(CodeMemory& memory, uint32_t value, size_t size = 6) {
  Result<CodeBlock> block = memory.publish(code_returning(value, size));
  if (!block.ok()) throw std::runtime_error(block.error().message);
  return *std::move(block);
}

bool returns(const CodeBlock& block, uint32_t value) {
  const std::vector<std::byte> expected = code_returning(value, block.size()).bytes;
  return std::equal(expected.begin(), expected.end(), block.code()) && call(block.code()) == value;
}

/// The page that begins with the block, for the first block of an arena.
std::vector<std::byte> bytes_of_page(const CodeBlock& block) {
  return {block.code(), block.code() + page_bytes};
}

TEST(CodeMemoryFork, ChildPublishesAndTheParentsCodeStays) {
  CodeMemory memory;
  const CodeBlock before = publish(memory, 11);
  const std::vector<std::byte> page = bytes_of_page(before);
  EXPECT_EQ(in_child([&] {
              if (!returns(before, 11)) return 1;
              std::vector<CodeBlock> mine;
              for (uint32_t i = 0; i < 300; ++i) mine.push_back(publish(memory, i, 1000));
              for (uint32_t i = 0; i < 300; ++i) {
                if (!returns(mine[i], i)) return 2;
              }
              if (!returns(before, 11)) return 3;
              return test::count_writable_executable() == 0 ? 0 : 4;
            }),
            0);
  EXPECT_EQ(bytes_of_page(before), page);  // to the last bit, the unused part included
  EXPECT_TRUE(returns(before, 11));
  const CodeBlock after = publish(memory, 12);
  EXPECT_EQ(after.code() - before.code(), 64);  // the parent goes on with its own arena
  EXPECT_TRUE(returns(after, 12));
}

TEST(CodeMemoryFork, ParentPublishesAndTheChildsCodeStays) {
  CodeMemory memory;
  const CodeBlock inherited = publish(memory, 21);
  Signal published;
  const pid_t child = start_child([&] {
    const CodeBlock mine = publish(memory, 22);
    published.wait();
    if (!returns(inherited, 21)) return 1;
    return returns(mine, 22) ? 0 : 2;
  });
  std::vector<CodeBlock> blocks;
  for (uint32_t i = 0; i < 300; ++i) blocks.push_back(publish(memory, i, 1000));
  published.send();
  EXPECT_EQ(wait_for(child), 0);
  for (uint32_t i = 0; i < 300; ++i) ASSERT_TRUE(returns(blocks[i], i));
}

TEST(CodeMemoryFork, ChildKeepsCodeThatTheParentDrops) {
  CodeMemory memory;
  std::optional<CodeBlock> block = publish(memory, 31);
  std::vector<CodeBlock> fill;
  for (uint32_t i = 0; i < 150; ++i) fill.push_back(publish(memory, i, 1000));  // a full arena
  Signal dropped;
  const pid_t child = start_child([&] {
    dropped.wait();
    return returns(*block, 31) && returns(fill[149], 149) ? 0 : 1;
  });
  const std::byte* code = block->code();
  block.reset();
  fill.clear();
  EXPECT_FALSE(test::is_executable(code));
  dropped.send();
  EXPECT_EQ(wait_for(child), 0);
}

TEST(CodeMemoryFork, GrandchildHasItsOwnArenaToo) {
  CodeMemory memory;
  const CodeBlock first = publish(memory, 41);
  const std::vector<std::byte> page = bytes_of_page(first);
  EXPECT_EQ(in_child([&] {
              const CodeBlock second = publish(memory, 42);
              const std::vector<std::byte> second_page = bytes_of_page(second);
              const int grandchild = in_child([&] {
                const CodeBlock third = publish(memory, 43);
                return returns(first, 41) && returns(second, 42) && returns(third, 43) ? 0 : 1;
              });
              if (grandchild != 0) return 10 + grandchild;
              if (bytes_of_page(second) != second_page) return 1;
              const CodeBlock fourth = publish(memory, 44);
              if (fourth.code() - second.code() != 64) return 2;
              return returns(second, 42) && returns(fourth, 44) ? 0 : 3;
            }),
            0);
  EXPECT_EQ(bytes_of_page(first), page);
  // A grandchild whose parent never published.
  EXPECT_EQ(in_child([&] {
              return in_child([&] {
                const CodeBlock third = publish(memory, 45);
                return returns(first, 41) && returns(third, 45) ? 0 : 1;
              });
            }),
            0);
  EXPECT_EQ(bytes_of_page(first), page);
}

TEST(CodeMemoryFork, ChildCannotWriteTheParentsCode) {
  CodeMemory memory;
  const CodeBlock block = publish(memory, 51);
  const int files = test::count_open_files();
  EXPECT_EQ(in_child([&] {
              if (test::count_writable_arenas() != 0) return 1;
              if (test::count_open_files() != files - 1) return 2;  // none to write it through
              const CodeBlock mine = publish(memory, 52);
              return returns(mine, 52) && returns(block, 51) ? 0 : 3;
            }),
            0);
  EXPECT_TRUE(returns(publish(memory, 53), 53));
  EXPECT_EQ(test::count_open_files(), files);
}

TEST(CodeMemoryFork, ChildUnmapsWhatItDropsAndNothingElse) {
  const int mapped_before = test::count_arena_mappings();
  auto memory = std::make_unique<CodeMemory>();
  std::optional<CodeBlock> block = publish(*memory, 61);
  EXPECT_EQ(in_child([&] {  // without publishing
              memory.reset();
              if (!returns(*block, 61)) return 1;
              block.reset();
              return test::count_arena_mappings() == mapped_before ? 0 : 2;
            }),
            0);
  EXPECT_EQ(in_child([&] {  // after publishing
              std::optional<CodeBlock> mine = publish(*memory, 62);
              if (memory->mapped_bytes() != 2 * OpenArena::code_step) return 1;
              block.reset();
              if (memory->mapped_bytes() != OpenArena::code_step) return 2;
              mine.reset();
              memory.reset();
              return test::count_arena_mappings() == mapped_before ? 0 : 3;
            }),
            0);
  EXPECT_TRUE(returns(*block, 61));
}

/// Holds up every publish that opens an arena while `gate_closed`.
std::atomic<bool> gate_closed{false};
std::atomic<bool> at_the_gate{false};

int memfd_behind_the_gate(const char* name, unsigned flags) {
  while (gate_closed.load()) {
    at_the_gate = true;
    std::this_thread::yield();
  }
  return ::memfd_create(name, flags);
}

TEST(CodeMemoryFork, ForkWhileAnotherThreadPublishes) {
  SystemCalls calls = SystemCalls::real();
  calls.memfd_create = memfd_behind_the_gate;
  auto memory = std::make_unique<CodeMemory>(calls);
  const CodeBlock before = publish(*memory, 71);
  gate_closed = true;
  std::optional<CodeBlock> others;
  std::thread other([&] { others = publish(*memory, 72, CodeMemory::largest_arena_bytes); });
  while (!at_the_gate.load()) std::this_thread::yield();  // it holds the lock now
  const auto child_body = [&] {
    gate_closed = false;
    const CodeBlock mine = publish(*memory, 73);
    if (!returns(mine, 73) || !returns(before, 71)) return 1;
    if (memory->mapped_bytes() != 2 * OpenArena::code_step) return 2;
    const int grandchild = in_child([&] { return returns(publish(*memory, 74), 74) ? 0 : 1; });
    if (grandchild != 0) return 3;
    memory.reset();
    return returns(mine, 73) && returns(before, 71) ? 0 : 4;
  };
  EXPECT_EQ(in_child(child_body), 0);
  EXPECT_EQ(in_child([&] {  // the child only cleans up
              memory.reset();
              return returns(before, 71) ? 0 : 1;
            }),
            0);
  gate_closed = false;
  other.join();
  EXPECT_TRUE(returns(*others, 72));
  EXPECT_TRUE(returns(before, 71));
  EXPECT_TRUE(returns(publish(*memory, 75), 75));
}

// The sanitizers' allocators may stay locked in a child forked amid threads.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(CodeMemoryFork, ForksAmidThreadsThatPublish) {
  CodeMemory memory;
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      std::vector<CodeBlock> blocks;
      for (uint32_t i = 0; !stop.load(); ++i) {
        blocks.push_back(publish(memory, t * 1000000 + i, 500));
        if (blocks.size() < 100) continue;
        for (const CodeBlock& block : blocks) wrong += !returns(block, call(block.code()));
        blocks.clear();
      }
    });
  }
  const CodeBlock before = publish(memory, 81);
  for (uint32_t i = 0; i < 100; ++i) {
    const int failed = in_child([&] {
      const CodeBlock mine = publish(memory, i, 3000);
      return returns(mine, i) && returns(before, 81) ? 0 : 1;
    });
    ASSERT_EQ(failed, 0) << "fork " << i;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}
#endif

TEST(CodeMemoryFork, ChildWithItsParentsProcessId) {
  const int failed = in_child([] {
    if (::unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0 && ::unshare(CLONE_NEWPID) != 0) return 77;
    return in_child([] {  // process 1 of a pid namespace
      CodeMemory memory;
      const CodeBlock before = publish(memory, 91);
      const std::vector<std::byte> page = bytes_of_page(before);
      const pid_t mine = ::getpid();
      if (::unshare(CLONE_NEWPID) != 0) return 77;
      const int inner = in_child([&] {  // process 1 of the next
        if (::getpid() != mine) return 1;
        const CodeBlock block = publish(memory, 92);
        return returns(block, 92) && returns(before, 91) ? 0 : 2;
      });
      return inner != 0 ? inner : bytes_of_page(before) == page ? 0 : 3;
    });
  });
  if (failed == 77) GTEST_SKIP() << "this system refuses pid namespaces";
  EXPECT_EQ(failed, 0);
}

TEST(CodeMemoryFork, FallbackPagesSurviveTooAndNeedNoMarker) {
  SystemCalls calls = SystemCalls::real();
  calls.madvise = [](void*, size_t, int) {
    errno = EINVAL;
    return -1;
  };
  CodeMemory memory(calls);
  const CodeBlock before = publish(memory, 95);
  EXPECT_EQ(before.mapping(), CodeMapping::own_pages);
  EXPECT_EQ(in_child([&] {
              const CodeBlock mine = publish(memory, 96);
              return returns(mine, 96) && returns(before, 95) ? 0 : 1;
            }),
            0);
  EXPECT_TRUE(returns(before, 95));
}

}  // namespace
}  // namespace castor::jit
