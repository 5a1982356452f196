// SPDX-License-Identifier: Apache-2.0
// Sums of products of k groups as terms.
#pragma once

#include <span>
#include <vector>

#include "jit/conv/dense/tile_spec.hpp"
#include "tools/prove/term/term.hpp"

namespace castor::prove {

/// Whether a product takes the elements of pixels and of weights as signed.
struct ProductSigns {
  bool x_is_signed = false;
  bool w_is_signed = true;
};

/// The signs of an engine's products; tile registers have products for all, so they are said.
inline ProductSigns signs_of(jit::ProductEngine engine) {
  switch (engine) {
    case jit::ProductEngine::i16_pairs: return {.x_is_signed = true, .w_is_signed = true};
    case jit::ProductEngine::i8_u8_dot: return {.x_is_signed = true, .w_is_signed = false};
    default: return {.x_is_signed = false, .w_is_signed = true};
  }
}

/// The signs of a tile's products.
inline ProductSigns signs_of(const jit::DenseTile& tile) {
  return tile.has_tiles() ? ProductSigns{tile.x_is_signed, tile.w_is_signed}
                          : signs_of(tile.engine);
}

/// An element of the input that a kernel interleaves, as it is multiplied and packed.
inline Term pixel_as_multiplied(const jit::DenseTile& tile, const Term& element) {
  const bool is_signed = tile.source == jit::PixelSource::signed_input;
  if (!jit::multiplies_bytes(tile.engine)) {
    return is_signed ? extend_sign(element, 16) : extend_zero(element, 16);
  }
  return is_signed ? element ^ 0x80 : element;
}

inline Term widened(const Term& element, bool is_signed) {
  return is_signed ? extend_sign(element, 32) : extend_zero(element, 32);
}

/// sum + x[0] w[0] + x[1] w[1] ..., modulo 2^32.
inline Term added_products(Term sum, std::span<const Term> x, std::span<const Term> w,
                           const ProductSigns& signs) {
  for (size_t i = 0; i < x.size(); ++i) {
    sum = sum + widened(x[i], signs.x_is_signed) * widened(w[i], signs.w_is_signed);
  }
  return sum;
}

}  // namespace castor::prove
