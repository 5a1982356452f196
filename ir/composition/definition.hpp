// SPDX-License-Identifier: Apache-2.0
// Definitions of compositions: ops that are functions of other ops. ir/README.md, Compositions, has
// them in words.
#pragma once

#include <span>
#include <vector>

#include "ir/builder.hpp"

namespace castor {

/// One operation that is a composition, while its definition is appended to a builder.
struct CompositionCall {
  FunctionBuilder& builder;
  const Operation& operation;
  std::span<const ValueId> operands;  ///< values of the builder; no_value: absent
  std::span<const TensorType> types;  ///< the operands', whatever becomes of the builder
  ElementType result;                 ///< the element type that is written, if the row needs one

  bool has(size_t operand) const { return operands[operand] != no_value; }
  const TensorType& type_of(size_t operand) const { return types[operand]; }
  ElementType element_of(size_t operand) const { return type_of(operand).element; }
  int rank_of(size_t operand) const { return static_cast<int>(type_of(operand).shape.size()); }

  // Attributes that the verifier has seen, or their defaults.
  int64_t integer(std::string_view name, int64_t otherwise) const;
  bool boolean(std::string_view name, bool otherwise) const;
  /// Empty where it is not written.
  std::string_view identifier(std::string_view name) const;

  /// A mistake of the operation.
  Error mistake(const std::string& detail) const;
};

/// Appends what the operation is. What the builder refuses is kept there, and the values are
/// no_value; what is wrong besides is the error.
using Definition = Result<std::vector<ValueId>> (*)(const CompositionCall& call);

Result<std::vector<ValueId>> define_quantize_linear(const CompositionCall& call);
Result<std::vector<ValueId>> define_dequantize_linear(const CompositionCall& call);
Result<std::vector<ValueId>> define_dynamic_quantize_linear(const CompositionCall& call);
Result<std::vector<ValueId>> define_dynamic_quantize_symmetric(const CompositionCall& call);
Result<std::vector<ValueId>> define_qlinear_conv(const CompositionCall& call);
Result<std::vector<ValueId>> define_qlinear_matmul(const CompositionCall& call);
Result<std::vector<ValueId>> define_dequantize_mx(const CompositionCall& call);
Result<std::vector<ValueId>> define_quantize_mx(const CompositionCall& call);
Result<std::vector<ValueId>> define_nvfp4_tensor_scale(const CompositionCall& call);

/// Appends the definition of the operation; the error is its own or the builder's, named after the
/// op. Operands are values of the builder, as many as the op's row says.
Result<std::vector<ValueId>> append_definition(FunctionBuilder& builder, const Operation& operation,
                                               std::span<const ValueId> operands,
                                               ElementType result);

/// The types of the results that the definition gives for operands of these types (null: absent).
Result<std::vector<TensorType>> composition_types(const Operation& operation,
                                                  std::span<const TensorType* const> operands,
                                                  const WrittenType& written);

}  // namespace castor
