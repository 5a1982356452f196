// SPDX-License-Identifier: Apache-2.0
// Tables of small floats in tables of 16: which there are, and that they have all entries.
#include "jit/lower/nibble_table.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "ir/types/elements.hpp"
#include "jit/lower/small_values.hpp"

namespace castor::jit {
namespace {

constexpr ElementType targets[] = {ElementType::bf16, ElementType::f16};

TEST(NibbleTable, OfSmallFloats) {
  std::set<std::string> found;
  for (const ElementInfo& row : element_table) {
    if (bits_of(row.type) > 8 || is_whole(row.type)) continue;
    for (ElementType to : targets) {
      for (Overflow overflow : {Overflow::by_type, Overflow::saturate}) {
        const ByteTable table = *conversion_table(row.type, to, {.overflow = overflow});
        const std::optional<NibbleTable> made = nibble_table(table);
        if (!made) continue;
        if (overflow == Overflow::by_type) {
          found.insert(std::string(row.name) + " to " + std::string(name_of(to)));
        }
        for (int code = 0; code < 1 << table.index_bits; ++code) {
          EXPECT_EQ(made->entry(code), table.entries[static_cast<size_t>(code)])
              << row.name << " to " << name_of(to) << ", code " << code;
        }
      }
    }
  }
  EXPECT_EQ(found, (std::set<std::string>{"f6e2m3 to bf16", "f6e2m3 to f16", "f6e3m2 to bf16",
                                          "f6e3m2 to f16", "f8e4m3 to bf16", "f8e4m3 to f16",
                                          "f8e4m3fnuz to bf16", "f8e4m3fnuz to f16",
                                          "f8e5m2 to bf16", "f8e5m2 to f16", "f8e5m2fnuz to bf16",
                                          "f8e5m2fnuz to f16", "f8e8m0 to bf16"}));
}

/// Each code, with one bit of the entry of one code changed: then the form cannot say it, or says
/// it exactly.
TEST(NibbleTable, OfAnyOtherEntry) {
  const ByteTable table = *conversion_table(ElementType::f8e4m3, ElementType::bf16, {});
  int forms = 0;
  for (size_t changed = 0; changed < 256; ++changed) {
    ByteTable other = table;
    other.entries[changed] ^= 0x0101;
    const std::optional<NibbleTable> made = nibble_table(other);
    if (!made) continue;
    ++forms;
    for (int code = 0; code < 256; ++code) {
      EXPECT_EQ(made->entry(code), other.entries[static_cast<size_t>(code)]) << changed;
    }
  }
  EXPECT_GT(forms, 0);
  EXPECT_LT(forms, 64);
}

TEST(NibbleTable, NotOfFewerBits) {
  EXPECT_FALSE(nibble_table(*conversion_table(ElementType::f4e2m1, ElementType::bf16, {})));
  EXPECT_FALSE(nibble_table(*conversion_table(ElementType::u8, ElementType::f16, {})));
}

}  // namespace
}  // namespace castor::jit
