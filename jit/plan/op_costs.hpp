// SPDX-License-Identifier: Apache-2.0
// What computing one element takes, by op: one table, so that no op gets a cost by default.
#pragma once

#include <array>

#include "ir/op.hpp"

namespace castor::jit {

/// One row of the table.
struct OpCost {
  OpKind op;
  int cost;  ///< relative to an addition of vectors; estimated, since only few levels count
};

// clang-format off
inline constexpr std::array<OpCost, op_count> op_costs = {{
    {OpKind::constant, 1},
    {OpKind::convert, 1},
    {OpKind::convert_promote_types, 1},
    {OpKind::broadcast, 1},
    {OpKind::reshape, 1},
    {OpKind::add, 1},
    {OpKind::sub, 1},
    {OpKind::mul, 1},
    {OpKind::div, 3},
    {OpKind::floor_div, 4},
    {OpKind::mod, 8},
    {OpKind::floor_mod, 8},
    {OpKind::min, 1},
    {OpKind::max, 1},
    {OpKind::squared_difference, 1},
    {OpKind::prelu, 1},
    {OpKind::abs, 1},
    {OpKind::neg, 1},
    {OpKind::sign, 1},
    {OpKind::relu, 1},
    {OpKind::clamp, 1},
    {OpKind::sqrt, 3},
    {OpKind::floor, 1},
    {OpKind::ceil, 1},
    {OpKind::trunc, 1},
    {OpKind::round_even, 1},
    {OpKind::is_nan, 1},
    {OpKind::equal, 1},
    {OpKind::not_equal, 1},
    {OpKind::less, 1},
    {OpKind::less_equal, 1},
    {OpKind::greater, 1},
    {OpKind::greater_equal, 1},
    {OpKind::logical_and, 1},
    {OpKind::logical_or, 1},
    {OpKind::logical_xor, 1},
    {OpKind::logical_not, 1},
    {OpKind::bitwise_and, 1},
    {OpKind::bitwise_or, 1},
    {OpKind::bitwise_xor, 1},
    {OpKind::bitwise_not, 1},
    {OpKind::shift_left, 1},
    {OpKind::shift_right, 1},
    {OpKind::select, 1},
    {OpKind::look_up, 4},
    {OpKind::reduce_min, 4},
    {OpKind::reduce_max, 4},
    {OpKind::reduce_max_abs, 4},
    {OpKind::reduce_sum, 4},
    {OpKind::max_pool, 9},
    {OpKind::conv_integer, 1},
    {OpKind::matmul_integer, 1},
    {OpKind::requantize, 1},
    {OpKind::quantize_linear, 1},
    {OpKind::dequantize_linear, 1},
    {OpKind::dynamic_quantize_linear, 1},
    {OpKind::dynamic_quantize_symmetric, 1},
    {OpKind::qlinear_conv, 1},
    {OpKind::qlinear_matmul, 1},
    {OpKind::dequantize_mx, 1},
    {OpKind::quantize_mx, 1},
    {OpKind::nvfp4_tensor_scale, 1},
}};
// clang-format on

constexpr bool op_costs_are_in_enum_order() {
  for (size_t i = 0; i < op_costs.size(); ++i) {
    if (op_costs[i].op != static_cast<OpKind>(i) || op_costs[i].cost < 1) return false;
  }
  return true;
}
static_assert(op_costs_are_in_enum_order());

constexpr int cost_of(OpKind op) { return op_costs[static_cast<size_t>(op)].cost; }

}  // namespace castor::jit
