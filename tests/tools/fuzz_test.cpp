// SPDX-License-Identifier: Apache-2.0
// The fuzzer: a short run on every tier, that runs repeat, and that mismatches of every kind are
// found, minimised and reported.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <set>

#include "ir/text/text.hpp"
#include "tests/support/command.hpp"
#include "tests/support/conversions.hpp"
#include "tests/support/regex.hpp"
#include "tools/fuzz/child.hpp"
#include "tools/fuzz/generate.hpp"
#include "tools/fuzz/generate_function.hpp"
#include "tools/fuzz/layout.hpp"
#include "tools/fuzz/record.hpp"
#include "tools/fuzz/run.hpp"

namespace castor::fuzz {
namespace {

std::vector<Tier> all_tiers() {
  std::vector<Tier> tiers;
  for (const auto& [tier, runtime] : test::tier_runtimes()) tiers.push_back(tier);
  return tiers;
}

/// A run that keeps its reports.
struct KeptRun {
  FuzzSummary summary;
  std::vector<std::string> reports;
};

KeptRun run(FuzzOptions options) {
  KeptRun kept;
  options.report = [&kept](const std::string& text) { kept.reports.push_back(text); };
  const Result<FuzzSummary> summary = run_fuzzer(options);
  if (summary) {
    kept.summary = *summary;
  } else {
    ADD_FAILURE() << summary.error().message;
  }
  return kept;
}

std::string all_of(const std::vector<std::string>& reports) {
  std::string text;
  for (const std::string& report : reports) text += report + "\n";
  return text;
}

/// Hitting every cell takes some tens of thousands of programs: `castor fuzz --seconds 60` says
/// which are left.
TEST(Fuzz, EveryTierAgreesAndMostCellsAreHit) {
  FuzzOptions options;
  options.tiers = all_tiers();
  options.count = 8000;
  const KeptRun kept = run(options);
  EXPECT_EQ(kept.summary.programs, 8000u);
  EXPECT_EQ(kept.summary.mismatches, 0u) << all_of(kept.reports);
  EXPECT_GT(kept.summary.cells_hit, kept.summary.cells * 6 / 10) << kept.summary.coverage;
  EXPECT_EQ(last_line(kept.summary), "8000 programs, 0 mismatches");
}

/// A run on one tier whose calls are tampered with.
FuzzOptions tampered(Tamper tamper, uint64_t count) {
  FuzzOptions options;
  options.tiers = {all_tiers().front()};
  options.count = count;
  options.tamper = std::move(tamper);
  options.max_reports = 1;
  return options;
}

std::string repeated_seed(const std::string& report) {
  return test::find_match(report,
                          "repeat: castor fuzz --seed ([0-9]+) --count 1 --isa [a-z0-9_]+\n", 1);
}

/// Flips a bit of the element, or of what is at that distance from the first.
void flip(const Image& image, const View& view, int64_t distance) {
  std::byte* base = static_cast<std::byte*>(view.data) - image.front;
  *image.byte_of(base, distance) ^= image.bit_of(distance);
}

/// Flips a bit of the last element of the first f16 result that has one.
void flip_a_bit(const Prepared& prepared, std::span<const View> outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const View& view = outputs[i];
    if (view.element != ElementType::f16 || count_of(view.shape) == 0) continue;
    flip(prepared.outputs[i], view, reach_of(view.shape, view.strides) - 1);
    return;
  }
}

TEST(Fuzz, AWrongElementIsMinimisedAndReported) {
  const KeptRun kept = run(tampered(flip_a_bit, 120));
  ASSERT_GT(kept.summary.mismatches, 1u);
  EXPECT_EQ(kept.summary.programs, 120u);
  ASSERT_EQ(kept.reports.size(), 1u);
  const std::string& report = kept.reports[0];
  const std::string minimal =

      "MISMATCH: program [0-9]+ of the run, seed [0-9]+, on avx2( with frame pointers)?\n"
      "result 0: 1 of 1 elements differ, the first at \\[\\]\n"
      "  input    %0 f16 0 \\(0x0000\\)\n"
      "  expected f16 0 \\(0x0000\\)  \\(interpreter\\)\n"
      "  actual   f16 [^ ]+ \\(0x0001\\)  \\(machine code\\)\n"
      "tensors:\n"
      "  %0           f16\\[\\] strides \\[\\] offset 0, 2 bytes available, 0 bytes before an "
      "inaccessible page\n"
      "  result 0     f16\\[\\] strides \\[\\] offset 0, 2 bytes available, 0 bytes before an "
      "inaccessible page\n"
      "\nfunction:\n"
      "func @f\\(%0: f16\\[\\]\\) -> \\(f16\\[\\]\\) \\{\n"
      "  return %0\n"
      "\\}\n";
  EXPECT_TRUE(test::has_match(report, minimal)) << report;
  EXPECT_NE(report.find("minimised: 0 operations, 1 inputs with 1 elements, 1 results\n"),
            std::string::npos)
      << report;
}

/// Whether the first result depends on such an operation.
bool computes_with(const Function& function, OpKind op) {
  std::set<ValueId> needed = {function.results[0]};
  for (size_t i = function.operations.size(); i-- > 0;) {
    const Operation& operation = function.operations[i];
    if (!needed.contains(operation.results[0]) && !needed.contains(operation.results.back())) {
      continue;
    }
    if (operation.op == op) return true;
    needed.insert(operation.operands.begin(), operation.operands.end());
  }
  return false;
}

/// Whatever else a function does, one operation is left.
TEST(Fuzz, AFunctionIsMinimisedToTheOpThatFails) {
  for (OpKind op : {OpKind::floor_div, OpKind::select, OpKind::reshape, OpKind::broadcast,
                    OpKind::requantize}) {
    const KeptRun kept = run(tampered(
        [op](const Prepared& prepared, std::span<const View> outputs) {
          const bool is_empty = count_of(prepared.outputs[0].shape) == 0;
          if (is_empty || !computes_with(*prepared.function, op)) return;
          flip(prepared.outputs[0], outputs[0], 0);
        },
        300));
    ASSERT_EQ(kept.reports.size(), 1u) << name_of(op);
    EXPECT_NE(kept.reports[0].find("minimised: 1 operations, "), std::string::npos)
        << kept.reports[0];
    EXPECT_TRUE(test::has_match(kept.reports[0], fmt::format(" = {} %", name_of(op))))
        << kept.reports[0];
  }
}

TEST(Fuzz, TheSeedOfAReportRepeatsIt) {
  const KeptRun first = run(tampered(flip_a_bit, 120));
  ASSERT_FALSE(first.reports.empty());
  FuzzOptions again = tampered(flip_a_bit, 1);
  again.seed = std::stoull("0" + repeated_seed(first.reports[0]));
  const KeptRun second = run(again);
  EXPECT_EQ(last_line(second.summary), "1 programs, 1 mismatches");
  ASSERT_EQ(second.reports.size(), 1u);
  const auto after_first_line = [](const std::string& text) {
    return text.substr(text.find('\n'));
  };
  EXPECT_EQ(after_first_line(second.reports[0]), after_first_line(first.reports[0]));
}

TEST(Fuzz, AByteInAGapIsReported) {
  const KeptRun kept = run(tampered(
      [](const Prepared& prepared, std::span<const View> outputs) {
        for (size_t i = 0; i < outputs.size(); ++i) {
          const Image& image = prepared.outputs[i];
          const int last = image.shape.rank() - 1;
          if (count_of(image.shape) < 2 || image.shape[last] < 2 || image.place.strides[last] != 2)
            continue;
          flip(image, outputs[i], 1);  // after the first element
          return;
        }
      },
      1500));
  ASSERT_EQ(kept.reports.size(), 1u);
  EXPECT_TRUE(test::has_match(
      kept.reports[0],
      "result 0: byte [0-9]+ of the view, in bits that are no element to write: expected "
      "0x[0-9a-f]+, found 0x[0-9a-f]+\n"))
      << kept.reports[0];
  EXPECT_NE(kept.reports[0].find("strides [2]"), std::string::npos) << kept.reports[0];
}

/// The unused bits of the last byte of a dense tensor must become 0.
TEST(Fuzz, AnUnusedBitIsReported) {
  const KeptRun kept = run(tampered(
      [](const Prepared& prepared, std::span<const View> outputs) {
        for (size_t i = 0; i < outputs.size(); ++i) {
          const Image& image = prepared.outputs[i];
          const int64_t count = count_of(image.shape);
          const bool has_unused = count * bits_of(image.element) % 8 == 4 && image.is_dense();
          if (image.element != ElementType::u4 || !has_unused) continue;
          flip(image, outputs[i], count);
          return;
        }
      },
      800));
  ASSERT_EQ(kept.reports.size(), 1u);
  EXPECT_TRUE(test::has_match(kept.reports[0],
                              "result 0: byte 0 of the view, in bits that are no element to write: "
                              "expected 0x0[0-9a-f], found 0x1[0-9a-f]\n"))
      << kept.reports[0];
}

TEST(Fuzz, SharedMemoryAndBadCallsMakeSense) {
  size_t interleaved = 0, bad_calls = 0, unaligned = 0, hidden = 0;
  for (uint64_t index = 0; index < 1500; ++index) {
    const Result<Prepared> prepared = prepare(generate(program_seed(11, index)));
    ASSERT_TRUE(prepared.ok()) << prepared.error().message;
    bad_calls += can_spoil(*prepared);
    for (size_t i = 0; i < prepared->outputs.size(); ++i) {
      const Image& image = prepared->outputs[i];
      unaligned += image.place.offset % aligned_elements(image.element) != 0;
      hidden += image.hidden > 0;
      if (!prepared->is_interleaved_behind(i)) continue;
      ++interleaved;
      EXPECT_EQ(prepared->memory_of(i).before.size(), image.bytes);
      EXPECT_TRUE(image.before.empty());
    }
  }
  for (size_t count : {interleaved, bad_calls, unaligned, hidden}) EXPECT_GT(count, 20u);
}

TEST(Fuzz, ACrashIsReportedAndTheRunGoesOn) {
  const KeptRun kept = run(tampered(
      [](const Prepared& prepared, std::span<const View>) {
        if (prepared.inputs.size() == 2) ::raise(SIGABRT);  // sanitizers leave this one alone
      },
      40));
  ASSERT_EQ(kept.reports.size(), 1u);
  EXPECT_NE(kept.reports[0].find("ended by SIGABRT"), std::string::npos) << kept.reports[0];
  EXPECT_GT(kept.summary.mismatches, 3u);  // after every crash a new process goes on
  EXPECT_EQ(kept.summary.programs, 40u);
}

/// Code is described in a child, so that a compiler that crashes is reported too.
TEST(Fuzz, TextsOfChildrenOutliveThem) {
  const std::string long_text(100'000, 'x');
  EXPECT_EQ(text_of_child([&] { return long_text; }, 10), long_text);
  EXPECT_EQ(text_of_child([] { return std::string(); }, 10), "");
  const auto crashes = []() -> std::string {
    std::raise(SIGABRT);
    return "not reached";
  };
  EXPECT_EQ(text_of_child(crashes, 10), "(ended by SIGABRT (stderr says why))\n");
  const auto throws = []() -> std::string { throw std::runtime_error("no"); };
  EXPECT_EQ(text_of_child(throws, 10), "(failed)\n");
}

TEST(Fuzz, RefusesWhatCannotRun) {
  for (const jit::TierInfo& row : jit::tier_table()) {
    if (jit::host().runs(row.tier)) continue;
    FuzzOptions options;
    options.tiers = {row.tier};
    options.count = 1;
    const Result<FuzzSummary> summary = run_fuzzer(options);
    ASSERT_FALSE(summary.ok());
    EXPECT_EQ(summary.error().code, ErrorCode::unsupported);
  }
}

TEST(Fuzz, TheCommandPrintsCoverageAndTheLastLine) {
  const auto result =
      test::run_command({CASTOR_COMMAND, "fuzz", "--count", "200", "--seed", "5", "--isa", "avx2"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(test::has_match(result.out,
                              "pairs x options x tiers: [0-9]+ of [0-9]+ cells\n"
                              "    not hit: "))
      << result.out;
  EXPECT_TRUE(test::has_match(result.out,
                              "[0-9]+ programs per second, each on 1 tier\n"
                              "200 programs, 0 mismatches\n$"))
      << result.out;
}

TEST(Fuzz, TheCommandRefusesWrongUse) {
  const std::vector<std::string> uses[] = {
      {"--isa", "sse2"}, {"--count", "x"}, {"--seconds", "-1"}, {"--seconds", "1", "--count", "1"}};
  for (std::vector<std::string> arguments : uses) {
    arguments.insert(arguments.begin(), {CASTOR_COMMAND, "fuzz"});
    EXPECT_EQ(test::run_command(arguments).status, 2) << arguments[2];
  }
}

}  // namespace
}  // namespace castor::fuzz
