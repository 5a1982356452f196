// SPDX-License-Identifier: Apache-2.0
// Sums of products of bit-vectors in one form.
#pragma once

#include <map>
#include <vector>

#include "tools/prove/term/term.hpp"

namespace castor::prove {

/// A polynomial modulo 2^width in nodes that are no sums and no products: products, as ordered
/// nodes, with their coefficients, none of which is 0. The empty product is 1.
using Polynomial = std::map<std::vector<uint32_t>, Bits>;

/// The term as a polynomial modulo 2^width. Cut sums, shifts to the left by constants, complements
/// and concatenations count as what they are: `concat(a, b)` is a * 2^(b's width) + b.
Polynomial polynomial_of(const Term& term);

/// The term of a polynomial: equal polynomials have one term.
Term term_of(const Polynomial& polynomial, int width, Terms& terms);

/// The same function, as one term for all terms that are the same polynomial.
Term expanded(const Term& term);

/// `equal(a, b)`: a constant where the difference is one, else one term for all comparisons of the
/// same difference, of either sign, with 0.
Term equal_expanded(const Term& a, const Term& b);

}  // namespace castor::prove
