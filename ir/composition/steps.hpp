// SPDX-License-Identifier: Apache-2.0
// Steps that several definitions have in common.
#pragma once

#include "ir/builder.hpp"

namespace castor {

/// Whether numbers are computed in the type: a float of at least 16 bits.
constexpr bool computes(ElementType type) { return is_float(type) && bits_of(type) >= 16; }

constexpr bool is_float8(ElementType type) { return is_float(type) && bits_of(type) == 8; }

/// Whether a shape is, or may be when it is bound, that of one entry: a scalar, or a vector of 1.
bool may_be_single(const Shape& shape);

/// The value in that type: itself, or converted with default options.
ValueId in_type(FunctionBuilder& builder, ValueId value, ElementType type);

/// A scalar of that type, rounded once.
ValueId scalar_of(FunctionBuilder& builder, float number, ElementType type);

/// saturate(round_half_even(quotient) + zero_point), as if on whole numbers without bounds: the
/// rounded quotient is clamped to numbers that saturate with every zero point of 16 bits. A NaN
/// gives the zero point. Without a zero point: of 0.
ValueId rounded_with_zero_point(FunctionBuilder& builder, ValueId quotient, ValueId zero_point,
                                const BroadcastRule& rule, ElementType to);

}  // namespace castor
