// SPDX-License-Identifier: Apache-2.0
#include "tools/fuzz/prepared.hpp"

#include "ir/interpreter.hpp"

namespace castor::fuzz {

namespace {

void make_inputs(Prepared& prepared) {
  const Program& program = prepared.program;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const InputSpec& input = program.inputs[i];
    Image& image =
        prepared.inputs.emplace_back(make_image(input.element, program.shape_of(i), input.place));
    fill(image, input.data);
    image.after = image.before;
  }
}

void make_outputs(Prepared& prepared) {
  const Program& program = prepared.program;
  for (const ResultSpec& result : program.results) {
    Image& image = prepared.outputs.emplace_back();
    const ElementType element = program.element_of(result.value);
    if (result.in_place_of != ResultSpec::nowhere) {
      image.element = element;
      continue;
    }
    image = make_image(element, program.shape_of(result.value), result.place);
    image.after = image.before;
  }
}

/// Reads `before` of the inputs and writes `after` of what the results lie in.
Status interpret_images(Prepared& prepared) {
  std::vector<ConstView> sources;
  for (Image& input : prepared.inputs) {
    sources.push_back(input.view<const void*>(input.before.data()));
  }
  std::vector<View> destinations;
  for (size_t i = 0; i < prepared.outputs.size(); ++i) {
    const int input = prepared.program.results[i].in_place_of;
    Image& image =
        prepared.is_in_place(i) ? prepared.inputs[static_cast<size_t>(input)] : prepared.outputs[i];
    destinations.push_back(image.view<void*>(image.after.data()));
    destinations.back().element = prepared.outputs[i].element;
  }
  return interpret(*prepared.function, sources, destinations);
}

}  // namespace

Result<Prepared> prepare(Program program) {
  Prepared prepared{std::move(program), nullptr, {}, {}};
  Result<FunctionPtr> function = build_function(prepared.program);
  if (!function) return function.error();
  prepared.function = std::move(function).value();
  make_inputs(prepared);
  make_outputs(prepared);
  if (Status status = interpret_images(prepared); !status) return status.error();
  for (size_t i = 0; i < prepared.outputs.size(); ++i) {
    if (!prepared.is_in_place(i)) invert_elements(prepared.outputs[i]);
  }
  return prepared;
}

}  // namespace castor::fuzz
