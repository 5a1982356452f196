// SPDX-License-Identifier: Apache-2.0
// Which function lowers which operation on which kind of type.
#include "jit/lower/elementwise.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>

#include "jit/lower/convert.hpp"
#include "jit/lower/elementwise_families.hpp"

namespace castor::jit {

namespace {

template <IntegerPredicate integers, FloatPredicate floats>
LaneTensor compare(const Elementwise& op) {
  return compare_values(op, {integers, floats});
}

using enum IntegerPredicate;
using F = FloatPredicate;

/// A row for each operation: how it is lowered on integers, on everything with a fraction (floats;
/// where it takes them, f8e8m0 and nf4), on booleans; null where it does not take them.
struct Row {
  OpKind op;
  Lowering integers;
  Lowering floats;
  Lowering booleans;
};

// clang-format off
constexpr Row table[] = {
    {OpKind::add, add_integers, add_floats, nullptr},
    {OpKind::sub, sub_integers, sub_floats, nullptr},
    {OpKind::mul, mul_integers, mul_floats, nullptr},
    {OpKind::div, div_integers, div_floats, nullptr},
    {OpKind::floor_div, floor_div_integers, floor_div_floats, nullptr},
    {OpKind::mod, mod_integers, mod_floats, nullptr},
    {OpKind::floor_mod, floor_mod_integers, floor_mod_floats, nullptr},
    {OpKind::min, min_integers, min_floats, nullptr},
    {OpKind::max, max_integers, max_floats, nullptr},
    {OpKind::squared_difference, squared_difference_of_integers, squared_difference_of_floats, nullptr},
    {OpKind::prelu, prelu_of_integers, prelu_of_floats, nullptr},
    {OpKind::abs, abs_of_integer, abs_of_float, nullptr},
    {OpKind::neg, neg_of_integer, neg_of_float, nullptr},
    {OpKind::sign, sign_of_integer, sign_of_float, nullptr},
    {OpKind::relu, relu_of_integer, relu_of_float, nullptr},
    {OpKind::clamp, clamp_integer, clamp_float, nullptr},
    {OpKind::sqrt, nullptr, sqrt_of_float, nullptr},
    {OpKind::floor, same_integer, floor_of_float, nullptr},
    {OpKind::ceil, same_integer, ceil_of_float, nullptr},
    {OpKind::trunc, same_integer, trunc_of_float, nullptr},
    {OpKind::round_even, same_integer, round_even_of_float, nullptr},
    {OpKind::is_nan, nullptr, is_nan_of_float, nullptr},
    {OpKind::equal, compare<equal, F::equal>, compare<equal, F::equal>, compare<equal, F::equal>},
    {OpKind::not_equal, compare<not_equal, F::not_equal_or_unordered>, compare<not_equal, F::not_equal_or_unordered>, compare<not_equal, F::not_equal_or_unordered>},
    {OpKind::less, compare<less, F::less>, compare<less, F::less>, compare<less, F::less>},
    {OpKind::less_equal, compare<less_equal, F::less_equal>, compare<less_equal, F::less_equal>, compare<less_equal, F::less_equal>},
    {OpKind::greater, compare<greater, F::greater>, compare<greater, F::greater>, compare<greater, F::greater>},
    {OpKind::greater_equal, compare<greater_equal, F::greater_equal>, compare<greater_equal, F::greater_equal>, compare<greater_equal, F::greater_equal>},
    {OpKind::logical_and, nullptr, nullptr, and_of_booleans},
    {OpKind::logical_or, nullptr, nullptr, or_of_booleans},
    {OpKind::logical_xor, nullptr, nullptr, xor_of_booleans},
    {OpKind::logical_not, nullptr, nullptr, not_of_boolean},
    {OpKind::bitwise_and, and_of_integers, nullptr, and_of_booleans},
    {OpKind::bitwise_or, or_of_integers, nullptr, or_of_booleans},
    {OpKind::bitwise_xor, xor_of_integers, nullptr, xor_of_booleans},
    {OpKind::bitwise_not, not_of_integer, nullptr, not_of_boolean},
    {OpKind::shift_left, shift_left_integers, nullptr, nullptr},
    {OpKind::shift_right, shift_right_integers, nullptr, nullptr},
    {OpKind::select, select_values, select_values, select_values},
};
// clang-format on

constexpr bool table_is_in_enum_order() {
  int op = static_cast<int>(OpKind::add);
  for (const Row& row : table) {
    if (row.op != static_cast<OpKind>(op++)) return false;
  }
  return op == static_cast<int>(OpKind::select) + 1;
}
static_assert(table_is_in_enum_order());

}  // namespace

LaneTensor lower_elementwise(LaneBuilder& builder, const Operation& operation,
                             std::span<LaneTensor* const> operands, ElementType computed_in) {
  const size_t row = static_cast<size_t>(operation.op) - static_cast<size_t>(OpKind::add);
  assert(row < std::size(table));
  const Lowering lowering = is_integer(computed_in)   ? table[row].integers
                            : is_boolean(computed_in) ? table[row].booleans
                                                      : table[row].floats;
  assert(lowering != nullptr);
  return lowering({builder, operation, operands, computed_in});
}

LaneTensor lower_small_quotient(LaneBuilder& builder, const Operation& operation,
                                std::span<LaneTensor* const> operands, ElementType computed_in,
                                QuotientFacts facts) {
  return small_quotient_of_floats({builder, operation, operands, computed_in}, facts);
}

LaneTensor lower_encoded_quotient(LaneBuilder& builder, const Operation& operation,
                                  std::span<LaneTensor* const> operands) {
  return encoded_quotient_of_floats({builder, operation, operands, ElementType::f32});
}

LaneTensor lower_bounded_product(LaneBuilder& builder, const Operation& operation,
                                 std::span<LaneTensor* const> operands) {
  return bounded_product_of_floats({builder, operation, operands, ElementType::f32});
}

LaneType Elementwise::float_type() const {
  if (type == ElementType::f64) return LaneType::f64;
  // Remainders divide in steps that need f32's bits.
  const bool divides = operation.op == OpKind::mod || operation.op == OpKind::floor_mod;
  const bool in_f16 = type == ElementType::f16 && builder.has_f16_lanes() && !divides;
  return in_f16 ? LaneType::f16 : LaneType::f32;
}

LaneId Elementwise::value(size_t i) const {
  switch (float_type()) {
    case LaneType::f64: return operand(i).as_f64();
    case LaneType::f16: return operand(i).as_bits();
    default: return operand(i).as_f32();
  }
}

LaneId Elementwise::number(double value) const {
  return builder.float_constant(float_type(), value);
}

LaneTensor Elementwise::rounded(LaneId value) const {
  if (bits_of(builder.type_of(value)) == bits_of(type)) return low_bits(value);
  return narrow_f32(builder, value, type, {}, {});
}

LaneTensor Elementwise::rounded(LaneId value, std::optional<int64_t> max) const {
  LaneTensor result = rounded(value);
  const bool is_exact = max && *max <= exact_integers(type);
  if (is_exact && float_type() == LaneType::f32) result.holds_integer(value, *max);
  return result;
}

LaneTensor Elementwise::low_bits(LaneId lanes) const {
  return LaneTensor::computed(builder, type, {lanes, Narrowing::truncate});
}

LaneTensor Elementwise::exact(LaneId lanes) const {
  return LaneTensor::computed(
      builder, type, {lanes, is_signed() ? Narrowing::fits_signed : Narrowing::fits_unsigned});
}

LaneTensor Elementwise::code(LaneId lanes) const {
  return LaneTensor::computed(builder, type, {lanes, Narrowing::fits_unsigned});
}

}  // namespace castor::jit
