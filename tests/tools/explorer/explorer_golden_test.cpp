// SPDX-License-Identifier: Apache-2.0
// Every golden function on the explorer's page: no operation and no lane without counterparts.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/support/golden.hpp"
#include "tests/support/golden_kernel.hpp"
#include "tools/explorer/model.hpp"
#include "tools/explorer/written.hpp"

namespace castor::test {
namespace {

using namespace tools::explorer;

/// What the instructions of one tier are of.
struct Lit {
  std::set<Index> operations;
  std::set<std::pair<size_t, Index>> lanes;  ///< by number of the code
  size_t codes = 0;
};

void add(const Code& code, Lit& lit) {
  for (const Instruction& each : code.instructions) {
    const Origin& origin = code.origins[static_cast<size_t>(each.origin)];
    lit.operations.insert(origin.operation);
    lit.lanes.insert({lit.codes, origin.lane});
  }
  ++lit.codes;
}

/// Operations that need no instruction, of which the page says so, and the feature with which.
struct NeedsNoCode {
  std::string_view line;
  jit::Feature feature;
};
constexpr NeedsNoCode need_no_code[] = {
    // What stores the rounded quotients has closer bounds.
    {" = clamp %1 {lo = -131072.0, hi = 131072.0}", jit::Feature::avx512f},
    {" = clamp %13 {lo = -131072.0, hi = 131072.0}", jit::Feature::avx512f},
    // Codes are encoded by the exponents of f8e8m0 as they are.
    {"%t = convert %s : f32", jit::Feature::avx512_vbmi},
};

/// Constants are operands of what reads them.
bool needs_no_code(const OperationLine& line, const jit::Target& target) {
  if (line.text.find(" = constant ") != std::string::npos) return true;
  return std::ranges::any_of(need_no_code, [&](const NeedsNoCode& each) {
    return line.text.ends_with(each.line) && target.supports(each.feature);
  });
}

/// Pointing at any line of the function lights code, and so does pointing at a lane that is no
/// constant.
void expect_counterparts(const FunctionView& function, const TierView& tier,
                         const std::string& where) {
  Lit lit;
  for (const Nest& nest : tier.nests) {
    for (const Code& code : nest.codes) {
      const size_t number = lit.codes;
      add(code, lit);
      for (size_t i = 0; i < code.lanes.size(); ++i) {
        if (code.lanes[i].is_constant) continue;
        EXPECT_TRUE(lit.lanes.contains({number, static_cast<Index>(i)}))
            << where << ", " << code.name << ": " << code.lanes[i].text;
      }
    }
  }
  for (const OperationLine& line : function.lines) {
    if (line.operation == none || needs_no_code(line, tier.target)) continue;
    EXPECT_TRUE(lit.operations.contains(line.operation)) << where << ": " << line.text;
  }
}

/// Each operation of the canonical form came from one that was written.
void expect_all_became(const Function& written, const std::string& where) {
  const FunctionPtr canonical = canonicalize(std::make_shared<const Function>(written));
  const std::vector<Index> origins = written_operations(written, *canonical);
  for (size_t i = 0; i < origins.size(); ++i) {
    EXPECT_TRUE(origins[i] != none && static_cast<size_t>(origins[i]) < written.operations.size())
        << where << ": " << print(*canonical, canonical->operations[i]);
  }
}

TEST(ExplorerGolden, EveryOperationAndLaneHasCounterparts) {
  std::set<std::string> functions;
  for (const auto& file : listing_files()) {
    const auto kernel = read_golden_kernel(text_of_file(file));
    ASSERT_TRUE(kernel.ok()) << file;
    if (!kernel->function || !functions.insert(print(*kernel->function)).second) continue;
    const FunctionPtr all[] = {kernel->function};
    expect_all_became(*kernel->function, file.filename().string());
    const auto model = explore("golden", all, kernel->target.tier, kernel->target.core);
    ASSERT_TRUE(model.ok()) << file << ": " << model.error().message;
    for (const TierView& tier : model->functions[0].tiers) {
      ASSERT_EQ(tier.missing, "") << file;
      expect_counterparts(
          model->functions[0], tier,
          fmt::format("{} on {}", file.filename().string(), name_of(tier.target.tier)));
    }
  }
  EXPECT_GT(functions.size(), 30u);
}

}  // namespace
}  // namespace castor::test
