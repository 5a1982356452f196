// SPDX-License-Identifier: Apache-2.0
// The table from compositions to their definitions.
#include "ir/composition/definition.hpp"

#include <fmt/format.h>

namespace castor {

namespace {

struct Row {
  OpKind op;
  Definition definition;
};

constexpr Row table[] = {
    {OpKind::quantize_linear, define_quantize_linear},
    {OpKind::dequantize_linear, define_dequantize_linear},
    {OpKind::dynamic_quantize_linear, define_dynamic_quantize_linear},
    {OpKind::dynamic_quantize_symmetric, define_dynamic_quantize_symmetric},
    {OpKind::qlinear_conv, define_qlinear_conv},
    {OpKind::qlinear_matmul, define_qlinear_matmul},
    {OpKind::dequantize_mx, define_dequantize_mx},
    {OpKind::quantize_mx, define_quantize_mx},
    {OpKind::nvfp4_tensor_scale, define_nvfp4_tensor_scale},
};

Definition definition_of(OpKind op) {
  for (const Row& row : table) {
    if (row.op == op) return row.definition;
  }
  return nullptr;
}

template <class Kind, class Otherwise>
Otherwise value_named(const Operation& operation, std::string_view name, Otherwise otherwise) {
  const AttributeValue* value = find(operation.attributes, name);
  const auto* held = value ? std::get_if<Kind>(&value->value) : nullptr;
  return held ? *held : otherwise;
}

}  // namespace

int64_t CompositionCall::integer(std::string_view name, int64_t otherwise) const {
  return value_named<int64_t>(operation, name, otherwise);
}

bool CompositionCall::boolean(std::string_view name, bool otherwise) const {
  return value_named<bool>(operation, name, otherwise);
}

std::string_view CompositionCall::identifier(std::string_view name) const {
  const AttributeValue* value = find(operation.attributes, name);
  const auto* held = value ? std::get_if<Identifier>(&value->value) : nullptr;
  return held ? std::string_view(held->name) : std::string_view();
}

Error CompositionCall::mistake(const std::string& detail) const {
  return {ErrorCode::invalid_function, fmt::format("{}: {}", name_of(operation.op), detail)};
}

Result<std::vector<ValueId>> append_definition(FunctionBuilder& builder, const Operation& operation,
                                               std::span<const ValueId> operands,
                                               ElementType result) {
  std::vector<TensorType> types(operands.size());
  for (size_t i = 0; i < operands.size(); ++i) {
    const TensorType* type = builder.type_of(operands[i]);
    if (type != nullptr) types[i] = *type;
  }
  const CompositionCall call = {builder, operation, operands, types, result};
  auto results = definition_of(operation.op)(call);
  if (results.ok() && builder.error() != nullptr) {
    Error error = *builder.error();
    error.message = fmt::format("{}: {}", name_of(operation.op), error.message);
    return error;
  }
  return results;
}

Result<std::vector<TensorType>> composition_types(const Operation& operation,
                                                  std::span<const TensorType* const> operands,
                                                  const WrittenType& written) {
  const bool is_needed = info(operation.op).suffix == TypeSuffix::element;
  if (is_needed && (!written.element || written.quantization)) {
    return Error{ErrorCode::invalid_function,
                 fmt::format("{}: the result's element type must be written, such as `: u8`",
                             name_of(operation.op))};
  }
  FunctionBuilder builder("definition");
  std::vector<ValueId> ids;
  for (const TensorType* type : operands) {
    ids.push_back(type ? builder.parameter({}, *type) : no_value);
  }
  if (builder.error() != nullptr) return *builder.error();
  const auto results =
      append_definition(builder, operation, ids, written.element.value_or(ElementType{}));
  if (!results) return results.error();
  std::vector<TensorType> types;
  for (ValueId id : *results) types.push_back(*builder.type_of(id));
  return types;
}

}  // namespace castor
