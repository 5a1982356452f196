// SPDX-License-Identifier: Apache-2.0
#include "ir/rewrite/drop_zero_points.hpp"

#include <algorithm>

#include "ir/rewrite/rebuild.hpp"

namespace castor {

namespace {

constexpr size_t first_zero_point = 2;  // conv_integer and matmul_integer have them from here on

bool has_zero_points(const Operation& operation) {
  return operation.op == OpKind::conv_integer || operation.op == OpKind::matmul_integer;
}

/// For each value, whether it is a constant of zeros.
std::vector<bool> zeros_of(const Function& function) {
  std::vector<bool> is_zero(function.values.size());
  for (const Operation& operation : function.operations) {
    if (operation.op != OpKind::constant) continue;
    is_zero[operation.results[0]] = std::ranges::all_of(
        operation.data->bytes, [](std::byte byte) { return byte == std::byte{0}; });
  }
  return is_zero;
}

/// The operation without zero points of zeros; whether there are some.
bool drop_from(Operation& operation, const std::vector<bool>& is_zero) {
  bool drops = false;
  for (size_t i = first_zero_point; i < operation.operands.size(); ++i) {
    ValueId& operand = operation.operands[i];
    if (operand == no_value || !is_zero[operand]) continue;
    operand = no_value;
    drops = true;
  }
  return drops;
}

}  // namespace

FunctionPtr drop_zero_points(const FunctionPtr& function) {
  if (std::ranges::none_of(function->operations, has_zero_points)) return function;
  const std::vector<bool> is_zero = zeros_of(*function);
  FunctionBuilder builder(function->name);
  detail::CopiedIds ids = detail::append_parameters(builder, *function);
  bool drops = false;
  for (const Operation& operation : function->operations) {
    Operation copy = operation;
    if (has_zero_points(operation)) drops |= drop_from(copy, is_zero);
    detail::append_copy(builder, *function, copy, ids);
  }
  if (!drops) return function;
  Result<FunctionPtr> rebuilt = detail::finish_copy(builder, *function, ids);
  return rebuilt ? *rebuilt : function;  // the rules of the IR hold for what was verified before
}

}  // namespace castor
