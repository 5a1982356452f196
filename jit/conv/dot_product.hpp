// SPDX-License-Identifier: Apache-2.0
// The products that convolutions are made of.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "jit/target.hpp"

namespace castor::jit {

/// How a k group of the input is multiplied by one of the weights: what a 32-bit lane holds, and
/// the instruction. Specs of kernels name it; another engine adds an emitter, a packed layout and a
/// candidate.
enum class ProductEngine : uint8_t {
  u8_i8_dot,  ///< four u8 by four i8: vpdpbusd
  i8_u8_dot,  ///< four i8 by four u8: the same with operands exchanged
  i16_pairs,  ///< two i16 by two: vpmaddwd and vpaddd, without VNNI
  /// 16 x 64 bytes by 64 x 16 bytes, each of either sign: tdpbusd and its like, with AMX.
  tiles,
};
/// Words of the values of ProductEngine, in order.
constexpr std::array<std::string_view, 4> names_of(ProductEngine) {
  return {"u8_i8_dot", "i8_u8_dot", "i16_pairs", "tiles"};
}

/// The engine of vectors for x of u8 and weights of i8.
inline ProductEngine product_engine_of(const Target& target) {
  const bool has_vnni = target.supports(Feature::avx512_vnni) || target.supports(Feature::avx_vnni);
  return has_vnni ? ProductEngine::u8_i8_dot : ProductEngine::i16_pairs;
}

/// Whether operands are multiplied as the bytes that they are, or widened.
constexpr bool multiplies_bytes(ProductEngine engine) { return engine != ProductEngine::i16_pairs; }
/// Whether operands keep their signs: it multiplies bytes of any, or is chosen for theirs.
constexpr bool keeps_signs(ProductEngine engine) {
  return engine == ProductEngine::tiles || engine == ProductEngine::i8_u8_dot;
}
/// Whether x must be unsigned and weights signed, so that others get a sign flip.
constexpr bool takes_u8_by_i8(ProductEngine engine) { return engine == ProductEngine::u8_i8_dot; }

/// Bytes of a k group, of the input or of weights.
inline constexpr int64_t k_group_bytes = 4;
/// Input channels that a k group holds.
constexpr int channels_of_k_group(ProductEngine engine) { return multiplies_bytes(engine) ? 4 : 2; }
/// Bytes of one of them.
constexpr int bytes_of_channel(ProductEngine engine) { return multiplies_bytes(engine) ? 1 : 2; }

/// What is subtracted where weights have zero points: sums of windows, one for each
/// pixel, times zero points, one for each output channel.
enum class WindowSums : uint8_t {
  none,
  i32,        ///< both as they are
  i16_pairs,  ///< both as pairs of i16, which one vpdpwssd multiplies: sums below 2^22, with VNNI
  own,        ///< both as they are; the kernel adds up the pixels that it takes from the input
  products,   ///< sums times the zero point that all output channels have
  /// Sums times that zero point; the kernel adds them up over the pixels that it takes from the
  /// input and packs, and stores them for the other tiles of channels.
  own_products,
};
/// Words of the values of WindowSums, in order.
constexpr std::array<std::string_view, 6> names_of(WindowSums) {
  return {"none", "i32", "i16_pairs", "own", "products", "own_products"};
}
/// Sums are below this where pairs of i16 hold them.
inline constexpr int64_t end_of_pair_sums = int64_t{1} << 22;

/// A sum s below 2^22 and a zero point z from -255 to 255 as pairs of i16 whose products add up to
/// -s z: s is h 2^15 + l, so that these are l (-z) and (h 2^8)(-z 2^7).
constexpr int32_t pair_of_sum(int32_t sum) { return (sum & 0x7fff) | (sum >> 15) << 24; }
constexpr int32_t pair_of_zero_point(int32_t zero_point) {
  const auto negative = static_cast<uint32_t>(-zero_point);
  return static_cast<int32_t>((negative & 0xffff) | negative << (16 + 7));
}

/// The zero point of such a pair.
constexpr int32_t zero_point_of_pair(int32_t pair) { return -static_cast<int16_t>(pair); }

}  // namespace castor::jit
