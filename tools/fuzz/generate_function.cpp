// SPDX-License-Identifier: Apache-2.0
// Drawing functions: types, options, graphs.
#include <algorithm>

#include "tests/support/samples.hpp"
#include "tools/fuzz/generate.hpp"
#include "tools/fuzz/generate_function.hpp"

namespace castor::fuzz {

namespace {

/// Mostly a few conversions, at times so many that registers run out.
size_t draw_length(Random& random) {
  const size_t kind = random.below(100);
  if (kind < 45) return 1 + random.below(3);
  if (kind < 97) return 1 + random.below(12);
  return 13 + random.below(28);
}

void draw_constants(Random& random, Program& program) {
  if (!random.percent(12)) return;
  const size_t count = random.percent(80) ? 1 : 2;
  for (size_t i = 0; i < count; ++i) {
    ConstantSpec constant;
    constant.element = draw_element(random);
    constant.shape = draw_shape(random, static_cast<int>(random.below(3)), random.between(1, 12));
    constant.patterns = samples::random_patterns(
        constant.element, static_cast<size_t>(count_of(constant.shape)), random.next());
    program.constants.push_back(std::move(constant));
  }
}

/// Goes on from the last value, or from any.
void draw_conversions(Random& random, Program& program) {
  const size_t length = draw_length(random);
  for (size_t i = 0; i < length; ++i) {
    const size_t values = program.value_count();
    const size_t operand = random.percent(30) ? random.below(values) : values - 1;
    const ElementType to = draw_element(random);
    program.conversions.push_back(
        {operand, to, draw_options(random, program.element_of(operand), to)});
  }
}

void draw_results(Random& random, Program& program) {
  const size_t count = random.percent(55) ? 1 : 1 + random.below(most_results);
  for (size_t i = 0; i < count; ++i) {
    ResultSpec result;
    const size_t values = program.value_count();
    result.value = i == 0 && random.percent(80) ? values - 1 : random.below(values);
    result.declares_unknowns = random.percent(10);
    program.results.push_back(result);
  }
}

}  // namespace

ElementType draw_element(Random& random) { return random.pick(element_table).type; }

ConvertOptions draw_options(Random& random, ElementType from, ElementType to) {
  if (random.percent(30)) return {};
  while (true) {  // the defaults are always admitted
    const ConvertOptions options{static_cast<Overflow>(random.below(overflow_names.size())),
                                 static_cast<Rounding>(random.below(rounding_names.size())),
                                 static_cast<NanMode>(random.below(nan_mode_names.size()))};
    if (options == ConvertOptions{} || check_convert_options(from, to, options)) return options;
  }
}

void draw_function(Random& random, Program& program) {
  const size_t kind = random.below(10);
  program.inputs.resize(kind < 6 ? 1 : kind < 9 ? 2 : most_inputs);
  for (InputSpec& input : program.inputs) input.element = draw_element(random);
  draw_constants(random, program);
  draw_conversions(random, program);
  draw_results(random, program);
}

}  // namespace castor::fuzz
