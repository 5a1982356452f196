// SPDX-License-Identifier: Apache-2.0
// Publishing machine code: it runs, stays as it is, is never writable, and goes when it dies.
#include "jit/code_memory.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <optional>
#include <thread>

#include "tests/support/process_maps.hpp"

namespace castor::jit {
namespace {

using test::call;
using test::code_returning;

/// A published block and the bytes that it must have.
struct Published {
  CodeBlock block;
  std::vector<std::byte> bytes;
  uint32_t value;

  bool intact() const {
    return block.size() == bytes.size() && std::equal(bytes.begin(), bytes.end(), block.code()) &&
           call(block.code()) == value;
  }
};

Published publish(CodeMemory& memory, uint32_t value, size_t size = 6) {
  std::vector<std::byte> code = code_returning(value, size);
  Result<CodeBlock> block = memory.publish(code);
  if (!block.ok()) throw std::runtime_error(block.error().message);
  return {*std::move(block), std::move(code), value};
}

bool aligned(const CodeBlock& block) {
  return reinterpret_cast<uintptr_t>(block.code()) % CodeMemory::code_alignment == 0;
}

TEST(CodeMemory, PublishedCodeRuns) {
  CodeMemory memory;
  EXPECT_EQ(memory.mapped_bytes(), 0u);
  const Published p = publish(memory, 0x12345678);
  EXPECT_TRUE(p.intact());
  EXPECT_TRUE(aligned(p.block));
  EXPECT_EQ(p.block.mapping(), CodeMapping::dual);
  EXPECT_EQ(memory.mapped_bytes(), CodeMemory::first_arena_bytes);
}

TEST(CodeMemory, NoCodeIsAnError) {
  CodeMemory memory;
  const Result<CodeBlock> block = memory.publish({});
  ASSERT_FALSE(block.ok());
  EXPECT_EQ(block.error().code, ErrorCode::internal);
}

TEST(CodeMemory, ThousandsOfBlocksStayIntact) {
  CodeMemory memory;
  std::vector<Published> blocks;
  for (uint32_t i = 0; i < 5000; ++i) blocks.push_back(publish(memory, i, 6 + i * 37 % 1500));
  // Half of them die; more are published; none of the others has changed.
  std::vector<Published> kept;
  for (size_t i = 0; i < blocks.size(); i += 2) kept.push_back(std::move(blocks[i]));
  blocks.clear();
  for (uint32_t i = 0; i < 1000; ++i) kept.push_back(publish(memory, i * 7, 6 + i));
  for (const Published& p : kept) ASSERT_TRUE(p.intact() && aligned(p.block)) << p.value;
}

TEST(CodeMemory, SizesAroundLinesPagesAndArenas) {
  CodeMemory memory;
  std::vector<Published> blocks;
  for (size_t edge : {size_t{64}, page_bytes, CodeMemory::first_arena_bytes,
                      CodeMemory::largest_arena_bytes, 3 * CodeMemory::largest_arena_bytes}) {
    for (size_t size : {edge - 1, edge, edge + 1}) {
      blocks.push_back(publish(memory, static_cast<uint32_t>(size), size));
    }
  }
  for (const Published& p : blocks) EXPECT_TRUE(p.intact() && aligned(p.block)) << p.value;
}

TEST(CodeMemory, ArenasDoubleUpToTheLargest) {
  CodeMemory memory;
  std::vector<Published> blocks;
  std::vector<size_t> growth;
  for (size_t before = 0; growth.size() < 6;) {
    blocks.push_back(publish(memory, 1, page_bytes));
    if (memory.mapped_bytes() != before) growth.push_back(memory.mapped_bytes() - before);
    before = memory.mapped_bytes();
  }
  const std::vector<size_t> expected = {16 << 10,  32 << 10,  64 << 10,
                                        128 << 10, 128 << 10, 128 << 10};
  EXPECT_EQ(growth, expected);
  EXPECT_EQ(test::count_writable_arenas(), 1);  // only the one being filled
}

TEST(CodeMemory, LargeCodeGetsAnArenaOfItsOwn) {
  CodeMemory memory;
  const Published small = publish(memory, 1);
  const size_t large_bytes = CodeMemory::largest_arena_bytes + 1;
  std::optional<Published> large = publish(memory, 2, large_bytes);
  const Published next = publish(memory, 3);
  EXPECT_EQ(large->block.mapping(), CodeMapping::dual);
  EXPECT_EQ(next.block.code() - small.block.code(), 64);  // the first arena is still being filled
  EXPECT_EQ(memory.mapped_bytes(),
            CodeMemory::first_arena_bytes + CodeMemory::largest_arena_bytes + page_bytes);
  EXPECT_EQ(test::count_writable_arenas(), 1);
  large.reset();
  EXPECT_EQ(memory.mapped_bytes(), CodeMemory::first_arena_bytes);
}

TEST(CodeMemory, BytesOfDeadBlocksAreNotWrittenAgain) {
  CodeMemory memory;
  const Published keeps_the_arena = publish(memory, 1);
  std::vector<const std::byte*> dead;
  for (uint32_t i = 0; i < 50; ++i) dead.push_back(publish(memory, i).block.code());
  const Published later = publish(memory, 1000);
  EXPECT_EQ(std::count(dead.begin(), dead.end(), later.block.code()), 0);
  for (uint32_t i = 0; i < 50; ++i) EXPECT_EQ(call(dead[i]), i);
}

TEST(CodeMemory, ArenasGoWithTheirLastBlock) {
  const size_t mapped_before = test::code_arena_bytes();
  std::optional<CodeBlock> survivor;
  {
    CodeMemory memory;
    std::vector<Published> blocks;
    for (uint32_t i = 0; i < 200; ++i) blocks.push_back(publish(memory, i, page_bytes));
    EXPECT_EQ(test::code_arena_bytes() - mapped_before, memory.mapped_bytes());
    EXPECT_GE(memory.mapped_bytes(), 200 * page_bytes);
    survivor = blocks[3].block;  // in the first arena, which is full
    const std::byte* dies = blocks[100].block.code();
    EXPECT_TRUE(test::is_executable(dies));
    blocks.clear();
    EXPECT_FALSE(test::is_executable(dies));
    // Left are the survivor's arena and the one being filled.
    EXPECT_EQ(memory.mapped_bytes(),
              CodeMemory::first_arena_bytes + CodeMemory::largest_arena_bytes);
    EXPECT_EQ(test::code_arena_bytes() - mapped_before, memory.mapped_bytes());
  }
  EXPECT_EQ(test::code_arena_bytes() - mapped_before, CodeMemory::first_arena_bytes);
  EXPECT_EQ(test::count_writable_arenas(), 0);
  EXPECT_EQ(call(survivor->code()), 3u);
  survivor.reset();
  EXPECT_EQ(test::code_arena_bytes(), mapped_before);
}

TEST(CodeMemory, LeavesNoOpenFile) {
  const int before = test::count_open_files();
  CodeMemory memory;
  std::vector<Published> blocks;
  for (uint32_t i = 0; i < 100; ++i) blocks.push_back(publish(memory, i, page_bytes));
  EXPECT_EQ(test::count_open_files(), before);
}

// The sanitizers take page faults of their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(CodeMemory, PublishingTakesNoPageFaults) {
  CodeMemory memory;
  std::vector<CodeBlock> blocks;
  blocks.reserve(1000);
  const std::vector<std::byte> code = code_returning(7, 1024);
  // Fill up to the beginning of an arena of the largest size: 32 pages.
  const size_t mapped = 16 * 15 * 1024;
  while (memory.mapped_bytes() < mapped) blocks.push_back(*memory.publish(code));
  rusage before{}, after{};
  ::getrusage(RUSAGE_SELF, &before);
  uint32_t sum = 0;
  for (int i = 0; i < 120; ++i) {
    blocks.push_back(*memory.publish(code));
    sum += call(blocks.back().code());
  }
  ::getrusage(RUSAGE_SELF, &after);
  EXPECT_EQ(memory.mapped_bytes(), mapped);
  EXPECT_EQ(sum, 7u * 120);
  EXPECT_LE(after.ru_minflt - before.ru_minflt, 2);  // untouched pages would make 30 or more
}
#endif

TEST(CodeMemory, ThreadsPublishTogether) {
  CodeMemory memory;
  std::vector<std::vector<Published>> published(8);
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 8; ++t) {
    threads.emplace_back([&memory, &mine = published[t], t] {
      for (uint32_t i = 0; i < 500; ++i) {
        mine.push_back(publish(memory, t * 1000 + i, 6 + i % 700));
        if (i % 3 == 2) mine.erase(mine.begin() + i / 3);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<std::pair<const std::byte*, const std::byte*>> spans;
  for (const std::vector<Published>& mine : published) {
    for (const Published& p : mine) {
      ASSERT_TRUE(p.intact()) << p.value;
      spans.emplace_back(p.block.code(), p.block.code() + p.block.size());
    }
  }
  std::sort(spans.begin(), spans.end());
  for (size_t i = 1; i < spans.size(); ++i) ASSERT_LE(spans[i - 1].second, spans[i].first);
}

/// What the last test of write-xor-execute saw; system calls are plain functions.
struct Watch {
  int calls = 0;
  int both_asked = 0;
  int both_mapped = 0;
};
Watch watch;

template <class Outcome>
Outcome watched(Outcome outcome, int protection) {
  const int saved = errno;
  ++watch.calls;
  watch.both_asked += (protection & PROT_WRITE) != 0 && (protection & PROT_EXEC) != 0;
  watch.both_mapped += test::count_writable_executable();
  errno = saved;
  return outcome;
}

SystemCalls watching_calls() {
  SystemCalls calls = SystemCalls::real();
  calls.mmap = [](void* at, size_t size, int protection, int flags, int fd, off_t offset) {
    return watched(::mmap(at, size, protection, flags, fd, offset), protection);
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

TEST(CodeMemory, NoPageIsEverWritableAndExecutable) {
  ASSERT_EQ(test::count_writable_executable(), 0);
  SystemCalls dual = watching_calls();
  SystemCalls fallback = dual;
  fallback.memfd_create = [](const char*, unsigned) {
    errno = ENOSYS;
    return -1;
  };
  for (const SystemCalls& calls : {dual, fallback}) {
    watch = {};
    {
      CodeMemory memory(calls);
      std::vector<Published> blocks;
      for (uint32_t i = 0; i < 20; ++i) blocks.push_back(publish(memory, i, 1 << 12));
      blocks.push_back(publish(memory, 5, 200 << 10));
      for (const Published& p : blocks) EXPECT_TRUE(p.intact());
      EXPECT_EQ(test::count_writable_executable(), 0);
    }
    EXPECT_GE(watch.calls, 10);
    EXPECT_EQ(watch.both_asked, 0);
    EXPECT_EQ(watch.both_mapped, 0);
  }
}

int seals_refused = 0;

TEST(CodeMemory, PublishedCodeCannotBeMadeWritable) {
  SystemCalls calls = SystemCalls::real();
  calls.add_seals = [](int fd, int seals) {
    const int outcome = SystemCalls::real().add_seals(fd, seals);
    seals_refused += outcome != 0;
    return outcome;
  };
  CodeMemory memory(calls);
  const Published p = publish(memory, 1);
  if (seals_refused > 0) GTEST_SKIP() << "this kernel lacks F_SEAL_FUTURE_WRITE";
  void* page = const_cast<std::byte*>(p.block.code());
  EXPECT_EQ(::mprotect(page, page_bytes, PROT_READ | PROT_WRITE), -1);
  EXPECT_EQ(::mprotect(page, page_bytes, PROT_READ | PROT_WRITE | PROT_EXEC), -1);
  EXPECT_TRUE(p.intact());
}

}  // namespace
}  // namespace castor::jit
