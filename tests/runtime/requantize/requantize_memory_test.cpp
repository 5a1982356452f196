// SPDX-License-Identifier: Apache-2.0
// Layouts of requantize's tensors: slices along every axis of long, odd and flat shapes,
// strides on either side, results in place; between guarded pages, on every tier. `--long`: more of
// each.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/conversions.hpp"
#include "tests/support/long_form.hpp"
#include "tests/support/on_every_engine.hpp"
#include "tests/support/placed_tensors.hpp"
#include "tests/support/requantize_cases.hpp"

namespace castor::test {
namespace {

ElementType element_of(const QuantizationPtr& side) {
  return side ? info(side->format).container : ElementType::f32;
}

/// Edges of the first slice, among random elements.
Patterns draw_x(fuzz::Random& random, const RequantizeCase& each, const Dims& shape) {
  const ElementType element = element_of(each.from);
  const auto count = static_cast<size_t>(element_count(shape).value());
  Patterns x{element, shape, samples::random_patterns(element, count, random.next())};
  const bool has_entries = count > 0;
  if (!has_entries) return x;
  const std::vector<uint64_t> edges = edge_elements(random, each);
  for (uint64_t& bits : x.elements) {
    if (random.percent(40)) bits = random.pick(edges);
  }
  return x;
}

std::vector<Placed> operands_of(const RequantizeCase& each, const Patterns& x, Placing placing,
                                bool at_run_time) {
  std::vector<Placed> operands = {{x, placing}};
  if (!at_run_time) return operands;
  for (Patterns& parameter : parameters_of(each)) operands.push_back({std::move(parameter)});
  return operands;
}

std::vector<Patterns> tensors_of(const std::vector<Placed>& operands) {
  std::vector<Patterns> tensors;
  for (const Placed& operand : operands) tensors.push_back(operand.tensor);
  return tensors;
}

const std::vector<Dims> shapes = {{3, 5, 7, 64},   {2, 64, 49}, {65, 257}, {4096},      {1},
                                  {1, 1, 1},       {300, 3},    {3, 300},  {2, 300, 1}, {5, 1, 67},
                                  {2, 2, 2, 3, 3}, {17, 16},    {1, 1000}, {129, 2},    {3, 0, 2}};

class RequantizeShapes : public testing::TestWithParam<Dims> {
 protected:
  /// A case with slices on the sides that `sides` has bits for.
  RequantizeCase draw(int axis, int sides) {
    fuzz::RequantizeCell form = random_.pick(requantize_forms());
    const auto asymmetric = [&] {
      return random_.percent(50) ? QuantizedFormat::sa8 : QuantizedFormat::sa32;
    };
    if ((sides & 1) != 0) form.from = asymmetric();
    if ((sides & 2) != 0) form.to = asymmetric();
    return draw_case(random_, form, (sides & 1) != 0 ? axis : Quantization::per_tensor,
                     (sides & 2) != 0 ? axis : Quantization::per_tensor, GetParam()[axis]);
  }

  Placing draw_placing() {
    return random_.percent(40) ? Placing::at_end : static_cast<Placing>(random_.below(placings));
  }

  fuzz::Random random_{77};
};

TEST_P(RequantizeShapes, SlicesAlongEveryAxis) {
  const int rounds = long_form() ? 20 : 2;
  for (int axis = 0; axis < GetParam().rank(); ++axis) {
    for (int sides = 1; sides <= 3; ++sides) {
      for (int round = 0; round < rounds; ++round) {
        const RequantizeCase each = draw(axis, sides);
        const bool at_run_time = round % 2 != 0;
        const FunctionPtr function = requantize_function(each, GetParam(), at_run_time);
        const Patterns x = draw_x(random_, each, GetParam());
        const std::vector<Placed> operands = operands_of(each, x, draw_placing(), at_run_time);
        const Patterns expected = interpreted(*function, tensors_of(operands));
        ASSERT_EQ(mistake_on_tiers(function, operands, {{expected, draw_placing()}}), "")
            << each.name() << (at_run_time ? ", at run time" : "");
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Of, RequantizeShapes, testing::ValuesIn(shapes), [](const auto& row) {
  std::string name = "x";
  for (int64_t extent : row.param) name += fmt::format("_{}", extent);
  return name;
});

/// One to three hundred slices, rows of n elements.
TEST(RequantizeSlices, OneToThreeHundred) {
  fuzz::Random random(5);
  const int step = long_form() ? 1 : 13;
  for (int64_t slices = 1; slices <= 300; slices += step) {
    const int64_t row = random.between(1, 40);
    const bool is_innermost = random.percent(50);
    const Dims shape = is_innermost ? Dims{row, slices} : Dims{slices, row};
    const int axis = is_innermost ? 1 : 0;
    fuzz::RequantizeCell form = random.pick(requantize_forms());
    form.to = random.percent(50) ? QuantizedFormat::sa8 : QuantizedFormat::sa32;
    const RequantizeCase each = draw_case(random, form, Quantization::per_tensor, axis, slices);
    for (bool at_run_time : {false, true}) {
      const FunctionPtr function = requantize_function(each, shape, at_run_time);
      const Patterns x = draw_x(random, each, shape);
      const std::vector<Placed> operands = operands_of(each, x, Placing::at_end, at_run_time);
      const Patterns expected = interpreted(*function, tensors_of(operands));
      ASSERT_EQ(mistake_on_tiers(function, operands, {{expected}}), "") << each.name();
    }
  }
}

/// Every form and size around the vectors', at both ends of its pages.
TEST(RequantizeSizes, TailsOfEveryForm) {
  fuzz::Random random(6);
  const int64_t max = long_form() ? 140 : 24;
  for (const fuzz::RequantizeCell& form : requantize_forms()) {
    for (int64_t i = 0; i < max; i += 3) {
      const Dims shape = {random.between(1, 140)};
      const RequantizeCase each = draw_case(random, form);
      const bool at_run_time = random.percent(50);
      const FunctionPtr function = requantize_function(each, shape, at_run_time);
      const Patterns x = draw_x(random, each, shape);
      const Placing placing = random.percent(50) ? Placing::at_end : Placing::at_begin;
      const std::vector<Placed> operands = operands_of(each, x, placing, at_run_time);
      const Patterns expected = interpreted(*function, tensors_of(operands));
      ASSERT_EQ(mistake_on_tiers(function, operands, {{expected, placing}}), "") << each.name();
    }
  }
}

/// What goes wrong where x's memory takes the result.
std::string mistake_in_place(const Runtime& runtime, const FunctionPtr& function,
                             const std::vector<Placed>& operands, const Patterns& expected) {
  std::vector<PlacedTensor> tensors;
  std::vector<ConstView> inputs;
  for (const Placed& operand : operands) {
    inputs.emplace_back(tensors.emplace_back(operand).view());
  }
  View output = tensors[0].view();
  output.element = expected.type;
  const std::vector<View> outputs = {output};
  const Result<Kernel> kernel = runtime.compile(function);
  if (!kernel) return kernel.error().to_string();
  const Result<BoundKernel> bound = kernel->bind(inputs, outputs);
  if (!bound) return bound.error().to_string();
  if (bound->engine() != Engine::jit) return "interpreted";
  if (const Status status = bound->run(inputs, outputs); !status) return status.error().to_string();
  Patterns found = tensors[0].take();
  found.type = expected.type;
  if (!tensors[0].is_clean()) return "wrote outside the tensor";
  return first_difference(expected, found);
}

struct InPlace {
  std::optional<QuantizedFormat> from;
  std::optional<QuantizedFormat> to;
};

/// Every pair of containers that are equally wide, in every layout.
TEST(RequantizeInPlace, WhereContainersAreEquallyWide) {
  using enum QuantizedFormat;
  fuzz::Random random(8);
  const std::vector<InPlace> pairs = {{fx8, fx8}, {fx8, sa8},   {sa8, fx8},
                                      {sa8, sa8}, {fx16, fx16}, {sa32, sa32},
                                      {sa32, {}}, {{}, sa32},   {{}, {}}};
  const std::vector<Dims> all_shapes = {{300}, {5, 130}, {3, 7, 19}};
  const int rounds = long_form() ? 30 : 1;
  for (const InPlace& pair : pairs) {
    for (int number = 0; number < 4 * placings * rounds; ++number) {
      const Dims& shape = random.pick(all_shapes);
      const auto rank = static_cast<size_t>(shape.rank());
      const auto axis = static_cast<int>(random.below(rank));
      const auto along = [&](const std::optional<QuantizedFormat>& format) {
        const bool may = format && info(*format).is_asymmetric;
        return may && random.percent(50) ? axis : Quantization::per_tensor;
      };
      const fuzz::RequantizeCell options = fuzz::requantize_cell(static_cast<size_t>(number) % 4);
      const RequantizeCase each = draw_case(random, {pair.from, pair.to, options.options},
                                            along(pair.from), along(pair.to), shape[axis]);
      const bool at_run_time = random.percent(50);
      const FunctionPtr function = requantize_function(each, shape, at_run_time);
      const Patterns x = draw_x(random, each, shape);
      const auto placing = static_cast<Placing>(number / 4 % placings);
      const std::vector<Placed> operands = operands_of(each, x, placing, at_run_time);
      const Patterns expected = interpreted(*function, tensors_of(operands));
      for (const auto& [tier, runtime] : tier_runtimes()) {
        ASSERT_EQ(mistake_in_place(runtime, function, operands, expected), "")
            << name_of(tier) << " " << each.name() << to_string(shape);
      }
    }
  }
}

}  // namespace
}  // namespace castor::test
