// SPDX-License-Identifier: Apache-2.0
// Lemmas of rounding errors as texts in SMT-LIB 2: linear inequalities between real numbers, which
// z3 decides whatever the parameters of a slice are.
#pragma once

#include <string>
#include <string_view>

namespace castor::prove {

/// A lemma as it is written: declarations, what is assumed, and the claim, of which the negation is
/// asked for.
class RealLemma {
 public:
  /// Declares real numbers, separated by spaces.
  RealLemma& reals(std::string_view names);
  RealLemma& integers(std::string_view names);
  /// An expression by a name.
  RealLemma& define(std::string_view name, std::string_view expression);
  RealLemma& assume(std::string_view condition);
  /// `magnitude` is a bound of the expression's.
  RealLemma& bounded(std::string_view expression, std::string_view magnitude);
  /// `result` is `exact` rounded to the nearest number of `precision` bits: it is off by at most
  /// 2^-precision of the magnitude, of which a bound is given, or by 2^-140 (f32) or 2^-1000 (f64)
  /// below normal numbers. With bounds rather than magnitudes, no case has to be told from another.
  RealLemma& rounded(std::string_view result, std::string_view exact, std::string_view magnitude,
                     int precision);
  /// The text that contradicts itself if the claim follows.
  std::string claiming(std::string_view claim) const;

 private:
  std::string text_;
};

/// 2^exponent as SMT-LIB has it.
std::string power(int exponent);
/// A number with few decimals.
std::string real(double number);

}  // namespace castor::prove
