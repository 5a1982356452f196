// SPDX-License-Identifier: Apache-2.0
#include "runtime/check/bounded_sum.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include "ir/support/integer_math.hpp"

namespace castor {

namespace {

/// a / b rounded up, for any `a` but the least and a positive `b`.
int64_t ceil_quotient(int64_t a, int64_t b) { return -floor_div(-a, b); }

/// a - b * floor(a / b), for a positive `b`.
int64_t floor_remainder(int64_t a, int64_t b) {
  const int64_t remainder = a % b;
  return remainder < 0 ? remainder + b : remainder;
}

/// The least t from 0 to `limit` for which low <= a * t mod m <= high, if there is one.
/// 0 <= a < m, 0 < low <= high < m, and a * limit does not overflow. Each step of the recursion is
/// one of Euclid's algorithm for a and m: the answer passes m a number y of times, and y is the
/// answer to the same question for m mod a and a.
std::optional<int64_t> first_in_range(int64_t a, int64_t m, int64_t low, int64_t high,
                                      int64_t limit) {
  if (a == 0) return std::nullopt;
  const int64_t first = ceil_div(low, a);
  if (first > limit) return std::nullopt;
  if (first * a <= high) return first;
  const std::optional<int64_t> passes =
      first_in_range(m % a, a, a - high % a, a - low % a, a * limit / m);
  if (!passes) return std::nullopt;
  const int64_t t = ceil_div(low + m * *passes, a);
  return t <= limit ? std::optional(t) : std::nullopt;
}

/// The least x from `x` to `max` for which target - coefficient * x has a multiple of `divisor`.
std::optional<int64_t> next_factor(const BoundedTerm& term, int64_t x, int64_t divisor,
                                   const Interval& target) {
  if (x > term.max) return std::nullopt;
  const int64_t above = floor_remainder(target.high - term.coefficient * x, divisor);
  const int64_t low = above - (target.high - target.low);
  if (low <= 0) return x;
  const std::optional<int64_t> more =
      first_in_range(term.coefficient % divisor, divisor, low, above, term.max - x);
  return more ? std::optional(x + *more) : std::nullopt;
}

/// Terms and the interval that their sum is to reach.
class Problem {
 public:
  Problem(std::span<const BoundedTerm> terms, const Interval& target)
      : count_(terms.size()), target_(target) {
    std::copy(terms.begin(), terms.end(), terms_.begin());
  }

  size_t count() const { return count_; }
  std::span<BoundedTerm> terms() { return std::span(terms_).first(count_); }
  std::span<const BoundedTerm> terms() const { return std::span(terms_).first(count_); }
  const Interval& target() const { return target_; }

  /// What the least and the largest sum tell.
  Reachable compare_with_ends() const {
    const int64_t max = largest_sum();
    if (target_.low > target_.high || target_.high < 0 || target_.low > max) return Reachable::no;
    const bool has_end = target_.low <= 0 || target_.high >= max;
    return has_end ? Reachable::yes : Reachable::undecided;
  }

  /// Narrows each factor to those with which the other terms can still complete the sum, and drops
  /// the terms that have one left. False where a factor has none.
  bool narrow();

  /// Divides all coefficients by their common divisor; true if it exceeds 1.
  bool divide_by_common();

  /// Drops a term whose multiples leave no gap between copies of the interval, and widens the
  /// interval by them. True if there was one.
  bool absorb();

  /// Makes one of two terms where the multiples of one continue those of the other, as those of
  /// two contiguous axes do. True if there were such.
  bool merge();

  /// The term whose factor has the fewest values.
  size_t narrowest() const {
    const auto by_most = [](const BoundedTerm& a, const BoundedTerm& b) { return a.max < b.max; };
    const auto found = std::min_element(terms().begin(), terms().end(), by_most);
    return static_cast<size_t>(found - terms().begin());
  }

  /// The common divisor of all coefficients but that one; of at least two terms.
  int64_t divisor_without(size_t term) const {
    int64_t divisor = 0;
    for (size_t i = 0; i < count_; ++i) {
      if (i != term) divisor = std::gcd(divisor, terms_[i].coefficient);
    }
    return divisor;
  }

  /// The problem that is left when that term's factor is x.
  Problem with(size_t term, int64_t x) const {
    Problem remainder = *this;
    remainder.shift(terms_[term].coefficient * x);
    remainder.drop(term);
    return remainder;
  }

 private:
  int64_t largest_sum() const {
    int64_t sum = 0;
    for (const BoundedTerm& term : terms()) sum += term.coefficient * term.max;
    return sum;
  }
  void shift(int64_t by) {
    target_.low -= by;
    target_.high -= by;
  }
  void drop(size_t term) { terms_[term] = terms_[--count_]; }
  bool continues(const BoundedTerm& inner, const BoundedTerm& outer) const {
    const int64_t ratio = outer.coefficient / inner.coefficient;
    return outer.coefficient % inner.coefficient == 0 && inner.max >= ratio - 1;
  }

  std::array<BoundedTerm, max_terms> terms_;
  size_t count_;
  Interval target_;
};

bool Problem::narrow() {
  int64_t max_of_all = largest_sum();
  for (size_t i = count_; i-- > 0;) {
    BoundedTerm& term = terms_[i];
    const int64_t max_of_others = max_of_all - term.coefficient * term.max;
    const int64_t first =
        std::max<int64_t>(0, ceil_quotient(target_.low - max_of_others, term.coefficient));
    const int64_t last = std::min(term.max, floor_div(target_.high, term.coefficient));
    if (first > last) return false;
    term.max = last - first;
    shift(term.coefficient * first);
    max_of_all = max_of_others + term.coefficient * term.max;
    if (term.max == 0) drop(i);
  }
  return true;
}

bool Problem::divide_by_common() {
  int64_t divisor = 0;
  for (const BoundedTerm& term : terms()) divisor = std::gcd(divisor, term.coefficient);
  if (divisor <= 1) return false;
  for (BoundedTerm& term : terms()) term.coefficient /= divisor;
  target_ = {ceil_quotient(target_.low, divisor), floor_div(target_.high, divisor)};
  return true;
}

bool Problem::absorb() {
  for (size_t i = 0; i < count_; ++i) {
    const BoundedTerm term = terms_[i];
    if (term.coefficient > target_.high - target_.low + 1) continue;
    target_.low -= term.coefficient * term.max;
    drop(i);
    return true;
  }
  return false;
}

bool Problem::merge() {
  for (size_t i = 0; i < count_; ++i) {
    for (size_t k = 0; k < count_; ++k) {
      if (i == k || !continues(terms_[i], terms_[k])) continue;
      terms_[i].max += terms_[k].coefficient / terms_[i].coefficient * terms_[k].max;
      drop(k);
      return true;
    }
  }
  return false;
}

/// Decides by narrowing, then by trying the values of one factor.
class Search {
 public:
  explicit Search(int64_t& steps) : steps_(steps) {}

  Reachable decide(Problem problem) {  // NOLINT(misc-no-recursion): max_terms deep
    const Reachable simple = simplify(problem);
    if (simple != Reachable::undecided || steps_ < 0) return simple;
    const size_t chosen = problem.narrowest();
    const BoundedTerm term = problem.terms()[chosen];
    const int64_t divisor = problem.divisor_without(chosen);
    std::optional<int64_t> x = next_factor(term, 0, divisor, problem.target());
    while (x) {
      const Reachable found = decide(problem.with(chosen, *x));
      if (found != Reachable::no) return found;
      if (steps_ < 0) return Reachable::undecided;
      x = next_factor(term, *x + 1, divisor, problem.target());
    }
    return Reachable::no;
  }

 private:
  /// Until nothing changes; every round but the last has a term less, or divides once for that.
  Reachable simplify(Problem& problem) {
    while (true) {
      steps_ -= 1 + static_cast<int64_t>(problem.count());
      Reachable found = problem.compare_with_ends();
      if (found != Reachable::undecided || steps_ < 0) return found;
      if (!problem.narrow()) return Reachable::no;
      found = problem.compare_with_ends();
      if (found != Reachable::undecided) return found;
      if (!problem.divide_by_common() && !problem.absorb() && !problem.merge()) return found;
    }
  }

  int64_t& steps_;
};

}  // namespace

Reachable sum_reaches(std::span<const BoundedTerm> terms, Interval target, int64_t& steps) {
  return Search(steps).decide(Problem(terms, target));
}

}  // namespace castor
