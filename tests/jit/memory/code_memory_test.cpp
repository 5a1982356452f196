// SPDX-License-Identifier: Apache-2.0
// Publishing machine code: it runs, stays as it is, is never writable, and goes when it dies.
#include "jit/memory/code_memory.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <optional>
#include <thread>

#include "tests/support/code_returning.hpp"
#include "tests/support/process_maps.hpp"
#include "tests/support/published.hpp"

namespace castor::jit {
namespace {

using test::call;
using test::code_reading;
using test::code_returning;

/// A published block and what it must be.
struct Published {
  CodeBlock block;
  MachineCode code;
  uint32_t value;

  bool intact() const { return test::is_published(code, block) && call(block.code()) == value; }
};

Published publish(CodeMemory& memory, uint32_t value, const MachineCode& code) {
  Result<CodeBlock> block = memory.publish(code);
  if (!block.ok()) throw std::runtime_error(block.error().message);
  return {*std::move(block), code, value};
}

Published publish(CodeMemory& memory, uint32_t value, size_t size = 6) {
  return publish(memory, value, code_returning(value, size));
}

bool aligned(const CodeBlock& block) {
  return reinterpret_cast<uintptr_t>(block.code()) % CodeMemory::code_alignment == 0 &&
         reinterpret_cast<uintptr_t>(block.pool().data()) % CodeMemory::code_alignment == 0;
}

TEST(CodeMemory, PublishedCodeRuns) {
  CodeMemory memory;
  EXPECT_EQ(memory.mapped_bytes(), 0u);
  const Published p = publish(memory, 0x12345678);
  EXPECT_TRUE(p.intact());
  EXPECT_TRUE(aligned(p.block));
  EXPECT_EQ(p.block.mapping(), CodeMapping::arena);
  EXPECT_EQ(memory.mapped_bytes(), OpenArena::code_step);
}

TEST(CodeMemory, NoCodeIsAnError) {
  CodeMemory memory;
  const Result<CodeBlock> block = memory.publish(MachineCode());
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
  for (uint32_t i = 1; i < 500; ++i) kept.push_back(publish(memory, i, code_reading(i, 4 * i)));
  for (const Published& p : kept) ASSERT_TRUE(p.intact() && aligned(p.block)) << p.value;
}

TEST(CodeMemory, SizesAroundLinesPagesAndArenas) {
  CodeMemory memory;
  std::vector<Published> blocks;
  for (size_t edge : {size_t{64}, page_bytes, 4 * page_bytes, CodeMemory::largest_arena_bytes,
                      3 * CodeMemory::largest_arena_bytes}) {
    const auto value = static_cast<uint32_t>(edge);
    for (size_t size : {edge - 1, edge, edge + 1}) blocks.push_back(publish(memory, value, size));
    for (size_t size : {edge - 4, edge, edge + 4}) {
      blocks.push_back(publish(memory, value, code_reading(value, size)));
    }
  }
  for (const Published& p : blocks) EXPECT_TRUE(p.intact() && aligned(p.block)) << p.value;
}

TEST(CodeMemory, ArenasGrowStepByStep) {
  CodeMemory memory;
  std::vector<Published> blocks;
  const size_t pages = CodeMemory::largest_arena_bytes / page_bytes;
  for (size_t i = 1; i <= 2 * pages; ++i) {
    blocks.push_back(publish(memory, 1, page_bytes - 64));
    blocks.push_back(publish(memory, 2, 64));  // on the same page
    EXPECT_EQ(memory.mapped_bytes(), round_up(i * page_bytes, OpenArena::code_step));
    EXPECT_EQ(test::code_arena_bytes(), memory.mapped_bytes());
    EXPECT_EQ(test::count_arena_mappings(), i <= pages ? 2 : 4);
  }
  blocks.push_back(publish(memory, 3, code_reading(3)));
  EXPECT_EQ(memory.mapped_bytes(), 2 * pages * page_bytes + OpenArena::code_step + page_bytes);
  for (const Published& p : blocks) EXPECT_TRUE(p.intact());
}

/// What a jump past the end of a code would meet.
TEST(CodeMemory, UnusedPartsOfPagesTrap) {
  CodeMemory memory;
  const Published p = publish(memory, 1, 100);
  const std::span page(p.block.code(), OpenArena::code_step);
  EXPECT_EQ(std::ranges::count(page.subspan(100), std::byte{0xcc}), std::ssize(page) - 100);
}

TEST(CodeMemory, LargeCodeGetsAnArenaOfItsOwn) {
  CodeMemory memory;
  const Published small = publish(memory, 1);
  const size_t large_bytes = CodeMemory::largest_arena_bytes + 4;
  for (const MachineCode& code : {code_returning(2, large_bytes), code_reading(2, large_bytes)}) {
    std::optional<Published> large = publish(memory, 2, code);
    EXPECT_TRUE(large->intact());
    EXPECT_EQ(large->block.mapping(), CodeMapping::arena);
    const size_t own = CodeMemory::largest_arena_bytes + page_bytes;
    const size_t all = OpenArena::code_step + own;
    EXPECT_GE(memory.mapped_bytes(), all);  // and the smaller part of the two, if there is one
    EXPECT_LE(memory.mapped_bytes(), all + OpenArena::code_step);
    large.reset();
    EXPECT_EQ(memory.mapped_bytes(), OpenArena::code_step);
  }
  const Published next = publish(memory, 3);
  EXPECT_EQ(next.block.code() - small.block.code(), 64);  // the first arena is still being filled
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
    EXPECT_EQ(memory.mapped_bytes(), CodeMemory::largest_arena_bytes + 8 * page_bytes);
    EXPECT_EQ(test::code_arena_bytes() - mapped_before, memory.mapped_bytes());
  }
  EXPECT_EQ(test::code_arena_bytes() - mapped_before, CodeMemory::largest_arena_bytes);
  EXPECT_EQ(call(survivor->code()), 3u);
  survivor.reset();
  EXPECT_EQ(test::code_arena_bytes(), mapped_before);
}

TEST(CodeMemory, HoldsOneFileOpenWhileItFills) {
  const int before = test::count_open_files();
  std::vector<Published> blocks;
  {
    CodeMemory memory;
    EXPECT_EQ(test::count_open_files(), before);
    for (uint32_t i = 0; i < 100; ++i) blocks.push_back(publish(memory, i, page_bytes));
    EXPECT_EQ(test::count_open_files(), before + 1);
    blocks.push_back(publish(memory, 7, 2 * CodeMemory::largest_arena_bytes));
    EXPECT_EQ(test::count_open_files(), before + 1);
  }
  EXPECT_EQ(test::count_open_files(), before);
  for (const Published& p : blocks) EXPECT_TRUE(p.intact());
}

// The sanitizers take page faults of their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
long page_faults() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

TEST(CodeMemory, FirstCallsTakeNoPageFaults) {
  CodeMemory memory;
  std::vector<CodeBlock> blocks;
  blocks.reserve(1000);
  const MachineCode code = code_reading(7, 1024);
  blocks.push_back(*memory.publish(code));
  const long before = page_faults();
  for (int i = 0; i < 120; ++i) blocks.push_back(*memory.publish(code));
  const long published = page_faults();
  uint32_t sum = 0;
  for (const CodeBlock& block : blocks) sum += call(block.code());
  EXPECT_EQ(sum, 7u * 121);
  EXPECT_LE(page_faults() - published, 2);  // pages that nobody touched would make 30
  EXPECT_LE(published - before, 36);        // one for each of 30 pages and 2 of code
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

}  // namespace
}  // namespace castor::jit
