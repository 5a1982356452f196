// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/query/quotients.hpp"

#include <algorithm>
#include <array>

#include "tools/prove/solver/solver.hpp"
#include "tools/prove/term/evaluate.hpp"
#include "tools/prove/term/polynomial.hpp"

namespace castor::prove {
namespace {

/// For the question whether a float is an operand.
constexpr Steps operand_steps = 4'000'000;

/// Without zeros above.
Term stripped(Term term) {
  while (term.op() == TermOp::concat && term.operand(0).is_constant(0)) term = term.operand(1);
  return term;
}

Term top_bit(const Term& term) { return bit(term, term.width() - 1); }

}  // namespace

std::optional<bool> known_bit(const Term& term, int index) {
  const auto of = [&](int operand, int at) { return known_bit(term.operand(operand), at); };
  switch (term.op()) {
    case TermOp::constant: return (term.value() >> index & 1) != 0;
    case TermOp::concat: {
      const int low = term.operand(1).width();
      return index < low ? of(1, index) : of(0, index - low);
    }
    case TermOp::extract: return of(0, index + static_cast<int>(term.node().detail));
    case TermOp::extend_sign: return of(0, std::min(index, term.operand(0).width() - 1));
    case TermOp::bit_xor: {
      const auto a = of(0, index);
      const auto b = of(1, index);
      if (a && b) return *a != *b;
      break;
    }
    default: break;
  }
  return std::nullopt;
}

QuotientForm::QuotientForm(std::span<const Term> operands, bool is_signed, bool divides)
    : terms_(operands[0].terms()),
      operands_(operands.begin(), operands.end()),
      is_signed_(is_signed) {
  if (divides) divisor_ = stripped(operands_[1]);
}

Term QuotientForm::of(const Term& term) {
  const Terms& from = term.terms();
  const bool is_own = &from == &terms_;
  std::unordered_map<uint32_t, Term> copies;
  for (const uint32_t id : reachable_nodes(std::span(&term, 1))) {
    const Node node = from.node(id);  // a copy: the Terms grow
    const auto assumed = is_own ? assumed_.find(id) : assumed_.end();
    if (assumed != assumed_.end()) {
      copies[id] = terms_.truth(assumed->second);
    } else if (node.op == TermOp::input) {
      copies[id] = is_own ? Term(&terms_, id) : operands_.at(node.detail);
    } else {
      std::array<Term, max_operands> operands;
      for (size_t i = 0; i < node.operand_count; ++i) operands[i] = copies.at(node.operands[i]);
      Term copy = rewritten(node, std::span(operands).first(node.operand_count), from);
      const auto now = assumed_.find(copy.id());
      copies[id] = now == assumed_.end() ? copy : terms_.truth(now->second);
    }
  }
  return copies.at(term.id());
}

Term QuotientForm::rewritten(const Node& node, std::span<const Term> v, const Terms& from) {
  const auto as_built = [&] { return with_operands(node, v, terms_, from); };
  switch (node.op) {
    case TermOp::add:
    case TermOp::mul:
    case TermOp::bit_xor: return node.width == 1 ? as_built() : expanded(as_built());
    case TermOp::urem: return remainder(v[0], v[1]);
    case TermOp::extend_sign:
      if (const auto sign = known_bit(v[0], v[0].width() - 1)) {
        return concat(terms_.constant(node.width - v[0].width(), *sign ? ~Bits{0} : 0), v[0]);
      }
      return as_built();
    case TermOp::extract:
      if (const Term sign = sign_of_remainder(node, v[0])) return sign;
      if (const Term cut = as_built(); cut.op() != TermOp::extract) return cut;
      return expanded(as_built());
    case TermOp::equal:
      if (v[0].is_constant(0)) return compared_with_zero(v[1]);
      if (v[1].is_constant(0)) return compared_with_zero(v[0]);
      return equal_expanded(v[0], v[1]);
    case TermOp::less_signed: {
      const int top = v[0].width() - 1;
      const auto a = known_bit(v[0], top);
      const auto b = known_bit(v[1], top);
      if (v[1].is_constant(0) && a) return terms_.truth(*a);
      if (v[0].is_constant(0) && b) return *b ? terms_.truth(false) : ~compared_with_zero(v[1]);
      return as_built();
    }
    case TermOp::less_unsigned:
      return asks_whether_a_number_is_nan(v) ? terms_.truth(false) : as_built();
    default: break;
  }
  const Term floats = of_float_node(node, v);
  return floats ? floats : as_built();
}

/// The first bit of a small remainder, or of what negates one; no term for others.
Term QuotientForm::sign_of_remainder(const Node& node, const Term& operand) {
  const auto known = small_remainders_.find(operand.id());
  const bool is_sign = node.width == 1 && node.detail == static_cast<uint64_t>(operand.width() - 1);
  if (!is_sign || known == small_remainders_.end()) return {};
  return known->second ? ~compared_with_zero(operand) : terms_.truth(false);
}

/// `equal(term, 0)`.
Term QuotientForm::compared_with_zero(const Term& term) {
  for (int i = 0; i < term.width(); ++i) {
    if (known_bit(term, i).value_or(false)) return terms_.truth(false);
  }
  const Term bits = stripped(term);
  if (divisor_ && bits.same_as(divisor_)) return terms_.truth(false);
  return equal_expanded(bits, like(bits, 0));
}

/// a mod b = a - b * (a / b), also where b is 0 and the quotient is whatever it is.
Term QuotientForm::remainder(const Term& a, const Term& b) {
  const Term result = expanded(a - b * udiv(a, b));
  // Below a magnitude, which is at most half of the range, the first bit is 0.
  if (divisor_ && is_signed_ && b.same_as(magnitude(1))) {
    small_remainders_[expanded(-result).id()] = true;
    small_remainders_[result.id()] = false;
  }
  return result;
}

bool QuotientForm::is_negative(size_t operand) const {
  const Term& bits = operands_[operand];
  return is_signed_ && known_bit(bits, bits.width() - 1).value();
}

Term QuotientForm::magnitude(size_t operand) {
  return is_negative(operand) ? expanded(-operands_[operand]) : operands_[operand];
}

bool QuotientForm::is_number(const Term& term) const {
  return term.op() == TermOp::signed_to_float || term.op() == TermOp::unsigned_to_float ||
         quotients_.contains(term.id());
}

/// `infinity < magnitude`, of what is a number.
bool QuotientForm::asks_whether_a_number_is_nan(std::span<const Term> v) const {
  const FloatFormat format = v[0].width() == f64_format.width() ? f64_format : f32_format;
  if (!v[0].is_constant(format.infinity()) || v[1].op() != TermOp::bit_and) return false;
  const Term a = v[1].operand(0);
  const Term b = v[1].operand(1);
  const Bits magnitude = format.sign() - 1;
  return (is_number(a) && b.is_constant(magnitude)) || (is_number(b) && a.is_constant(magnitude));
}

/// Whether the float is an operand's number.
bool QuotientForm::is_operand(size_t operand, FloatFormat format, const Term& number) {
  const Term& bits = operands_[operand];
  const auto converted = [&](const Term& integer, bool is_signed) {
    return is_signed ? signed_to_float(format, Rounding::nearest_even, integer)
                     : unsigned_to_float(format, Rounding::nearest_even, integer);
  };
  const Term exact = converted(bits, is_signed_);
  if (number.same_as(exact)) return true;
  if (bits.width() < 32) {
    const Term filling =
        terms_.constant(32 - bits.width(), is_signed_ && is_negative(operand) ? ~Bits{0} : 0);
    if (number.same_as(converted(concat(filling, bits), true))) return true;
  }
  return can_hold(not_equal(number, exact), operand_steps).kind == Answer::Kind::never;
}

Term QuotientForm::marked(const Quotient& quotient, int width) {
  const Term input = terms_.input("quotient", width);
  quotients_[input.id()] = quotient;
  return input;
}

Term QuotientForm::quotient_by_zero(FloatFormat format, const Term& a, bool is_negative) {
  const Term sign = top_bit(a) ^ terms_.truth(is_negative);
  const Term infinity = concat(sign, terms_.constant(format.width() - 1, format.infinity()));
  return if_then_else(is_nan(format, a) | is_zero(format, a), like(a, format.nan()), infinity);
}

Term QuotientForm::divided(const Node& node, std::span<const Term> v) {
  const FloatDetail detail = FloatDetail::unpacked(node.detail);
  const FloatFormat format = detail.format;
  const bool is_by_zero = v[1].is_constant(0) || v[1].is_constant(format.sign());
  if (is_by_zero) return quotient_by_zero(format, v[0], !v[1].is_constant(0));
  const bool applies = divisor_ && detail.rounding == Rounding::nearest_even &&
                       operands_[0].width() < format.precision;
  if (!applies || !is_operand(0, format, v[0]) || !is_operand(1, format, v[1])) return {};
  const Term size = udiv(magnitude(0), magnitude(1));
  const Term cut = remainder(magnitude(0), magnitude(1));
  return marked({.size = size, .remainder_is_zero = compared_with_zero(cut)}, format.width());
}

/// Where the bits do not hold a quotient, it is the largest of signed ones plus 1, whose bits are
/// those of the smallest, which is the instruction's result.
Term QuotientForm::integer_of(const Quotient& quotient, int width, bool rounds_down) {
  const Term size = resize_zero(quotient.size, width);
  if (!is_signed_ || is_negative(0) == is_negative(1)) return size;
  const Term negated = expanded(-size);
  if (!rounds_down) return negated;
  return if_then_else(quotient.remainder_is_zero, negated, expanded(negated - 1));
}

/// An integer plus 2^(p - 1), where it is less: the sum's fraction is the integer.
Term QuotientForm::added_to_fraction(const Node& node, std::span<const Term> v) {
  const FloatFormat format = FloatDetail::unpacked(node.detail).format;
  const int bits = format.fraction_bits();
  const Bits first = static_cast<Bits>(format.bias() + bits) << bits;
  const size_t constant = v[0].is_constant() ? 0 : 1;
  const Term& other = v[1 - constant];
  if (!v[constant].is_constant(first) || other.op() != TermOp::unsigned_to_float) return {};
  const Term integer = other.operand(0);
  if (integer.width() > bits) return {};
  return concat(terms_.constant(format.width() - bits, first >> bits), extend_zero(integer, bits));
}

Term QuotientForm::of_float_node(const Node& node, std::span<const Term> v) {
  if (node.op == TermOp::float_div) return divided(node, v);
  if (node.op == TermOp::float_add) return added_to_fraction(node, v);
  const bool rounds = node.op == TermOp::float_to_signed || node.op == TermOp::float_to_unsigned ||
                      node.op == TermOp::float_round;
  if (!rounds) return {};
  const auto found = quotients_.find(v[0].id());
  if (found == quotients_.end()) return {};
  const Quotient quotient = found->second;  // a copy: there may be more
  const FloatDetail detail = FloatDetail::unpacked(node.detail);
  const bool down = quotient.is_floor || detail.rounding == Rounding::down;
  if (!down && detail.rounding != Rounding::toward_zero) return {};
  const int bits = quotient.size.width();
  if (node.op == TermOp::float_to_signed) {
    const bool fits = is_signed_ ? node.width >= bits : node.width > bits;
    return fits ? integer_of(quotient, node.width, down) : Term();
  }
  if (node.op == TermOp::float_to_unsigned) {
    return !is_signed_ && node.width >= bits ? integer_of(quotient, node.width, down) : Term();
  }
  if (!is_signed_) return unsigned_to_float(detail.format, Rounding::nearest_even, quotient.size);
  if (!down) return {};
  Quotient floor = quotient;
  floor.is_floor = true;
  return marked(floor, node.width);
}

}  // namespace castor::prove
