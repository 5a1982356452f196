// SPDX-License-Identifier: Apache-2.0
// Building terms, simplified where a rule of one or two nodes applies.
#include <array>
#include <cassert>

#include "tools/prove/term/term.hpp"

namespace castor::prove {
namespace {

Term made(TermOp op, int width, const Term& a, const Term& b) {
  return a.terms().make(op, width, std::array{a, b});
}

Term of_width(TermOp op, const Term& a, const Term& b) {
  assert(a.width() == b.width());
  return made(op, a.width(), a, b);
}

/// The constant operand of a commuting operation second.
std::pair<Term, Term> ordered(const Term& a, const Term& b) {
  return a.is_constant() ? std::pair(b, a) : std::pair(a, b);
}

bool is_complement(const Term& a, const Term& b) {
  return a.op() == TermOp::bit_xor && (~a).same_as(b);
}

}  // namespace

Term like(const Term& a, Bits value) { return a.terms().constant(a.width(), value); }

Term operator+(const Term& a, const Term& b) {
  const auto [x, y] = ordered(a, b);
  if (y.is_constant(0)) return x;
  return of_width(TermOp::add, x, y);
}

Term operator-(const Term& a) { return a * ~Bits{0}; }  // z3's own normal form

Term operator-(const Term& a, const Term& b) {
  if (a.same_as(b)) return like(a, 0);
  if (b.is_constant()) return a + like(b, -b.value());
  return a + -b;
}

Term operator*(const Term& a, const Term& b) {
  const auto [x, y] = ordered(a, b);
  if (y.is_constant(0)) return y;
  if (y.is_constant(1)) return x;
  return of_width(TermOp::mul, x, y);
}

Term operator&(const Term& a, const Term& b) {
  const auto [x, y] = ordered(a, b);
  if (y.is_constant(0)) return y;
  if (y.is_constant(~Bits{0}) || x.same_as(y)) return x;
  return of_width(TermOp::bit_and, x, y);
}

Term operator|(const Term& a, const Term& b) {
  const auto [x, y] = ordered(a, b);
  if (y.is_constant(0) || x.same_as(y)) return x;
  if (y.is_constant(~Bits{0})) return y;
  return of_width(TermOp::bit_or, x, y);
}

Term operator^(const Term& a, const Term& b) {
  const auto [x, y] = ordered(a, b);
  if (y.is_constant(0)) return x;
  if (x.same_as(y)) return like(a, 0);
  if (y.is_constant() && x.op() == TermOp::bit_xor) {  // (z ^ c) ^ d = z ^ (c ^ d)
    const auto [z, c] = ordered(x.operand(0), x.operand(1));
    if (c.is_constant()) return z ^ like(z, c.value() ^ y.value());
  }
  return of_width(TermOp::bit_xor, x, y);
}

Term operator~(const Term& a) { return a ^ ~Bits{0}; }

Term udiv(const Term& a, const Term& b) { return of_width(TermOp::udiv, a, b); }
Term urem(const Term& a, const Term& b) { return of_width(TermOp::urem, a, b); }

Term shift_left(const Term& a, const Term& count) {
  if (count.is_constant()) {
    if (count.value() == 0) return a;
    if (count.value() >= static_cast<Bits>(a.width())) return like(a, 0);
    const int by = static_cast<int>(count.value());
    return concat(truncate(a, a.width() - by), a.terms().constant(by, 0));
  }
  return of_width(TermOp::shift_left, a, count);
}

Term shift_right(const Term& a, const Term& count) {
  if (count.is_constant()) {
    if (count.value() == 0) return a;
    if (count.value() >= static_cast<Bits>(a.width())) return like(a, 0);
    const int by = static_cast<int>(count.value());
    return extend_zero(extract(a, by, a.width() - by), a.width());
  }
  return of_width(TermOp::shift_right, a, count);
}

Term shift_right_signed(const Term& a, const Term& count) {
  if (count.is_constant()) {
    const Bits last = static_cast<Bits>(a.width() - 1);
    const int by = static_cast<int>(count.value() > last ? last : count.value());
    return extend_sign(extract(a, by, a.width() - by), a.width());
  }
  return of_width(TermOp::shift_right_signed, a, count);
}

Term operator+(const Term& a, Bits b) { return a + like(a, b); }
Term operator-(const Term& a, Bits b) { return a + like(a, -b); }
Term operator*(const Term& a, Bits b) { return a * like(a, b); }
Term operator&(const Term& a, Bits b) { return a & like(a, b); }
Term operator|(const Term& a, Bits b) { return a | like(a, b); }
Term operator^(const Term& a, Bits b) { return a ^ like(a, b); }
Term shift_left(const Term& a, int n) { return shift_left(a, like(a, static_cast<Bits>(n))); }
Term shift_right(const Term& a, int n) { return shift_right(a, like(a, static_cast<Bits>(n))); }
Term shift_right_signed(const Term& a, int n) {
  return shift_right_signed(a, like(a, static_cast<Bits>(n)));
}

Term extract(const Term& a, int low, int width) {
  assert(low >= 0 && width >= 1 && low + width <= a.width());
  if (width == a.width()) return a;
  if (a.op() == TermOp::extract) {
    return extract(a.operand(0), low + static_cast<int>(a.node().detail), width);
  }
  if (a.op() == TermOp::concat) {
    const Term high = a.operand(0);
    const Term below = a.operand(1);
    if (low >= below.width()) return extract(high, low - below.width(), width);
    if (low + width <= below.width()) return extract(below, low, width);
    return concat(extract(high, 0, low + width - below.width()),
                  extract(below, low, below.width() - low));
  }
  if (a.op() == TermOp::extend_sign) {
    const Term inner = a.operand(0);
    if (low + width <= inner.width()) return extract(inner, low, width);
    if (low == 0) return extend_sign(inner, width);
  }
  return a.terms().make(TermOp::extract, width, std::array{a}, static_cast<uint64_t>(low));
}

Term truncate(const Term& a, int width) { return extract(a, 0, width); }
Term bit(const Term& a, int index) { return extract(a, index, 1); }

Term concat(const Term& high, const Term& low) {
  const bool adjacent = high.op() == TermOp::extract && low.op() == TermOp::extract &&
                        high.operand(0).same_as(low.operand(0)) &&
                        high.node().detail == low.node().detail + low.node().width;
  if (adjacent) {
    return extract(low.operand(0), static_cast<int>(low.node().detail), high.width() + low.width());
  }
  if (high.is_constant() && low.op() == TermOp::concat && low.operand(0).is_constant()) {
    return concat(concat(high, low.operand(0)), low.operand(1));
  }
  return made(TermOp::concat, high.width() + low.width(), high, low);
}

Term extend_zero(const Term& a, int width) {
  if (width == a.width()) return a;
  return concat(a.terms().constant(width - a.width(), 0), a);
}

Term extend_sign(const Term& a, int width) {
  if (width == a.width()) return a;
  if (a.op() == TermOp::extend_sign) return extend_sign(a.operand(0), width);
  return a.terms().make(TermOp::extend_sign, width, std::array{a});
}

Term resize_zero(const Term& a, int width) {
  return width <= a.width() ? truncate(a, width) : extend_zero(a, width);
}

Term mask_of(const Term& truth, int width) { return extend_sign(truth, width); }

Term if_then_else(const Term& condition, const Term& a, const Term& b) {
  assert(condition.width() == 1 && a.width() == b.width());
  if (condition.is_constant()) return condition.value() != 0 ? a : b;
  if (a.same_as(b)) return a;
  if (a.width() == 1 && a.is_constant(1) && b.is_constant(0)) return condition;
  if (a.width() == 1 && a.is_constant(0) && b.is_constant(1)) return ~condition;
  return a.terms().make(TermOp::if_then_else, a.width(), std::array{condition, a, b});
}

Term equal(const Term& a, const Term& b) {
  assert(a.width() == b.width());
  if (a.same_as(b)) return a.terms().truth(true);
  if (is_complement(a, b) || is_complement(b, a)) return a.terms().truth(false);
  if (a.width() == 1) return ~(a ^ b);
  return made(TermOp::equal, 1, a, b);
}

Term less_unsigned(const Term& a, const Term& b) {
  if (a.same_as(b) || b.is_constant(0) || a.is_constant(~Bits{0})) return a.terms().truth(false);
  return made(TermOp::less_unsigned, 1, a, b);
}

Term less_signed(const Term& a, const Term& b) {
  if (a.same_as(b)) return a.terms().truth(false);
  return made(TermOp::less_signed, 1, a, b);
}

Term not_equal(const Term& a, const Term& b) { return ~equal(a, b); }
Term at_most_unsigned(const Term& a, const Term& b) { return ~less_unsigned(b, a); }
Term at_most_signed(const Term& a, const Term& b) { return ~less_signed(b, a); }
Term equal(const Term& a, Bits b) { return equal(a, like(a, b)); }
Term less_unsigned(const Term& a, Bits b) { return less_unsigned(a, like(a, b)); }
Term less_signed(const Term& a, Bits b) { return less_signed(a, like(a, b)); }

Term min_unsigned(const Term& a, const Term& b) { return if_then_else(less_unsigned(a, b), a, b); }
Term max_unsigned(const Term& a, const Term& b) { return if_then_else(less_unsigned(a, b), b, a); }
Term min_signed(const Term& a, const Term& b) { return if_then_else(less_signed(a, b), a, b); }
Term max_signed(const Term& a, const Term& b) { return if_then_else(less_signed(a, b), b, a); }

Term entry_of(std::span<const Term> entries, const Term& index) {
  std::vector<Term> left(entries.begin(), entries.end());
  for (int number = 0; left.size() > 1; ++number) {
    const Term odd = bit(index, number);
    for (size_t i = 0; i < left.size() / 2; ++i) {
      left[i] = if_then_else(odd, left[2 * i + 1], left[2 * i]);
    }
    left.resize(left.size() / 2);
  }
  return left[0];
}

Term leading_zeros(const Term& a) {
  Term count = like(a, static_cast<Bits>(a.width()));
  for (int i = 0; i < a.width(); ++i) {
    count = if_then_else(bit(a, i), like(a, static_cast<Bits>(a.width() - 1 - i)), count);
  }
  return count;
}

}  // namespace castor::prove
