// SPDX-License-Identifier: Apache-2.0
// Specifications: elements as exact numbers, and numbers as elements. Written from ir/README.md,
// Numerics; nothing here knows how the interpreter or generated code does it.
#pragma once

#include "ir/types/convert_options.hpp"
#include "ir/types/element_type.hpp"
#include "tools/prove/term/term.hpp"

namespace castor::prove {

/// An exact number (-1)^negative * significand * 2^exponent, or an infinity, or a NaN.
struct ExactNumber {
  Term is_nan, is_infinite, negative;  ///< width 1
  Term significand;                    ///< 0 is zero; meaningless of infinities and NaNs
  Term exponent;                       ///< signed, exponent_width bits
  /// A NaN's payload, first bit first: of width 1 at least, its quiet bit included.
  Term payload;
  /// Numbers with a smaller first digit than 2^min_normal have significands that are not normal:
  /// their first bit is not bit significand.width() - 1.
  int min_normal = 0;
  bool has_subnormals = false;  ///< or integers: the first bit may be any
};
inline constexpr int exponent_width = 16;

/// The number that an element of that type is. nf4's are those of its f32.
ExactNumber decoded(ElementType type, const Term& bits);

/// The exponent of the number's first digit; meaningless of zero.
Term first_exponent(const ExactNumber& number);

/// A number rounded to a float type: nearest, ties to even. `special` says what becomes of
/// infinities, overflow and NaNs.
Term encoded(const ExactNumber& number, ElementType type, const ConvertOptions& options);

/// The significand divided by 2^(-exponent) and rounded to an integer of `width` bits, if that
/// holds it; `fits` tells. The sign is the number's own.
struct RoundedMagnitude {
  Term magnitude;
  Term fits;  ///< width 1
};
RoundedMagnitude rounded_to_integer(const ExactNumber& number, castor::Rounding rounding,
                                    int width);

/// m * 2^-shift for a shift of 0 or more, as floor and the class of what is cut off.
struct Shifted {
  Term floor;
  Term odd, above_half, half, inexact;  ///< width 1; inexact: anything is cut off
};
Shifted shifted_right(const Term& significand, const Term& count);
/// Whether the magnitude grows by one.
Term grows(const Shifted& shifted, const Term& negative, castor::Rounding rounding);

/// nf4's number of each code as the bits of an f32, and the code of a number.
Term nf4_value(const Term& code);
Term nf4_code(const ExactNumber& number);
Term power_code(const ExactNumber& number, const ConvertOptions& options);

}  // namespace castor::prove
