// SPDX-License-Identifier: Apache-2.0
// The library's 64-bit accumulators: where what they cut off does not show.
//
// With the difference d from the zero point, of u redundant sign bits, and the multiplier s, of v,
// the library keeps P 2^(u + v) / 2^32 of the product P = d s and shifts it to the right by
// shift + u + v - 32. Questions have P as an input; what u and v say of its size is assumed.
#include <fmt/format.h>

#include "tools/prove/facts/replace.hpp"
#include "tools/prove/facts/requantize_halves.hpp"
#include "tools/prove/facts/requantize_spec.hpp"
#include "tools/prove/facts/requantize_symbolic.hpp"

namespace castor::prove {

namespace {

/// What u + v = norms says of P: 2^(60 - norms) <= |P| < 2^(62 - norms).
Term has_size(const Term& p, int norms, bool from_below) {
  const int64_t limit = (int64_t{1} << (62 - norms)) - 1;
  const int64_t least = from_below ? int64_t{1} << (60 - norms) : 0;
  return is_between(p, -limit, -least) | is_between(p, least, limit);
}

void check_whole(int norms, bool half_up, FactCheck& check) {
  Terms terms;
  const Term p = terms.input("product", 64);
  const Term shift = signed_64(terms.input("shift", 8));
  const Term in_range = is_between(shift, -60, 63);
  const Term right =
      equal(accumulated(p, norms, shift, half_up), rounded_quotient(p, shift, half_up));
  const std::string subject = fmt::format("{} redundant sign bits", norms);
  if (norms >= 32) {
    check.never(in_range & has_size(p, norms, false) & ~right, subject);
    return;
  }
  if (!half_up) return;
  const Term sees_no_cut = less_signed(like(shift, static_cast<Bits>(32 - norms)), shift);
  check.never(in_range & sees_no_cut & has_size(p, norms, false) & ~right, subject);
  // Elsewhere results of 16 bits saturate, with any zero point.
  const Term zero_point = signed_64(terms.input("to zero point", 16));
  const auto result = [&](const Term& value) { return saturated(value + zero_point, 16); };
  const Term same = equal(result(accumulated(p, norms, shift, half_up)),
                          result(rounded_quotient(p, shift, half_up)));
  check.never(in_range & ~sees_no_cut & has_size(p, norms, true) & ~same,
              subject + ", results of 16 bits");
}

}  // namespace

FactVerdict check_whole_accumulators(const FactEffort& effort, const RequantizeTamper&) {
  FactCheck check(effort);
  for (int norms = 16; norms <= 31 + 17; norms += step_of(effort, 24)) {
    for (const bool half_up : {true, false}) check_whole(norms, half_up, check);
  }
  return check.verdict("questions");
}

}  // namespace castor::prove
