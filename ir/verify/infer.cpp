// SPDX-License-Identifier: Apache-2.0
// Type inference: the rules of the op table.
#include "ir/verify/infer.hpp"

#include <fmt/format.h>

#include "ir/composition/definition.hpp"
#include "ir/shape/broadcast.hpp"
#include "ir/shape/convolution.hpp"
#include "ir/shape/look_up.hpp"
#include "ir/shape/matmul.hpp"
#include "ir/shape/pooling.hpp"
#include "ir/shape/reduction.hpp"
#include "ir/shape/reshape.hpp"
#include "ir/types/promote.hpp"
#include "ir/verify/requantize.hpp"

namespace castor {

namespace {

using Operands = std::span<const TensorType* const>;

Error mistake(OpKind op, const std::string& detail) {
  return {ErrorCode::invalid_function, fmt::format("{}: {}", name_of(op), detail)};
}

/// `select` takes a condition before its values.
size_t first_value(const OpInfo& row) { return row.infer == InferRule::selection ? 1 : 0; }

/// "2", or "2 to 4" where some are optional.
std::string operand_count_text(const OpInfo& row) {
  const int min = row.operands - row.optional_operands;
  return row.optional_operands == 0 ? fmt::format("{}", min)
                                    : fmt::format("{} to {}", min, row.operands);
}

Status check_count(const OpInfo& row, Operands operands) {
  if (operands.size() != static_cast<size_t>(row.operands)) {
    return mistake(row.op, fmt::format("found {} operands, expected {}", operands.size(),
                                       operand_count_text(row)));
  }
  const auto required = static_cast<size_t>(row.operands - row.optional_operands);
  for (size_t i = 0; i < required; ++i) {
    if (!operands[i]) {
      return mistake(row.op, fmt::format("operand {} is none, but it is not optional", i));
    }
  }
  return {};
}

Status check_class(OpKind op, size_t index, ElementType found, OperandClass expected) {
  if (admits(expected, found)) return {};
  return mistake(
      op, fmt::format("operand {} is {}, expected {}", index, name_of(found), name_of(expected)));
}

/// What quantized integers stand for is `requantize`'s affair alone.
Status check_not_quantized(OpKind op, Operands operands) {
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i] || !operands[i]->quantization) continue;
    return mistake(op, fmt::format("operand {} is {}, expected a type that is not quantized: only "
                                   "requantize takes quantized tensors",
                                   i, to_string(*operands[i])));
  }
  return {};
}

/// Operand types are of the row's class, and equal unless the row's rule makes them so. Those of
/// convolutions and matrix products are checked with their shapes, those of requantizations with
/// their formats, those of compositions by their definitions. A table may be of any type.
Status check_operands(const OpInfo& row, Operands operands) {
  if (Status status = check_count(row, operands); !status) return status;
  if (row.infer == InferRule::requantized) return {};
  if (Status status = check_not_quantized(row.op, operands); !status) return status;
  if (row.infer == InferRule::convolution || row.infer == InferRule::matmul) return {};
  if (row.infer == InferRule::defined) return {};
  if (row.infer == InferRule::looked_up) {
    return check_class(row.op, 0, operands[0]->element, row.types);
  }
  const size_t first = first_value(row);
  for (size_t i = 0; i < operands.size(); ++i) {
    const OperandClass expected = i < first ? OperandClass::boolean : row.types;
    if (Status status = check_class(row.op, i, operands[i]->element, expected); !status) {
      return status;
    }
  }
  if (row.infer == InferRule::promoted) return {};
  for (size_t i = first + 1; i < operands.size(); ++i) {
    if (operands[i]->element == operands[first]->element) continue;
    return mistake(
        row.op,
        fmt::format("operand {} is {}, expected {} as operand {} is (convert and "
                    "convert_promote_types make types equal)",
                    i, name_of(operands[i]->element), name_of(operands[first]->element), first));
  }
  return {};
}

Result<TensorType> as_written(OpKind op, const WrittenType& written) {
  if (!written.element || !written.shape) {
    return mistake(op, "the full type must be written, such as `: f32[2, 3]`");
  }
  return TensorType{*written.element, *written.shape, written.quantization};
}

Result<TensorType> element_as_named(OpKind op, const TensorType& operand,
                                    const WrittenType& written) {
  if (!written.element) {
    return mistake(op, "the destination's element type must be written, such as `: f16`");
  }
  if (written.quantization) {
    return mistake(op, fmt::format("found {}, expected a type that is not quantized: requantize "
                                   "gives quantized tensors",
                                   to_string(*written.quantization)));
  }
  return TensorType{*written.element, operand.shape};
}

/// The target is written; which of its extents may be open is its op's affair.
Result<Shape> target_of(OpKind op, const WrittenType& written) {
  if (!written.shape) return mistake(op, "the target shape must be written, such as `: [2, 3]`");
  return *written.shape;
}

Result<TensorType> broadcast_type(const Operation& operation, const TensorType& operand,
                                  const WrittenType& written) {
  const Result<Shape> target = target_of(operation.op, written);
  if (!target) return target.error();
  if (std::ranges::find(*target, Dim::any()) != target->end()) {
    return mistake(operation.op,
                   fmt::format("found the target {}, expected numbers and names of unknown "
                               "extents: nothing says what ? is",
                               to_string(*target)));
  }
  const Result<BroadcastRule> rule = broadcast_rule(operation);
  if (!rule) return rule.error();
  const Result<Shape> shape = broadcast_to_target(*rule, operand.shape, *target);
  if (!shape) return shape.error();
  return TensorType{operand.element, *shape};
}

Result<TensorType> reshaped_type(OpKind op, const TensorType& operand, const WrittenType& written) {
  const Result<Shape> target = target_of(op, written);
  if (!target) return target.error();
  const Result<Shape> shape = reshaped(operand.shape, *target);
  if (!shape) return shape.error();
  return TensorType{operand.element, *shape};
}

/// The operands' broadcast shape with an element type.
Result<TensorType> elementwise(const Operation& operation, Operands operands, ElementType element) {
  if (operands.size() == 1) return TensorType{element, operands[0]->shape};
  const Result<BroadcastRule> rule = broadcast_rule(operation);
  if (!rule) return rule.error();
  std::vector<const Shape*> shapes;
  for (const TensorType* operand : operands) shapes.push_back(&operand->shape);
  const Result<Shape> shape = broadcast_shapes(operation.op, *rule, shapes);
  if (!shape) return shape.error();
  return TensorType{element, *shape};
}

Result<std::vector<TensorType>> promoted(const Operation& operation, Operands operands) {
  const Result<PromoteOptions> options = promote_options(operation);
  if (!options) return options.error();
  const auto side = [&](size_t i) {
    return PromoteOperand{.type = operands[i]->element, .is_scalar = operands[i]->shape.empty()};
  };
  const Result<ElementType> common = promoted_type(side(0), side(1), *options);
  if (!common) return common.error();
  return std::vector<TensorType>{{*common, operands[0]->shape}, {*common, operands[1]->shape}};
}

/// The result's type, by the rules that give one result.
Result<TensorType> result_type(const Operation& operation, Operands operands,
                               const WrittenType& written) {
  const OpInfo& row = info(operation.op);
  switch (row.infer) {
    case InferRule::as_written: return as_written(row.op, written);
    case InferRule::element_as_named: return element_as_named(row.op, *operands[0], written);
    case InferRule::broadcast: return broadcast_type(operation, *operands[0], written);
    case InferRule::reshaped: return reshaped_type(row.op, *operands[0], written);
    case InferRule::elementwise: return elementwise(operation, operands, operands[0]->element);
    case InferRule::comparison: return elementwise(operation, operands, ElementType::boolean);
    case InferRule::selection: return elementwise(operation, operands, operands[1]->element);
    case InferRule::looked_up: return look_up_type(operation, *operands[0], *operands[1]);
    case InferRule::convolution: return convolution_type(operation, operands);
    case InferRule::matmul: return matmul_type(operands);
    case InferRule::requantized: return requantize_type(operands, written);
    case InferRule::reduced: return reduction_type(operation, *operands[0]);
    case InferRule::pooled: return pooling_type(operation, *operands[0]);
    case InferRule::promoted:
    case InferRule::defined: break;
  }
  return Error{ErrorCode::internal, fmt::format("{}: its rule gives several results", row.name)};
}

}  // namespace

Result<std::vector<TensorType>> infer_types(const Operation& operation, Operands operand_types,
                                            const WrittenType& written) {
  const OpInfo& row = info(operation.op);
  if (Status status = check_operands(row, operand_types); !status) return status.error();
  if (row.infer == InferRule::promoted) return promoted(operation, operand_types);
  if (row.infer == InferRule::defined) return composition_types(operation, operand_types, written);
  const Result<TensorType> result = result_type(operation, operand_types, written);
  if (!result) return result.error();
  return std::vector<TensorType>{*result};
}

}  // namespace castor
