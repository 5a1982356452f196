// SPDX-License-Identifier: Apache-2.0
// The product of one step of K in vector registers, inside jit/conv only.
#pragma once

#include "jit/conv/dot_product.hpp"
#include "jit/emit/assembler.hpp"

namespace castor::jit {

/// Emits sum += inputs times weights, k group by k group, by an engine of vectors. `product` may be
/// overwritten; products of bytes leave it alone.
inline void emit_dot_product(Assembler& code, const Target& target, ProductEngine engine,
                             const Xbyak::Xmm& sum, const Xbyak::Xmm& inputs,
                             const Xbyak::Xmm& weights, const Xbyak::Xmm& product) {
  if (engine == ProductEngine::i16_pairs) {
    code.vpmaddwd(product, inputs, weights);
    code.vpaddd(sum, sum, product);
    return;
  }
  const bool are_exchanged = engine == ProductEngine::i8_u8_dot;
  const Xbyak::Xmm& of_u8 = are_exchanged ? weights : inputs;
  const Xbyak::Xmm& of_i8 = are_exchanged ? inputs : weights;
  target.has_avx512() ? code.vpdpbusd(sum, of_u8, of_i8)
                      : code.vpdpbusd(sum, of_u8, of_i8, Xbyak::VexEncoding);
}

}  // namespace castor::jit
