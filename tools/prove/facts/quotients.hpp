// SPDX-License-Identifier: Apache-2.0
// Quotients by divisors that are known (jit/lane/reciprocals.hpp, jit/lower/bounded_quotients.hpp).
#pragma once

#include "tools/prove/facts/fact.hpp"

namespace castor::prove {

/// A quotient, rounded or not, is between the products by multipliers that are `slack` units of the
/// last place below and above a reciprocal.
void check_reciprocals(int slack, FactCheck& check);

/// A product and a multiply-add are within 2^exponent of the quotient of numbers in [1, 2).
void check_two_steps(int exponent, FactCheck& check);

/// A number over a fraction of its range is, in magnitude, at most the fraction's divisor times
/// 1 + 2^exponent.
void check_bounded_quotients(int exponent, FactCheck& check);

}  // namespace castor::prove
