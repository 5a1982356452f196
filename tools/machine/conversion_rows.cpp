// SPDX-License-Identifier: Apache-2.0
// Conversions between floats and integers, and among floats.
#include "tools/machine/float_rules.hpp"

namespace castor::machine {
namespace {

template <int to, bool is_signed>
constexpr auto rounded =
    [](const auto& l) { return l.domain.float_to_integer(l.a, to, is_signed, l.rounding); };
template <int to, bool is_signed>
constexpr auto truncated = [](const auto& l) {
  return l.domain.float_to_integer(l.a, to, is_signed, Rounding::toward_zero);
};
template <int to, bool is_signed>
constexpr auto from_integer =
    [](const auto& l) { return l.domain.float_from_integer(l.a, to, is_signed, l.rounding); };
template <int to, int from>
constexpr auto from_float =
    [](const auto& l) { return floats_of<from>(l).converted(l.a, to, l.rounding); };
/// Rounding by the immediate's lowest bits, by MXCSR where bit 2 is set.
constexpr auto half_from_single = [](const auto& l) {
  constexpr Rounding modes[] = {Rounding::nearest_even, Rounding::down, Rounding::up,
                                Rounding::toward_zero};
  const bool by_mxcsr = (l.immediate & 4) != 0;
  return floats_of<32>(l).converted(l.a, 16, by_mxcsr ? l.rounding : modes[l.immediate & 3]);
};

constexpr bool is_signed = true;
constexpr bool is_unsigned = false;

// clang-format off
constexpr Row table[] = {
    // Lanes of 32 bits.
    resized(ZYDIS_MNEMONIC_VCVTDQ2PS, 32, 32, from_integer<32, is_signed>),
    resized(ZYDIS_MNEMONIC_VCVTUDQ2PS, 32, 32, from_integer<32, is_unsigned>),
    resized(ZYDIS_MNEMONIC_VCVTPS2DQ, 32, 32, rounded<32, is_signed>),
    resized(ZYDIS_MNEMONIC_VCVTPS2UDQ, 32, 32, rounded<32, is_unsigned>),
    resized(ZYDIS_MNEMONIC_VCVTTPS2DQ, 32, 32, truncated<32, is_signed>),
    resized(ZYDIS_MNEMONIC_VCVTTPS2UDQ, 32, 32, truncated<32, is_unsigned>),
    // Lanes of 64 bits.
    resized(ZYDIS_MNEMONIC_VCVTQQ2PD, 64, 64, from_integer<64, is_signed>),
    resized(ZYDIS_MNEMONIC_VCVTUQQ2PD, 64, 64, from_integer<64, is_unsigned>),
    resized(ZYDIS_MNEMONIC_VCVTPD2QQ, 64, 64, rounded<64, is_signed>),
    resized(ZYDIS_MNEMONIC_VCVTPD2UQQ, 64, 64, rounded<64, is_unsigned>),
    resized(ZYDIS_MNEMONIC_VCVTTPD2QQ, 64, 64, truncated<64, is_signed>),
    resized(ZYDIS_MNEMONIC_VCVTTPD2UQQ, 64, 64, truncated<64, is_unsigned>),
    // Between 32 and 64 bits.
    resized(ZYDIS_MNEMONIC_VCVTDQ2PD, 64, 32, from_integer<64, is_signed>),
    resized(ZYDIS_MNEMONIC_VCVTUDQ2PD, 64, 32, from_integer<64, is_unsigned>),
    resized(ZYDIS_MNEMONIC_VCVTQQ2PS, 32, 64, from_integer<32, is_signed>),
    resized(ZYDIS_MNEMONIC_VCVTUQQ2PS, 32, 64, from_integer<32, is_unsigned>),
    resized(ZYDIS_MNEMONIC_VCVTPD2DQ, 32, 64, rounded<32, is_signed>),
    resized(ZYDIS_MNEMONIC_VCVTPD2UDQ, 32, 64, rounded<32, is_unsigned>),
    resized(ZYDIS_MNEMONIC_VCVTTPD2DQ, 32, 64, truncated<32, is_signed>),
    resized(ZYDIS_MNEMONIC_VCVTTPD2UDQ, 32, 64, truncated<32, is_unsigned>),
    resized(ZYDIS_MNEMONIC_VCVTPS2QQ, 64, 32, rounded<64, is_signed>),
    resized(ZYDIS_MNEMONIC_VCVTPS2UQQ, 64, 32, rounded<64, is_unsigned>),
    resized(ZYDIS_MNEMONIC_VCVTTPS2QQ, 64, 32, truncated<64, is_signed>),
    resized(ZYDIS_MNEMONIC_VCVTTPS2UQQ, 64, 32, truncated<64, is_unsigned>),
    resized(ZYDIS_MNEMONIC_VCVTPS2PD, 64, 32, from_float<64, 32>),
    resized(ZYDIS_MNEMONIC_VCVTPD2PS, 32, 64, from_float<32, 64>),
    // Halves.
    resized(ZYDIS_MNEMONIC_VCVTPH2PS, 32, 16, from_float<32, 16>),
    resized(ZYDIS_MNEMONIC_VCVTPS2PH, 16, 32, half_from_single),
    resized(ZYDIS_MNEMONIC_VCVTPD2PH, 16, 64, from_float<16, 64>),
    resized(ZYDIS_MNEMONIC_VCVTPH2PD, 64, 16, from_float<64, 16>),
    resized(ZYDIS_MNEMONIC_VCVTW2PH, 16, 16, from_integer<16, is_signed>),
    resized(ZYDIS_MNEMONIC_VCVTUW2PH, 16, 16, from_integer<16, is_unsigned>),
    resized(ZYDIS_MNEMONIC_VCVTDQ2PH, 16, 32, from_integer<16, is_signed>),
    resized(ZYDIS_MNEMONIC_VCVTUDQ2PH, 16, 32, from_integer<16, is_unsigned>),
    resized(ZYDIS_MNEMONIC_VCVTQQ2PH, 16, 64, from_integer<16, is_signed>),
    resized(ZYDIS_MNEMONIC_VCVTUQQ2PH, 16, 64, from_integer<16, is_unsigned>),
    resized(ZYDIS_MNEMONIC_VCVTPH2W, 16, 16, rounded<16, is_signed>),
    resized(ZYDIS_MNEMONIC_VCVTPH2UW, 16, 16, rounded<16, is_unsigned>),
    resized(ZYDIS_MNEMONIC_VCVTPH2DQ, 32, 16, rounded<32, is_signed>),
    resized(ZYDIS_MNEMONIC_VCVTPH2UDQ, 32, 16, rounded<32, is_unsigned>),
    resized(ZYDIS_MNEMONIC_VCVTPH2QQ, 64, 16, rounded<64, is_signed>),
    resized(ZYDIS_MNEMONIC_VCVTPH2UQQ, 64, 16, rounded<64, is_unsigned>),
    resized(ZYDIS_MNEMONIC_VCVTTPH2W, 16, 16, truncated<16, is_signed>),
    resized(ZYDIS_MNEMONIC_VCVTTPH2UW, 16, 16, truncated<16, is_unsigned>),
    resized(ZYDIS_MNEMONIC_VCVTTPH2DQ, 32, 16, truncated<32, is_signed>),
    resized(ZYDIS_MNEMONIC_VCVTTPH2UDQ, 32, 16, truncated<32, is_unsigned>),
    resized(ZYDIS_MNEMONIC_VCVTTPH2QQ, 64, 16, truncated<64, is_signed>),
    resized(ZYDIS_MNEMONIC_VCVTTPH2UQQ, 64, 16, truncated<64, is_unsigned>),
};
// clang-format on

}  // namespace

std::span<const Row> conversion_rows() { return table; }

}  // namespace castor::machine
