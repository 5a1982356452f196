// SPDX-License-Identifier: Apache-2.0
// Drawing where tensors are stored, what they hold, and what is computed in place.
#include "tools/fuzz/generate.hpp"
#include "tools/fuzz/generate_function.hpp"

namespace castor::fuzz {

namespace {

constexpr int64_t max_offset = 20;
constexpr int64_t max_shift = 63;  // every misalignment of a cache line

Placement draw_placement(Random& random, const Dims& shape, StrideKind strides, bool is_output) {
  Placement place;
  const StrideKind own =
      strides == StrideKind::any && random.percent(40) ? StrideKind::dense : strides;
  place.strides = draw_strides(random, shape, own, !is_output, max_reach);
  place.offset = random.percent(30) ? random.between(1, max_offset) : 0;
  place.at_end = random.percent(60);
  place.shift = random.percent(50) ? 0 : random.between(1, max_shift);
  place.spare = random.percent(50);
  place.hides_front = !place.at_end && random.percent(40);
  return place;
}

/// Whether `result` may take the memory of `input`: elements are stored alike and shapes are equal.
/// Where a nest that reads the input runs after the one that writes the result, or reads it
/// elsewhere than it writes, the call is refused.
bool may_take_memory(const Program& program, const ResultSpec& result, size_t input) {
  return are_stored_alike(program.element_of(result.value), program.inputs[input].element) &&
         program.shape_of(result.value) == program.shape_of(input);
}

bool is_taken(const Program& program, size_t input) {
  for (const ResultSpec& result : program.results) {
    if (result.in_place_of == static_cast<int>(input)) return true;
  }
  return false;
}

}  // namespace

void draw_in_place(Random& random, Program& program) {
  if (!random.percent(25)) return;
  for (ResultSpec& result : program.results) {
    for (size_t input = 0; input < program.inputs.size(); ++input) {
      if (is_taken(program, input) || !may_take_memory(program, result, input)) continue;
      result.in_place_of = static_cast<int>(input);
      break;
    }
  }
}

bool interleave(Program& program, size_t first, size_t second) {
  const auto is_free = [&](size_t result) {
    const ResultSpec& spec = program.results[result];
    return spec.in_place_of == ResultSpec::nowhere &&
           spec.interleaved_with == ResultSpec::nowhere && !program.interleaved_behind(result);
  };
  const ResultSpec& a = program.results[first];
  const ResultSpec& b = program.results[second];
  const ElementType element = program.element_of(a.value);
  const Dims shape = program.shape_of(a.value);
  const bool fits = is_free(first) && is_free(second) &&
                    are_stored_alike(element, program.element_of(b.value)) &&
                    shape == program.shape_of(b.value) &&
                    2 * aligned_elements(element) * count_of(shape) <= max_reach;
  if (fits) program.results[second].interleaved_with = static_cast<int>(first);
  return fits;
}

void draw_interleaving(Random& random, Program& program, size_t chance) {
  if (!random.percent(chance)) return;
  for (size_t second = 1; second < program.results.size(); ++second) {
    for (size_t first = 0; first < second; ++first) {
      if (interleave(program, first, second)) break;
    }
  }
}

void draw_bad_call(Random& random, Program& program, BadCall::Kind kind) {
  const size_t inputs = program.inputs.size();
  const size_t tensors = inputs + program.results.size();
  program.bad_call = {kind, random.below(tensors), random.below(tensors)};
  if (kind == BadCall::Kind::scale) {
    const std::vector<size_t> scales = scale_inputs(program);
    program.bad_call = {};
    if (!scales.empty()) program.bad_call = {kind, random.pick(scales), random.below(1000)};
    return;
  }
  if (kind == BadCall::Kind::overlap) {
    program.bad_call.tensor = inputs + random.below(program.results.size());
  } else if (kind == BadCall::Kind::extents) {
    const size_t input = random.below(inputs);
    const auto rank = static_cast<size_t>(program.shape_of(input).rank());
    program.bad_call = {kind, input, rank == 0 ? 0 : random.below(rank)};
  }
}

void draw_placements(Random& random, Program& program, StrideKind strides) {
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    program.inputs[i].place =
        draw_placement(random, program.shape_of(i), strides, is_taken(program, i));
  }
  for (ResultSpec& result : program.results) {
    result.place = draw_placement(random, program.shape_of(result.value), strides, true);
  }
}

void draw_data(Random& random, Program& program, size_t special_percent) {
  for (InputSpec& input : program.inputs) {
    input.data.seed = random.next() >> 16;
    if (input.data.is_made_to_fit()) continue;
    input.data.kind = random.percent(special_percent) ? DataSpec::Kind::special
                      : random.percent(45)            ? DataSpec::Kind::boundary
                                                      : DataSpec::Kind::random;
  }
}

}  // namespace castor::fuzz
