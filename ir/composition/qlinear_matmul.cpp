// SPDX-License-Identifier: Apache-2.0
// ONNX QLinearMatMul-21: saturate(round_half_even(f32(sum) * ((a_scale * b_scale) / y_scale)) +
// y_zero_point), where sum is that of matmul_integer.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "ir/composition/qlinear.hpp"
#include "ir/composition/steps.hpp"
#include "ir/shape/matmul.hpp"

namespace castor {

namespace {

/// A matrix, or stacked matrices, rather than one row or column.
bool has_rows(const CompositionCall& call) { return call.rank_of(0) > 1; }
bool has_columns(const CompositionCall& call) { return call.rank_of(3) > 1; }

Error unexpected(const CompositionCall& call, size_t operand, std::string_view lines) {
  return call.mistake(
      fmt::format("operand {} is {}, expected one entry, one per {}, or a tensor of "
                  "that per matrix",
                  operand, to_string(call.type_of(operand)), lines));
}

/// The operand's shape without an axis of extent 1, which the result lacks too; nothing where it is
/// not known well enough for a reshape.
std::optional<Shape> without_axis(const CompositionCall& call, size_t operand, int axis) {
  Shape shape = call.type_of(operand).shape;
  if (shape[static_cast<size_t>(axis)] != Dim(1)) return std::nullopt;
  shape.erase(shape.begin() + axis);
  if (std::ranges::count(shape, Dim::any()) > 1) return std::nullopt;
  return shape;
}

/// An entry for each row of a, so that it is broadcast to the result: a vector becomes a column.
/// Where b is one column, the result's rows are its last axis.
Result<ValueId> along_rows(const CompositionCall& call, size_t operand) {
  const int rank = call.rank_of(operand);
  const ValueId value = call.operands[operand];
  if (rank == 0 || (rank == 1 && call.type_of(operand).shape[0] == Dim(1))) return value;
  if (rank == 1 && !has_columns(call)) return value;
  if (rank == 1 && has_rows(call)) return call.builder.reshape(value, {Dim::any(), 1});
  if (rank == call.rank_of(0) && has_rows(call)) {
    if (has_columns(call)) return value;
    if (const auto shape = without_axis(call, operand, rank - 1)) {
      return call.builder.reshape(value, *shape);
    }
  }
  if (may_be_single(call.type_of(operand).shape)) return value;
  return unexpected(call, operand, "row");
}

/// An entry for each column of b.
Result<ValueId> along_columns(const CompositionCall& call, size_t operand) {
  const int rank = call.rank_of(operand);
  const ValueId value = call.operands[operand];
  if (rank <= 1) return value;
  if (rank == call.rank_of(3) && has_columns(call)) {
    if (has_rows(call)) return value;
    if (const auto shape = without_axis(call, operand, rank - 2)) {
      return call.builder.reshape(value, *shape);
    }
  }
  return unexpected(call, operand, "column");
}

/// Scales and the result's zero point are by lines as zero points of a and b are.
Status check_shapes(const CompositionCall& call) {
  struct Row {
    size_t parameter;
    MatmulParameter of;
  };
  constexpr Row rows[] = {{first_scale, {0, "a_scale"}},
                          {second_scale, {1, "b_scale"}},
                          {result_scale, {0, "y_scale"}},
                          {result_zero_point, {0, "y_zero_point"}}};
  for (const Row& row : rows) {
    const Shape& operand = call.type_of(row.of.operand == 0 ? 0 : 3).shape;
    const auto wrong = matmul_mistake(row.of, operand, call.type_of(row.parameter).shape);
    if (wrong) return call.mistake(*wrong);
  }
  return {};
}

/// What is smaller repeats; the sum's shape is the result's.
constexpr BroadcastRule onto_sum = {.mode = BroadcastMode::pdpd};

}  // namespace

Result<std::vector<ValueId>> define_qlinear_matmul(const CompositionCall& call) {
  if (Status status = check_qlinear_types(call); !status) return status.error();
  if (Status status = check_shapes(call); !status) return status.error();
  const auto a_scale = along_rows(call, first_scale);
  if (!a_scale) return a_scale.error();
  const auto b_scale = along_columns(call, second_scale);
  if (!b_scale) return b_scale.error();
  const auto y_scale = along_rows(call, result_scale);
  if (!y_scale) return y_scale.error();
  const auto zero_point = along_rows(call, result_zero_point);
  if (!zero_point) return zero_point.error();
  FunctionBuilder& builder = call.builder;
  const std::span<const ValueId> given = call.operands;
  const ValueId sum = builder.matmul_integer(given[0], given[3], given[2], given[5]);
  const ValueId wide = builder.convert(sum, ElementType::f32);
  const ValueId factor = scale_factor(builder, *a_scale, *b_scale, *y_scale);
  const ValueId scaled = builder.binary(OpKind::mul, wide, factor, onto_sum);
  return std::vector{rounded_with_zero_point(builder, scaled, *zero_point, onto_sum,
                                             call.element_of(result_zero_point))};
}

}  // namespace castor
