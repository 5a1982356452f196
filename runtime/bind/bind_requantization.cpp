// SPDX-License-Identifier: Apache-2.0
// Binding of requantizations.
#include "ir/verify/requantize.hpp"
#include "jit/plan/access_pattern.hpp"
#include "runtime/bind/nest_binder.hpp"

namespace castor::detail {

/// All tensors may have any strides.
Status NestBinder::bind_requantization_nest(const jit::Nest& nest) {
  const Function& function = *compiled_.canonical;
  const Operation& operation = function.operations[*nest.requantization];
  const Dims& extents = origins_.extents_of(nest.space);
  auto base = new_step<StepBase>();
  const ValueId x_root = origins_.root_of(operation.operands[0]);
  const TensorOrigin x = origins_.of_root(x_root, nest.element(0));
  add_operand(base, x.origin, nest.element(0), x_root == operation.operands[0]);
  const BoundSide from = bind_side(base, operation, operation.operands[0], source_parameter(0));
  const BoundSide to = bind_side(base, operation, operation.results[0], destination_parameter(0));
  const size_t last = nest.inputs.size();
  const TensorOrigin y = origins_.of_output(nest.outputs[0], nest.element(last), extents);
  add_operand(base, y.origin, nest.element(last), true);
  const jit::RequantizedTensors tensors = {
      extents, *jit::reshaped_strides(x.extents, x.strides, extents), y.strides,
      jit::requantize_axis(from.quantization, to.quantization)};
  const auto form = jit::requantize_form(function, operation);
  if (!form) return bind_f32_copy(tensors, std::move(base));
  Result<Step> step =
      bind_requantization(*form, from, to, tensors, compiled_, origins_.scratch(), std::move(base));
  if (!step.ok()) return step.error();
  bound_.steps.push_back(std::move(step).value());
  return {};
}

/// The quantization of a value, with operands for the parameters that are given at run time:
/// parameters of the function and constants, where they are stored.
BoundSide NestBinder::bind_side(StepBase& result, const Operation& operation, ValueId value,
                                size_t first_operand) {
  BoundSide side;
  side.quantization = compiled_.canonical->type_of(value).quantization;
  for (size_t r = 0; r < quantization_rules.size(); ++r) {
    const ValueId parameter = operation.operands[first_operand + r];
    if (parameter == no_value) continue;
    const ElementType element = quantization_rules[r].element;
    const TensorOrigin origin = origins_.of_root(parameter, element);
    side.operands[r] = static_cast<int>(result.operands.size());
    if (!origin.strides.empty()) side.strides[r] = origin.strides[0];
    add_operand(result, origin.origin, element, false);
  }
  return side;
}

Status NestBinder::bind_f32_copy(const jit::RequantizedTensors& tensors, StepBase base) {
  const jit::Nest nest =
      jit::copy_nest(ElementType::f32, 0, tensors.extents.rank(), compiled_.target);
  ElementwiseStep result;
  static_cast<StepBase&>(result) = std::move(base);
  result.program = StepProgram::copy;
  const std::vector<Dims> strides = {tensors.source_strides, tensors.destination_strides};
  return bind_codes(nest, nullptr, tensors.extents, strides, std::move(result));
}

}  // namespace castor::detail
