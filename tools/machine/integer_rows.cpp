// SPDX-License-Identifier: Apache-2.0
// Integer arithmetic, logic and comparisons, lane by lane.
#include "tools/machine/lanes.hpp"

namespace castor::machine {
namespace {

constexpr auto add = [](const auto& l) { return l.domain.add(l.a, l.b); };
constexpr auto subtract = [](const auto& l) { return l.domain.sub(l.a, l.b); };
// Logic of two operands, and of these and the destination.
constexpr auto bit_and = [](auto& d, const auto& a, const auto& b) { return d.bit_and(a, b); };
constexpr auto bit_or = [](auto& d, const auto& a, const auto& b) { return d.bit_or(a, b); };
constexpr auto bit_xor = [](auto& d, const auto& a, const auto& b) { return d.bit_xor(a, b); };
constexpr auto bit_andnot = [](auto& d, const auto& a, const auto& b) {
  return d.bit_and(d.bit_not(a), b);
};

/// Bytes from `at` on that logic takes together: those of one lane of each operand that is read.
template <class D>
int together(Step<D>& step, const Row& row, size_t at, bool reads_old) {
  int count = row.bits / 8 - static_cast<int>(at) % (row.bits / 8);
  count = D::run_of(&step.from[0][at], count);
  count = D::run_of(&step.from[1][at], count);
  return reads_old ? D::run_of(&step.old[at], count) : count;
}

template <class Function>
struct Logic {
  template <class D>
  void operator()(Step<D>& step, const Row& row) const {
    for (size_t at = 0; at < static_cast<size_t>(step.vector_bits) / 8;) {
      const int bytes = together(step, row, at, false);
      const auto a = step.domain.join(&step.from[0][at], bytes);
      const auto b = step.domain.join(&step.from[1][at], bytes);
      step.domain.split(Function{}(step.domain, a, b), &step.result[at]);
      at += static_cast<size_t>(bytes);
    }
  }
};
template <class Function>
constexpr Row logic(ZydisMnemonic mnemonic, int bits, Function) {
  return row_by(mnemonic, bits, bits, Logic<Function>{}, Effect::lanes, Touched::lanes);
}

constexpr auto min_unsigned = [](const auto& l) {
  return l.domain.select(l.domain.less(l.a, l.b), l.a, l.b);
};
constexpr auto max_unsigned = [](const auto& l) {
  return l.domain.select(l.domain.less(l.a, l.b), l.b, l.a);
};
constexpr auto min_signed = [](const auto& l) {
  return l.domain.select(l.domain.less_signed(l.a, l.b), l.a, l.b);
};
constexpr auto max_signed = [](const auto& l) {
  return l.domain.select(l.domain.less_signed(l.a, l.b), l.b, l.a);
};
template <int bits>
constexpr auto absolute = [](const auto& l) {
  const auto zero = l.constant(bits, 0);
  return l.domain.select(l.domain.less_signed(l.a, zero), l.domain.sub(zero, l.a), l.a);
};

/// The sum or difference with one bit more, clamped to the lane.
template <int bits, bool is_signed, bool adds>
constexpr auto saturated = [](const auto& l) {
  constexpr int wide = bits + 2;
  auto& d = l.domain;
  const auto extended = [&](const auto& x) {
    return is_signed ? d.extend_sign(x, wide) : d.extend_zero(x, wide);
  };
  const auto exact =
      adds ? d.add(extended(l.a), extended(l.b)) : d.sub(extended(l.a), extended(l.b));
  const auto least = l.constant(wide, is_signed ? ~uint64_t{0} << (bits - 1) : 0);
  const auto most = l.constant(wide, low_bits(is_signed ? bits - 1 : bits));
  const auto above = d.select(d.less_signed(exact, least), least, exact);
  return d.extract(d.select(d.less_signed(most, above), most, above), 0, bits);
};

// ---- comparisons

/// All ones where the truth value holds.
template <int bits>
constexpr auto ones_where =
    [](const auto& l, const auto& truth) { return l.domain.extend_sign(truth, bits); };
template <int bits>
constexpr auto equal = [](const auto& l) { return ones_where<bits>(l, l.domain.equal(l.a, l.b)); };
template <int bits>
constexpr auto greater =
    [](const auto& l) { return ones_where<bits>(l, l.domain.less_signed(l.b, l.a)); };
constexpr auto is_equal = [](const auto& l) { return l.domain.equal(l.a, l.b); };
constexpr auto is_greater = [](const auto& l) { return l.domain.less_signed(l.b, l.a); };

/// The predicates of vpcmp: equal, less, less or equal, false, and their opposites.
template <bool is_signed>
constexpr auto compare = [](const auto& l) {
  auto& d = l.domain;
  const auto less = [&](const auto& a, const auto& b) {
    return is_signed ? d.less_signed(a, b) : d.less(a, b);
  };
  switch (l.immediate & 3) {
    case 0: {
      const auto is = d.equal(l.a, l.b);
      return (l.immediate & 4) != 0 ? d.bit_not(is) : is;
    }
    case 1: {
      const auto is = less(l.a, l.b);
      return (l.immediate & 4) != 0 ? d.bit_not(is) : is;
    }
    case 2: {
      const auto is_not = less(l.b, l.a);
      return (l.immediate & 4) != 0 ? is_not : d.bit_not(is_not);
    }
    default: return l.constant(1, (l.immediate & 4) != 0 ? 1 : 0);
  }
};
template <int bits>
constexpr auto no_bits =
    [](const auto& l) { return l.domain.equal(l.domain.bit_and(l.a, l.b), l.constant(bits, 0)); };
template <int bits>
constexpr auto any_bits = [](const auto& l) {
  auto& d = l.domain;
  return d.bit_not(d.equal(d.bit_and(l.a, l.b), l.constant(bits, 0)));
};

/// Bit 4 * old + 2 * a + b of the immediate.
template <class D>
typename D::Bits ternary_of(D& d, int immediate, const typename D::Bits& old,
                            const typename D::Bits& a, const typename D::Bits& b) {
  auto result = d.constant(D::width(a), 0);
  if (immediate == 0xff) return d.bit_not(result);  // whatever the operands are
  for (int row = 0; row < 8; ++row) {
    if ((immediate >> row & 1) == 0) continue;
    auto term = (row & 4) != 0 ? old : d.bit_not(old);
    term = d.bit_and(term, (row & 2) != 0 ? a : d.bit_not(a));
    term = d.bit_and(term, (row & 1) != 0 ? b : d.bit_not(b));
    result = d.bit_or(result, term);
  }
  return result;
}
constexpr auto ternary = [](auto& step, const Row& row) {
  for (size_t at = 0; at < static_cast<size_t>(step.vector_bits) / 8;) {
    const int bytes = together(step, row, at, true);
    const auto a = step.domain.join(&step.from[0][at], bytes);
    const auto b = step.domain.join(&step.from[1][at], bytes);
    const auto old = step.domain.join(&step.old[at], bytes);
    step.domain.split(ternary_of(step.domain, step.immediate, old, a, b), &step.result[at]);
    at += static_cast<size_t>(bytes);
  }
};

constexpr auto leading_zeros = [](const auto& l) {
  auto& d = l.domain;
  auto count = l.constant(32, 32);
  for (int i = 0; i < 32; ++i) {
    count = d.select(d.extract(l.a, i, 1), l.constant(32, static_cast<uint64_t>(31 - i)), count);
  }
  return count;
};

constexpr Row table[] = {
    lanes(ZYDIS_MNEMONIC_VPADDB, 8, add),
    lanes(ZYDIS_MNEMONIC_VPADDW, 16, add),
    lanes(ZYDIS_MNEMONIC_VPADDD, 32, add),
    lanes(ZYDIS_MNEMONIC_VPADDQ, 64, add),
    lanes(ZYDIS_MNEMONIC_VPSUBB, 8, subtract),
    lanes(ZYDIS_MNEMONIC_VPSUBW, 16, subtract),
    lanes(ZYDIS_MNEMONIC_VPSUBD, 32, subtract),
    lanes(ZYDIS_MNEMONIC_VPSUBQ, 64, subtract),
    lanes(ZYDIS_MNEMONIC_VPADDUSB, 8, saturated<8, false, true>),
    lanes(ZYDIS_MNEMONIC_VPSUBSB, 8, saturated<8, true, false>),
    lanes(ZYDIS_MNEMONIC_VPSUBUSB, 8, saturated<8, false, false>),
    lanes(ZYDIS_MNEMONIC_VPSUBUSW, 16, saturated<16, false, false>),
    lanes(ZYDIS_MNEMONIC_VPMINSB, 8, min_signed),
    lanes(ZYDIS_MNEMONIC_VPMINSW, 16, min_signed),
    lanes(ZYDIS_MNEMONIC_VPMINSD, 32, min_signed),
    lanes(ZYDIS_MNEMONIC_VPMINSQ, 64, min_signed),
    lanes(ZYDIS_MNEMONIC_VPMINUB, 8, min_unsigned),
    lanes(ZYDIS_MNEMONIC_VPMINUW, 16, min_unsigned),
    lanes(ZYDIS_MNEMONIC_VPMINUD, 32, min_unsigned),
    lanes(ZYDIS_MNEMONIC_VPMINUQ, 64, min_unsigned),
    lanes(ZYDIS_MNEMONIC_VPMAXSB, 8, max_signed),
    lanes(ZYDIS_MNEMONIC_VPMAXSW, 16, max_signed),
    lanes(ZYDIS_MNEMONIC_VPMAXSD, 32, max_signed),
    lanes(ZYDIS_MNEMONIC_VPMAXSQ, 64, max_signed),
    lanes(ZYDIS_MNEMONIC_VPMAXUB, 8, max_unsigned),
    lanes(ZYDIS_MNEMONIC_VPMAXUW, 16, max_unsigned),
    lanes(ZYDIS_MNEMONIC_VPMAXUD, 32, max_unsigned),
    lanes(ZYDIS_MNEMONIC_VPMAXUQ, 64, max_unsigned),
    lanes(ZYDIS_MNEMONIC_VPABSB, 8, absolute<8>),
    lanes(ZYDIS_MNEMONIC_VPABSW, 16, absolute<16>),
    lanes(ZYDIS_MNEMONIC_VPABSD, 32, absolute<32>),
    lanes(ZYDIS_MNEMONIC_VPABSQ, 64, absolute<64>),
    // Without a writemask the width of lanes does not matter.
    logic(ZYDIS_MNEMONIC_VPAND, 64, bit_and),
    logic(ZYDIS_MNEMONIC_VPANDD, 32, bit_and),
    logic(ZYDIS_MNEMONIC_VPANDQ, 64, bit_and),
    logic(ZYDIS_MNEMONIC_VPANDN, 64, bit_andnot),
    logic(ZYDIS_MNEMONIC_VPANDND, 32, bit_andnot),
    logic(ZYDIS_MNEMONIC_VPANDNQ, 64, bit_andnot),
    logic(ZYDIS_MNEMONIC_VPOR, 64, bit_or),
    logic(ZYDIS_MNEMONIC_VPORD, 32, bit_or),
    logic(ZYDIS_MNEMONIC_VPORQ, 64, bit_or),
    logic(ZYDIS_MNEMONIC_VPXOR, 64, bit_xor),
    logic(ZYDIS_MNEMONIC_VPXORD, 32, bit_xor),
    logic(ZYDIS_MNEMONIC_VPXORQ, 64, bit_xor),
    row_by(ZYDIS_MNEMONIC_VPTERNLOGD, 32, 32, ternary, Effect::lanes, Touched::lanes),
    lanes(ZYDIS_MNEMONIC_VPLZCNTD, 32, leading_zeros),
    lanes(ZYDIS_MNEMONIC_VPCMPEQB, 8, equal<8>),
    lanes(ZYDIS_MNEMONIC_VPCMPEQW, 16, equal<16>),
    lanes(ZYDIS_MNEMONIC_VPCMPEQD, 32, equal<32>),
    lanes(ZYDIS_MNEMONIC_VPCMPEQQ, 64, equal<64>),
    lanes(ZYDIS_MNEMONIC_VPCMPGTB, 8, greater<8>),
    lanes(ZYDIS_MNEMONIC_VPCMPGTW, 16, greater<16>),
    lanes(ZYDIS_MNEMONIC_VPCMPGTD, 32, greater<32>),
    lanes(ZYDIS_MNEMONIC_VPCMPGTQ, 64, greater<64>),
    to_mask(ZYDIS_MNEMONIC_VPCMPB, 8, compare<true>),
    to_mask(ZYDIS_MNEMONIC_VPCMPW, 16, compare<true>),
    to_mask(ZYDIS_MNEMONIC_VPCMPD, 32, compare<true>),
    to_mask(ZYDIS_MNEMONIC_VPCMPQ, 64, compare<true>),
    to_mask(ZYDIS_MNEMONIC_VPCMPUB, 8, compare<false>),
    to_mask(ZYDIS_MNEMONIC_VPCMPUW, 16, compare<false>),
    to_mask(ZYDIS_MNEMONIC_VPCMPUD, 32, compare<false>),
    to_mask(ZYDIS_MNEMONIC_VPCMPUQ, 64, compare<false>),
    to_mask(ZYDIS_MNEMONIC_VPTESTNMB, 8, no_bits<8>),
    to_mask(ZYDIS_MNEMONIC_VPTESTMB, 8, any_bits<8>),
    to_mask(ZYDIS_MNEMONIC_VPTESTMW, 16, any_bits<16>),
    to_mask(ZYDIS_MNEMONIC_VPTESTMD, 32, any_bits<32>),
    to_mask(ZYDIS_MNEMONIC_VPTESTMQ, 64, any_bits<64>),
};

/// With EVEX, vpcmpeq and vpcmpgt write an opmask.
constexpr Row table_of_masks[] = {
    to_mask(ZYDIS_MNEMONIC_VPCMPEQB, 8, is_equal),
    to_mask(ZYDIS_MNEMONIC_VPCMPEQW, 16, is_equal),
    to_mask(ZYDIS_MNEMONIC_VPCMPEQD, 32, is_equal),
    to_mask(ZYDIS_MNEMONIC_VPCMPEQQ, 64, is_equal),
    to_mask(ZYDIS_MNEMONIC_VPCMPGTB, 8, is_greater),
    to_mask(ZYDIS_MNEMONIC_VPCMPGTW, 16, is_greater),
    to_mask(ZYDIS_MNEMONIC_VPCMPGTD, 32, is_greater),
    to_mask(ZYDIS_MNEMONIC_VPCMPGTQ, 64, is_greater),
};

}  // namespace

std::span<const Row> integer_rows() { return table; }
std::span<const Row> integer_mask_rows() { return table_of_masks; }

}  // namespace castor::machine
