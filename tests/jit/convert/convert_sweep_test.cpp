// SPDX-License-Identifier: Apache-2.0
// Many patterns of wide sources on every tier against the interpreter: f32 into each type of at
// most 8 bits, and random patterns of each 32- and 64-bit type into every type.
//   convert_sweep_test          part of the patterns of f32; a million random ones for each pair
//   convert_sweep_test --long   all 2^32 patterns of f32; ten million random ones for each pair
#include <gtest/gtest.h>

#include "tests/support/long_form.hpp"
#include "tests/support/on_every_tier.hpp"
#include "tests/support/pack_codes.hpp"
#include "tests/support/sweep.hpp"

namespace castor {
namespace {

using test::Conversion;
using test::ExpectedConversion;

// ---- All patterns of f32

/// Each conversion from f32 that differs from the others, without overflow = wrap: that one is not
/// monotone, so bisection cannot find where it turns.
std::vector<Conversion> swept_conversions(ElementType to) {
  std::vector<Conversion> distinct;
  for (const Conversion& conversion : test::conversions_of(ElementType::f32, to)) {
    const ConvertOptions& options = conversion.options;
    const bool repeats = options != canonical_options(ElementType::f32, to, options);
    if (options.overflow != Overflow::wrap && !repeats) distinct.push_back(conversion);
  }
  return distinct;
}

std::vector<ElementType> narrow_types() {
  std::vector<ElementType> types = test::value_types();
  std::erase_if(types, [](ElementType type) { return bits_of(type) > 8; });
  return types;
}

class ConvertSweep : public testing::TestWithParam<ElementType> {};

TEST_P(ConvertSweep, OfAllF32AgreesWithTheInterpreterOnEveryTier) {
  test::Sweep sweep(swept_conversions(GetParam()));
  sweep.run(test::long_form() ? 1 : 64);
  for (const auto& [where, what] : sweep.findings()) ADD_FAILURE() << where << ": " << what;
  EXPECT_GT(sweep.runs(), 0u);
  RecordProperty("patterns", std::to_string(sweep.runs() * test::block_size));
}

INSTANTIATE_TEST_SUITE_P(To, ConvertSweep, testing::ValuesIn(narrow_types()),
                         [](const auto& row) { return test::test_name(row.param); });

TEST(ConvertSweep, PacksLikeTheSlowPacker) {
  for (ElementType type : narrow_types()) {
    const std::vector<uint64_t> patterns = samples::random_patterns(type, 400, 4);
    const std::vector<uint8_t> codes(patterns.begin(), patterns.end());
    std::vector<std::byte> bytes(samples::storage_bytes(type, codes.size()));
    test::pack_codes(type, codes, bytes);
    EXPECT_EQ(bytes, samples::pack(type, patterns)) << name_of(type);
  }
}

/// The codes of whole blocks, asked for one by one.
TEST(ConvertSweep, FindsTheInterpretersCodes) {
  const uint32_t blocks[] = {0x0000, 0x0040, 0x3F00, 0x3F80, 0x43E8,
                             0x7F80, 0x7FC0, 0x8000, 0xFF80};
  for (ElementType to : narrow_types()) {
    for (const Conversion& conversion : swept_conversions(to)) {
      test::ExpectedBlock expected(conversion);
      for (uint32_t block : blocks) {
        expected.compute(block);
        for (uint32_t i = 0; i < test::block_size; ++i) {
          const uint32_t pattern = block * test::block_size + i;
          ASSERT_EQ(expected.code(i),
                    numerics::convert(pattern, ElementType::f32, to, conversion.options))
              << conversion.name() << ", input 0x" << std::hex << pattern;
        }
      }
    }
  }
}

// ---- Random patterns

std::vector<ElementType> wide_types() {
  std::vector<ElementType> types = test::value_types();
  std::erase_if(types, [](ElementType type) { return bits_of(type) < 32; });
  return types;
}

class ConvertRandom : public testing::TestWithParam<ElementType> {};

TEST_P(ConvertRandom, PatternsAgreeWithTheInterpreterOnEveryTier) {
  constexpr size_t million = 1'000'000;
  const ElementType from = GetParam();
  ExpectedConversion expected;
  for (uint64_t seed = 1; seed <= (test::long_form() ? 10u : 1u); ++seed) {
    expected.inputs = samples::random_patterns(from, million, 100 + seed);
    expected.outputs.resize(million);
    expected.input_bytes = samples::pack(from, expected.inputs);
    for (ElementType to : test::value_types()) {
      for (size_t i = 0; i < million; ++i) {
        expected.outputs[i] = numerics::convert(expected.inputs[i], from, to, {});
      }
      expected.output_bytes = samples::pack(to, expected.outputs);
      test::check_on_every_tier({from, to, {}}, expected);
      if (HasFatalFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(From, ConvertRandom, testing::ValuesIn(wide_types()),
                         [](const auto& row) { return test::test_name(row.param); });

}  // namespace
}  // namespace castor
