// SPDX-License-Identifier: Apache-2.0
// The fuzzer: a short run on every tier, and that runs repeat, that mismatches of every kind are
// found, minimised and reported, and that coverage counts what it says.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <set>

#include "ir/text.hpp"
#include "tests/support/command.hpp"
#include "tests/support/conversions.hpp"
#include "tests/support/regex.hpp"
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

/// Everything that a program consists of.
std::string print(const Program& program) {
  const Result<FunctionPtr> function = build_function(program);
  EXPECT_TRUE(function.ok()) << function.error().message;
  std::string text = castor::print(**function);
  const auto add = [&text](const Dims& shape, const Placement& place) {
    text += fmt::format("{} {} {} {} {} {} {}\n", to_string(shape), to_string(place.strides),
                        place.offset, place.at_end, place.shift, place.spare, place.hides_front);
  };
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    add(program.shape_of(i), program.inputs[i].place);
    text += fmt::format("data {}\n", program.inputs[i].data.seed);
  }
  for (size_t i = 0; i < program.results.size(); ++i) {
    add(program.shape_of(program.results[i].value), program.placement_of(i));
  }
  return text + fmt::format("bad call {} {} {}\n", static_cast<int>(program.bad_call.kind),
                            program.bad_call.tensor, program.bad_call.other);
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

TEST(Fuzz, ProgramsDependOnTheirSeedAlone) {
  std::set<std::string> programs;
  for (uint64_t index = 0; index < 300; ++index) {
    const uint64_t seed = program_seed(7, index);
    const std::string program = print(generate(seed));
    EXPECT_EQ(program, print(generate(seed)));
    programs.insert(program);
  }
  EXPECT_GT(programs.size(), 290u);
  EXPECT_EQ(program_seed(7, 0), 7u);  // so that --seed S --count 1 is the program of seed S
}

TEST(Fuzz, RandomProgramsHaveEveryShapeOfThing) {
  int zero_sizes = 0, unknown = 0, named = 0, strided = 0, offsets = 0, in_place = 0, constants = 0;
  int long_ones = 0, repeated_results = 0, parameter_results = 0;
  std::set<int> ranks;
  for (uint64_t index = 0; index < 2000; ++index) {
    const Program program = generate(program_seed(3, index));
    for (const OperationSpec& operation : program.operations) {
      constants += operation.op == OpKind::constant;
    }
    long_ones += program.operations.size() > 12;
    std::set<size_t> results;
    for (const ResultSpec& result : program.results) {
      in_place += result.in_place_of != ResultSpec::nowhere;
      parameter_results += result.value < program.inputs.size();
      repeated_results += !results.insert(result.value).second;
    }
    for (size_t i = 0; i < program.inputs.size(); ++i) {
      const Dims shape = program.shape_of(i);
      ranks.insert(shape.rank());
      zero_sizes += count_of(shape) == 0;
      strided += !(program.inputs[i].place.strides == dense_strides(shape));
      offsets += program.inputs[i].place.offset > 0;
      for (const AxisSpec& axis : program.inputs[i].axes) {
        unknown += axis.kind == AxisSpec::Kind::any;
        named += axis.kind == AxisSpec::Kind::named;
      }
    }
  }
  EXPECT_EQ(ranks.size(), 7u);
  for (int count : {zero_sizes, unknown, named, strided, offsets, in_place, constants, long_ones,
                    repeated_results, parameter_results}) {
    EXPECT_GT(count, 20);
  }
}

/// Every op, every way to broadcast, functions that are several nests; and each of them is valid.
TEST(Fuzz, RandomProgramsAreFunctionsOfAllOps) {
  std::set<OpKind> ops;
  std::set<std::pair<bool, BroadcastMode>> modes;
  int excess = 0, spaces = 0, broadcasts = 0, open_targets = 0, named_targets = 0;
  for (uint64_t index = 0; index < 3000; ++index) {
    const Program program = generate(program_seed(17, index));
    const Result<FunctionPtr> function = build_function(program);
    ASSERT_TRUE(function.ok()) << function.error().message;
    excess += program.excess_precision;
    spaces += program.shape_of(program.results.front().value) !=
              program.shape_of(program.results.back().value);
    for (const OperationSpec& operation : program.operations) {
      ops.insert(operation.op);
      for (const AxisSpec& axis : operation.target) {
        open_targets += axis.kind == AxisSpec::Kind::any;
        named_targets += axis.kind == AxisSpec::Kind::named;
      }
      if (operation.operands.empty()) continue;
      const bool is_broadcast = operation.op == OpKind::broadcast;
      if (info(operation.op).operands < 2 && !is_broadcast) continue;
      if (operation.op == OpKind::conv_integer) continue;
      broadcasts += program.shape_of(operation.operands.front()) !=
                    program.shape_of(operation.operands.back());
      const auto rule = broadcast_rule({.op = operation.op, .attributes = operation.attributes});
      if (operation.op != OpKind::convert_promote_types) {
        modes.insert({is_broadcast, rule.ok() ? rule->mode : BroadcastMode::numpy});
      }
    }
  }
  EXPECT_EQ(ops.size(), static_cast<size_t>(op_count));
  EXPECT_EQ(modes.size(), 7u);  // three of elementwise ops, four of broadcast
  for (int count : {excess, spaces, broadcasts, open_targets, named_targets}) EXPECT_GT(count, 50);
}

TEST(Fuzz, DrawnStridesKeepElementsApart) {
  Random random(5);
  for (int round = 0; round < 3000; ++round) {
    const Dims shape = draw_shape(random, static_cast<int>(random.below(7)), random.between(0, 90));
    const Walk walk = static_cast<Walk>(random.below(3));
    const Dims strides = draw_strides(random, shape, walk, false, 2000);
    std::set<int64_t> places;
    for_each_element(shape, strides, [&](int64_t distance, int64_t) {
      EXPECT_TRUE(places.insert(distance).second) << to_string(shape) << to_string(strides);
    });
    EXPECT_LE(reach_of(shape, strides), 2000);
    EXPECT_EQ(reach_of(shape, strides), places.empty() ? 0 : *places.rbegin() + 1);
  }
}

TEST(Fuzz, CellsAreNumberedWithoutGaps) {
  std::set<std::string> texts;
  for (size_t index = 0; index < cell_count(); ++index) {
    const Cell cell = cell_at(index);
    EXPECT_EQ(index_of(cell), index);
    texts.insert(describe(cell));
    switch (cell.group) {
      case CellGroup::layouts: EXPECT_EQ(number_of(layout_cell(cell.number)), cell.number); break;
      case CellGroup::access: EXPECT_EQ(number_of(access_cell(cell.number)), cell.number); break;
      case CellGroup::periods: EXPECT_EQ(number_of(period_cell(cell.number)), cell.number); break;
      case CellGroup::operation_types:
        EXPECT_EQ(find_operation_type(operation_type_cells()[cell.number]), cell.number);
        break;
      case CellGroup::modes: EXPECT_EQ(find_mode(mode_cells()[cell.number]), cell.number); break;
      case CellGroup::lanes: EXPECT_EQ(find_lane_cell(lane_cell(cell.number)), cell.number); break;
      case CellGroup::tails: EXPECT_EQ(find_tail(tail_cells()[cell.number]), cell.number); break;
      case CellGroup::alignments:
        EXPECT_EQ(number_of(alignment_cell(cell.number)), cell.number);
        break;
      default: break;
    }
  }
  EXPECT_EQ(texts.size(), cell_count());
}

/// Of cells that no tier can hit, too.
TEST(Fuzz, EveryCellHasPrograms) {
  for (size_t index = 0; index < cell_count(); ++index) {
    for (uint64_t seed : {1, 2, 3, 4}) {
      const Program program = generate(directed_seed(index, seed));
      const Result<FunctionPtr> function = build_function(program);
      EXPECT_TRUE(function.ok()) << describe(cell_at(index)) << ": " << function.error().message;
    }
  }
}

TEST(Fuzz, ConversionCellsAreTheCanonicalOnes) {
  const auto is_older_layout = [](ElementType type) {
    return static_cast<int>(type) >= value_type_count;
  };
  size_t canonical = 0;
  for (const test::Conversion& c : test::all_conversions()) {
    const bool is_canonical = canonical_options(c.from, c.to, c.options) == c.options &&
                              !is_older_layout(c.from) && !is_older_layout(c.to);
    EXPECT_EQ(find_conversion(c.from, c.to, c.options).has_value(), is_canonical) << c.name();
    canonical += is_canonical;
  }
  EXPECT_EQ(conversion_cells().size(), canonical);
}

TEST(Fuzz, CoverageListsWhatIsMissing) {
  const std::vector<Tier> tiers = {Tier::avx2, Tier::avx512};
  std::vector<uint8_t> marks(Coverage::bytes(tiers));
  Coverage coverage(marks, tiers);
  EXPECT_EQ(coverage.count().hit, 0u);
  for (size_t rank = 0; rank <= most_rank; ++rank) coverage.hit(CellGroup::ranks, rank, 0);
  coverage.hit(CellGroup::operations, 1, 1);
  const std::string text = coverage.print();
  EXPECT_NE(text.find("  ops x tiers: 1 of 90 cells\n    not hit: constant on avx2\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("  ranks x tiers: 7 of 14 cells\n    not hit: rank 0 on avx512\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(fmt::format("    and {} more\n", 2 * conversion_cells().size() - 10)),
            std::string::npos)
      << text;
  EXPECT_EQ(coverage.next_missing(0), 0u);
  std::fill(marks.begin(), marks.end(), 1);
  EXPECT_FALSE(coverage.next_missing(0));
  EXPECT_EQ(coverage.count().hit, coverage.count().cells);
  EXPECT_EQ(coverage.print().find("not hit"), std::string::npos);
}

/// A run on one tier whose calls are tampered with.
FuzzOptions tampered(Tamper tamper, uint64_t count) {
  FuzzOptions options;
  options.tiers = {all_tiers().front()};
  options.count = count;
  options.tamper = std::move(tamper);
  options.most_reports = 1;
  return options;
}

std::string repeated_seed(const std::string& report) {
  return test::find_match(report,
                          "repeat: castor fuzz --seed ([0-9]+) --count 1 --isa [a-z0-9_]+\n", 1);
}

/// Flips a bit of the element, or of what lies at that distance from the first.
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
  const KeptRun kept = run(tampered(flip_a_bit, 60));
  ASSERT_GT(kept.summary.mismatches, 1u);
  EXPECT_EQ(kept.summary.programs, 60u);
  ASSERT_EQ(kept.reports.size(), 1u);
  const std::string& report = kept.reports[0];
  const std::string minimal =

      "MISMATCH: program [0-9]+ of the run, seed [0-9]+, on avx2\n"
      "result 0: 1 of 1 elements differ, the first at \\[\\]\n"
      "  input    %0 f16 0 \\(0x0000\\)\n"
      "  expected f16 0 \\(0x0000\\)  \\(interpreter\\)\n"
      "  actual   f16 [^ ]+ \\(0x0001\\)  \\(machine code\\)\n"
      "tensors:\n"
      "  %0           f16\\[\\] strides \\[\\] offset 0, 2 bytes available, 0 bytes in front of an "
      "inaccessible page\n"
      "  result 0     f16\\[\\] strides \\[\\] offset 0, 2 bytes available, 0 bytes in front of an "
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
  for (OpKind op : {OpKind::floor_div, OpKind::select, OpKind::reshape, OpKind::broadcast}) {
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
  const KeptRun first = run(tampered(flip_a_bit, 60));
  ASSERT_FALSE(first.reports.empty());
  FuzzOptions again = tampered(flip_a_bit, 1);
  again.seed = std::stoull("0" + repeated_seed(first.reports[0]));
  const KeptRun second = run(again);
  EXPECT_EQ(last_line(second.summary), "1 programs, 1 mismatches");
  ASSERT_EQ(second.reports.size(), 1u);
  const auto behind_first_line = [](const std::string& text) {
    return text.substr(text.find('\n'));
  };
  EXPECT_EQ(behind_first_line(second.reports[0]), behind_first_line(first.reports[0]));
}

TEST(Fuzz, AByteInAGapIsReported) {
  const KeptRun kept = run(tampered(
      [](const Prepared& prepared, std::span<const View> outputs) {
        for (size_t i = 0; i < outputs.size(); ++i) {
          const Image& image = prepared.outputs[i];
          const int last = image.shape.rank() - 1;
          if (count_of(image.shape) < 2 || image.shape[last] < 2 || image.place.strides[last] != 2)
            continue;
          flip(image, outputs[i], 1);  // behind the first element
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
        if (prepared.inputs.size() == 2) ::raise(SIGSEGV);
      },
      40));
  ASSERT_EQ(kept.reports.size(), 1u);
  EXPECT_NE(kept.reports[0].find("ended by SIGSEGV"), std::string::npos) << kept.reports[0];
  EXPECT_GT(kept.summary.mismatches, 3u);  // behind every crash a new process goes on
  EXPECT_EQ(kept.summary.programs, 40u);
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
