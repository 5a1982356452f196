// SPDX-License-Identifier: Apache-2.0
#include "tools/fuzz/record.hpp"

#include <algorithm>

#include "ir/canonicalize.hpp"
#include "jit/emit/nest_emitter.hpp"
#include "tools/fuzz/layout.hpp"

namespace castor::fuzz {

namespace {

template <class T>
bool contains(const std::vector<T>& all, const T& wanted) {
  return std::find(all.begin(), all.end(), wanted) != all.end();
}

int misalignment(const Image& image) {
  const auto in_view = image.place.offset * image.element_bytes();
  // Pages end and begin at multiples of 64.
  const auto to_end = static_cast<int64_t>(image.before.size() - image.front);
  const int64_t address =
      image.place.at_end ? in_view - to_end : static_cast<int64_t>(image.front) + in_view;
  return static_cast<int>(address & 63);
}

/// Index of the parameter, or nothing for a constant.
std::optional<size_t> parameter_index(const Function& function, ValueId value) {
  const auto at = std::find(function.parameters.begin(), function.parameters.end(), value);
  if (at == function.parameters.end()) return {};
  return static_cast<size_t>(at - function.parameters.begin());
}

/// By ValueId: whether the value has elements. `function` has the program's parameters.
std::vector<bool> values_with_elements(const Prepared& prepared, const Function& function) {
  std::vector<bool> has_elements(function.values.size(), true);
  for (size_t i = 0; i < function.parameters.size(); ++i) {
    has_elements[function.parameters[i]] = count_of(prepared.inputs[i].shape) > 0;
  }
  for (const Operation& operation : function.operations) {
    for (ValueId operand : operation.operands) {
      if (!has_elements[operand]) has_elements[operation.results[0]] = false;
    }
  }
  return has_elements;
}

jit::IterationSpace space_of(const Prepared& prepared, const Function& canonical,
                             const jit::Nest& nest) {
  const Dims& shape = prepared.image_of(nest.outputs.front()).shape;
  std::vector<Dims> strides;
  for (ValueId value : nest.inputs) {
    const std::optional<size_t> parameter = parameter_index(canonical, value);
    strides.push_back(parameter ? prepared.inputs[*parameter].place.strides : dense_strides(shape));
  }
  for (uint32_t output : nest.outputs) {
    strides.push_back(prepared.image_of(output).place.strides);
  }
  return jit::iteration_space(shape, strides);
}

}  // namespace

ProgramRecord::ProgramRecord(const Prepared& prepared)
    : prepared_(prepared), canonical_(canonicalize(prepared.function)) {
  find_operations(*canonical_, false);
  if (canonical_ != prepared.function) find_operations(*prepared.function, true);
}

void ProgramRecord::find_operations(const Function& function, bool only_alone) {
  const std::vector<bool> has_elements = values_with_elements(prepared_, function);
  for (const Operation& operation : function.operations) {
    const ValueId result = operation.results[0];
    if (!has_elements[result]) continue;
    const bool is_alone = contains(function.results, result) && !operation.operands.empty() &&
                          contains(function.parameters, operation.operands[0]);
    if (only_alone && !is_alone) continue;
    operations_.push_back({CellGroup::operations, static_cast<size_t>(operation.op)});
    if (operation.op != OpKind::convert) continue;
    const ElementType from = function.type_of(operation.operands[0]).element;
    const ElementType to = function.type_of(result).element;
    const auto number =
        find_conversion(from, to, canonical_options(from, to, convert_options(operation)));
    if (number) operations_.push_back({CellGroup::conversions, *number});
  }
}

void ProgramRecord::mark(Coverage& coverage, size_t tier, Tier name, const CacheUse& use) const {
  mark_calls(coverage, tier, use);
  for (const Cell& cell : operations_) coverage.hit(cell, tier);
  jit::Target target;
  target.tier = name;
  for (const jit::Nest& nest : jit::plan_nests(*canonical_, target)) {
    const Image& output = prepared_.image_of(nest.outputs.front());
    if (count_of(output.shape) > 0) mark_nest(coverage, tier, nest, name);
  }
}

void ProgramRecord::mark_nest(Coverage& coverage, size_t tier, const jit::Nest& nest,
                              Tier name) const {
  jit::Target target;
  target.tier = name;
  const jit::IterationSpace space = space_of(prepared_, *canonical_, nest);
  coverage.hit(CellGroup::loops, static_cast<size_t>(space.form.rank) - 1, tier);
  const int lanes = jit::plan_chunks(nest, space.form, target).lanes;
  const auto remainder = static_cast<int>(space.extents[0] % lanes);
  coverage.hit(CellGroup::tails, number_of(TailCell{lanes, remainder}), tier);
  for (size_t k = 0; k < nest.operands(); ++k) {
    const AccessCell cell{k, space.form.access[k], bits_of(nest.element(k)) / 8};
    coverage.hit(CellGroup::access, number_of(cell), tier);
  }
  for (ValueId value : nest.inputs) {
    const std::optional<size_t> input = parameter_index(*canonical_, value);
    if (input) mark_operand(coverage, tier, prepared_.inputs[*input], false);
  }
  for (uint32_t output : nest.outputs) {
    mark_operand(coverage, tier, prepared_.image_of(output), true);
  }
}

void ProgramRecord::mark_operand(Coverage& coverage, size_t tier, const Image& image,
                                 bool is_output) const {
  coverage.hit(CellGroup::ranks, static_cast<size_t>(image.shape.rank()), tier);
  const AlignmentCell cell{is_output, misalignment(image)};
  coverage.hit(CellGroup::alignments, number_of(cell), tier);
}

void ProgramRecord::mark_calls(Coverage& coverage, size_t tier, const CacheUse& use) const {
  for (size_t i = 0; i < prepared_.outputs.size(); ++i) {
    const bool is_empty = count_of(prepared_.image_of(i).shape) == 0;
    if (is_empty) coverage.hit(CallCell::no_elements, tier);
    if (!is_empty && prepared_.is_in_place(i)) coverage.hit(CallCell::in_place, tier);
  }
  if (use.found_function) coverage.hit(CallCell::repeated_function, tier);
  if (use.found_code) coverage.hit(CallCell::repeated_code, tier);
  if (use.emitted_code) coverage.hit(CallCell::new_code, tier);
  if (prepared_.program.streams) coverage.hit(CallCell::streaming, tier);
}

}  // namespace castor::fuzz
