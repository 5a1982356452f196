// SPDX-License-Identifier: Apache-2.0
#include "tools/fuzz/program.hpp"

#include <algorithm>
#include <span>

#include "ir/builder.hpp"
#include "ir/verify/infer.hpp"
#include "ir/verify/requantize.hpp"
#include "tools/testing/samples.hpp"

namespace castor::fuzz {

namespace {

constexpr std::array<const char*, 3> names = {"a", "b", "c"};

Shape written_shape(const std::vector<AxisSpec>& axes) {
  Shape shape;
  for (const AxisSpec& axis : axes) {
    switch (axis.kind) {
      case AxisSpec::Kind::fixed: shape.emplace_back(axis.extent); break;
      case AxisSpec::Kind::any: shape.push_back(Dim::any()); break;
      case AxisSpec::Kind::named: shape.push_back(Dim::named(names[axis.name])); break;
    }
  }
  return shape;
}

/// What the operation names as its result's type, with that target.
WrittenType written_type(const OperationSpec& operation, Shape target) {
  WrittenType written;
  const TypeSuffix suffix = info(operation.op).suffix;
  if (suffix == TypeSuffix::element || suffix == TypeSuffix::tensor) {
    written.element = operation.element;
    written.quantization = operation.quantization;
  }
  if (suffix == TypeSuffix::shape || suffix == TypeSuffix::tensor) written.shape = target;
  return written;
}

TensorType type_of(const InputSpec& input) {
  return {input.element, written_shape(input.axes), input.quantization};
}

Operation without_values(const OperationSpec& operation) {
  return {.op = operation.op, .attributes = operation.attributes};
}

/// The types of the results for operands of these types.
Result<std::vector<TensorType>> infer(const OperationSpec& operation,
                                      std::span<const TensorType> operands, Shape target) {
  std::vector<const TensorType*> types;
  for (size_t i = 0; i < operands.size(); ++i) {
    types.push_back(operation.operands[i] == no_operand ? nullptr : &operands[i]);
  }
  types.resize(static_cast<size_t>(info(operation.op).operands), nullptr);  // left out at the end
  return infer_types(without_values(operation), types, written_type(operation, std::move(target)));
}

Dims extents_of_fixed(const Shape& shape) {
  Dims extents;
  for (const Dim& dim : shape) extents.push_back(dim.extent);
  return extents;
}

/// The target's extents; `?` of a reshape stays open.
Shape bound_target(const Program& program, const OperationSpec& operation) {
  Shape target;
  for (const AxisSpec& axis : operation.target) {
    const bool is_open = axis.kind == AxisSpec::Kind::any;
    target.push_back(is_open ? Dim::any() : Dim(program.extent_of(axis)));
  }
  return target;
}

/// What the operation's results are: once with the extents of the types, once with those bound.
Result<std::vector<ValueInfo>> infer_operation(const Program& program,
                                               const OperationSpec& operation) {
  std::vector<TensorType> written;
  std::vector<TensorType> bound;
  const ValueInfo absent{};
  for (size_t operand : operation.operands) {
    const ValueInfo& value = operand == no_operand ? absent : program.values[operand];
    written.push_back(value.type);
    bound.push_back({value.type.element, to_shape(value.shape), value.type.quantization});
  }
  const auto types = infer(operation, written, written_shape(operation.target));
  if (!types) return types.error();
  const auto shapes = infer(operation, bound, bound_target(program, operation));
  if (!shapes) return shapes.error();
  std::vector<ValueInfo> values;
  for (size_t i = 0; i < types->size(); ++i) {
    values.push_back({(*types)[i], extents_of_fixed((*shapes)[i].shape)});
  }
  values.resize(Program::max_results);
  return values;
}

std::optional<TensorType> declared_type(const Program& program, const ResultSpec& result) {
  if (!result.declares_unknowns) return {};
  TensorType type = program.values[result.value].type;
  const Shape own = std::move(type.shape);
  type.shape.assign(own.size(), Dim::any());
  const bool has_slices = type.quantization && type.quantization->is_per_axis();
  if (has_slices) {  // parameters that are listed want a number; a changed axis may be none
    const auto axis = static_cast<size_t>(type.quantization->axis);
    if (axis < own.size()) type.shape[axis] = own[axis];
  }
  return type;
}

/// Adds the operation; the ids of its results are consecutive.
ValueId append(FunctionBuilder& builder, const OperationSpec& operation,
               const std::vector<ValueId>& ids) {
  const Shape target = written_shape(operation.target);
  if (operation.op == OpKind::constant) {
    return builder.constant({operation.element, target, operation.quantization},
                            samples::pack(operation.element, operation.patterns));
  }
  Operation made = without_values(operation);
  for (size_t operand : operation.operands) {
    made.operands.push_back(operand == no_operand ? no_value : ids[operand]);
  }
  return builder.append(std::move(made), written_type(operation, target));
}

}  // namespace

bool Program::is_value(size_t value) const {
  if (value < first_operation()) return true;
  const size_t result = (value - first_operation()) % max_results;
  return static_cast<int>(result) < info(operations[operation_of(value)].op).results;
}

Dims Program::extents_of(const std::vector<AxisSpec>& axes) const {
  Dims shape;
  for (const AxisSpec& axis : axes) shape.push_back(extent_of(axis));
  return shape;
}

std::optional<size_t> Program::interleaved_behind(size_t result) const {
  for (size_t i = result + 1; i < results.size(); ++i) {
    if (results[i].interleaved_with == static_cast<int>(result)) return i;
  }
  return {};
}

Placement Program::placement_of(size_t result) const {
  const ResultSpec& spec = results[result];
  if (spec.in_place_of != ResultSpec::nowhere) {
    return inputs[static_cast<size_t>(spec.in_place_of)].place;
  }
  const bool is_behind = spec.interleaved_with != ResultSpec::nowhere;
  if (!is_behind && !interleaved_behind(result)) return spec.place;
  Placement place =
      is_behind ? results[static_cast<size_t>(spec.interleaved_with)].place : spec.place;
  const int64_t whole = aligned_elements(element_of(spec.value));
  place.strides = dense_strides(shape_of(spec.value));
  for (int64_t& stride : place.strides) stride *= 2 * whole;
  if (is_behind) place.offset += whole;
  return place;
}

void add_input(Program& program, InputSpec input) {
  const size_t added = program.inputs.size();
  for (OperationSpec& operation : program.operations) {
    for (size_t& operand : operation.operands) operand += operand >= added && operand != no_operand;
  }
  for (ResultSpec& result : program.results) result.value += result.value >= added;
  program.values.insert(program.values.begin() + static_cast<ptrdiff_t>(added),
                        {type_of(input), program.extents_of(input.axes)});
  program.inputs.push_back(std::move(input));
}

std::vector<size_t> scale_inputs(const Program& program) {
  std::vector<size_t> scales;
  for (const OperationSpec& operation : program.operations) {
    if (operation.op != OpKind::requantize) continue;
    for (size_t operand : {source_parameter(0), destination_parameter(0)}) {
      if (operand >= operation.operands.size()) continue;
      const size_t value = operation.operands[operand];
      const bool is_new = std::ranges::find(scales, value) == scales.end();
      if (value < program.inputs.size() && is_new) scales.push_back(value);
    }
  }
  return scales;
}

bool add_operation(Program& program, OperationSpec operation, int64_t max_elements) {
  Result<std::vector<ValueInfo>> values = infer_operation(program, operation);
  if (!values) return false;
  for (const ValueInfo& value : *values) {
    if (element_count(value.shape).value_or(INT64_MAX) > max_elements) return false;
  }
  program.values.insert(program.values.end(), values->begin(), values->end());
  program.operations.push_back(std::move(operation));
  return true;
}

Status infer_values(Program& program) {
  program.values.clear();
  for (const InputSpec& input : program.inputs) {
    program.values.push_back({type_of(input), program.extents_of(input.axes)});
  }
  for (const OperationSpec& operation : program.operations) {
    Result<std::vector<ValueInfo>> values = infer_operation(program, operation);
    if (!values) return values.error();
    program.values.insert(program.values.end(), values->begin(), values->end());
  }
  return {};
}

Result<FunctionPtr> build_function(const Program& program) {
  FunctionBuilder builder("f");
  std::vector<ValueId> ids;
  for (const InputSpec& input : program.inputs) {
    ids.push_back(builder.parameter("", type_of(input)));
  }
  for (const OperationSpec& operation : program.operations) {
    const ValueId first = append(builder, operation, ids);
    const auto count = static_cast<size_t>(info(operation.op).results);
    for (size_t i = 0; i < Program::max_results; ++i) {
      ids.push_back(i < count ? first + static_cast<ValueId>(i) : no_value);
    }
  }
  for (const ResultSpec& result : program.results) {
    builder.result(ids[result.value], declared_type(program, result));
  }
  if (program.excess_precision) {
    builder.attribute({"excess_precision", {Identifier{"allow"}}});
  }
  return builder.finish();
}

}  // namespace castor::fuzz
