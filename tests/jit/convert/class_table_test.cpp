// SPDX-License-Identifier: Apache-2.0
// Which conversions have class tables, and what these cost: the sweeps test their codes.
#include "jit/lower/class_table.hpp"

#include <gtest/gtest.h>

#include <fmt/format.h>

namespace castor::jit {
namespace {

using enum ElementType;

struct Row {
  ElementType from;
  ElementType to;
  Rounding rounding;
  int low_bits;
  int index_bits;
  bool has_sign;
};

TEST(ClassTable, HasAsManyBitsAsTheIntegersNeed) {
  const Row rows[] = {
      {bf16, i4, Rounding::by_type, 3, 6, true},     {bf16, u4, Rounding::by_type, 4, 7, false},
      {bf16, u3, Rounding::by_type, 3, 6, false},    {bf16, i2, Rounding::by_type, 1, 6, true},
      {bf16, u2, Rounding::by_type, 2, 6, false},    {bf16, u1, Rounding::by_type, 1, 6, false},
      {f16, i4, Rounding::by_type, 0, 6, true},      {f16, u4, Rounding::by_type, 1, 6, false},
      {f16, u3, Rounding::by_type, 0, 6, false},     {f16, i2, Rounding::by_type, 0, 6, true},
      {f16, u1, Rounding::by_type, 0, 6, false},     {bf16, i4, Rounding::nearest_away, 4, 7, true},
      {f16, i4, Rounding::nearest_away, 1, 6, true}, {bf16, u3, Rounding::down, 3, 6, false},
      {f16, u4, Rounding::half_up, 2, 6, false},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(fmt::format("{} to {}, {}", name_of(row.from), name_of(row.to),
                             rounding_names[static_cast<size_t>(row.rounding)]));
    const auto table = class_table(row.from, row.to, {.rounding = row.rounding});
    ASSERT_TRUE(table);
    EXPECT_EQ(table->low_bits, row.low_bits);
    EXPECT_EQ(table->codes.index_bits, row.index_bits);
    EXPECT_EQ(table->sign_bit != 0, row.has_sign);
    EXPECT_EQ(table->infinity, row.from == f16 ? 0x7c00 : 0x7f80);
  }
}

/// A tie's neighbour differs from it in the last bit; what is wrapped does not ascend.
TEST(ClassTable, IsAbsentWhereTheLastBitsCount) {
  for (const ElementType from : {f16, bf16}) {
    for (const Rounding rounding :
         {Rounding::nearest_even, Rounding::down, Rounding::up, Rounding::half_up}) {
      EXPECT_FALSE(class_table(from, i4, {.rounding = rounding}))
          << name_of(from) << " " << rounding_names[static_cast<size_t>(rounding)];
    }
    EXPECT_FALSE(class_table(from, u4, {.rounding = Rounding::nearest_even}));
    EXPECT_FALSE(class_table(from, u4, {.rounding = Rounding::up}));
    EXPECT_FALSE(class_table(from, i4, {.overflow = Overflow::wrap}));
    EXPECT_FALSE(class_table(from, u6, {}));
    EXPECT_FALSE(class_table(from, i8, {}));
    EXPECT_FALSE(class_table(from, f4e2m1, {}));
  }
  // An index of eight bits.
  EXPECT_FALSE(class_table(bf16, u4, {.rounding = Rounding::nearest_away}));
}

}  // namespace
}  // namespace castor::jit
