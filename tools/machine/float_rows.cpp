// SPDX-License-Identifier: Apache-2.0
// Float arithmetic and comparisons.
#include "tools/machine/float_rules.hpp"

namespace castor::machine {
namespace {

template <int bits>
constexpr auto add = [](const auto& l) {
  return floats_of<bits>(l).with_nans(l.domain.float_add(l.a, l.b, l.rounding), {l.a, l.b});
};
template <int bits>
constexpr auto subtract = [](const auto& l) {
  const auto f = floats_of<bits>(l);
  return f.with_nans(l.domain.float_add(l.a, f.negated(l.b), l.rounding), {l.a, l.b});
};
template <int bits>
constexpr auto multiply = [](const auto& l) {
  return floats_of<bits>(l).with_nans(l.domain.float_mul(l.a, l.b, l.rounding), {l.a, l.b});
};
template <int bits>
constexpr auto divide = [](const auto& l) {
  return floats_of<bits>(l).with_nans(l.domain.float_div(l.a, l.b, l.rounding), {l.a, l.b});
};
template <int bits>
constexpr auto square_root = [](const auto& l) {
  return floats_of<bits>(l).with_nans(l.domain.float_sqrt(l.a, l.rounding), {l.a});
};

/// The second operand where either is NaN, or both are zero.
template <int bits>
constexpr auto minimum =
    [](const auto& l) { return l.domain.select(floats_of<bits>(l).less(l.a, l.b), l.a, l.b); };
template <int bits>
constexpr auto maximum =
    [](const auto& l) { return l.domain.select(floats_of<bits>(l).less(l.b, l.a), l.a, l.b); };

/// old - a * b, rounded once.
template <int bits>
constexpr auto subtract_product = [](const auto& l) {
  const auto f = floats_of<bits>(l);
  const auto a = f.negated(l.a);
  return f.with_nans(l.domain.float_fma(a, l.b, l.old, l.rounding), {l.a, l.b, l.old});
};
/// a * old + b, rounded once.
template <int bits>
constexpr auto multiply_add = [](const auto& l) {
  return floats_of<bits>(l).with_nans(l.domain.float_fma(l.a, l.old, l.b, l.rounding),
                                      {l.a, l.old, l.b});
};

constexpr Rounding rounding_by(int immediate, Rounding by_mxcsr) {
  constexpr Rounding modes[] = {Rounding::nearest_even, Rounding::down, Rounding::up,
                                Rounding::toward_zero};
  return (immediate & 4) != 0 ? by_mxcsr : modes[immediate & 3];
}
template <int bits>
constexpr auto round = [](const auto& l) {
  const auto f = floats_of<bits>(l);
  const auto bare = l.domain.float_round(l.a, rounding_by(l.immediate, l.rounding));
  return l.domain.select(f.is_nan(l.a), f.quiet(l.a), bare);
};

/// Intel SDM, CMPPS, table 3-1: for which outcomes each predicate is true.
template <int bits>
constexpr auto is_true = [](const auto& l) {
  enum Outcome : uint8_t { less = 1, equal = 2, greater = 4, unordered = 8 };
  constexpr uint8_t true_for[16] = {
      equal,
      less,
      less | equal,
      unordered,
      less | greater | unordered,
      equal | greater | unordered,
      greater | unordered,
      less | equal | greater,
      equal | unordered,
      less | unordered,
      less | equal | unordered,
      0,
      less | greater,
      equal | greater,
      greater,
      less | equal | greater | unordered,
  };
  auto& d = l.domain;
  const auto f = floats_of<bits>(l);
  const int outcomes = true_for[l.immediate & 15];
  auto result = l.constant(1, 0);
  if ((outcomes & less) != 0) result = d.bit_or(result, f.less(l.a, l.b));
  if ((outcomes & equal) != 0) result = d.bit_or(result, f.equal(l.a, l.b));
  if ((outcomes & greater) != 0) result = d.bit_or(result, f.less(l.b, l.a));
  if ((outcomes & unordered) != 0) result = d.bit_or(result, f.unordered(l.a, l.b));
  return result;
};
template <int bits>
constexpr auto compare = [](const auto& l) { return l.domain.extend_sign(is_true<bits>(l), bits); };

/// Intel SDM, VRANGEPS: the minimum or maximum (immediate bit 0) of the numbers or of their
/// magnitudes (bit 1), with a sign by bits 2 and 3. -0 is below +0; of numbers of one magnitude the
/// negative one is below. Of a quiet NaN and a number, the number.
template <int bits>
constexpr auto range = [](const auto& l) {
  auto& d = l.domain;
  const auto f = floats_of<bits>(l);
  const auto by_value =
      d.select(f.is_negative(d.bit_and(l.a, l.b)), d.less(l.b, l.a), d.less_signed(l.a, l.b));
  const auto magnitudes_differ = d.bit_not(d.equal(f.magnitude(l.a), f.magnitude(l.b)));
  const auto by_magnitude =
      d.select(magnitudes_differ, d.less(f.magnitude(l.a), f.magnitude(l.b)), by_value);
  const bool of_magnitudes = (l.immediate & 2) != 0;
  const auto a_is_below = of_magnitudes ? by_magnitude : by_value;
  const bool is_maximum = (l.immediate & 1) != 0;
  auto chosen = d.select(a_is_below, is_maximum ? l.b : l.a, is_maximum ? l.a : l.b);
  chosen = d.select(f.is_nan(l.b), l.a, d.select(f.is_nan(l.a), l.b, chosen));
  const auto sign = [&](const auto& from) {
    return d.bit_and(from, f.constant(f.format().sign()));
  };
  const auto magnitude = f.magnitude(chosen);
  auto result = chosen;
  switch (l.immediate >> 2 & 3) {
    case 0: result = d.bit_or(magnitude, sign(l.a)); break;
    case 1: break;
    case 2: result = magnitude; break;
    default: result = d.bit_or(magnitude, f.constant(f.format().sign())); break;
  }
  const auto is_signalling = [&](const auto& x) {
    return d.bit_and(f.is_nan(x), d.bit_not(f.is_quiet(x)));
  };
  result = d.select(d.bit_and(f.is_nan(l.a), f.is_nan(l.b)), l.a, result);
  result = d.select(is_signalling(l.b), f.quiet(l.b), result);
  return d.select(is_signalling(l.a), f.quiet(l.a), result);
};

/// Intel SDM, VFIXUPIMMPS: the class of the first operand selects four bits of the second one's
/// lane, which say what comes out.
template <int bits>
constexpr auto fix_up = [](const auto& l) {
  auto& d = l.domain;
  const auto f = floats_of<bits>(l);
  const auto sign = f.format().sign();
  const auto infinity = f.format().infinity();
  const auto one = static_cast<prove::Bits>(f.format().bias()) << f.format().fraction_bits();
  const auto number = [&](uint64_t value) { return l.constant(3, value); };
  const auto is = [&](prove::Bits value) { return d.equal(l.a, f.constant(value)); };
  auto token = d.select(f.is_negative(l.a), number(6), number(7));
  token = d.select(is(infinity), number(5), token);
  token = d.select(is(sign | infinity), number(4), token);
  token = d.select(is(one), number(3), token);
  token = d.select(f.is_zero(l.a), number(2), token);
  token = d.select(f.is_nan(l.a), d.select(f.is_quiet(l.a), number(0), number(1)), token);
  const auto response =
      d.extract(d.shift_right(d.extract(l.b, 0, 32),
                              d.concat(l.constant(27, 0), d.concat(token, l.constant(2, 0)))),
                0, 4);
  constexpr bool is_single = bits == 32;
  const prove::Bits max = f.format().max_finite();
  const std::array responses = {
      l.old,
      l.a,
      f.quiet(d.bit_or(l.a, f.constant(infinity))),  // a NaN whatever it was
      f.default_nan(),
      f.constant(sign | infinity),
      f.constant(infinity),
      d.select(f.is_negative(l.a), f.constant(sign | infinity), f.constant(infinity)),
      f.constant(sign),
      f.constant(0),
      f.constant(sign | one),
      f.constant(one),
      f.constant(is_single ? 0x3f000000 : 0x3fe0000000000000),  // 1/2
      f.constant(is_single ? 0x42b40000 : 0x4056800000000000),  // 90
      f.constant(is_single ? 0x3fc90fdb : 0x3ff921fb54442d18),  // pi/2
      f.constant(max),
      f.constant(sign | max),
  };
  return d.look_up(responses, response);
};

bool has_no_scale(int immediate) { return (immediate & 0xf0) == 0; }
constexpr Row rounds(ZydisMnemonic mnemonic, int bits, auto function) {
  Row row = lanes(mnemonic, bits, function);
  row.admits = has_no_scale;
  return row;
}

constexpr Row table[] = {
    lanes(ZYDIS_MNEMONIC_VADDPH, 16, add<16>),
    lanes(ZYDIS_MNEMONIC_VADDPS, 32, add<32>),
    lanes(ZYDIS_MNEMONIC_VADDPD, 64, add<64>),
    lanes(ZYDIS_MNEMONIC_VSUBPH, 16, subtract<16>),
    lanes(ZYDIS_MNEMONIC_VSUBPS, 32, subtract<32>),
    lanes(ZYDIS_MNEMONIC_VSUBPD, 64, subtract<64>),
    lanes(ZYDIS_MNEMONIC_VMULPH, 16, multiply<16>),
    lanes(ZYDIS_MNEMONIC_VMULPS, 32, multiply<32>),
    lanes(ZYDIS_MNEMONIC_VMULPD, 64, multiply<64>),
    lanes(ZYDIS_MNEMONIC_VDIVPH, 16, divide<16>),
    lanes(ZYDIS_MNEMONIC_VDIVPS, 32, divide<32>),
    lanes(ZYDIS_MNEMONIC_VDIVPD, 64, divide<64>),
    lanes(ZYDIS_MNEMONIC_VSQRTPH, 16, square_root<16>),
    lanes(ZYDIS_MNEMONIC_VSQRTPS, 32, square_root<32>),
    lanes(ZYDIS_MNEMONIC_VSQRTPD, 64, square_root<64>),
    lanes(ZYDIS_MNEMONIC_VMINPH, 16, minimum<16>),
    lanes(ZYDIS_MNEMONIC_VMINPS, 32, minimum<32>),
    lanes(ZYDIS_MNEMONIC_VMINPD, 64, minimum<64>),
    lanes(ZYDIS_MNEMONIC_VMAXPH, 16, maximum<16>),
    lanes(ZYDIS_MNEMONIC_VMAXPS, 32, maximum<32>),
    lanes(ZYDIS_MNEMONIC_VMAXPD, 64, maximum<64>),
    lanes(ZYDIS_MNEMONIC_VFNMADD231PH, 16, subtract_product<16>),
    lanes(ZYDIS_MNEMONIC_VFNMADD231PS, 32, subtract_product<32>),
    lanes(ZYDIS_MNEMONIC_VFNMADD231PD, 64, subtract_product<64>),
    lanes(ZYDIS_MNEMONIC_VFMADD213PS, 32, multiply_add<32>),
    rounds(ZYDIS_MNEMONIC_VRNDSCALEPH, 16, round<16>),
    rounds(ZYDIS_MNEMONIC_VRNDSCALEPS, 32, round<32>),
    rounds(ZYDIS_MNEMONIC_VRNDSCALEPD, 64, round<64>),
    rounds(ZYDIS_MNEMONIC_VROUNDPS, 32, round<32>),
    rounds(ZYDIS_MNEMONIC_VROUNDPD, 64, round<64>),
    lanes(ZYDIS_MNEMONIC_VCMPPS, 32, compare<32>),
    lanes(ZYDIS_MNEMONIC_VCMPPD, 64, compare<64>),
    lanes(ZYDIS_MNEMONIC_VRANGEPS, 32, range<32>),
    lanes(ZYDIS_MNEMONIC_VRANGEPD, 64, range<64>),
    lanes(ZYDIS_MNEMONIC_VFIXUPIMMPS, 32, fix_up<32>),
    lanes(ZYDIS_MNEMONIC_VFIXUPIMMPD, 64, fix_up<64>),
};

/// With EVEX, comparisons write an opmask.
constexpr Row table_of_masks[] = {
    to_mask(ZYDIS_MNEMONIC_VCMPPH, 16, is_true<16>),
    to_mask(ZYDIS_MNEMONIC_VCMPPS, 32, is_true<32>),
    to_mask(ZYDIS_MNEMONIC_VCMPPD, 64, is_true<64>),
};

}  // namespace

std::span<const Row> float_rows() { return table; }
std::span<const Row> float_mask_rows() { return table_of_masks; }

}  // namespace castor::machine
