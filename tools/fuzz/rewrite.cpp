// SPDX-License-Identifier: Apache-2.0
#include "tools/fuzz/rewrite.hpp"

#include <algorithm>

#include "ir/numerics/scalar.hpp"
#include "tools/fuzz/layout.hpp"

namespace castor::fuzz {

namespace {

std::vector<bool> find_needed(const Program& program) {
  std::vector<bool> needed(program.value_count(), false);
  for (const ResultSpec& result : program.results) {
    needed[result.value] = true;
    if (result.in_place_of != ResultSpec::nowhere) {
      needed[static_cast<size_t>(result.in_place_of)] = true;
    }
  }
  for (size_t value = program.value_count(); value-- > program.first_conversion();) {
    if (needed[value]) {
      needed[program.conversions[value - program.first_conversion()].operand] = true;
    }
  }
  return needed;
}

/// Removes the elements whose flags, which begin at `first`, are not set.
template <class T>
void keep(std::vector<T>& elements, const std::vector<bool>& flags, size_t first) {
  std::vector<T> kept;
  for (size_t i = 0; i < elements.size(); ++i) {
    if (flags[first + i]) kept.push_back(std::move(elements[i]));
  }
  elements = std::move(kept);
}

void mend_options(Program& program) {
  for (ConvertSpec& conversion : program.conversions) {
    const ElementType from = program.element_of(conversion.operand);
    if (!check_convert_options(from, conversion.to, conversion.options)) conversion.options = {};
  }
}

bool are_equal_in_memory(const Program& program, size_t value, size_t other) {
  return are_stored_alike(program.element_of(value), program.element_of(other)) &&
         program.shape_of(value) == program.shape_of(other);
}

/// Memory is shared only where elements and shapes are alike.
void mend_sharing(Program& program) {
  for (size_t i = 0; i < program.results.size(); ++i) {
    ResultSpec& result = program.results[i];
    if (result.in_place_of != ResultSpec::nowhere &&
        !are_equal_in_memory(program, result.value, static_cast<size_t>(result.in_place_of))) {
      result.in_place_of = ResultSpec::nowhere;
    }
    if (result.interleaved_with == ResultSpec::nowhere) continue;
    const ResultSpec& owner = program.results[static_cast<size_t>(result.interleaved_with)];
    if (!are_equal_in_memory(program, result.value, owner.value)) separate(program, i);
  }
}

void replace_uses(Program& program, size_t value, size_t by) {
  for (ConvertSpec& conversion : program.conversions) {
    if (conversion.operand == value) conversion.operand = by;
  }
  for (ResultSpec& result : program.results) {
    if (result.value == value) result.value = by;
  }
}

size_t count_uses(const Program& program, size_t value) {
  size_t uses = 0;
  for (const ConvertSpec& conversion : program.conversions) uses += conversion.operand == value;
  for (const ResultSpec& result : program.results) uses += result.value == value;
  return uses;
}

/// A bad call of tensors that are there.
void mend_bad_call(Program& program) {
  const size_t tensors = program.inputs.size() + program.results.size();
  BadCall& bad = program.bad_call;
  const bool is_overlap = bad.kind == BadCall::Kind::overlap;
  if (bad.tensor >= tensors || bad.other >= tensors) bad = {};
  if (is_overlap && bad.tensor < program.inputs.size()) bad = {};
}

void remove_values(Program& program, const std::vector<bool>& needed) {
  std::vector<size_t> renumbered(needed.size());
  size_t next = 0;
  for (size_t value = 0; value < needed.size(); ++value) {
    renumbered[value] = next;
    next += needed[value];
  }
  const size_t first_constant = program.inputs.size();
  const size_t first_conversion = program.first_conversion();
  keep(program.inputs, needed, 0);
  keep(program.constants, needed, first_constant);
  keep(program.conversions, needed, first_conversion);
  for (ConvertSpec& conversion : program.conversions) {
    conversion.operand = renumbered[conversion.operand];
  }
  for (ResultSpec& result : program.results) {
    result.value = renumbered[result.value];
    if (result.in_place_of == ResultSpec::nowhere) continue;
    result.in_place_of = static_cast<int>(renumbered[static_cast<size_t>(result.in_place_of)]);
  }
  mend_bad_call(program);
}

/// Strides for a shape with smaller extents: what was dense stays dense, gaps stay.
void shrink_strides(Placement& place, const Dims& from, const Dims& to) {
  const bool was_dense = place.strides == dense_strides(from);
  if (was_dense || to.rank() != from.rank()) place.strides = dense_strides(to);
}

/// Calls change(placement) for the tensors that have the shape of a root.
template <class Change>
void change_placements(Program& program, size_t root, Change change) {
  if (root < program.inputs.size()) change(program.inputs[root].place);
  for (ResultSpec& result : program.results) {
    if (program.root_of(result.value) == root) change(result.place);
  }
}

void set_shape(Program& program, size_t root, const Dims& shape) {
  if (root < program.inputs.size()) {
    std::vector<AxisSpec>& axes = program.inputs[root].axes;
    axes.clear();
    for (int64_t extent : shape) axes.push_back({AxisSpec::Kind::fixed, extent, 0});
  } else {
    ConstantSpec& constant = program.constants[root - program.inputs.size()];
    constant.shape = shape;
    constant.patterns.resize(static_cast<size_t>(count_of(shape)));
  }
  mend_sharing(program);
}

}  // namespace

void separate(Program& program, size_t result) {
  ResultSpec& spec = program.results[result];
  ResultSpec& owner = program.results[static_cast<size_t>(spec.interleaved_with)];
  spec.interleaved_with = ResultSpec::nowhere;
  for (ResultSpec* one : {&spec, &owner}) {
    one->place.strides = dense_strides(program.shape_of(one->value));
  }
}

void remove_result(Program& program, size_t result) {
  const int removed = static_cast<int>(result);
  for (size_t i = 0; i < program.results.size(); ++i) {
    const int with = program.results[i].interleaved_with;
    if (with != ResultSpec::nowhere && (i == result || with == removed)) separate(program, i);
  }
  program.results.erase(program.results.begin() + removed);
  for (ResultSpec& spec : program.results) {
    if (spec.interleaved_with > removed) --spec.interleaved_with;
  }
  mend_bad_call(program);
}

bool remove_dead(Program& program) {
  const std::vector<bool> needed = find_needed(program);
  if (std::find(needed.begin(), needed.end(), false) == needed.end()) return false;
  remove_values(program, needed);
  return true;
}

void bypass(Program& program, size_t conversion_value) {
  const size_t operand = program.conversions[conversion_value - program.first_conversion()].operand;
  replace_uses(program, conversion_value, operand);
  remove_dead(program);
  mend_options(program);
  mend_sharing(program);
}

bool fold_into_input(Program& program, size_t conversion_value) {
  const ConvertSpec conversion = program.conversions[conversion_value - program.first_conversion()];
  if (conversion.operand >= program.inputs.size()) return false;
  InputSpec& input = program.inputs[conversion.operand];
  if (input.data.kind != DataSpec::Kind::same) return false;
  if (count_uses(program, conversion.operand) > 1) return false;
  input.data.pattern =
      numerics::convert(input.data.pattern, input.element, conversion.to, conversion.options);
  input.element = conversion.to;
  bypass(program, conversion_value);
  return true;
}

void reshape(Program& program, size_t root, const Dims& shape) {
  const Dims before = program.shape_of(root);
  change_placements(program, root, [&](Placement& place) { shrink_strides(place, before, shape); });
  set_shape(program, root, shape);
}

void remove_axis(Program& program, size_t root, int axis) {
  const Dims before = program.shape_of(root);
  const auto without = [axis](const Dims& dims) {
    Dims kept;
    for (int i = 0; i < dims.rank(); ++i) {
      if (i != axis) kept.push_back(dims[i]);
    }
    return kept;
  };
  change_placements(program, root, [&](Placement& place) {
    // Without elements, strides may be anything; without that axis they may count.
    const bool was_dense = place.strides == dense_strides(before) || count_of(before) == 0;
    place.strides = was_dense ? dense_strides(without(before)) : without(place.strides);
  });
  set_shape(program, root, without(before));
}

const Placement& placement(const Program& program, size_t tensor) {
  const size_t inputs = program.inputs.size();
  return tensor < inputs ? program.inputs[tensor].place : program.results[tensor - inputs].place;
}

Placement& placement(Program& program, size_t tensor) {
  const size_t inputs = program.inputs.size();
  return tensor < inputs ? program.inputs[tensor].place : program.results[tensor - inputs].place;
}

Dims shape_of_tensor(const Program& program, size_t tensor) {
  const size_t inputs = program.inputs.size();
  return program.shape_of(tensor < inputs ? tensor : program.results[tensor - inputs].value);
}

bool make_plain(Program& program, size_t tensor) {
  Placement& place = placement(program, tensor);
  const Dims dense = dense_strides(shape_of_tensor(program, tensor));
  const bool is_plain = place.strides == dense && place.offset == 0 && place.at_end &&
                        place.shift == 0 && !place.spare && !place.hides_front;
  place = {dense, 0, true, 0, false, false};
  return !is_plain;
}

}  // namespace castor::fuzz
