// SPDX-License-Identifier: Apache-2.0
// Requantization split into tasks, by the executor of a runtime: slices along every axis,
// parameters in types and at run time, tensors with gaps and transposed, on every tier. `--long`:
// more rounds.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/long_form.hpp"
#include "tests/support/on_every_engine.hpp"
#include "tests/support/placed_tensors.hpp"
#include "tests/support/requantize_cases.hpp"
#include "tools/testing/executors.hpp"

namespace castor::test {
namespace {

struct SplitRuntime {
  std::string name;
  std::shared_ptr<Backwards> executor;
  Runtime runtime;
};

std::vector<SplitRuntime> split_runtimes() {
  std::vector<SplitRuntime> all;
  for (const auto& [tier, unsplit] : tier_runtimes()) {
    for (const int tasks : {2, 7, 16}) {
      auto executor = std::make_shared<Backwards>(tasks);
      all.push_back({fmt::format("{}, {} tasks", name_of(tier), tasks), executor,
                     *Runtime::create({.tier = tier, .executor = executor})});
    }
  }
  return all;
}

Patterns random_x(fuzz::Random& random, const RequantizeCase& each, const Dims& shape) {
  const ElementType element = each.from ? info(each.from->format).container : ElementType::f32;
  const auto count = static_cast<size_t>(element_count(shape).value());
  return {element, shape, samples::random_patterns(element, count, random.next())};
}

RequantizeCase draw(fuzz::Random& random, fuzz::RequantizeCell form, const Dims& shape) {
  const int axis = static_cast<int>(random.below(static_cast<size_t>(shape.rank())));
  const auto along = [&](const std::optional<QuantizedFormat>& format) {
    const bool has_slices = format && info(*format).is_asymmetric && random.percent(60);
    return has_slices ? axis : Quantization::per_tensor;
  };
  return draw_case(random, form, along(form.from), along(form.to), shape[axis]);
}

TEST(ExecutorRequantize, GivesTheSameBits) {
  fuzz::Random random(11);
  const std::vector<SplitRuntime> runtimes = split_runtimes();
  const std::vector<Dims> shapes = {{3000}, {5, 33, 17}, {3, 2000}, {600, 3}, {16, 256}};
  const int rounds = long_form() ? 20 : 1;
  int splits = 0;
  for (const fuzz::RequantizeCell& form : requantize_forms()) {
    for (int round = 0; round < 2 * rounds; ++round) {
      const Dims& shape = random.pick(shapes);
      const RequantizeCase each = draw(random, form, shape);
      const bool at_run_time = round % 2 != 0;
      const FunctionPtr function = requantize_function(each, shape, at_run_time);
      std::vector<Placed> operands = {
          {random_x(random, each, shape), static_cast<Placing>(random.below(placings))}};
      if (at_run_time) {
        for (Patterns& parameter : parameters_of(each)) operands.push_back({std::move(parameter)});
      }
      std::vector<Patterns> dense;
      for (const Placed& operand : operands) dense.push_back(operand.tensor);
      const Patterns expected = interpreted(*function, dense);
      const auto placing = static_cast<Placing>(random.below(placings));
      for (const SplitRuntime& split : runtimes) {
        std::vector<Placed> results = {{{expected.type, expected.shape, {}}, placing}};
        const int before = split.executor->calls();
        ASSERT_EQ(run_placed(split.runtime, function, operands, results), "")
            << split.name << ": " << each.name();
        ASSERT_EQ(first_difference(expected, results[0].tensor), "")
            << split.name << ": " << each.name() << (at_run_time ? ", at run time" : "");
        splits += split.executor->calls() - before;
      }
    }
  }
  EXPECT_GT(splits, 0);
}

}  // namespace
}  // namespace castor::test
