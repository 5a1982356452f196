// SPDX-License-Identifier: Apache-2.0
#include "tools/fuzz/rewrite.hpp"

#include <algorithm>

#include "tools/fuzz/layout.hpp"

namespace castor::fuzz {

namespace {

/// By value: whether a result is computed from it, or has its memory.
std::vector<bool> find_needed(const Program& program) {
  std::vector<bool> needed(program.value_count(), false);
  for (const ResultSpec& result : program.results) {
    needed[result.value] = true;
    if (result.in_place_of != ResultSpec::nowhere) {
      needed[static_cast<size_t>(result.in_place_of)] = true;
    }
  }
  for (size_t i = program.operations.size(); i-- > 0;) {
    const auto begin = needed.begin() + static_cast<std::ptrdiff_t>(program.value_of(i));
    const auto end = begin + Program::max_results;
    if (std::find(begin, end, true) == end) continue;
    std::fill(begin, end, true);
    for (size_t operand : program.operations[i].operands) {
      if (operand != no_operand) needed[operand] = true;
    }
  }
  return needed;
}

/// Renumbers values and removes those that are not needed.
void remove_values(Program& program, const std::vector<bool>& needed) {
  std::vector<size_t> renumbered(needed.size());
  size_t next = 0;
  for (size_t value = 0; value < needed.size(); ++value) {
    renumbered[value] = next;
    next += needed[value];
  }
  std::vector<OperationSpec> operations;
  for (size_t i = 0; i < program.operations.size(); ++i) {
    if (needed[program.value_of(i)]) operations.push_back(std::move(program.operations[i]));
  }
  std::vector<InputSpec> inputs;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    if (needed[i]) inputs.push_back(std::move(program.inputs[i]));
  }
  program.inputs = std::move(inputs);
  program.operations = std::move(operations);
  for (OperationSpec& operation : program.operations) {
    for (size_t& operand : operation.operands) {
      if (operand != no_operand) operand = renumbered[operand];
    }
  }
  for (ResultSpec& result : program.results) {
    result.value = renumbered[result.value];
    if (result.in_place_of == ResultSpec::nowhere) continue;
    result.in_place_of = static_cast<int>(renumbered[static_cast<size_t>(result.in_place_of)]);
  }
}

/// A bad call of tensors that are there.
void mend_bad_call(Program& program) {
  const size_t tensors = tensor_count(program);
  BadCall& bad = program.bad_call;
  const bool is_overlap = bad.kind == BadCall::Kind::overlap;
  const bool is_of_input = bad.kind == BadCall::Kind::extents;
  if (bad.tensor >= tensors || bad.other >= tensors) bad = {};
  if (is_overlap && bad.tensor < program.inputs.size()) bad = {};
  if (is_of_input && bad.tensor >= program.inputs.size()) bad = {};
  const std::vector<size_t> scales = scale_inputs(program);
  const bool has_scale = std::ranges::find(scales, bad.tensor) != scales.end();
  if (bad.kind == BadCall::Kind::scale && !has_scale) bad = {};
}

void mend_options(Program& program) {
  for (OperationSpec& operation : program.operations) {
    if (operation.op != OpKind::convert) continue;
    const Operation made{.op = operation.op, .attributes = operation.attributes};
    const ElementType from = program.element_of(operation.operands[0]);
    if (!check_convert_options(from, operation.element, convert_options(made))) {
      operation.attributes.clear();
    }
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

/// The strides of the axes that are left where axes have gone or become shorter; nothing where the
/// new shape is another one.
std::optional<Dims> strides_left(const Dims& strides, const Dims& from, const Dims& to) {
  int gone = from.rank() - to.rank();
  Dims left = to;
  int axis = from.rank();
  for (int i = to.rank() - 1; i >= 0; --i) {
    --axis;
    for (; gone > 0 && from[axis] != to[i]; --gone) --axis;
    if (axis < 0 || from[axis] < to[i]) return {};
    left[i] = strides[axis];
  }
  return left;
}

/// Strides keep their gaps, as far as elements stay apart.
void mend_strides(Placement& place, const Dims& from, const Dims& to) {
  if (from == to && place.strides.rank() == to.rank()) return;
  const bool was_dense = place.strides == dense_strides(from) || count_of(from) == 0;
  std::optional<Dims> left;
  if (!was_dense) left = strides_left(place.strides, from, to);
  place.strides = left.value_or(dense_strides(to));
}

}  // namespace

bool mend(Program& program, const Program& before) {
  mend_quantizations(program);
  if (!infer_values(program)) return false;
  for (size_t tensor = 0; tensor < tensor_count(program); ++tensor) {
    mend_strides(placement(program, tensor), shape_of_tensor(before, tensor),
                 shape_of_tensor(program, tensor));
  }
  mend_options(program);
  mend_sharing(program);
  return true;
}

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
  mend_bad_call(program);
  return infer_values(program).ok();
}

void replace_uses(Program& program, size_t value, size_t by) {
  for (OperationSpec& operation : program.operations) {
    std::replace(operation.operands.begin(), operation.operands.end(), value, by);
  }
  for (ResultSpec& result : program.results) {
    if (result.value == value) result.value = by;
  }
}

void cut(Program& program, size_t value, const InputSpec& input) {
  const size_t added = program.inputs.size();
  add_input(program, input);
  replace_uses(program, value + 1, added);
  program.bad_call = {};
}

void write_numbers(Program& program) {
  for (InputSpec& input : program.inputs) {
    for (AxisSpec& axis : input.axes) {
      axis = {AxisSpec::Kind::fixed, program.extent_of(axis), 0};
    }
  }
  for (OperationSpec& operation : program.operations) {
    for (AxisSpec& axis : operation.target) {
      if (axis.kind == AxisSpec::Kind::any) continue;
      axis = {AxisSpec::Kind::fixed, program.extent_of(axis), 0};
    }
  }
}

void resize_constants(Program& program) {
  for (OperationSpec& operation : program.operations) {
    if (operation.op != OpKind::constant) continue;
    const int64_t count = count_of(program.extents_of(operation.target));
    operation.patterns.resize(static_cast<size_t>(count));
  }
}

const Placement& placement(const Program& program, size_t tensor) {
  const size_t inputs = program.inputs.size();
  return tensor < inputs ? program.inputs[tensor].place : program.results[tensor - inputs].place;
}

Placement& placement(Program& program, size_t tensor) {
  const size_t inputs = program.inputs.size();
  return tensor < inputs ? program.inputs[tensor].place : program.results[tensor - inputs].place;
}

const Dims& shape_of_tensor(const Program& program, size_t tensor) {
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
