// SPDX-License-Identifier: Apache-2.0
// Opmasks: moves, logic, tests; and bits that come from or go to vectors.
#include "tools/machine/lanes.hpp"

namespace castor::machine {
namespace {

// `row.bits` is the width of the operation: from there on the result is zero.

template <class D>
std::array<typename D::Bits, 2> operands_of(Step<D>& step, int i) {
  return {step.masks[0][static_cast<size_t>(i)], step.masks[1][static_cast<size_t>(i)]};
}

/// Each bit of the result by a function of the operands' bits.
template <class Function>
struct EachMaskBit {
  template <class D>
  void operator()(Step<D>& step, const Row& row) const {
    for (int i = 0; i < row.bits; ++i) {
      const auto [a, b] = operands_of(step, i);
      step.result_mask[static_cast<size_t>(i)] = Function{}(step.domain, a, b);
    }
  }
};

constexpr auto same = [](auto&, const auto& a, const auto&) { return a; };
constexpr auto both = [](auto& d, const auto& a, const auto& b) { return d.bit_and(a, b); };
constexpr auto only_b = [](auto& d, const auto& a, const auto& b) {
  return d.bit_and(d.bit_not(a), b);
};
constexpr auto either = [](auto& d, const auto& a, const auto& b) { return d.bit_or(a, b); };
constexpr auto one = [](auto& d, const auto& a, const auto& b) { return d.bit_xor(a, b); };
constexpr auto opposite = [](auto& d, const auto& a, const auto&) { return d.bit_not(a); };

constexpr auto shift_right = [](auto& step, const Row& row) {
  for (int i = 0; i + step.immediate < row.bits; ++i) {
    step.result_mask[static_cast<size_t>(i)] =
        step.masks[0][static_cast<size_t>(i + step.immediate)];
  }
};
/// The second operand's lower half, the first one's above it.
constexpr auto unpack = [](auto& step, const Row& row) {
  const int half = row.bits / 2;
  for (int i = 0; i < half; ++i) {
    step.result_mask[static_cast<size_t>(i)] = step.masks[1][static_cast<size_t>(i)];
    step.result_mask[static_cast<size_t>(i + half)] = step.masks[0][static_cast<size_t>(i)];
  }
};
/// ZF: no bit of either is set. CF: the two have all bits.
constexpr auto test_either = [](auto& step, const Row& row) {
  auto& d = step.domain;
  auto any = step.constant(1, 0);
  auto all = step.constant(1, 1);
  for (int i = 0; i < row.bits; ++i) {
    const auto [a, b] = operands_of(step, i);
    any = d.bit_or(any, d.bit_or(a, b));
    all = d.bit_and(all, d.bit_or(a, b));
  }
  step.zero_flag = d.bit_not(any);
  step.carry_flag = all;
};
/// vptest: ZF where no bit is set in both operands, CF where b has none that a lacks.
constexpr auto test_vectors = [](auto& step, const Row&) {
  auto& d = step.domain;
  const auto zero = step.constant(64, 0);
  step.zero_flag = step.constant(1, 1);
  step.carry_flag = step.constant(1, 1);
  for (int i = 0; i < step.vector_bits / 64; ++i) {
    const auto a = step.source(0, 64, i);
    const auto b = step.source(1, 64, i);
    step.zero_flag = d.bit_and(step.zero_flag, d.equal(d.bit_and(a, b), zero));
    step.carry_flag = d.bit_and(step.carry_flag, d.equal(d.bit_and(d.bit_not(a), b), zero));
  }
};

template <int bits>
constexpr auto sign = [](const auto& l) { return l.domain.extract(l.a, bits - 1, 1); };

template <class Function>
constexpr Row logic(ZydisMnemonic mnemonic, int bits, Function) {
  return row_by(mnemonic, bits, bits, EachMaskBit<Function>{}, Effect::mask);
}

constexpr Row table[] = {
    logic(ZYDIS_MNEMONIC_KMOVW, 16, same),
    logic(ZYDIS_MNEMONIC_KMOVD, 32, same),
    logic(ZYDIS_MNEMONIC_KMOVQ, 64, same),
    logic(ZYDIS_MNEMONIC_KANDW, 16, both),
    logic(ZYDIS_MNEMONIC_KANDQ, 64, both),
    logic(ZYDIS_MNEMONIC_KANDNW, 16, only_b),
    logic(ZYDIS_MNEMONIC_KANDNQ, 64, only_b),
    logic(ZYDIS_MNEMONIC_KORQ, 64, either),
    logic(ZYDIS_MNEMONIC_KXORQ, 64, one),
    logic(ZYDIS_MNEMONIC_KNOTD, 32, opposite),
    logic(ZYDIS_MNEMONIC_KNOTQ, 64, opposite),
    row_by(ZYDIS_MNEMONIC_KSHIFTRQ, 64, 64, shift_right, Effect::mask),
    row_by(ZYDIS_MNEMONIC_KUNPCKDQ, 64, 64, unpack, Effect::mask),
    row_by(ZYDIS_MNEMONIC_KORTESTW, 16, 16, test_either, Effect::flags),
    row_by(ZYDIS_MNEMONIC_KORTESTQ, 64, 64, test_either, Effect::flags),
    row_by(ZYDIS_MNEMONIC_VPTEST, 64, 64, test_vectors, Effect::flags),
    to_mask(ZYDIS_MNEMONIC_VPMOVB2M, 8, sign<8>),
    to_mask(ZYDIS_MNEMONIC_VPMOVW2M, 16, sign<16>),
};

}  // namespace

std::span<const Row> mask_rows() { return table; }

}  // namespace castor::machine
