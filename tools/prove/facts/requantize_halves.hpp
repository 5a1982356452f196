// SPDX-License-Identifier: Apache-2.0
// Products of differences of 32 bits, whose halves lanes multiply.
#pragma once

#include <limits>

#include "tools/prove/facts/fact.hpp"
#include "tools/prove/facts/replace.hpp"

namespace castor::prove {

inline constexpr int64_t min_i32 = std::numeric_limits<int32_t>::min();
inline constexpr int64_t max_i32 = std::numeric_limits<int32_t>::max();

/// The library's product of P, of 64 bits, before the zero point is added: `norms` are the
/// redundant sign bits of P's factors.
Term accumulated(const Term& p, int norms, const Term& shift, bool half_up);

/// A difference of 32 bits in two halves, a multiplier of 15 bits, and the products as inputs.
struct Halves {
  explicit Halves(Terms& terms)
      : a(terms.input("upper half", 16)),
        b(terms.input("lower half", 16)),
        scale(concat(terms.constant(2, 1), terms.input("multiplier", 14))),
        upper(terms.input("upper product", 32)),
        lower(terms.input("lower product", 32)) {}

  static constexpr Bits max_lower = 0xffff * Bits{0x7fff};

  Term a, b;
  Term scale;  ///< 16 bits, of which the highest two are 0 and 1
  Term upper;  ///< a * scale
  Term lower;  ///< b * scale

  Term difference() const { return concat(a, b); }
  Term scale_32() const { return extend_zero(scale, 32); }
  Term upper_scale() const { return concat(scale, scale.terms().constant(16, 0)); }
  Term product() const { return shift_left(signed_64(upper), 16) + unsigned_64(lower); }
  /// What is true of products of a difference with this count of redundant sign bits.
  Term have_size(int redundant_bits) const {
    const Term limit = shift_left(unsigned_64(scale), 31 - redundant_bits);
    const Term p = product();
    return at_most_signed(-limit, p) & at_most_signed(p, limit) &
           at_most_unsigned(lower, like(lower, max_lower));
  }
  /// The term with the products of halves as they are in lane programs replaced; `lower_half` is b
  /// in 32 bits.
  Term with_inputs(const Term& term, const Term& lower_half) const {
    const Term s = extend_sign(scale, 32);
    return replaced(term, {{lower_half * scale_32(), lower}, {extend_sign(a, 32) * s, upper}});
  }
};

/// d s is (a s) 2^16 + b s, and other facts of products that questions assume.
void check_halves(FactCheck& check);

}  // namespace castor::prove
