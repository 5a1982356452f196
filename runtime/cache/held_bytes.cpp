// SPDX-License-Identifier: Apache-2.0
#include "runtime/cache/held_bytes.hpp"

#include "ir/types/quantization.hpp"
#include "ir/verify/limits.hpp"
#include "jit/plan/nest.hpp"
#include "runtime/compiled.hpp"

namespace castor {

void HeldBytes::add(const Shape& shape) {
  add_block<Dim>(shape);
  for (const Dim& dim : shape) add_block(dim.name);
}

void HeldBytes::add(const TensorType& type) {
  add(type.shape);
  if (!is_new(type.quantization.get())) return;
  bytes_ += shared_block_bytes<Quantization>();
  for (const QuantizationRule& rule : quantization_rules) {
    const QuantizationParameter& parameter = (*type.quantization).*rule.parameter;
    if (parameter) add_block(*parameter);
  }
}

void HeldBytes::add(const AttributeValue& value) {
  if (const auto* word = std::get_if<Identifier>(&value.value)) add_block(word->name);
  if (const auto* text = std::get_if<std::string>(&value.value)) add_block(*text);
  if (const auto* list = std::get_if<AttributeValue::List>(&value.value)) {
    add_block(*list);
    for (const AttributeValue& entry : *list) add(entry);
  }
}

void HeldBytes::add(const Attributes& attributes) {
  add_block(attributes);
  for (const Attribute& attribute : attributes) {
    add_block(attribute.name);
    add(attribute.value);
  }
}

void HeldBytes::add(const Operation& operation) {
  add_block(operation.operands);
  add_block(operation.results);
  add(operation.attributes);
  if (operation.target) add(*operation.target);
  if (!is_new(operation.data.get())) return;
  bytes_ += shared_block_bytes<ConstantData>();
  add_block(operation.data->bytes);
  add_block(operation.data->binding);
}

void HeldBytes::add(const Function& function) {
  if (!is_new(&function)) return;
  bytes_ += shared_block_bytes<Function>();
  add_block(function.name);
  add_block(function.values);
  for (const Value& value : function.values) {
    add_block(value.name);
    add(value.type);
  }
  add_block(function.parameters);
  add_block(function.operations);
  for (const Operation& operation : function.operations) add(operation);
  add_block(function.results);
  add_block(function.result_types);
  for (const TensorType& type : function.result_types) add(type);
  add(function.attributes);
}

void HeldBytes::add(const jit::Nest& nest) {
  add_block(nest.inputs);
  add_block(nest.outputs);
  const jit::LaneProgram& program = nest.program;
  add_block(program.code);
  add_block(program.sources);
  add_block(program.sinks);
  add_block(program.tables);
  add_block(program.i32_tables);
  add_block(program.threshold_tables);
  add_block(program.class_tables);
}

void HeldBytes::add(const detail::KernelState& kernel) {
  const detail::Compiled& compiled = *kernel.compiled;
  bytes_ += line_block_bytes(sizeof(detail::KernelState) + owner_count_bytes);
  bytes_ += shared_block_bytes<detail::Compiled>();
  add(*kernel.function);
  add(*compiled.canonical);
  add_block(compiled.nests);
  for (const jit::Nest& nest : compiled.nests) add(nest);
  add_block(compiled.likely);
  for (const detail::LikelyCode& likely : compiled.likely) {
    add_block(likely.form.access);
    if (is_new(likely.code.get())) bytes_ += likely.code->held_bytes();
  }
  add_block(compiled.interpreted_because);
  add_block(compiled.lower_tier_because);
}

FunctionPtr without_long_names(const FunctionPtr& function) {
  constexpr size_t too_few_to_copy = 4096;
  constexpr size_t longest_function_name = 64;
  const size_t name_bytes = counted_name_bytes(*function);
  if (name_bytes <= too_few_to_copy) return function;
  HeldBytes all;
  all.add(*function);
  if (name_bytes <= all.bytes() / 2) return function;
  Function copy = *function;
  // Assigned to, a string would keep its memory.
  std::string(copy.name, 0, longest_function_name).swap(copy.name);
  for (size_t i = 0; i < copy.values.size(); ++i) std::to_string(i).swap(copy.values[i].name);
  return std::make_shared<const Function>(std::move(copy));
}

}  // namespace castor
