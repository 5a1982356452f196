// SPDX-License-Identifier: Apache-2.0
// Integer arithmetic in one form: sums of products, remainders by quotients, and quotients that are
// computed in floats.
#pragma once

#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "tools/prove/term/float_terms.hpp"

namespace castor::prove {

/// Copies terms with integer arithmetic in one form, so that what is equal becomes one node.
///
/// Operands are integers of N bits, by number of the input; their signs are constants where they
/// are signed. Quotients of floats that have a precision p of more than N bits are turned into
/// those of the integers: let q = a / b be no integer and n one, 2^e <= |q| < 2^(e + 1). Then |b|
/// <= 2^(N - e), so that |n - q| >= 1 / |b| >= 2^(e - N), while rounding to nearest moves q by at
/// most 2^(e - p), which is less, and past no integer up to 2^N, as the format has them all. So
/// rounding the rounded quotient down or toward zero gives what rounding q would.
class QuotientForm {
 public:
  /// `operands` replace the inputs of terms of other Terms than their own. With `divides`, the
  /// second is not 0.
  QuotientForm(std::span<const Term> operands, bool is_signed, bool divides);

  /// The same function of the operands under what is assumed.
  Term of(const Term& term);
  /// That a truth value of a copy is one of both; `truth` is no negation.
  void assume(const Term& truth, bool value) { assumed_[truth.id()] = value; }
  void forget(const Term& truth) { assumed_.erase(truth.id()); }

 private:
  struct Quotient {
    Term size;               ///< |a| / |b|, rounded down
    Term remainder_is_zero;  ///< width 1
    bool is_floor = false;   ///< the float has been rounded down
  };

  Term rewritten(const Node& node, std::span<const Term> v, const Terms& from);
  Term of_float_node(const Node& node, std::span<const Term> v);
  Term divided(const Node& node, std::span<const Term> v);
  Term quotient_by_zero(FloatFormat format, const Term& a, bool is_negative);
  Term added_to_fraction(const Node& node, std::span<const Term> v);
  Term integer_of(const Quotient& quotient, int width, bool rounds_down);
  Term compared_with_zero(const Term& term);
  Term sign_of_remainder(const Node& node, const Term& operand);
  bool asks_whether_a_number_is_nan(std::span<const Term> v) const;
  Term remainder(const Term& a, const Term& b);
  Term magnitude(size_t operand);
  bool is_negative(size_t operand) const;
  bool is_number(const Term& term) const;
  bool is_operand(size_t operand, FloatFormat format, const Term& number);
  Term marked(const Quotient& quotient, int width);

  Terms& terms_;
  const std::vector<Term> operands_;
  const bool is_signed_;
  Term divisor_;  ///< its bits that are not constant; no term where it may be 0
  std::unordered_map<uint32_t, Quotient> quotients_;  ///< by the inputs that stand for them
  /// Remainders whose first bit is 0, and, with true, what negates them, by node.
  std::unordered_map<uint32_t, bool> small_remainders_;
  std::unordered_map<uint32_t, bool> assumed_;
};

/// A bit of a term, where it is constant.
std::optional<bool> known_bit(const Term& term, int index);

}  // namespace castor::prove
