// SPDX-License-Identifier: Apache-2.0
#include "ir/rewrite/rebuild.hpp"

namespace castor::detail {

namespace {

/// What the text form writes after the colon.
WrittenType written_type(const Function& function, const Operation& operation) {
  const TensorType& type = function.type_of(operation.results[0]);
  switch (info(operation.op).suffix) {
    case TypeSuffix::optional_type: break;
    case TypeSuffix::element:
      return {.element = type.element, .shape = {}, .quantization = type.quantization};
    case TypeSuffix::shape: return {.element = {}, .shape = operation.target};
    case TypeSuffix::tensor:
      return {.element = type.element, .shape = type.shape, .quantization = type.quantization};
  }
  return {};
}

}  // namespace

CopiedIds append_parameters(FunctionBuilder& builder, const Function& function) {
  CopiedIds ids(function.values.size(), no_value);
  for (ValueId id : function.parameters) {
    ids[id] = builder.parameter(function.values[id].name, function.type_of(id));
  }
  return ids;
}

void append_copy(FunctionBuilder& builder, const Function& function, const Operation& operation,
                 CopiedIds& ids) {
  Operation copy = operation;
  for (ValueId& id : copy.operands) id = id == no_value ? id : ids[id];
  std::vector<std::string> names;
  for (ValueId id : operation.results) names.push_back(function.values[id].name);
  ValueId next = builder.append(std::move(copy), written_type(function, operation), names);
  for (ValueId id : operation.results) ids[id] = next++;  // appended one after another
}

Result<FunctionPtr> finish_copy(FunctionBuilder& builder, const Function& function,
                                const CopiedIds& ids) {
  for (size_t i = 0; i < function.results.size(); ++i) {
    builder.result(ids[function.results[i]], function.result_types[i]);
  }
  for (const Attribute& attribute : function.attributes) builder.attribute(attribute);
  return builder.finish();
}

}  // namespace castor::detail
