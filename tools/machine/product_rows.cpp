// SPDX-License-Identifier: Apache-2.0
// Integer products and dot products, of vectors and of tiles.
#include "tools/machine/lanes.hpp"

namespace castor::machine {
namespace {

constexpr auto low_product = [](const auto& l) { return l.domain.mul(l.a, l.b); };
constexpr auto product_of_low_u32 = [](const auto& l) {
  auto& d = l.domain;
  const auto low = [&](const auto& x) { return d.extend_zero(d.extract(x, 0, 32), 64); };
  return d.mul(low(l.a), low(l.b));
};
constexpr auto high_u16_product = [](const auto& l) {
  auto& d = l.domain;
  return d.extract(d.mul(d.extend_zero(l.a, 32), d.extend_zero(l.b, 32)), 16, 16);
};

/// An element of a lane, made wider by its sign or with zeros.
template <bool is_signed>
constexpr auto element = [](auto& domain, const auto& lane, int bits, int index, int width) {
  const auto narrow = domain.extract(lane, bits * index, bits);
  return is_signed ? domain.extend_sign(narrow, width) : domain.extend_zero(narrow, width);
};

/// start + the sum of products of the elements of two 32-bit lanes, modulo 2^32.
template <int bits, bool a_is_signed, bool b_is_signed>
constexpr auto dot = [](const auto& l, const auto& start) {
  auto& d = l.domain;
  auto sum = start;
  for (int i = 0; i < 32 / bits; ++i) {
    sum = d.add(sum, d.mul(element<a_is_signed>(d, l.a, bits, i, 32),
                           element<b_is_signed>(d, l.b, bits, i, 32)));
  }
  return sum;
};
template <int bits, bool a_is_signed, bool b_is_signed>
constexpr auto added_dot =
    [](const auto& l) { return dot<bits, a_is_signed, b_is_signed>(l, l.old); };
constexpr auto pair_dot = [](const auto& l) { return dot<16, true, true>(l, l.constant(32, 0)); };

/// u8 times i8, two of them added and clamped to i16.
constexpr auto saturated_byte_dot = [](const auto& l) {
  auto& d = l.domain;
  auto sum = l.constant(32, 0);
  for (int i = 0; i < 2; ++i) {
    sum = d.add(sum, d.mul(element<false>(d, l.a, 8, i, 32), element<true>(d, l.b, 8, i, 32)));
  }
  const auto least = l.constant(32, static_cast<uint64_t>(-32768));
  const auto most = l.constant(32, 32767);
  const auto above = d.select(d.less_signed(sum, least), least, sum);
  return d.extract(d.select(d.less_signed(most, above), most, above), 0, 16);
};

/// Each byte of the second operand times the bit matrix of the quadword, plus the immediate: bits
/// are added modulo 2.
constexpr auto affine = [](auto& step, const Row&) {
  auto& d = step.domain;
  const auto immediate = step.constant(8, static_cast<uint64_t>(step.immediate));
  for (int i = 0; i < step.vector_bits / 8; ++i) {
    const auto x = step.source(0, 8, i);
    auto result = step.constant(8, 0);
    for (int bit = 0; bit < 8; ++bit) {
      const auto chosen = d.bit_and(step.source(1, 8, i - i % 8 + 7 - bit), x);
      auto parity = d.extract(immediate, bit, 1);
      for (int k = 0; k < 8; ++k) parity = d.bit_xor(parity, d.extract(chosen, k, 1));
      const auto at =
          d.shift_left(d.extend_zero(parity, 8), step.constant(8, static_cast<uint64_t>(bit)));
      result = d.bit_or(result, at);
    }
    set_lane(d, step.result, i, result);
  }
};

/// A row of tiles: what an element of the sum becomes by four pairs of bytes.
template <class Function>
constexpr Row tile_product(ZydisMnemonic mnemonic, Function) {
  return row_by(mnemonic, 32, 32, EachLane<Function>{}, Effect::tile_product);
}

constexpr Row table[] = {
    lanes(ZYDIS_MNEMONIC_VPMULLW, 16, low_product),
    lanes(ZYDIS_MNEMONIC_VPMULLD, 32, low_product),
    lanes(ZYDIS_MNEMONIC_VPMULLQ, 64, low_product),
    lanes(ZYDIS_MNEMONIC_VPMULUDQ, 64, product_of_low_u32),
    lanes(ZYDIS_MNEMONIC_VPMULHUW, 16, high_u16_product),
    lanes(ZYDIS_MNEMONIC_VPMADDWD, 32, pair_dot),
    lanes(ZYDIS_MNEMONIC_VPMADDUBSW, 16, saturated_byte_dot),
    lanes(ZYDIS_MNEMONIC_VPDPBUSD, 32, added_dot<8, false, true>),
    lanes(ZYDIS_MNEMONIC_VPDPWSSD, 32, added_dot<16, true, true>),
    row_by(ZYDIS_MNEMONIC_VGF2P8AFFINEQB, 8, 8, affine),
    tile_product(ZYDIS_MNEMONIC_TDPBSSD, added_dot<8, true, true>),
    tile_product(ZYDIS_MNEMONIC_TDPBSUD, added_dot<8, true, false>),
    tile_product(ZYDIS_MNEMONIC_TDPBUSD, added_dot<8, false, true>),
    tile_product(ZYDIS_MNEMONIC_TDPBUUD, added_dot<8, false, false>),
};

}  // namespace

std::span<const Row> product_rows() { return table; }

}  // namespace castor::machine
