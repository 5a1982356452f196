// SPDX-License-Identifier: Apache-2.0
// overflow = saturate_finite: saturation that lets infinities be.
#include <gtest/gtest.h>

#include <algorithm>

#include "ir/numerics/scalar.hpp"
#include "tests/support/conversions.hpp"
#include "tests/support/element_types.hpp"
#include "tools/testing/samples.hpp"

namespace castor::test {
namespace {

constexpr ConvertOptions with(Overflow overflow) { return {.overflow = overflow}; }

uint64_t converted(uint64_t bits, ElementType from, ElementType to, Overflow overflow) {
  return numerics::convert(bits, from, to, with(overflow));
}

/// The two infinities of a type that has them.
std::vector<uint64_t> infinities(ElementType type) {
  const auto negative = uint64_t{1} << (bits_of(type) - 1);
  const uint64_t positive =
      (negative - 1) & ~((uint64_t{1} << info(type).format.mantissa_bits) - 1);
  return {positive, positive | negative};
}

/// Infinities convert as by default where the destination has some, everything else as under
/// saturate: the rule in other words, for every pair.
TEST(SaturateFinite, IsSaturateButForInfinitiesThatStay) {
  for (const ElementType from : all_element_types()) {
    for (const ElementType to : all_element_types()) {
      std::vector<uint64_t> infinite;
      if (has_infinities(from) && has_infinities(to)) infinite = infinities(from);
      for (const uint64_t bits : samples::boundary_patterns(from)) {
        const bool stays = std::ranges::count(infinite, bits) > 0;
        const Overflow as = stays ? Overflow::by_type : Overflow::saturate;
        ASSERT_EQ(converted(bits, from, to, Overflow::saturate_finite),
                  converted(bits, from, to, as))
            << name_of(from) << " -> " << name_of(to) << " of " << bits;
      }
      for (const uint64_t bits : infinite) {
        const uint64_t result = converted(bits, from, to, Overflow::saturate_finite);
        ASSERT_EQ(std::ranges::count(infinities(to), result), 1) << name_of(to);
      }
    }
  }
}

/// It is another conversion than the other modes only where a finite number may overflow to an
/// infinity: from f64 to four types, from f32 to three, from bf16 to two and from f16 to f8e5m2.
TEST(SaturateFinite, IsAnotherConversionForTenPairs) {
  int own = 0;
  for (const ElementType from : all_element_types()) {
    for (const ElementType to : all_element_types()) {
      const ConvertOptions options = with(Overflow::saturate_finite);
      ASSERT_TRUE(check_convert_options(from, to, options).ok());
      own += canonical_options(from, to, options) == options ? 1 : 0;
    }
  }
  EXPECT_EQ(own, 10);
}

struct Row {
  ElementType to;
  uint64_t largest, infinity;
};

/// f32 numbers around the ends of narrower formats.
TEST(SaturateFinite, EndsOfFormats) {
  using enum ElementType;
  for (const Row& row :
       {Row{f16, 0x7bff, 0x7c00}, Row{bf16, 0x7f7f, 0x7f80}, Row{f8e5m2, 0x7b, 0x7c}}) {
    EXPECT_EQ(converted(0x7f7fffff, f32, row.to, Overflow::saturate_finite), row.largest);
    EXPECT_EQ(converted(0x7f800000, f32, row.to, Overflow::saturate_finite), row.infinity);
    EXPECT_EQ(converted(0x7f7fffff, f32, row.to, Overflow::by_type), row.infinity);
    EXPECT_EQ(converted(0x7f800000, f32, row.to, Overflow::saturate), row.largest);
  }
}

}  // namespace
}  // namespace castor::test
