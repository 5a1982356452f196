// SPDX-License-Identifier: Apache-2.0
// Blocks of memory that nobody's allocator gives: where they begin, and how many bytes are in use.
#include "runtime/memory/memory_source.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace castor::detail {
namespace {

constexpr size_t huge_page = size_t{2} << 20;

/// Large ones can be on huge pages.
TEST(MemorySource, BlocksBeginAtPagesOfTheirSize) {
  const auto source = std::make_shared<MemorySource>(Allocator{}, "test");
  struct Row {
    size_t bytes;
    size_t alignment;
  };
  for (const auto& [bytes, alignment] :
       {Row{1, scratch_alignment}, Row{huge_page - 1, scratch_alignment}, Row{huge_page, huge_page},
        Row{3 * huge_page + 1, huge_page}}) {
    {
      const MemoryBlock block(source, bytes);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(block.data()) % alignment, 0u) << bytes;
      std::memset(block.data(), 0x5a, bytes);
      EXPECT_EQ(source->bytes(), bytes);
    }
    EXPECT_EQ(source->bytes(), 0u);
  }
}

}  // namespace
}  // namespace castor::detail
