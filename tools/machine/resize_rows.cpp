// SPDX-License-Identifier: Apache-2.0
// Integer lanes that become wider or narrower.
#include "tools/machine/lanes.hpp"

namespace castor::machine {
namespace {

template <int bits>
constexpr auto with_zeros = [](const auto& l) { return l.domain.extend_zero(l.a, bits); };
template <int bits>
constexpr auto by_sign = [](const auto& l) { return l.domain.extend_sign(l.a, bits); };
template <int bits>
constexpr auto cut = [](const auto& l) { return l.domain.extract(l.a, 0, bits); };
template <int bits, int source_bits>
constexpr auto clamped_signed = [](const auto& l) {
  auto& d = l.domain;
  const auto least = l.constant(source_bits, ~uint64_t{0} << (bits - 1));
  const auto most = l.constant(source_bits, low_bits(bits - 1));
  const auto above = d.select(d.less_signed(l.a, least), least, l.a);
  return d.extract(d.select(d.less_signed(most, above), most, above), 0, bits);
};
template <int bits, int source_bits>
constexpr auto clamped_unsigned = [](const auto& l) {
  auto& d = l.domain;
  const auto most = l.constant(source_bits, low_bits(bits));
  return d.extract(d.select(d.less(most, l.a), most, l.a), 0, bits);
};

constexpr Row table[] = {
    resized(ZYDIS_MNEMONIC_VPMOVZXBW, 16, 8, with_zeros<16>),
    resized(ZYDIS_MNEMONIC_VPMOVZXBD, 32, 8, with_zeros<32>),
    resized(ZYDIS_MNEMONIC_VPMOVZXBQ, 64, 8, with_zeros<64>),
    resized(ZYDIS_MNEMONIC_VPMOVZXWD, 32, 16, with_zeros<32>),
    resized(ZYDIS_MNEMONIC_VPMOVZXWQ, 64, 16, with_zeros<64>),
    resized(ZYDIS_MNEMONIC_VPMOVZXDQ, 64, 32, with_zeros<64>),
    resized(ZYDIS_MNEMONIC_VPMOVSXBW, 16, 8, by_sign<16>),
    resized(ZYDIS_MNEMONIC_VPMOVSXBD, 32, 8, by_sign<32>),
    resized(ZYDIS_MNEMONIC_VPMOVSXBQ, 64, 8, by_sign<64>),
    resized(ZYDIS_MNEMONIC_VPMOVSXWD, 32, 16, by_sign<32>),
    resized(ZYDIS_MNEMONIC_VPMOVSXWQ, 64, 16, by_sign<64>),
    resized(ZYDIS_MNEMONIC_VPMOVSXDQ, 64, 32, by_sign<64>),
    resized(ZYDIS_MNEMONIC_VPMOVWB, 8, 16, cut<8>),
    resized(ZYDIS_MNEMONIC_VPMOVDB, 8, 32, cut<8>),
    resized(ZYDIS_MNEMONIC_VPMOVQB, 8, 64, cut<8>),
    resized(ZYDIS_MNEMONIC_VPMOVDW, 16, 32, cut<16>),
    resized(ZYDIS_MNEMONIC_VPMOVQW, 16, 64, cut<16>),
    resized(ZYDIS_MNEMONIC_VPMOVQD, 32, 64, cut<32>),
    resized(ZYDIS_MNEMONIC_VPMOVSWB, 8, 16, clamped_signed<8, 16>),
    resized(ZYDIS_MNEMONIC_VPMOVSDB, 8, 32, clamped_signed<8, 32>),
    resized(ZYDIS_MNEMONIC_VPMOVSDW, 16, 32, clamped_signed<16, 32>),
    resized(ZYDIS_MNEMONIC_VPMOVUSWB, 8, 16, clamped_unsigned<8, 16>),
    resized(ZYDIS_MNEMONIC_VPMOVUSDB, 8, 32, clamped_unsigned<8, 32>),
    resized(ZYDIS_MNEMONIC_VPMOVUSDW, 16, 32, clamped_unsigned<16, 32>),
};

}  // namespace

std::span<const Row> resize_rows() { return table; }

}  // namespace castor::machine
