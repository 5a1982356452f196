// SPDX-License-Identifier: Apache-2.0
// What instructions do with NaNs, zeros and order, over either domain. The bare operations of a
// domain round once and give one NaN; the NaN of an instruction is the first operand that is one,
// made quiet, or the default one (Intel SDM 1, 4.8.3.5). Terms come out as those of
// prove/term/float_terms.hpp.
#pragma once

#include "tools/machine/lanes.hpp"

namespace castor::machine {

/// The rules for floats of one width.
template <class D>
struct Floats {
  using Bits = typename D::Bits;

  D& d;
  int width;

  FloatFormat format() const { return format_of(width); }
  Bits constant(prove::Bits value) const { return d.constant(width, static_cast<uint64_t>(value)); }
  Bits magnitude(Bits a) const { return d.bit_and(a, constant(format().sign() - 1)); }
  Bits is_nan(Bits a) const { return d.less(constant(format().infinity()), magnitude(a)); }
  Bits is_zero(Bits a) const { return d.equal(magnitude(a), constant(0)); }
  Bits is_negative(Bits a) const { return d.extract(a, width - 1, 1); }
  Bits quiet(Bits a) const { return d.bit_or(a, constant(format().quiet_bit())); }
  Bits is_quiet(Bits a) const { return d.extract(a, format().fraction_bits() - 1, 1); }
  Bits default_nan() const { return constant(format().sign() | format().nan()); }
  Bits unordered(Bits a, Bits b) const { return d.bit_or(is_nan(a), is_nan(b)); }
  Bits negated(Bits a) const { return d.bit_xor(a, constant(format().sign())); }
  Bits both_zero(Bits a, Bits b) const { return d.bit_and(is_zero(a), is_zero(b)); }

  Bits equal(Bits a, Bits b) const {
    return d.bit_and(d.bit_not(unordered(a, b)), d.bit_or(d.equal(a, b), both_zero(a, b)));
  }
  Bits less(Bits a, Bits b) const {
    const Bits both_negative = is_negative(d.bit_and(a, b));
    const Bits by_bits = d.select(both_negative, d.less(b, a), d.less_signed(a, b));
    return d.bit_and(d.bit_and(d.bit_not(unordered(a, b)), d.bit_not(both_zero(a, b))), by_bits);
  }

  /// A bare result, with the NaN that the operands make.
  Bits with_nans(Bits bare, std::initializer_list<Bits> operands) const {
    Bits result = d.select(is_nan(bare), default_nan(), bare);
    for (const Bits* operand = std::end(operands); operand != std::begin(operands);) {
      --operand;
      result = d.select(is_nan(*operand), quiet(*operand), result);
    }
    return result;
  }

  /// A float of another width; of a NaN: sign, quiet, and the payload's upper bits.
  Bits converted(Bits a, int to, Rounding rounding) const {
    const Floats target{d, to};
    const int payload = std::min(format().fraction_bits(), target.format().fraction_bits());
    Bits fraction = d.extract(a, format().fraction_bits() - payload, payload);
    const int below = target.format().fraction_bits() - payload;
    if (below > 0) fraction = d.concat(fraction, d.constant(below, 0));
    const Bits exponent = d.constant(target.format().exponent_bits, ~uint64_t{0});
    const Bits nan = target.quiet(d.concat(is_negative(a), d.concat(exponent, fraction)));
    return d.select(is_nan(a), nan, d.float_convert(a, to, rounding));
  }
};

template <int bits, class L>
auto floats_of(const L& l) {
  return Floats<std::remove_reference_t<decltype(l.domain)>>{l.domain, bits};
}

}  // namespace castor::machine
