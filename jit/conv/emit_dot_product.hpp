// SPDX-License-Identifier: Apache-2.0
// Emits the products that convolutions are made of.
#pragma once

#include "jit/conv/dot_product.hpp"
#include "jit/emit/assembler.hpp"
#include "jit/target.hpp"

namespace castor::jit {

/// Emits sum -= window sums times zero points. `product` may be overwritten.
inline void emit_subtract_window_sums(Assembler& code, const Target& target, WindowSums kind,
                                      const Xbyak::Xmm& sum, const Xbyak::Xmm& window_sums,
                                      const Xbyak::Xmm& zero_points, const Xbyak::Xmm& product) {
  if (kind == WindowSums::dwords) {
    code.vpmulld(product, window_sums, zero_points);
    code.vpsubd(sum, sum, product);
  } else if (target.has_avx512()) {
    code.vpdpwssd(sum, window_sums, zero_points);
  } else {
    code.vpdpwssd(sum, window_sums, zero_points, Xbyak::VexEncoding);
  }
}

/// Emits sum += inputs times weights, k group by k group. `product` may be overwritten.
inline void emit_dot_product(Assembler& code, const Target& target, ProductEngine engine,
                             const Xbyak::Xmm& sum, const Xbyak::Xmm& inputs,
                             const Xbyak::Xmm& weights, const Xbyak::Xmm& product) {
  if (engine == ProductEngine::i16_pairs) {
    code.vpmaddwd(product, inputs, weights);
    code.vpaddd(sum, sum, product);
  } else if (target.has_avx512()) {
    code.vpdpbusd(sum, inputs, weights);
  } else {
    code.vpdpbusd(sum, inputs, weights, Xbyak::VexEncoding);
  }
}

}  // namespace castor::jit
