// SPDX-License-Identifier: Apache-2.0
// Functions with more operations and more live values than there are registers, and random ones of
// 1 to 40 operations: machine code against the interpreter on every tier, between guard pages.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <iostream>
#include <set>

#include "ir/text/text.hpp"
#include "runtime/bind/bound_state.hpp"
#include "runtime/state_access.hpp"
#include "tests/support/function_case.hpp"
#include "tests/support/long_form.hpp"
#include "tools/fuzz/executor.hpp"
#include "tools/fuzz/generate.hpp"
#include "tools/fuzz/generate_function.hpp"
#include "tools/fuzz/generate_operations.hpp"
#include "tools/fuzz/minimise.hpp"
#include "tools/fuzz/prepared.hpp"
#include "tools/fuzz/report.hpp"

namespace castor {
namespace {

using test::check_function;
using test::Layout;

// ---- Many live values

constexpr std::array float_ops = {"div", "mod",  "mul",  "sub",       "sqrt",      "min",
                                  "max", "add",  "abs",  "floor_mod", "floor_div", "prelu",
                                  "neg", "relu", "sign", "round_even"};
constexpr std::array integer_ops = {
    "div",         "mod",        "mul", "sub",         "shift_right",
    "bitwise_xor", "max",        "add", "bitwise_not", "floor_mod",
    "floor_div",   "shift_left", "neg", "bitwise_or",  "squared_difference",
    "min"};

/// The text of a function that computes early what it reads last. Where shapes are known to be
/// alike, it is one nest; where any of them may turn out to be broadcast, it is many.
class LongFunction {
 public:
  LongFunction(ElementType element, int live, int operations, bool known_alike)
      : ops_(is_float(element) ? float_ops : integer_ops) {
    compute_early(live);
    const int folding = live;  // all but two values, then both conditions and the choice
    while (operations_ < operations - folding) combine_one();
    const std::string last = folded();
    const std::string_view type = name_of(element);
    const std::array<const char*, 3> shapes =
        known_alike ? std::array{"?n, ?m", "?m", "?n, 1"} : std::array{"?, ?", "?", "?, ?"};
    text_ = fmt::format(
        "func @f(%a: {}[{}], %b: {}[{}], %c: {}[{}]) -> ({}[?, ?]) {{\n{}  return {}\n}}\n", type,
        shapes[0], type, shapes[1], type, shapes[2], type, text_, last);
  }

  const std::string& text() const { return text_; }

 private:
  std::string append(std::string_view op, const std::vector<std::string>& operands) {
    const std::string name = fmt::format("%v{}", operations_++);
    text_ += fmt::format("  {} = {} {}\n", name, op, fmt::join(operands, ", "));
    return name;
  }

  std::string append_next(const std::string& x, const std::string& y) {
    const char* op = ops_[next_op_++ % ops_.size()];
    return info(*op_named(op)).operands == 1 ? append(op, {x}) : append(op, {x, y});
  }

  /// Two conditions, and values from inputs and from each other.
  void compute_early(int live) {
    conditions_ = {append("less", {"%a", "%b"}), append("not_equal", {"%c", "%b"})};
    std::vector<std::string> sources = {"%a", "%b", "%c"};
    for (int i = 2; i < live; ++i) {
      const size_t at = static_cast<size_t>(i);
      values_.push_back(append_next(sources[at % sources.size()], sources[(at + 1) % 3]));
      sources.push_back(values_.back());
    }
  }

  /// One value or condition replaces another. A value that is not less (NaN is not) makes way
  /// for an input now and then, lest all become the same.
  void combine_one() {
    constexpr std::array inputs = {"%a", "%b", "%c"};
    const auto at = static_cast<size_t>(round_++);
    std::string& value = values_[at % values_.size()];
    std::string& other = values_[(at + 5) % values_.size()];
    std::string& condition = conditions_[at / 4 % 2];
    if (at % 4 == 2) {
      condition = append("less", {other, value});
    } else if (at % 4 == 3) {
      other = append("select", {condition, value, inputs[at / 4 % 3]});
    } else {
      value = append_next(value, other);
    }
  }

  std::string folded() {
    std::string last = values_[0];
    for (size_t i = 1; i < values_.size(); ++i) {
      last = i % 3 == 0 ? append("sub", {last, values_[i]})
                        : append("select", {conditions_[i % 3 - 1], last, values_[i]});
    }
    const std::string either = append("logical_xor", {conditions_[0], conditions_[1]});
    const std::string not_both = append("not", {either});
    return append("select", {not_both, last, values_.front()});
  }

  std::span<const char* const> ops_;
  std::string text_;
  std::vector<std::string> values_;
  std::array<std::string, 2> conditions_;
  size_t next_op_ = 0;
  int operations_ = 0;
  int round_ = 0;
};

/// Most values that are computed, and read later, at one point of the function.
size_t max_live(const Function& function) {
  std::vector<size_t> last_read(function.values.size(), 0);
  for (size_t i = 0; i < function.operations.size(); ++i) {
    for (ValueId operand : function.operations[i].operands) last_read[operand] = i;
  }
  size_t max = 0;
  for (size_t i = 0; i < function.operations.size(); ++i) {
    size_t live = 0;
    for (size_t k = 0; k <= i; ++k) live += last_read[function.operations[k].results[0]] > i;
    max = std::max(max, live);
  }
  return max;
}

/// How many nests a function of three such shapes becomes.
size_t nest_count(const FunctionPtr& function) {
  const auto& [tier, runtime] = test::elementwise_tier_runtimes().front();
  return detail::StateAccess::of(*runtime.compile(function)->bind({{3, 5}, {5}, {3, 1}}))
      .steps.size();
}

void check_long(ElementType element, int live, int operations, bool known_alike) {
  const LongFunction made(element, live, operations, known_alike);
  SCOPED_TRACE(fmt::format("{}, {} operations, {} live", name_of(element), operations, live));
  const Result<FunctionPtr> function = parse_function(made.text());
  ASSERT_TRUE(function.ok()) << function.error().message << "\n" << made.text();
  ASSERT_EQ((*function)->operations.size(), static_cast<size_t>(operations));
  ASSERT_GE(max_live(**function), static_cast<size_t>(live));
  // One nest computes at most 192 operations; of 200, some are read by nobody.
  EXPECT_EQ(nest_count(*function) == 1, known_alike && operations <= 200);
  for (const auto& [rows, columns] : {std::pair{3, 37}, {1, 1}, {1, 203}, {30, 3}}) {
    const Dims space = {rows, columns};
    check_function({made.text(), {Layout{space}, Layout{{columns}}, Layout{{rows, 1}}}}, 7);
    if (!known_alike) {
      check_function({made.text(), {Layout{space}, Layout{{columns}}, Layout{space}}}, 8);
    }
    if (testing::Test::HasFatalFailure()) return;
  }
}

class LongFunctions : public testing::TestWithParam<ElementType> {};

TEST_P(LongFunctions, OfSixtyFourOperationsWithSixteenLiveValues) {
  check_long(GetParam(), 16, 64, true);
  check_long(GetParam(), 16, 64, false);
}

TEST_P(LongFunctions, OfUpToThreeHundredOperations) {
  for (int operations : {40, 65, 100, 150, 191, 200, 300}) {
    check_long(GetParam(), operations % 3 == 0 ? 12 : 18, operations, true);
    if (HasFatalFailure()) return;
  }
  check_long(GetParam(), 30, 120, true);
  check_long(GetParam(), 18, 200, false);
}

INSTANTIATE_TEST_SUITE_P(Of, LongFunctions,
                         testing::Values(ElementType::f32, ElementType::f64, ElementType::i64,
                                         ElementType::i8, ElementType::f16, ElementType::u4),
                         [](const auto& row) { return test::test_name(row.param); });

// ---- Random functions

/// The last value and those that nothing reads are results, as far as there is room.
void add_results(fuzz::Program& program) {
  std::set<size_t> read;
  for (const fuzz::OperationSpec& operation : program.operations) {
    read.insert(operation.operands.begin(), operation.operands.end());
  }
  for (size_t value = program.value_count(); value-- > program.first_operation();) {
    if (program.results.size() == fuzz::max_results) return;
    if (!program.is_value(value) || read.contains(value)) continue;
    program.results.emplace_back().value = value;
  }
}

/// A program of `length` operations, of all kinds and types; nothing where the draw had others.
std::optional<fuzz::Program> draw_program(uint64_t seed, size_t length) {
  fuzz::Random random(seed);
  fuzz::Program program;
  fuzz::OperationDrawer drawer(random, program);
  drawer.draw_inputs();
  for (size_t i = 0; i < 2 * length && program.operations.size() < length; ++i) {
    drawer.draw_many(1);
  }
  if (program.operations.size() != length) return {};
  add_results(program);
  program.seed = seed;
  program.excess_precision = random.percent(12);
  fuzz::draw_in_place(random, program);
  fuzz::draw_placements(random, program, fuzz::StrideKind::any);
  fuzz::draw_data(random, program, 45);
  return program;
}

fuzz::Program program_of(uint64_t number, size_t length) {
  for (uint64_t attempt = 0;; ++attempt) {
    const auto program = draw_program(fuzz::mix(number) + attempt, length);
    if (program) return *program;
  }
}

/// The smallest program that fails alike, and how.
std::string describe(const fuzz::Program& program, const fuzz::Finding& found,
                     const std::vector<Tier>& tiers) {
  const fuzz::Mismatch mismatch = fuzz::minimise(program, found, tiers, {});
  return fuzz::report(mismatch, {program.seed, 0, tiers});
}

/// Lengths are distributed uniformly.
TEST(RandomFunctions, GiveTheInterpretersResults) {
  constexpr size_t longest = 40;
  const uint64_t count = test::long_form() ? 20'000 : 1000;
  std::vector<Tier> tiers;
  for (const auto& [tier, runtime] : test::elementwise_tier_runtimes()) tiers.push_back(tier);
  Result<fuzz::Executor> executor = fuzz::Executor::create(tiers);
  ASSERT_TRUE(executor.ok()) << executor.error().message;
  std::set<size_t> lengths;
  for (uint64_t number = 1; number <= count; ++number) {
    const size_t length = 1 + fuzz::Random(number).below(longest);
    const Result<fuzz::Prepared> prepared = fuzz::prepare(program_of(number, length));
    ASSERT_TRUE(prepared.ok()) << prepared.error().message << ", function " << number;
    ASSERT_EQ(prepared->function->operations.size(), length);
    lengths.insert(length);
    for (size_t tier = 0; tier < tiers.size(); ++tier) {
      fuzz::CallTrace trace;
      const fuzz::Finding finding = executor->run(*prepared, tier, trace);
      ASSERT_FALSE(finding) << "function " << number << " (castor fuzz does not know its seed)\n"
                            << describe(prepared->program, finding, tiers);
    }
  }
  EXPECT_EQ(lengths.size(), longest);
}

}  // namespace
}  // namespace castor
