// SPDX-License-Identifier: Apache-2.0
// The vector registers of depthwise kernels of channels-last layouts: inside jit/conv only.
#pragma once

#include <algorithm>

#include "jit/conv/depthwise_nhwc_kernel.hpp"
#include "jit/conv/dot_product.hpp"

namespace castor::jit {

inline bool has_words(const Target& target) { return dot_product_of(target) == DotProduct::words; }
inline bool has_vbmi(const Target& target) { return target.supports(Feature::avx512_vbmi); }
inline int vectors_of_product(const Target& target) { return has_words(target) ? 2 : 1; }

/// The vector registers of one kernel, given out in the order of the members; `spare` ones are
/// left.
class NhwcRegisters {
 public:
  NhwcRegisters(const DepthwiseNhwcForm& form, const Target& target, int spare) : form_(form) {
    const int all = target.vector_registers() - spare;
    padding = take();
    quad = take();
    order = take();
    if (!has_vbmi(target)) transposed = take();
    if (form.flips_input) flip = take();
    if (form.is_partial) pixel = take();
    if (has_words(target)) {
      odd_taps = take();
      even_bytes = take();
    }
    if (has_words(target) || form.signed_input) product = take();
    if (form.subtracts_window_sums) first_window_sum_ = take(form.outputs);
    first_sum_ = take(form.outputs * form.sum_rows());
    fit = taken_ <= all;
    weights = weight_vectors(form, target);
    if (!form.subtracts_window_sums && !has_words(target)) weights -= form.products();
    kept_weights_ = fit ? std::min(weights, all - taken_) : 0;
    first_weight_ = Xbyak::Zmm(taken_);
  }

  Xbyak::Zmm padding, quad, order, transposed, flip, pixel, odd_taps, even_bytes, product;
  bool fit = false;
  int weights = 0;  ///< vectors that the code multiplies by

  Xbyak::Zmm window_sum(int output) const {
    return Xbyak::Zmm(first_window_sum_.getIdx() + output);
  }
  /// Of an output row with that number; they take turns.
  Xbyak::Zmm sum(int row, int output) const {
    return Xbyak::Zmm(first_sum_.getIdx() + row % form_.sum_rows() * form_.outputs + output);
  }
  /// Some weights stay in registers, others are read each time.
  bool keeps(int weight) const { return weight < kept_weights_; }
  Xbyak::Zmm weight(int index) const { return Xbyak::Zmm(first_weight_.getIdx() + index); }
  /// A bit for each that is in use.
  uint32_t taken() const { return (uint32_t{1} << (taken_ + kept_weights_)) - 1; }

 private:
  Xbyak::Zmm take(int count = 1) {
    taken_ += count;
    return Xbyak::Zmm(taken_ - count);
  }

  const DepthwiseNhwcForm& form_;
  Xbyak::Zmm first_window_sum_, first_sum_, first_weight_;
  int taken_ = 0;
  int kept_weights_ = 0;
};

}  // namespace castor::jit
