// SPDX-License-Identifier: Apache-2.0
// What calls of depthwise and of grouped kernels have in common: each result is the sum, over the
// rows of its window, of the products of the bytes that the call's tables choose.
#pragma once

#include <span>

#include "tools/prove/kernel/epilogue_proof.hpp"
#include "tools/prove/kernel/products.hpp"

namespace castor::prove {

inline constexpr uint8_t padding_byte = 0x25;
inline constexpr int bytes_of_k_group = 4;

/// What both kernels have in common: a panel of weights and the products with it.
template <class Spec>
class SlidingCall {
 protected:
  SlidingCall(const KernelSubject<Spec>& kernel, ResultProver& prover)
      : spec_(kernel.spec), target_(kernel.target), prover_(prover) {}

  Term padding(Terms& terms) const { return signed_as_multiplied(terms.constant(8, padding_byte)); }
  Term signed_as_multiplied(const Term& x) const { return spec_.flips_input ? x ^ 0x80 : x; }
  bool has_pairs() const { return spec_.has_pairs(); }
  int element_bits() const { return has_pairs() ? 16 : 8; }

  /// sum + the products of the four bytes of a k group. `weights_at` gives the elements of a 32-bit
  /// lane of the panel, of which i16 pairs of neighbours have two: the even bytes', then the odd
  /// ones'.
  template <class WeightsAt>
  Term added(Term sum, std::span<const Term> bytes, const WeightsAt& weights_at, int index) const {
    if (!has_pairs()) {
      return added_products(
          sum, bytes, weights_at(index),
          {.x_is_signed = spec_.signed_input, .w_is_signed = !spec_.signed_input});
    }
    for (int part = 0; part < spec_.weight_parts(); ++part) {
      const std::span<const Term> weights = weights_at(index * spec_.weight_parts() + part);
      const bool is_split = spec_.weight_parts() == 2;
      for (size_t i = 0; i < 2; ++i) {
        const Term& byte = bytes[2 * i + static_cast<size_t>(is_split ? part : 0)];
        sum = sum + widened(extend_zero(byte, 16), true) * widened(weights[i], true);
      }
    }
    return sum;
  }

  const Spec& spec_;
  const jit::Target target_;
  ResultProver& prover_;
};

}  // namespace castor::prove
