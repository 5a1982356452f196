// SPDX-License-Identifier: Apache-2.0
// The port model of this machine's core against cycles measured on it, on loops of the golden
// listings: the short form. The whole table is made by castor_golden_loops (bench/README.md).
#include "tests/support/golden_loops.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "bench/ports/loop_replay.hpp"
#include "tests/support/long_form.hpp"

namespace castor::test {
namespace {

/// The model of this machine's core; nothing where it has none of its own.
std::optional<jit::PortModel> host_model() {
  const jit::Core core = jit::choose_core(jit::host().identity).core;
  if (name_of(jit::tuning_of(core).port_model) != name_of(core)) return std::nullopt;
  return jit::port_model_of(core, jit::host().identity);
}

struct MeasuredLoop {
  std::string name;
  double bound = 0;
  double cycles = 0;
};

/// Measures every nth of the main loops and k steps that the machine runs itself.
std::vector<MeasuredLoop> measured_loops(jit::PortModel model, size_t every_nth) {
  std::vector<MeasuredLoop> measured;
  const auto all = golden_loops();
  EXPECT_TRUE(all.ok()) << (all ? "" : all.error().to_string());
  if (!all) return measured;
  const bench::CoreClock clock;
  size_t count = 0;
  for (const GoldenLoops& loops : *all) {
    for (const GoldenLoop& each : loops.loops) {
      const auto& cycles = each.cycles[static_cast<size_t>(model)];
      const bool runs = jit::host().runs(each.tier) && !jit::host().emulates(each.tier);
      if (each.loop.name == "tail" || !cycles || !runs || count++ % every_nth != 0) continue;
      const auto replay = bench::LoopReplay::prepare(loops.codes[each.nest], each.loop);
      if (!replay) {
        EXPECT_EQ(replay.error().code, ErrorCode::unsupported)
            << each.listing << ": " << replay.error().message;
        continue;
      }
      measured.push_back({fmt::format("{} {}", each.listing, each.loop.name), cycles->bound(),
                          (*replay)->measure(clock, 5e6)});
    }
  }
  return measured;
}

/// A bound that is above what one round of measurements has, which is wrong; empty if none is.
std::string bound_above(const std::vector<MeasuredLoop>& loops) {
  for (const MeasuredLoop& loop : loops) {
    if (loop.cycles <= 0.9 * loop.bound) {
      return fmt::format("{}: {} cycles, but the bound is {}", loop.name, loop.cycles, loop.bound);
    }
  }
  return {};
}

/// What is measured may be far above the bound where loops wait for results; but not of most loops.
std::string bounds_below(const std::vector<MeasuredLoop>& loops) {
  std::vector<double> fractions;
  for (const MeasuredLoop& loop : loops) fractions.push_back(loop.bound / loop.cycles);
  std::ranges::sort(fractions);
  const double median = fractions[fractions.size() / 2];
  return median > 0.7 ? "" : fmt::format("half of the loops reach less than {:.2f}", median);
}

/// Where the core changes its clock, a round may have too few cycles: a wrong model is wrong in all
/// of five. Where another process has the core, loops have too many: the least of all rounds
/// counts.
TEST(GoldenLoops, TakeNoFewerCyclesThanTheModelOfThisCoreSays) {
  const auto model = host_model();
  if (!model) GTEST_SKIP() << "this core has no port model of its own";
  std::vector<MeasuredLoop> least;
  std::string above = "not measured";
  std::string below = "not measured";
  for (int round = 0; round < 5 && !(above.empty() && below.empty()); ++round) {
    const std::vector<MeasuredLoop> loops = measured_loops(*model, long_form() ? 1 : 3);
    ASSERT_GE(loops.size(), 20u);
    if (least.empty()) least = loops;
    ASSERT_EQ(loops.size(), least.size());
    for (size_t i = 0; i < loops.size(); ++i) {
      least[i].cycles = std::min(least[i].cycles, loops[i].cycles);
    }
    if (!above.empty()) above = bound_above(loops);
    below = bounds_below(least);
  }
  EXPECT_EQ(above, "");
  EXPECT_EQ(below, "");
}

}  // namespace
}  // namespace castor::test
