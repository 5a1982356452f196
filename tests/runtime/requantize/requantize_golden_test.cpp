// SPDX-License-Identifier: Apache-2.0
// Requantization against tests/data/mli: the embARC MLI library's own results, and those of an
// independent oracle in Python for both arithmetics. The interpreter and every tier, parameters in
// the types and given at run time, tensors in all layouts between guarded pages.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/conversions.hpp"
#include "tests/support/interpreted.hpp"
#include "tests/support/mli_cases.hpp"
#include "tests/support/placed_tensors.hpp"

namespace castor::test {
namespace {

bool is_nan(uint64_t bits) { return (bits & 0x7fffffff) > 0x7f800000; }

/// The first element that differs; NaNs are alike.
std::string difference(const MliCase& each, const Patterns& found) {
  for (size_t i = 0; i < each.output.size(); ++i) {
    if (found.elements[i] == each.output[i]) continue;
    const bool is_float = found.type == ElementType::f32;
    if (is_float && is_nan(found.elements[i]) && is_nan(each.output[i])) continue;
    return fmt::format("element {}, of 0x{:x}: found 0x{:x}, expected 0x{:x}", i, each.input[i],
                       found.elements[i], each.output[i]);
  }
  return {};
}

/// x, and the parameters in the order of the function's.
std::vector<Patterns> operands_of(const MliCase& each, const Function& function) {
  std::vector<Patterns> operands = {
      {function.type_of(function.parameters[0]).element, each.shape, each.input}};
  size_t next = 1;
  for (const MliSide* side : {&each.source, &each.destination}) {
    const std::vector<int32_t>* values[] = {&side->scale, &side->frac, &side->zero_point};
    for (const std::vector<int32_t>* value : values) {
      if (value->empty() || next == function.parameters.size()) continue;
      const TensorType& type = function.type_of(function.parameters[next++]);
      Patterns operand{type.element, type.shape.empty() ? Dims() : Dims{type.shape[0].extent}, {}};
      for (int32_t entry : *value) {
        operand.elements.push_back(static_cast<uint64_t>(entry) &
                                   (~uint64_t{0} >> (64 - bits_of(type.element))));
      }
      operands.push_back(std::move(operand));
    }
  }
  return operands;
}

void check(const MliCase& each, int number, bool at_run_time) {
  const FunctionPtr function = mli_function(each, at_run_time);
  const std::vector<Patterns> operands = operands_of(each, *function);
  EXPECT_EQ(difference(each, interpreted(*function, operands)), "") << each.name;
  std::vector<Placed> placed;
  for (const Patterns& operand : operands) placed.push_back({operand});
  const auto placing = [&](int choice) {
    return each.shape.empty() ? Placing::at_end : static_cast<Placing>(choice % placings);
  };
  placed[0].placing = placing(number);
  const TensorType& type = function->type_of(function->results[0]);
  for (const auto& [tier, runtime] : tier_runtimes()) {
    std::vector<Placed> results = {{{type.element, each.shape, {}}, placing(number / placings)}};
    ASSERT_EQ(run_placed(runtime, function, placed, results), "")
        << name_of(tier) << " " << each.name;
    ASSERT_EQ(difference(each, results[0].tensor), "")
        << name_of(tier) << " " << each.name << (at_run_time ? ", at run time" : "");
  }
}

class RequantizeGolden : public testing::TestWithParam<const char*> {};

TEST_P(RequantizeGolden, GivesTheSameBitsOnEveryTier) {
  int number = 0;
  for (const MliCase& each : mli_cases(GetParam())) {
    for (bool at_run_time : {false, true}) {
      ASSERT_NO_FATAL_FAILURE(check(each, number, at_run_time)) << each.name;
    }
    ++number;
  }
  EXPECT_GE(number, 304);
}

INSTANTIATE_TEST_SUITE_P(Files, RequantizeGolden,
                         testing::Values("mli_up.jsonl", "mli_convergent.jsonl",
                                         "mli_oracle.jsonl"));

}  // namespace
}  // namespace castor::test
