// SPDX-License-Identifier: Apache-2.0
// The table from ops to evaluating functions, in the order of OpKind.
#include "ir/interpreter/evaluate.hpp"

#include <array>

#include "ir/interpreter/evaluators.hpp"
#include "ir/numerics/float_ops.hpp"
#include "ir/numerics/integer_ops.hpp"
#include "ir/numerics/truth_ops.hpp"

namespace castor {

namespace {

namespace f = numerics::float_ops;
namespace i = numerics::integer_ops;
namespace t = numerics::truth_ops;

struct Row {
  OpKind op;
  Evaluator evaluator;
};

/// Compositions are evaluated as their definitions.
constexpr Evaluator by_definition = nullptr;

constexpr std::array<Row, op_count> table = {{
    {OpKind::constant, evaluate_constant},
    {OpKind::convert, evaluate_convert},
    {OpKind::convert_promote_types, evaluate_convert_promote_types},
    {OpKind::broadcast, evaluate_broadcast},
    {OpKind::reshape, evaluate_reshape},
    {OpKind::add, evaluate_binary<f::add, i::add>},
    {OpKind::sub, evaluate_binary<f::sub, i::sub>},
    {OpKind::mul, evaluate_binary<f::mul, i::mul>},
    {OpKind::div, evaluate_binary<f::div, i::div>},
    {OpKind::floor_div, evaluate_binary<f::floor_div, i::floor_div>},
    {OpKind::mod, evaluate_binary<f::mod, i::mod>},
    {OpKind::floor_mod, evaluate_binary<f::floor_mod, i::floor_mod>},
    {OpKind::min, evaluate_binary<f::min, i::min>},
    {OpKind::max, evaluate_binary<f::max, i::max>},
    {OpKind::squared_difference, evaluate_binary<f::squared_difference, i::squared_difference>},
    {OpKind::prelu, evaluate_binary<f::prelu, i::prelu>},
    {OpKind::abs, evaluate_unary<f::abs, i::abs>},
    {OpKind::neg, evaluate_unary<f::neg, i::neg>},
    {OpKind::sign, evaluate_unary<f::sign, i::sign>},
    {OpKind::relu, evaluate_unary<f::relu, i::relu>},
    {OpKind::clamp, evaluate_clamp},
    {OpKind::sqrt, evaluate_unary<f::sqrt>},
    {OpKind::floor, evaluate_unary<f::floor, i::identity>},
    {OpKind::ceil, evaluate_unary<f::ceil, i::identity>},
    {OpKind::trunc, evaluate_unary<f::trunc, i::identity>},
    {OpKind::round_even, evaluate_unary<f::round_even, i::identity>},
    {OpKind::is_nan, evaluate_unary<t::is_nan>},
    {OpKind::equal, evaluate_binary<t::equal>},
    {OpKind::not_equal, evaluate_binary<t::not_equal>},
    {OpKind::less, evaluate_binary<t::less>},
    {OpKind::less_equal, evaluate_binary<t::less_equal>},
    {OpKind::greater, evaluate_binary<t::greater>},
    {OpKind::greater_equal, evaluate_binary<t::greater_equal>},
    {OpKind::logical_and, evaluate_binary<t::logical_and>},
    {OpKind::logical_or, evaluate_binary<t::logical_or>},
    {OpKind::logical_xor, evaluate_binary<t::logical_xor>},
    {OpKind::logical_not, evaluate_unary<t::logical_not>},
    {OpKind::bitwise_and, evaluate_binary<i::bitwise_and>},
    {OpKind::bitwise_or, evaluate_binary<i::bitwise_or>},
    {OpKind::bitwise_xor, evaluate_binary<i::bitwise_xor>},
    {OpKind::bitwise_not, evaluate_unary<i::bitwise_not>},
    {OpKind::shift_left, evaluate_binary<i::shift_left>},
    {OpKind::shift_right, evaluate_binary<i::shift_right>},
    {OpKind::select, evaluate_select},
    {OpKind::look_up, evaluate_look_up},
    {OpKind::reduce_min, evaluate_reduce_min},
    {OpKind::reduce_max, evaluate_reduce_max},
    {OpKind::reduce_max_abs, evaluate_reduce_max_abs},
    {OpKind::reduce_sum, evaluate_reduce_sum},
    {OpKind::max_pool, evaluate_max_pool},
    {OpKind::conv_integer, evaluate_conv_integer},
    {OpKind::matmul_integer, evaluate_matmul_integer},
    {OpKind::requantize, evaluate_requantize},
    {OpKind::quantize_linear, by_definition},
    {OpKind::dequantize_linear, by_definition},
    {OpKind::dynamic_quantize_linear, by_definition},
    {OpKind::dynamic_quantize_symmetric, by_definition},
    {OpKind::qlinear_conv, by_definition},
    {OpKind::qlinear_matmul, by_definition},
    {OpKind::dequantize_mx, by_definition},
    {OpKind::quantize_mx, by_definition},
    {OpKind::nvfp4_tensor_scale, by_definition},
}};

constexpr bool table_is_in_enum_order() {
  for (size_t row = 0; row < table.size(); ++row) {
    if (table[row].op != static_cast<OpKind>(row)) return false;
  }
  return true;
}
static_assert(table_is_in_enum_order());

}  // namespace

Evaluator evaluator_of(OpKind op) { return table[static_cast<size_t>(op)].evaluator; }

}  // namespace castor
