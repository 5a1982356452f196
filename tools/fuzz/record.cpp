// SPDX-License-Identifier: Apache-2.0
#include "tools/fuzz/record.hpp"

#include <algorithm>

#include "ir/canonicalize.hpp"
#include "jit/emit/nest_emitter.hpp"
#include "tools/fuzz/layout.hpp"
#include "tools/fuzz/planned_lanes.hpp"

namespace castor::fuzz {

namespace {

template <class T>
bool contains(const std::vector<T>& all, const T& wanted) {
  return std::find(all.begin(), all.end(), wanted) != all.end();
}

/// Of the byte in which the first element begins. Pages end and begin at multiples of 64.
int misalignment(const Image& image) {
  const size_t in_image = image.front + first_byte_of(image.element, image.place.offset);
  const size_t address = in_image - (image.place.at_end ? image.bytes : image.hidden);
  return static_cast<int>(address & 63);
}

bool starts_unaligned(const Image& image) {
  return image.place.offset % aligned_elements(image.element) != 0;
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

/// The images of a nest's operands; null for constants.
std::vector<const Image*> operand_images(const Prepared& prepared, const Function& canonical,
                                         const jit::Nest& nest) {
  std::vector<const Image*> images;
  for (ValueId value : nest.inputs) {
    const std::optional<size_t> parameter = parameter_index(canonical, value);
    images.push_back(parameter ? &prepared.inputs[*parameter] : nullptr);
  }
  for (uint32_t output : nest.outputs) images.push_back(&prepared.outputs[output]);
  return images;
}

/// The iteration space in the form that this call runs in.
jit::IterationSpace space_of(const Prepared& prepared, const jit::Nest& nest,
                             std::span<const Image* const> images) {
  const Dims& shape = prepared.outputs[nest.outputs.front()].shape;
  std::vector<Dims> strides;
  std::vector<jit::OperandStorage> storage;
  bool is_unaligned = false;
  for (size_t k = 0; k < images.size(); ++k) {
    strides.push_back(images[k] != nullptr ? images[k]->place.strides : dense_strides(shape));
    storage.push_back(nest.storage(k));
    is_unaligned = is_unaligned || (images[k] != nullptr && starts_unaligned(*images[k]));
  }
  jit::IterationSpace space = jit::iteration_space(shape, strides, storage);
  if (is_unaligned) space.form = jit::bitwise_form(space.form, storage);
  return space;
}

AccessCell access_of(size_t operand, ElementType element, const Image* image,
                     const jit::IterationSpace& space) {
  const bool is_strided = space.extents[0] > 1 && space.strides[operand][0] != 1;
  const bool is_unaligned = image != nullptr && starts_unaligned(*image);
  const Walking walking = is_strided     ? Walking::strided
                          : is_unaligned ? Walking::unaligned_start
                                         : Walking::contiguous;
  return {operand, walking, bits_of(element) / 8};
}

CallCell refused_cell(BadCall::Kind kind) {
  switch (kind) {
    case BadCall::Kind::none:
    case BadCall::Kind::shape: break;
    case BadCall::Kind::bytes: return CallCell::refused_bytes;
    case BadCall::Kind::overlap: return CallCell::refused_overlap;
    case BadCall::Kind::null: return CallCell::refused_null;
  }
  return CallCell::refused_shape;
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
    find_layout({from, false});
    find_layout({to, true});
  }
}

void ProgramRecord::find_layout(const LayoutCell& cell) {
  if (static_cast<size_t>(cell.layout) < value_type_count) return;
  operations_.push_back({CellGroup::layouts, number_of(cell)});
}

void ProgramRecord::mark(Coverage& coverage, size_t tier, Tier name, const CacheUse& use) const {
  mark_calls(coverage, tier, use);
  for (const Cell& cell : operations_) coverage.hit(cell, tier);
  jit::Target target;
  target.tier = name;
  for (const jit::Nest& nest : jit::plan_nests(*canonical_, target)) {
    const Image& output = prepared_.outputs[nest.outputs.front()];
    if (count_of(output.shape) > 0) mark_nest(coverage, tier, nest, name);
  }
}

void ProgramRecord::mark_nest(Coverage& coverage, size_t tier, const jit::Nest& nest,
                              Tier name) const {
  jit::Target target;
  target.tier = name;
  const std::vector<const Image*> images = operand_images(prepared_, *canonical_, nest);
  const jit::IterationSpace space = space_of(prepared_, nest, images);
  coverage.hit(CellGroup::loops, static_cast<size_t>(space.form.rank) - 1, tier);
  const int lanes = jit::plan_chunks(nest, space.form, target).lanes;
  const auto remainder = static_cast<int>(space.extents[0] % lanes);
  if (const auto tail = find_tail({lanes, remainder})) coverage.hit(CellGroup::tails, *tail, tier);
  for (size_t number : planned_lanes(nest, space.form, target)) {
    coverage.hit(CellGroup::lanes, number, tier);
  }
  for (size_t k = 0; k < nest.operands(); ++k) {
    const AccessCell cell = access_of(k, nest.element(k), images[k], space);
    coverage.hit(CellGroup::access, number_of(cell), tier);
    if (images[k] != nullptr) mark_operand(coverage, tier, *images[k], k >= nest.inputs.size());
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
    const bool is_empty = count_of(prepared_.outputs[i].shape) == 0;
    if (is_empty) coverage.hit(CallCell::no_elements, tier);
    if (!is_empty && prepared_.is_in_place(i)) coverage.hit(CallCell::in_place, tier);
    if (!is_empty && prepared_.is_interleaved_behind(i)) {
      coverage.hit(CallCell::interleaved_outputs, tier);
    }
  }
  if (can_spoil(prepared_)) coverage.hit(refused_cell(prepared_.program.bad_call.kind), tier);
  if (use.found_function) coverage.hit(CallCell::repeated_function, tier);
  if (use.found_code) coverage.hit(CallCell::repeated_code, tier);
  if (use.emitted_code) coverage.hit(CallCell::new_code, tier);
  if (prepared_.program.streams) coverage.hit(CallCell::streaming, tier);
}

}  // namespace castor::fuzz
