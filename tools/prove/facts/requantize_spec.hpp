// SPDX-License-Identifier: Apache-2.0
// Requantization as terms, written from ir/README.md and the description of the embARC MLI library:
// the formula on real numbers as a relation of whole numbers, without divisions; the library's
// arithmetic operation by operation.
#pragma once

#include "jit/requantize/method.hpp"
#include "tools/prove/term/term.hpp"

namespace castor::prove {

/// s_src / s_dst of the library as scale * 2^-shift, but for the fractional bits.
struct LibraryMultiplier {
  int32_t scale;
  int shift;
};
LibraryMultiplier library_multiplier(int32_t from_scale, int32_t to_scale, bool half_up);

/// What a slice's parameters are to the formula: whole numbers as terms of 64 bits, signed.
struct SliceTerms {
  Term from_scale;
  Term from_zero_point;
  Term to_scale;
  Term to_zero_point;
  int exponent = 0;  ///< the destination's fractional bits less the source's
};

/// Whether y, the stored bits, is x's result by the formula, between integers. The scales' product
/// with what they scale is in `width` bits; see exact_width.
Term is_exact_result(const jit::RequantizeForm& form, const Term& x, const Term& y,
                     const SliceTerms& slice, int width);
/// Bits that is_exact_result computes in.
int exact_width(const jit::RequantizeForm& form, int exponent);

/// The library's result between integers; scale and shift of its multiplier, and zero points, as
/// terms of 64 bits, signed. `shift` is within +-512.
Term library_result(const jit::RequantizeForm& form, const Term& x, const Term& scale,
                    const Term& shift, const Term& from_zero_point, const Term& to_zero_point);
/// The library's rounding shift to the right of a 32-bit number in 64 bits, by any count.
Term library_shifted(const Term& x, const Term& count, bool half_up);
/// number / 2^shift rounded once, saturated to 32 bits: the number is below 2^62, the shift at most
/// 63, both of 64 bits.
Term rounded_quotient(const Term& number, const Term& shift, bool half_up);
/// Its part that scales a difference d, of 64 bits: y without the zero point.
Term library_product(const jit::RequantizeForm& form, const Term& d, const Term& scale,
                     const Term& shift);

/// The library's results from and to f32; `factor` is its f, of 32 bits.
Term library_from_float(const jit::RequantizeForm& form, const Term& x, const Term& factor,
                        const Term& to_zero_point);
Term library_to_float(const Term& x, const Term& factor, const Term& from_zero_point);
/// f by a slice's parameters.
uint32_t library_factor_from_float(int32_t to_scale, int32_t to_frac);
uint32_t library_factor_to_float(int32_t from_scale, int32_t from_frac);

/// Whether y is x's result by all that is specified.
Term is_specified_result(const jit::RequantizeForm& form, const Term& x, const Term& y,
                         const jit::SliceParameters& slice);

/// A number clamped to a signed type of `bits` bits, in its own width.
Term saturated(const Term& number, int bits);

}  // namespace castor::prove
