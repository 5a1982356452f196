// SPDX-License-Identifier: Apache-2.0
// What the families of elementwise operations share, and their functions.
#pragma once

#include <optional>

#include "jit/lower/elementwise.hpp"

namespace castor::jit {

/// Both operands in one representation.
struct Operands {
  LaneId a;
  LaneId b;
};

/// One operation that is being lowered.
struct Elementwise {
  LaneBuilder& builder;
  const Operation& operation;
  std::span<LaneTensor* const> operands;
  ElementType type;  ///< that it computes in: of the operands, of `select` the last two

  LaneTensor& operand(size_t i) const { return *operands[i]; }
  bool is_signed() const { return is_signed_integer(type); }
  /// The float lanes that the operation computes in: of f64, f64; of f16, f16 where the target has
  /// such lanes; else f32. An f16 result is the same either way: f32 has more than twice f16's
  /// bits, so that rounding its sums, products, quotients and roots once more loses nothing.
  LaneType float_type() const;
  /// The operand in lanes of `float_type`.
  LaneId value(size_t i) const;
  Operands values() const { return {value(0), value(1)}; }
  /// A constant in lanes of `float_type`.
  LaneId number(double value) const;
  /// Float lanes rounded once to the type.
  LaneTensor rounded(LaneId value) const;
  /// Float lanes rounded once to the type. `max`: the value is an integer of at most that
  /// magnitude.
  LaneTensor rounded(LaneId value, std::optional<int64_t> max) const;
  /// Whether `value` may be a signalling NaN: decoding narrower types makes them quiet.
  bool may_be_signalling() const {
    return bits_of(type) == bits_of(float_type()) || type == ElementType::bf16;
  }

  /// The operand as an integer in lanes of its own width, bytes at least.
  LaneId integer(size_t i) const { return operand(i).as_integer(lane_bits_of(type)); }
  Operands integers() const { return {integer(0), integer(1)}; }
  LaneType integer_type() const { return integer_lane(lane_bits_of(type)); }
  /// Lanes whose low bits are the result.
  LaneTensor low_bits(LaneId lanes) const;
  /// Lanes that hold the resulting integer exactly.
  LaneTensor exact(LaneId lanes) const;
  /// Lanes that hold the result's bits, with zeros above.
  LaneTensor code(LaneId lanes) const;
};

using Lowering = LaneTensor (*)(const Elementwise& op);

// Integers.
LaneTensor add_integers(const Elementwise& op);
LaneTensor sub_integers(const Elementwise& op);
LaneTensor mul_integers(const Elementwise& op);
LaneTensor min_integers(const Elementwise& op);
LaneTensor max_integers(const Elementwise& op);
LaneTensor squared_difference_of_integers(const Elementwise& op);
LaneTensor prelu_of_integers(const Elementwise& op);
LaneTensor abs_of_integer(const Elementwise& op);
LaneTensor neg_of_integer(const Elementwise& op);
LaneTensor sign_of_integer(const Elementwise& op);
LaneTensor relu_of_integer(const Elementwise& op);
LaneTensor clamp_integer(const Elementwise& op);
LaneTensor same_integer(const Elementwise& op);
LaneTensor div_integers(const Elementwise& op);
LaneTensor floor_div_integers(const Elementwise& op);
LaneTensor mod_integers(const Elementwise& op);
LaneTensor floor_mod_integers(const Elementwise& op);
LaneTensor shift_left_integers(const Elementwise& op);
LaneTensor shift_right_integers(const Elementwise& op);

// Floats.
LaneTensor add_floats(const Elementwise& op);
LaneTensor sub_floats(const Elementwise& op);
LaneTensor mul_floats(const Elementwise& op);
LaneTensor div_floats(const Elementwise& op);
/// See lower_bounded_product.
LaneTensor bounded_product_of_floats(const Elementwise& op);
/// Only small integers are made of the quotient (RoundedValues::is_small).
LaneTensor small_quotient_of_floats(const Elementwise& op, QuotientFacts facts);
/// The quotient is only encoded (RoundedValues::is_encoded).
LaneTensor encoded_quotient_of_floats(const Elementwise& op);
LaneTensor floor_div_floats(const Elementwise& op);
LaneTensor mod_floats(const Elementwise& op);
LaneTensor floor_mod_floats(const Elementwise& op);
LaneTensor min_floats(const Elementwise& op);
LaneTensor max_floats(const Elementwise& op);
LaneTensor squared_difference_of_floats(const Elementwise& op);
LaneTensor prelu_of_floats(const Elementwise& op);
LaneTensor abs_of_float(const Elementwise& op);
LaneTensor neg_of_float(const Elementwise& op);
LaneTensor sign_of_float(const Elementwise& op);
LaneTensor relu_of_float(const Elementwise& op);
LaneTensor clamp_float(const Elementwise& op);
LaneTensor sqrt_of_float(const Elementwise& op);
LaneTensor floor_of_float(const Elementwise& op);
LaneTensor ceil_of_float(const Elementwise& op);
LaneTensor trunc_of_float(const Elementwise& op);
LaneTensor round_even_of_float(const Elementwise& op);
LaneTensor is_nan_of_float(const Elementwise& op);

// Comparisons, by kind of type.
struct Comparison {
  IntegerPredicate integers;
  FloatPredicate floats;  ///< f8e8m0 and nf4 too
};
LaneTensor compare_values(const Elementwise& op, const Comparison& comparison);

// Truth values and bits.
LaneTensor and_of_booleans(const Elementwise& op);
LaneTensor or_of_booleans(const Elementwise& op);
LaneTensor xor_of_booleans(const Elementwise& op);
LaneTensor not_of_boolean(const Elementwise& op);
LaneTensor and_of_integers(const Elementwise& op);
LaneTensor or_of_integers(const Elementwise& op);
LaneTensor xor_of_integers(const Elementwise& op);
LaneTensor not_of_integer(const Elementwise& op);
LaneTensor select_values(const Elementwise& op);

// The bounds of `clamp`; nothing where there is none.
std::optional<uint64_t> integer_bound(const Elementwise& op, std::string_view name);
std::optional<double> float_bound(const Elementwise& op, std::string_view name);

}  // namespace castor::jit
