// SPDX-License-Identifier: Apache-2.0
// Every conversion with every option on every tier: all values of 8- and 16-bit sources; limits,
// midpoints, subnormals, NaNs and random bit patterns of wider ones. Expected values are computed
// once and compared with every tier.
#include <gtest/gtest.h>

#include "tests/support/conversions.hpp"
#include "tests/support/on_every_tier.hpp"

namespace castor {
namespace {

using test::Conversion;

/// Random patterns of a wide source for each pair and option; convert_sweep_test has more of them
/// for the default options.
constexpr size_t random_count = 20'000;

std::vector<uint64_t> inputs_of(ElementType type) {
  if (bits_of(type) <= 16) return samples::all_patterns(type);
  std::vector<uint64_t> patterns = samples::boundary_patterns(type);
  for (uint64_t pattern : samples::random_patterns(type, random_count, 1)) {
    patterns.push_back(pattern);
  }
  return patterns;
}

class ConvertValues : public testing::TestWithParam<ElementType> {};

TEST_P(ConvertValues, AgreeWithTheInterpreterOnEveryTier) {
  const ElementType from = GetParam();
  const std::vector<uint64_t> inputs = inputs_of(from);
  for (ElementType to : test::all_element_types()) {
    for (const Conversion& conversion : test::conversions_of(from, to)) {
      test::check_on_every_tier(conversion, test::expect(conversion, inputs));
      if (HasFatalFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(From, ConvertValues, testing::ValuesIn(test::all_element_types()),
                         [](const auto& row) { return test::test_name(row.param); });

TEST(ConvertValues, RunAsMachineCodeWhereTheMachineCan) {
  ASSERT_TRUE(jit::host().best.has_value()) << "this machine is below avx2: nothing was tested";
  for (const auto& [tier, runtime] : test::elementwise_tier_runtimes()) {
    const Result<Kernel> kernel =
        runtime.compile("func @f(%x: f32[?]) -> (u8[?]) {\n  %y = convert %x : u8\n  return %y\n}");
    ASSERT_TRUE(kernel.ok()) << kernel.error().to_string();
    EXPECT_EQ(kernel->engine(), Engine::jit) << kernel->engine_reason();
  }
}

}  // namespace
}  // namespace castor
