// SPDX-License-Identifier: Apache-2.0
// Drawing functions of conversions alone: types, options, graphs.
#include "tools/fuzz/generate_function.hpp"
#include "tools/fuzz/generate.hpp"
#include "tools/testing/samples.hpp"

namespace castor::fuzz {

namespace {

/// Mostly a few conversions, at times enough of them for registers to run out.
size_t draw_length(Random& random) {
  const size_t kind = random.below(100);
  if (kind < 45) return 1 + random.below(3);
  if (kind < 97) return 1 + random.below(12);
  return 13 + random.below(28);
}

void draw_inputs(Random& random, Program& program) {
  const size_t kind = random.below(10);
  const size_t count = kind < 6 ? 1 : kind < 9 ? 2 : 3;
  AxisWriter writer(random);
  for (size_t i = 0; i < count; ++i) {
    InputSpec input;
    input.element = draw_element(random);
    if (i > 0 && random.percent(50)) {
      input.axes = program.inputs[i - 1].axes;
    } else {
      const int rank = static_cast<int>(random.below(max_drawn_rank + 1));
      input.axes = writer.write(program, draw_shape(random, rank, draw_count(random)));
    }
    add_input(program, std::move(input));
  }
}

void draw_constants(Random& random, Program& program) {
  if (!random.percent(12)) return;
  const size_t count = random.percent(80) ? 1 : 2;
  for (size_t i = 0; i < count; ++i) {
    OperationSpec constant{.op = OpKind::constant, .element = draw_element(random)};
    const Dims shape = draw_shape(random, static_cast<int>(random.below(3)), random.between(1, 12));
    for (int64_t extent : shape) constant.target.push_back({AxisSpec::Kind::fixed, extent, 0});
    constant.patterns = samples::random_patterns(
        constant.element, static_cast<size_t>(count_of(shape)), random.next());
    add_operation(program, std::move(constant), max_elements);
  }
}

/// A value, any of them alike.
size_t draw_value(Random& random, const Program& program) {
  while (true) {
    const size_t value = random.below(program.value_count());
    if (program.is_value(value)) return value;
  }
}

/// The value that was added last.
size_t last_value(const Program& program) {
  size_t last = program.value_count() - 1;
  while (!program.is_value(last)) --last;
  return last;
}

}  // namespace

ElementType draw_element(Random& random) { return random.pick(element_table).type; }

ElementType draw_element(Random& random, OperandClass types) {
  while (true) {
    const ElementType type = draw_element(random);
    if (admits(types, type)) return type;
  }
}

ConvertOptions draw_options(Random& random, ElementType from, ElementType to) {
  if (random.percent(30)) return {};
  while (true) {  // the defaults are always admitted
    const ConvertOptions options{static_cast<Overflow>(random.below(overflow_names.size())),
                                 static_cast<Rounding>(random.below(rounding_names.size())),
                                 static_cast<NanMode>(random.below(nan_mode_names.size()))};
    if (options == ConvertOptions{} || check_convert_options(from, to, options)) return options;
  }
}

OperationSpec conversion(size_t operand, ElementType to, const ConvertOptions& options) {
  return {.op = OpKind::convert,
          .operands = {operand},
          .attributes = attributes_of(options),
          .element = to};
}

void draw_conversions(Random& random, Program& program) {
  draw_inputs(random, program);
  draw_constants(random, program);
  const size_t length = draw_length(random);
  for (size_t i = 0; i < length; ++i) {
    const size_t operand = random.percent(30) ? draw_value(random, program) : last_value(program);
    const ElementType to = draw_element(random);
    const ConvertOptions options = draw_options(random, program.element_of(operand), to);
    add_operation(program, conversion(operand, to, options), max_reach);
  }
}

void draw_results(Random& random, Program& program) {
  const size_t count = random.percent(55) ? 1 : 1 + random.below(max_results);
  for (size_t i = 0; i < count; ++i) {
    ResultSpec result;
    result.value = i == 0 && random.percent(80) ? last_value(program) : draw_value(random, program);
    result.declares_unknowns = random.percent(10);
    program.results.push_back(result);
  }
}

}  // namespace castor::fuzz
