// SPDX-License-Identifier: Apache-2.0
// Which emitter emits which lane operation.
#include "jit/emit/byte_table.hpp"
#include "jit/emit/conversion_ops.hpp"
#include "jit/emit/float_ops.hpp"
#include "jit/emit/i32_table.hpp"
#include "jit/emit/integer_ops.hpp"
#include "jit/emit/mask_ops.hpp"
#include "jit/emit/resize_ops.hpp"
#include "jit/emit/scalar_ops.hpp"

namespace castor::jit {

namespace {

struct Row {
  LaneOp op;
  LaneOpEmitter emit;
};

constexpr Row table[] = {
    {LaneOp::add, emit_add},
    {LaneOp::sub, emit_sub},
    {LaneOp::sub_down_to_zero, emit_sub_down_to_zero},
    {LaneOp::mul, emit_mul},
    {LaneOp::mul_low_u32, emit_mul_low_u32},
    {LaneOp::dot_i16_pairs, emit_dot_i16_pairs},
    {LaneOp::add_dot_i16_pairs, emit_add_dot_i16_pairs},
    {LaneOp::dot_u8_pair, emit_dot_u8_pair},
    {LaneOp::mul_high_u16, emit_mul_high_u16},
    {LaneOp::bit_and, emit_bit_and},
    {LaneOp::bit_or, emit_bit_or},
    {LaneOp::bit_xor, emit_bit_xor},
    {LaneOp::bit_andnot, emit_bit_andnot},
    {LaneOp::shift_left, emit_shift_left},
    {LaneOp::shift_right, emit_shift_right},
    {LaneOp::shift_right_signed, emit_shift_right_signed},
    {LaneOp::shift_left_by, emit_shift_left_by},
    {LaneOp::shift_right_by, emit_shift_right_by},
    {LaneOp::shift_right_signed_by, emit_shift_right_signed_by},
    {LaneOp::min_signed, emit_min_signed},
    {LaneOp::min_unsigned, emit_min_unsigned},
    {LaneOp::max_signed, emit_max_signed},
    {LaneOp::max_unsigned, emit_max_unsigned},
    {LaneOp::absolute, emit_absolute},
    {LaneOp::leading_zeros, emit_leading_zeros},
    {LaneOp::divide_each, emit_divide_each},
    {LaneOp::remainder_each, emit_remainder_each},
    {LaneOp::bit_ternary, emit_bit_ternary},
    {LaneOp::equal, emit_equal},
    {LaneOp::greater_signed, emit_greater_signed},
    {LaneOp::compare_signed, emit_compare_signed},
    {LaneOp::compare_unsigned, emit_compare_unsigned},
    {LaneOp::any_bits, emit_any_bits},
    {LaneOp::combine_halves, emit_combine_halves},
    {LaneOp::extend_zero, emit_extend_zero},
    {LaneOp::extend_sign, emit_extend_sign},
    {LaneOp::truncate, emit_truncate},
    {LaneOp::widen_to_high_half, emit_widen_to_high_half},
    {LaneOp::mask_and, emit_mask_and},
    {LaneOp::mask_or, emit_mask_or},
    {LaneOp::mask_xor, emit_mask_xor},
    {LaneOp::mask_andnot, emit_mask_andnot},
    {LaneOp::mask_not, emit_mask_not},
    {LaneOp::mask_resize, emit_mask_resize},
    {LaneOp::select, emit_select},
    {LaneOp::float_add, emit_float_add},
    {LaneOp::float_sub, emit_float_sub},
    {LaneOp::float_mul, emit_float_mul},
    {LaneOp::float_div, emit_float_div},
    {LaneOp::float_quotient, emit_float_quotient},
    {LaneOp::quotient_to_signed, emit_quotient_to_signed},
    {LaneOp::float_sqrt, emit_float_sqrt},
    {LaneOp::float_sub_product, emit_float_sub_product},
    {LaneOp::float_min, emit_float_min},
    {LaneOp::float_max, emit_float_max},
    {LaneOp::range_min, emit_range_min},
    {LaneOp::range_max, emit_range_max},
    {LaneOp::range_magnitude, emit_range_magnitude},
    {LaneOp::range_magnitude_from, emit_range_magnitude_from},
    {LaneOp::float_remainder_each, emit_float_remainder_each},
    {LaneOp::fix_up, emit_fix_up},
    {LaneOp::round, emit_round},
    {LaneOp::float_compare, emit_float_compare},
    {LaneOp::f16_to_f32, emit_f16_to_f32},
    {LaneOp::f32_to_f16, emit_f32_to_f16},
    {LaneOp::f32_to_f64, emit_f32_to_f64},
    {LaneOp::f64_to_f32, emit_f64_to_f32},
    {LaneOp::f16_to_f64, emit_f16_to_f64},
    {LaneOp::f64_to_f16, emit_f64_to_f16},
    {LaneOp::signed_to_float, emit_signed_to_float},
    {LaneOp::unsigned_to_float, emit_unsigned_to_float},
    {LaneOp::float_to_signed, emit_float_to_signed},
    {LaneOp::float_to_unsigned, emit_float_to_unsigned},
    {LaneOp::look_up, emit_look_up},
    {LaneOp::look_up_i32, emit_look_up_i32},
    {LaneOp::join, emit_join},
};

constexpr int first = static_cast<int>(LaneOp::add);

constexpr bool table_is_in_enum_order() {
  int op = first;
  for (const Row& row : table) {
    if (row.op != static_cast<LaneOp>(op++)) return false;
  }
  return op == lane_op_count;
}
static_assert(table_is_in_enum_order());

}  // namespace

LaneOpEmitter emitter_of(LaneOp op) { return table[static_cast<int>(op) - first].emit; }

}  // namespace castor::jit
