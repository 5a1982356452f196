// SPDX-License-Identifier: Apache-2.0
#include "tools/fuzz/prepared.hpp"

#include "ir/interpreter/interpreter.hpp"
#include "tools/fuzz/neighbour.hpp"

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
  for (size_t i = 0; i < program.results.size(); ++i) {
    const ElementType element = program.element_of(program.results[i].value);
    const Placement place = program.placement_of(i);
    if (!prepared.has_memory(i)) {
      const Image& owner = prepared.memory_of(i);
      prepared.outputs.push_back(make_guest(element, place, owner));
      continue;
    }
    Image image = make_image(element, program.shape_of(program.results[i].value), place);
    if (const auto later = program.interleaved_behind(i)) {
      // The memory is that of a dense tensor with both results' elements, gaps included.
      Placement both = place;
      both.offset = program.placement_of(*later).offset;
      image = make_image(element, image.shape, both);
      image.place = place;
      image.hidden =
          both.hides_front && !both.at_end ? image.front + first_byte_of(element, place.offset) : 0;
    }
    image.after = image.before;
    prepared.outputs.push_back(std::move(image));
  }
}

/// Reads `before` of the inputs and writes `after` of the results' memory.
Status interpret_images(Prepared& prepared) {
  std::vector<ConstView> sources;
  for (Image& input : prepared.inputs) {
    sources.push_back(input.view<const void*>(input.before.data()));
  }
  std::vector<View> destinations;
  for (size_t i = 0; i < prepared.outputs.size(); ++i) {
    std::byte* memory = prepared.memory_of(i).after.data();
    destinations.push_back(prepared.outputs[i].view<void*>(memory));
  }
  return interpret(*prepared.function, sources, destinations);
}

void make_neighbour(Prepared& prepared) {
  if (prepared.program.neighbour == 0) return;
  const std::optional<Program> program = neighbour_of(prepared.program, prepared.program.neighbour);
  if (!program) return;
  Result<FunctionPtr> function = build_function(*program);
  if (!function) return;
  prepared.neighbour.function = std::move(function).value();
  for (size_t i = 0; i < program->inputs.size(); ++i) {
    prepared.neighbour.shapes.push_back(program->shape_of(i));
    prepared.neighbour.strides.push_back(program->inputs[i].place.strides);
  }
  for (size_t i = 0; i < program->results.size(); ++i) {
    prepared.neighbour.strides.push_back(program->placement_of(i).strides);
  }
}

}  // namespace

Result<Prepared> prepare(Program program) {
  Prepared prepared;
  prepared.program = std::move(program);
  Result<FunctionPtr> function = build_function(prepared.program);
  if (!function) return function.error();
  prepared.function = std::move(function).value();
  make_neighbour(prepared);
  make_inputs(prepared);
  make_outputs(prepared);
  if (Status status = interpret_images(prepared); !status) return status.error();
  for (size_t i = 0; i < prepared.outputs.size(); ++i) {
    if (prepared.is_in_place(i)) continue;
    Image& memory = prepared.memory_of(i);
    invert_elements(prepared.outputs[i], memory.before, memory.after);
  }
  return prepared;
}

}  // namespace castor::fuzz
