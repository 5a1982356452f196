// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/facts/requantize_halves.hpp"

#include "tools/prove/facts/requantize_spec.hpp"
#include "tools/prove/term/polynomial.hpp"

namespace castor::prove {

Term accumulated(const Term& p, int norms, const Term& shift, bool half_up) {
  const Term kept = shift_right_signed(shift_left(p, norms), 32);
  return library_shifted(kept, shift + signed_like(shift, norms - 32), half_up);
}

void check_halves(FactCheck& check) {
  Terms terms;
  const Halves halves(terms);
  const Term d = shift_left(signed_64(halves.a), 16) + unsigned_64(halves.b);
  check.never(not_equal(d, signed_64(halves.difference())), "halves of a difference");
  const Term s = unsigned_64(halves.scale);
  const Term sum = shift_left(signed_64(halves.a) * s, 16) + unsigned_64(halves.b) * s;
  check.holds(equal_expanded(d * s, sum).is_constant(1), "a product of halves");
  check.never(not_equal(extend_sign(halves.scale, 32), halves.scale_32()), "the multiplier's sign");
  // A product by a positive number grows with the other factor: so sizes of d bound those of P.
  const Term more = extend_zero(terms.input("more", 32), 64);
  check.never(less_signed(more * s, 0), "a product of numbers that are not negative");
  const Term lower = extend_zero(halves.b, 32) * halves.scale_32();
  check.never(less_unsigned(like(lower, Halves::max_lower), lower), "the lower product");
}

}  // namespace castor::prove
