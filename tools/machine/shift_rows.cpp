// SPDX-License-Identifier: Apache-2.0
// Shifts of lanes, by an immediate or by another vector's lanes, and of whole 128-bit parts.
#include "tools/machine/lanes.hpp"

namespace castor::machine {
namespace {

constexpr auto left_by = [](const auto& l) { return l.domain.shift_left(l.a, l.b); };
constexpr auto right_by = [](const auto& l) { return l.domain.shift_right(l.a, l.b); };
constexpr auto right_signed_by = [](const auto& l) {
  return l.domain.shift_right_signed(l.a, l.b);
};

/// Counts are bytes, which 8-bit lanes alone would not hold: no shift has such lanes.
template <int bits>
constexpr auto left = [](const auto& l) {
  return l.domain.shift_left(l.a, l.constant(bits, static_cast<uint64_t>(l.immediate)));
};
template <int bits>
constexpr auto right = [](const auto& l) {
  return l.domain.shift_right(l.a, l.constant(bits, static_cast<uint64_t>(l.immediate)));
};
template <int bits>
constexpr auto right_signed = [](const auto& l) {
  return l.domain.shift_right_signed(l.a, l.constant(bits, static_cast<uint64_t>(l.immediate)));
};

/// Bytes of each 128-bit part move down; zeros come in.
constexpr auto bytes_right = [](auto& step, const Row&) {
  for (int i = 0; i < step.vector_bits / 8; ++i) {
    const int from = i % 16 + step.immediate;
    if (from < 16) set_lane(step.domain, step.result, i, step.source(0, 8, i - i % 16 + from));
  }
};

/// Eight bits of a quadword from any bit on, which turn around at its end; the first operand has
/// the numbers of the bits.
constexpr auto multishift = [](auto& step, const Row&) {
  auto& d = step.domain;
  for (int i = 0; i < step.vector_bits / 8; ++i) {
    const auto word = step.source(1, 64, i / 8);
    const auto by = d.bit_and(d.extend_zero(step.source(0, 8, i), 64), step.constant(64, 63));
    const auto opposite = d.sub(step.constant(64, 64), by);
    const auto turned = d.bit_or(d.shift_right(word, by), d.shift_left(word, opposite));
    set_lane(d, step.result, i, d.extract(turned, 0, 8));
  }
};

constexpr Row table[] = {
    lanes(ZYDIS_MNEMONIC_VPSLLW, 16, left<16>),
    lanes(ZYDIS_MNEMONIC_VPSLLD, 32, left<32>),
    lanes(ZYDIS_MNEMONIC_VPSLLQ, 64, left<64>),
    lanes(ZYDIS_MNEMONIC_VPSRLW, 16, right<16>),
    lanes(ZYDIS_MNEMONIC_VPSRLD, 32, right<32>),
    lanes(ZYDIS_MNEMONIC_VPSRLQ, 64, right<64>),
    lanes(ZYDIS_MNEMONIC_VPSRAW, 16, right_signed<16>),
    lanes(ZYDIS_MNEMONIC_VPSRAD, 32, right_signed<32>),
    lanes(ZYDIS_MNEMONIC_VPSRAQ, 64, right_signed<64>),
    lanes(ZYDIS_MNEMONIC_VPSLLVW, 16, left_by),
    lanes(ZYDIS_MNEMONIC_VPSLLVD, 32, left_by),
    lanes(ZYDIS_MNEMONIC_VPSLLVQ, 64, left_by),
    lanes(ZYDIS_MNEMONIC_VPSRLVW, 16, right_by),
    lanes(ZYDIS_MNEMONIC_VPSRLVD, 32, right_by),
    lanes(ZYDIS_MNEMONIC_VPSRLVQ, 64, right_by),
    lanes(ZYDIS_MNEMONIC_VPSRAVW, 16, right_signed_by),
    lanes(ZYDIS_MNEMONIC_VPSRAVD, 32, right_signed_by),
    lanes(ZYDIS_MNEMONIC_VPSRAVQ, 64, right_signed_by),
    row_by(ZYDIS_MNEMONIC_VPSRLDQ, 8, 8, bytes_right),
    row_by(ZYDIS_MNEMONIC_VPMULTISHIFTQB, 8, 8, multishift),
};

}  // namespace

std::span<const Row> shift_rows() { return table; }

}  // namespace castor::machine
