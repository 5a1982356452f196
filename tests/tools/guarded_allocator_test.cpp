// SPDX-License-Identifier: Apache-2.0
// The allocator that the other tests and the fuzzer give to their runtimes: does it find what
// kernels write beyond their scratch?
#include "tools/testing/guarded_allocator.hpp"

#include <gtest/gtest.h>

#include <array>

#include "tests/support/child_process.hpp"

namespace castor::test {
namespace {

constexpr std::array<size_t, 7> sizes = {1, 63, 64, 128, 4032, 4096, 5000};

/// Whether a process survives a write so far from the beginning of a block of its own, and gives
/// the block back.
bool survives_write(size_t bytes, ptrdiff_t offset) {
  return in_child([&] {
           const Allocator allocator = GuardedAllocator::callbacks();
           void* block = allocator.allocate(allocator.context, bytes, scratch_alignment);
           *(static_cast<volatile std::byte*>(block) + offset) = std::byte{1};
           allocator.release(allocator.context, block, bytes);
           return 0;
         }) == 0;
}

TEST(GuardedAllocator, BlocksAreAlignedAndTheirOwn) {
  for (const size_t bytes : sizes) {
    EXPECT_TRUE(survives_write(bytes, 0)) << bytes;
    EXPECT_TRUE(survives_write(bytes, static_cast<ptrdiff_t>(bytes) - 1)) << bytes;
    const Allocator allocator = GuardedAllocator::callbacks();
    void* block = allocator.allocate(allocator.context, bytes, scratch_alignment);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % scratch_alignment, 0U) << bytes;
    allocator.release(allocator.context, block, bytes);
  }
}

TEST(GuardedAllocator, OneByteBeyondABlockEndsTheProcess) {
  for (const size_t bytes : sizes) {
    EXPECT_FALSE(survives_write(bytes, -1)) << bytes;
    EXPECT_FALSE(survives_write(bytes, static_cast<ptrdiff_t>(bytes))) << bytes;
  }
}

}  // namespace
}  // namespace castor::test
