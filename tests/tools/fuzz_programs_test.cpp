// SPDX-License-Identifier: Apache-2.0
// What the fuzzer draws: programs depend on their seed alone and have every shape of thing, and the
// cells of its coverage are those that it says.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "ir/text/text.hpp"
#include "tests/support/conversions.hpp"
#include "tools/fuzz/generate.hpp"
#include "tools/fuzz/generate_function.hpp"
#include "tools/fuzz/layout.hpp"
#include "tools/fuzz/neighbour.hpp"
#include "tools/fuzz/record.hpp"
#include "tools/fuzz/run.hpp"

namespace castor::fuzz {
namespace {

/// Everything that a program consists of.
std::string print(const Program& program) {
  const Result<FunctionPtr> function = build_function(program);
  EXPECT_TRUE(function.ok()) << function.error().message;
  std::string text = castor::print(**function);
  const auto add = [&text](const Dims& shape, const Placement& at) {
    text += fmt::format("{} {} {} {} {} {} {}\n", to_string(shape), to_string(at.strides),
                        at.offset, at.at_end, at.shift, at.spare, at.hides_front);
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

TEST(FuzzPrograms, ProgramsDependOnTheirSeedAlone) {
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

/// The executor has pages of this size for each tensor. The first seed once drew more: operands
/// of a product that was given up because it was too large.
TEST(FuzzPrograms, TensorsFitTheirPages) {
  std::vector<uint64_t> seeds = {7519279117329584219u};
  for (uint64_t index = 0; index < 4000; ++index) seeds.push_back(program_seed(29, index));
  for (const uint64_t seed : seeds) {
    const Program program = generate(seed);
    for (size_t i = 0; i < program.inputs.size(); ++i) {
      const int64_t count = element_count(program.shape_of(i)).value();
      EXPECT_LE(byte_size(program.element_of(i), count).value(), max_streamed_bytes) << seed;
    }
  }
}

TEST(FuzzPrograms, NeighboursDifferByOneChange) {
  int drawn = 0, found = 0, other_functions = 0;
  for (uint64_t index = 0; index < 2000; ++index) {
    const Program program = generate(program_seed(5, index));
    if (program.neighbour == 0) continue;
    ++drawn;
    const std::optional<Program> neighbour = neighbour_of(program, program.neighbour);
    if (!neighbour) continue;
    ++found;
    EXPECT_EQ(print(*neighbour), print(*neighbour_of(program, program.neighbour)));
    EXPECT_EQ(neighbour->operations.size(), program.operations.size());
    EXPECT_EQ(neighbour->inputs.size(), program.inputs.size());
    const FunctionPtr function = *build_function(program);
    other_functions += !same_computation(*function, **build_function(*neighbour));
  }
  EXPECT_GT(drawn, 300);
  EXPECT_GT(found, drawn * 9 / 10);
  EXPECT_GT(other_functions, found / 2);  // others differ in extents alone
}

/// A changed attribute may name an axis that a declared result does not have.
TEST(FuzzPrograms, AxesBeyondTheRankAreRefused) {
  int found = 0;
  for (uint64_t index = 0; index < 2000; ++index) {
    Program program = generate(program_seed(5, index));
    for (ResultSpec& result : program.results) {
      TensorType& type = program.values[result.value].type;
      if (!type.quantization || !type.quantization->is_per_axis()) continue;
      Quantization changed = *type.quantization;
      changed.axis = static_cast<int>(type.shape.size()) + 5;
      type.quantization = std::make_shared<const Quantization>(changed);
      result.declares_unknowns = true;
      EXPECT_FALSE(build_function(program).ok());
      ++found;
      break;
    }
  }
  EXPECT_GT(found, 5);
}

TEST(FuzzPrograms, RandomProgramsHaveEveryShapeOfThing) {
  int zero_sizes = 0, unknown = 0, named = 0, strided = 0, offsets = 0, in_place = 0, constants = 0;
  int long_ones = 0, repeated_results = 0, parameter_results = 0, split = 0, threads = 0;
  std::set<int> ranks;
  for (uint64_t index = 0; index < 2000; ++index) {
    const Program program = generate(program_seed(3, index));
    for (const OperationSpec& operation : program.operations) {
      constants += operation.op == OpKind::constant;
    }
    long_ones += program.operations.size() > 12;
    split += program.tasks > 1;
    threads += program.runs_threads;
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
                    repeated_results, parameter_results, split, threads}) {
    EXPECT_GT(count, 20);
  }
}

/// Every op, every way to broadcast, functions that are several nests; and each of them is valid.
TEST(FuzzPrograms, RandomProgramsAreFunctionsOfAllOps) {
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
      if (stands_alone(operation.op)) continue;
      if (info(operation.op).family == OpFamily::composition) continue;
      broadcasts += program.shape_of(operation.operands.front()) !=
                    program.shape_of(operation.operands.back());
      const auto rule = broadcast_rule({.op = operation.op, .attributes = operation.attributes});
      if (operation.op != OpKind::convert_promote_types) {
        modes.insert({is_broadcast, rule.ok() ? rule->mode : BroadcastMode::numpy});
      }
    }
  }
  EXPECT_EQ(ops.size(), static_cast<size_t>(op_count));
  EXPECT_EQ(modes.size(), 9u);  // four of elementwise ops, five of broadcast
  for (int count : {excess, spaces, broadcasts, open_targets, named_targets}) EXPECT_GT(count, 50);
}

TEST(FuzzPrograms, RandomProgramsRequantizeInEveryWay) {
  int from_inputs = 0, from_floats = 0, from_constants = 0, from_quantized = 0;
  int parameter_inputs = 0, parameter_constants = 0, half_steps = 0, bad_scales = 0;
  std::set<size_t> forms, slices;
  for (uint64_t index = 0; index < 4000; ++index) {
    const Program program = generate(program_seed(23, index));
    const Result<FunctionPtr> function = build_function(program);
    ASSERT_TRUE(function.ok()) << function.error().message;
    bad_scales += program.bad_call.kind == BadCall::Kind::scale;
    for (const InputSpec& input : program.inputs) {
      half_steps += input.data.kind == DataSpec::Kind::halves;
    }
    for (const Operation& operation : (*function)->operations) {
      if (operation.op != OpKind::requantize) continue;
      forms.insert(number_of(requantize_cell_of(**function, operation)));
      slices.insert(number_of(slice_cell_of(**function, operation)));
    }
    const auto is_input = [&](size_t value) { return value < program.first_operation(); };
    const auto is_constant = [&](size_t value) {
      return !is_input(value) &&
             program.operations[program.operation_of(value)].op == OpKind::constant;
    };
    for (const OperationSpec& operation : program.operations) {
      if (operation.op != OpKind::requantize) continue;
      const size_t x = operation.operands[0];
      from_inputs += is_input(x) && program.is_quantized(x);
      from_floats += !program.is_quantized(x);
      from_constants += is_constant(x) && program.is_quantized(x);
      from_quantized += !is_input(x) && !is_constant(x) && program.is_quantized(x);
      for (size_t i = 1; i < operation.operands.size(); ++i) {
        const size_t parameter = operation.operands[i];
        if (parameter == no_operand) continue;
        (is_input(parameter) ? parameter_inputs : parameter_constants) += 1;
      }
    }
  }
  EXPECT_EQ(forms.size(), requantize_cell_count);
  EXPECT_EQ(slices.size(), slice_cell_count);
  const std::vector<int> counts = {from_inputs,    from_floats,      from_constants,
                                   from_quantized, parameter_inputs, parameter_constants,
                                   half_steps,     bad_scales};
  for (size_t i = 0; i < counts.size(); ++i) EXPECT_GT(counts[i], 15) << i;
}

TEST(FuzzPrograms, DrawnStridesKeepElementsApart) {
  Random random(5);
  for (int round = 0; round < 3000; ++round) {
    const Dims shape = draw_shape(random, static_cast<int>(random.below(7)), random.between(0, 90));
    const StrideKind kind = static_cast<StrideKind>(random.below(3));
    const Dims strides = draw_strides(random, shape, kind, false, 2000);
    std::set<int64_t> positions;
    for_each_element(shape, strides, [&](int64_t distance, int64_t) {
      EXPECT_TRUE(positions.insert(distance).second) << to_string(shape) << to_string(strides);
    });
    EXPECT_LE(reach_of(shape, strides), 2000);
    EXPECT_EQ(reach_of(shape, strides), positions.empty() ? 0 : *positions.rbegin() + 1);
  }
}

TEST(FuzzCells, CellsAreNumberedWithoutGaps) {
  std::set<std::string> texts;
  for (size_t index = 0; index < cell_count(); ++index) {
    const Cell cell = cell_at(index);
    EXPECT_EQ(index_of(cell), index);
    texts.insert(describe(cell));
    switch (cell.group) {
      case CellGroup::layouts: EXPECT_EQ(find_layout(layout_cell(cell.number)), cell.number); break;
      case CellGroup::access: EXPECT_EQ(number_of(access_cell(cell.number)), cell.number); break;
      case CellGroup::periods: EXPECT_EQ(number_of(period_cell(cell.number)), cell.number); break;
      case CellGroup::operation_types:
        EXPECT_EQ(find_operation_type(operation_type_cells()[cell.number]), cell.number);
        break;
      case CellGroup::modes: EXPECT_EQ(find_mode(mode_cells()[cell.number]), cell.number); break;
      case CellGroup::requantizations:
        EXPECT_EQ(number_of(requantize_cell(cell.number)), cell.number);
        break;
      case CellGroup::slices: EXPECT_EQ(number_of(slice_cell(cell.number)), cell.number); break;
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

/// Every cell has programs, also one that no tier can hit.
TEST(FuzzCells, EveryCellHasPrograms) {
  for (size_t index = 0; index < cell_count(); ++index) {
    for (uint64_t seed : {1, 2, 3, 4}) {
      const Program program = generate(directed_seed(index, seed));
      const Result<FunctionPtr> function = build_function(program);
      EXPECT_TRUE(function.ok()) << describe(cell_at(index)) << ": " << function.error().message;
    }
  }
}

TEST(FuzzCells, ConversionCellsAreTheCanonicalOnes) {
  size_t canonical = 0;
  for (const test::Conversion& c : test::all_conversions()) {
    const bool is_canonical = canonical_options(c.from, c.to, c.options) == c.options &&
                              !is_older_layout(c.from) && !is_older_layout(c.to);
    EXPECT_EQ(find_conversion(c.from, c.to, c.options).has_value(), is_canonical) << c.name();
    canonical += is_canonical;
  }
  EXPECT_EQ(conversion_cells().size(), canonical);
}

TEST(FuzzCells, CoverageListsWhatIsMissing) {
  const std::vector<Tier> tiers = {Tier::avx2, Tier::avx512};
  std::vector<uint8_t> marks(Coverage::bytes(tiers));
  Coverage coverage(marks, tiers);
  EXPECT_EQ(coverage.count().hit, 0u);
  for (size_t rank = 0; rank <= max_drawn_rank; ++rank) coverage.hit(CellGroup::ranks, rank, 0);
  coverage.hit(CellGroup::operations, 1, 1);
  const std::string text = coverage.print();
  const std::string ops =
      fmt::format("  ops x tiers: 1 of {} cells\n    not hit: constant on avx2\n", 2 * op_count);
  EXPECT_NE(text.find(ops), std::string::npos) << text;
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

}  // namespace
}  // namespace castor::fuzz
