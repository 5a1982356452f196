// SPDX-License-Identifier: Apache-2.0
// The library's accumulators in 32-bit lanes (jit/requantize/i32_accumulator.cpp).
#include <fmt/format.h>

#include <algorithm>

#include "tools/prove/facts/replace.hpp"
#include "tools/prove/facts/requantize_halves.hpp"
#include "tools/prove/facts/requantize_spec.hpp"
#include "tools/prove/facts/requantize_symbolic.hpp"

namespace castor::prove {

using jit::RequantizeForm;

namespace {

/// The accumulator method: shifts from 1 to 16, saturation known before.
class AccumulatorProgram {
 public:
  AccumulatorProgram(Terms& terms, int shift, const RequantizeTamper& tamper)
      : halves(terms), broken(terms.truth(false)), shift_(shift) {
    x = terms.input("x", 32);
    zero_point = extend_sign(terms.input("from zero point", 16), 32);
    to_zero_point = signed_64(terms.input("to zero point", 16));
    lowest = terms.input("lowest", 32);
    highest = terms.input("highest", 32);
    below = terms.input("below", 32);
    above = terms.input("above", 32);
    const auto constant = [&](Bits value) { return terms.constant(32, value); };
    const std::vector<Term> constants = {zero_point,
                                         halves.scale_32(),
                                         halves.upper_scale(),
                                         constant(Bits{1} << (shift - 1)),
                                         constant(static_cast<Bits>(shift)),
                                         constant(static_cast<Bits>(16 - shift)),
                                         truncate(to_zero_point, 32),
                                         lowest,
                                         highest,
                                         below,
                                         above};
    const RequantizeForm form = forms_of(jit::i32_accumulator_method()).front();
    whole = requantized(jit::i32_accumulator_method(), form, jit::Tier::avx2, x, constants, broken,
                        tamper);
    const Term d = x - zero_point;
    const Term of_halves = replaced(whole, {{d, halves.difference()}});
    if (of_halves) y = halves.with_inputs(of_halves, halves.difference() & 0xffff);
  }

  /// The library's product, before it saturates, of a difference with this count of redundant sign
  /// bits.
  Term product(int redundant_bits) const {
    const int cut = std::max(16 - redundant_bits, 0);
    const Term p = halves.product();
    const Term kept = p & (~Bits{0} << cut & low_mask(64));
    return shift_right_signed(kept + (Bits{1} << (shift_ - 1)), shift_);
  }

  Halves halves;
  Term broken;
  Term x, zero_point, to_zero_point;
  Term lowest, highest, below, above;
  Term whole;  ///< what is stored
  Term y;      ///< what is stored, by the products of halves; no term where there are others

 private:
  const int shift_;
};

/// Whether a difference, of 32 bits, has this count of redundant sign bits.
Term has_redundant_bits(const Term& d, int count) {
  const Term magnitude = if_then_else(bit(d, 31), ~d, d);
  return equal(leading_zeros(magnitude), static_cast<Bits>(count + 1));
}

/// Elements whose results do not saturate: their sums modulo 2^32 are the library's.
void check_inner(int shift, FactCheck& check, const RequantizeTamper& tamper) {
  Terms terms;
  const AccumulatorProgram program(terms, shift, tamper);
  const std::string subject = fmt::format("shift {}", shift);
  if (!check.holds(bool(program.y), subject + ": the lane program")) return;
  const Halves& halves = program.halves;
  const Term is_inner =
      ~less_signed(program.highest, program.x) & ~less_signed(program.x, program.lowest);
  for (int u = 0; u < 32 && check.goes_on(); u += step_of(check.effort(), 12)) {
    const Term value = program.product(u);
    const Term d = halves.difference();
    // The method cuts one bit more of -2^n, whose products end in n zeros.
    const Term power_ends_in_zeros =
        ~equal(d, Bits{0xffffffff} << (31 - u) & 0xffffffff) |
        (equal(halves.product() & low_mask(31 - u), 0) & equal(halves.lower & low_mask(31 - u), 0));
    const Term known = has_redundant_bits(d, u) & halves.have_size(u) & power_ends_in_zeros;
    const std::string bits = fmt::format("{}, {} redundant sign bits", subject, u);
    check.never(
        known & is_inner &
            (program.broken | not_equal(program.y, truncate(value + program.to_zero_point, 32))),
        bits);
    const Term count = terms.constant(64, static_cast<Bits>(shift));
    check.never(
        known & not_equal(accumulated(halves.product(), u + 16, count, true), saturated(value, 32)),
        bits + ": the library's product");
    // Products of a class of differences keep within the products of its ends: they grow with d.
    const Term s = unsigned_64(halves.scale);
    const Term p = halves.product();
    const Term cut = p & (~low_mask(std::max(16 - u, 0)) & low_mask(64));
    const Term least = if_then_else(bit(d, 31), -shift_left(s, 31 - u),
                                    u == 31 ? like(s, 0) : shift_left(s, 30 - u));
    check.never(at_most_signed(least, p) & ~(at_most_signed(least, cut) & at_most_signed(cut, p)),
                bits + ": order");
  }
}

/// Elements whose results saturate, on either side: the order of products p of differences says
/// which these are.
void check_outer(FactCheck& check, const RequantizeTamper& tamper) {
  Terms terms;
  const AccumulatorProgram program(terms, 8, tamper);
  const Term x = signed_64(program.x), zero = signed_64(program.zero_point);
  const Term w = program.to_zero_point;
  const Term none = like(w, 0);
  const auto input = [&](const char* name) { return terms.input(name, 64); };
  const Term p = input("product"), p_min = input("least product"), p_max = input("largest product");
  const Term first_right = signed_64(terms.input("first right", 33));
  const Term first_above = signed_64(terms.input("first above", 33));
  const Term d = saturated(x - zero, 32);
  const Term least = signed_like(w, min_i32) + max_signed(-w, none);
  const Term end = signed_like(w, max_i32 + 1) - max_signed(w, none);
  const Term range = is_between(p, -(int64_t{1} << 47), int64_t{1} << 47) &
                     at_most_signed(p_min, p) & at_most_signed(p, p_max) &
                     is_between(p_min, -(int64_t{1} << 47), int64_t{1} << 47) &
                     is_between(p_max, -(int64_t{1} << 47), int64_t{1} << 47) &
                     // The product of 0 is between the ends.
                     is_between(first_right, min_i32, 0) & is_between(first_above, 1, max_i32 + 1);
  const auto same = [](const Term& a, const Term& b) { return ~(a ^ b); };
  const Term order = same(less_signed(d, first_right), less_signed(p, least)) &
                     same(less_signed(d, first_above), less_signed(p, end)) &
                     (~equal(d, signed_like(d, min_i32)) | equal(p, p_min)) &
                     (~equal(d, signed_like(d, max_i32)) | equal(p, p_max));
  const auto result = [&](const Term& value) { return saturated(saturated(value, 32) + w, 32); };
  const auto is = [](const Term& constant, const Term& value) {
    return equal(signed_64(constant), saturated(value, 32));
  };
  // The ends' products stand on their sides of the first ones as well.
  const Term ends =
      same(less_signed(signed_like(d, min_i32), first_right), less_signed(p_min, least)) &
      same(less_signed(signed_like(d, max_i32), first_above), less_signed(p_max, end));
  const Term constants = is(program.lowest, first_right + zero) &
                         is(program.highest, first_above - 1 + zero) &
                         equal(signed_64(program.below), result(p_min)) &
                         equal(signed_64(program.above), result(p_max));
  // check_inner has what is stored of others.
  const Term is_inner =
      ~less_signed(program.x, program.lowest) & ~less_signed(program.highest, program.x);
  const Term inner = extend_sign(truncate(p + w, 32), 64);
  const Term stored = if_then_else(is_inner, inner, signed_64(program.whole));
  check.never(range & order & ends & constants & not_equal(stored, result(p)),
              "elements whose results saturate");
}

}  // namespace

FactVerdict check_i32_accumulators(const FactEffort& effort, const RequantizeTamper& tamper) {
  FactCheck check(effort);  // check_i32_products has the facts of halves
  check_outer(check, tamper);
  for (int shift = 1; shift <= 16 && check.goes_on(); shift += step_of(effort, 15)) {
    check_inner(shift, check, tamper);
  }
  return check.verdict("questions");
}

}  // namespace castor::prove
