// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/spec/elementwise.hpp"

namespace castor::prove {
namespace {

bool compares(OpKind op) { return op >= OpKind::equal && op <= OpKind::greater_equal; }
bool is_logical(OpKind op) { return op >= OpKind::logical_and && op <= OpKind::logical_not; }

bool has_one_operand(OpKind op) {
  return (op >= OpKind::abs && op <= OpKind::is_nan) || op == OpKind::logical_not ||
         op == OpKind::bitwise_not;
}

}  // namespace

bool is_specified(OpKind op) { return op >= OpKind::add && op <= OpKind::select; }

ElementType result_type(const ElementwiseOp& op) {
  return compares(op.op) || op.op == OpKind::is_nan ? ElementType::boolean : op.type;
}

std::vector<ElementType> operand_types(const ElementwiseOp& op) {
  if (op.op == OpKind::select) return {ElementType::boolean, op.type, op.type};
  if (has_one_operand(op.op)) return {op.type};
  return {op.type, op.type};
}

Term specified_result(const ElementwiseOp& op, std::span<const Term> v) {
  if (op.op == OpKind::select) return if_then_else(equal(v[0], 0), v[2], v[1]);  // bits are copied
  if (compares(op.op)) return comparison_result(op, v);
  if (is_logical(op.op) || is_boolean(op.type)) return truth_result(op, v);
  return is_integer(op.type) ? integer_result(op, v) : float_result(op, v);
}

}  // namespace castor::prove
