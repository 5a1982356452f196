// SPDX-License-Identifier: Apache-2.0
// The fuzzer against code with one wrong bit (CASTOR_PLANT_BUG): the immediate of vcvtps2ph, which
// then rounds down where it should round to nearest even.
#include <gtest/gtest.h>

#include "tests/support/regex.hpp"
#include "tools/fuzz/run.hpp"

namespace castor::fuzz {
namespace {

constexpr uint64_t programs = 3000;  // the demand is to find it within 20,000

std::vector<Tier> all_tiers() {
  std::vector<Tier> tiers;
  for (const jit::TierInfo& row : jit::tier_table()) {
    if (jit::host().runs(row.tier)) tiers.push_back(row.tier);
  }
  return tiers;
}

/// The first report of a run.
std::string find_bug(std::vector<Tier> tiers, uint64_t seed) {
  std::string first;
  FuzzOptions options;
  options.tiers = std::move(tiers);
  options.seed = seed;
  options.count = programs;
  options.max_reports = 1;
  options.report = [&first](const std::string& text) { first = text; };
  const Result<FuzzSummary> summary = run_fuzzer(options);
  EXPECT_TRUE(summary.ok());
  EXPECT_GT(summary->mismatches, 0u);
  return first;
}

/// One operation on one element; on tiers that compute in f16 lanes, where conversions to f16 and
/// from it have the instruction and little else, perhaps two.
void expect_minimal(const std::string& report) {
  if (test::has_match(report, ", on (avx512_fp16|amx)\n")) {
    EXPECT_TRUE(test::has_match(report, "minimised: [12] operations, ")) << report;
    EXPECT_NE(report.find("result 0: 1 of 1 elements differ"), std::string::npos) << report;
    return;
  }
  EXPECT_TRUE(
      test::has_match(report,
                      "func @f\\([^)]*\\) -> \\([a-z0-9]+\\[1?\\]\\) (attributes [^\n]*)?\\{\n"
                      "  %[0-9]+(, %[0-9]+)* = [^\n]+\n"
                      "  return %[0-9]+\n"
                      "\\}\n"))
      << report;
  EXPECT_NE(report.find("minimised: 1 operations, "), std::string::npos) << report;
  EXPECT_NE(report.find("result 0: 1 of 1 elements differ"), std::string::npos) << report;
  EXPECT_NE(report.find("repeat: castor fuzz --seed "), std::string::npos) << report;
}

TEST(FuzzPlanted, TheBitIsFoundAndMinimisedOnEveryTier) {
  for (Tier tier : all_tiers()) {
    SCOPED_TRACE(name_of(tier));
    expect_minimal(find_bug({tier}, 1));
  }
}

TEST(FuzzPlanted, TheBitIsFoundWithAnySeed) {
  for (uint64_t seed : {2, 3, 4}) {
    SCOPED_TRACE(seed);
    expect_minimal(find_bug(all_tiers(), seed));
  }
}

}  // namespace
}  // namespace castor::fuzz
