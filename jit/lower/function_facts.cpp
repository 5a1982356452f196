// SPDX-License-Identifier: Apache-2.0
#include "jit/lower/function_facts.hpp"

#include "ir/types/elements.hpp"
#include "ir/types/excess_precision.hpp"

namespace castor::jit {

FunctionFacts::FunctionFacts(const Function& f)
    : function(f),
      defining(f.values.size(), nullptr),
      roots(reshape_roots(f)),
      owners(accumulator_owners(f)),
      carried(carried_types(f)),
      excess_precision(allows_excess_precision(f)),
      in_memory(f.values.size(), true),
      left_in(f.values.size(), NestOutput::scratch),
      rounded(f),
      significands(f, carried) {
  for (const Operation& operation : f.operations) {
    const bool computes = info(operation.op).family != OpFamily::source &&
                          !stands_alone(operation.op) && operation.op != OpKind::reshape;
    for (ValueId result : operation.results) {
      defining[result] = &operation;
      in_memory[result] = !computes;
    }
  }
}

ElementType FunctionFacts::stored_element(ValueId value) const {
  return in_memory[value] ? carried[value] : function.type_of(value).element;
}

const Operation* FunctionFacts::computed_by(ValueId value, OpKind op) const {
  const Operation* operation = defining[value];
  const bool is_here = operation != nullptr && operation->op == op && !in_memory[value];
  return is_here ? operation : nullptr;
}

std::optional<uint64_t> FunctionFacts::immediate(ValueId value) const {
  const Operation* operation = defining[value];
  if (operation == nullptr || operation->op != OpKind::constant) return std::nullopt;
  for (const Dim& dim : function.type_of(value).shape) {
    if (dim.extent != 1) return std::nullopt;
  }
  return read_element(operation->data->bytes.data(), function.type_of(value).element, 0);
}

Signs FunctionFacts::signs(ValueId value) const {
  const Operation* operation = defining[roots[value]];
  return operation == nullptr ? Signs::any : signs_of(*operation);
}

double FunctionFacts::magnitude(ValueId value) const {
  if (!magnitudes_) magnitudes_.emplace(function);
  return magnitudes_->bound(value);
}

}  // namespace castor::jit
