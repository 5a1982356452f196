// SPDX-License-Identifier: Apache-2.0
// The vector registers of depthwise kernels.
#pragma once

#include "jit/conv/depthwise_kernel.hpp"
#include "jit/conv/dot_product.hpp"
#include "jit/emit/assembler.hpp"

namespace castor::jit {

inline bool has_vbmi(const Target& target) { return target.supports(Feature::avx512_vbmi); }
inline bool has_words(const Target& target) {
  return product_engine_of(target) == ProductEngine::i16_pairs;
}

/// Dwords that a product takes for four taps.
inline int dwords_of_product(const Target& target) { return has_words(target) ? 2 : 1; }

/// The vector registers of one kernel, given out in the order of the members.
class DepthwiseRegisters {
 public:
  /// `spare`: registers that are left for an epilogue at least.
  DepthwiseRegisters(const DepthwiseForm& form, const Target& target, int spare = 0)
      : form_(form), target_(target), spare_(spare) {
    padding = take();
    source = take();
    taps = take();
    if (form.flips_input) flip = take();
    if (!has_vbmi(target)) moved = take();
    if (has_words(target)) {
      odd_taps = take();
      even_bytes = take();
      product = take();
    }
    if (form.sums_windows()) {
      window_sum = take();
      row_sum = take();
      row_start = take();
    }
    first_shuffle_ = take(form.dwords * (has_vbmi(target) ? 1 : 2));
    first_sum_ = take(form.sums());
    keeps_start = !form.starts_by_row() && has_room(1);
    if (keeps_start) start = take();
    weights = form.rows * form.dwords * dwords_of_product(target) + form.summed_dwords();
    keeps_weights = has_room(weights);
    if (keeps_weights) first_weight_ = take(weights);
    if (!keeps_weights && form.signed_input) product = take();
  }

  bool fit() const { return has_room(0); }
  /// A bit for each register that is given out.
  uint32_t taken() const { return (uint32_t{1} << (taken_ - 1) << 1) - 1; }

  Xbyak::Zmm padding, source, taps, flip, moved, odd_taps, even_bytes, product, start;
  Xbyak::Zmm window_sum, row_sum, row_start;
  bool keeps_start = false;
  bool keeps_weights = false;  ///< else they are read each time
  int weights = 0;             ///< that the code multiplies by

  Xbyak::Zmm shuffle(int dword) const { return Xbyak::Zmm(first_shuffle_.getIdx() + dword); }
  Xbyak::Zmm pieces(int dword) const {
    return Xbyak::Zmm(first_shuffle_.getIdx() + form_.dwords + dword);
  }
  /// Of the output with that number; they take turns.
  Xbyak::Zmm sum(int output) const {
    return Xbyak::Zmm(first_sum_.getIdx() + output % form_.sums());
  }
  Xbyak::Zmm weight(int index) const { return Xbyak::Zmm(first_weight_.getIdx() + index); }

 private:
  bool has_room(int count) const { return taken_ + count + spare_ <= target_.vector_registers(); }
  Xbyak::Zmm take(int count = 1) {
    taken_ += count;
    return Xbyak::Zmm(taken_ - count);
  }

  const DepthwiseForm& form_;
  const Target& target_;
  const int spare_;
  Xbyak::Zmm first_shuffle_, first_sum_, first_weight_;
  int taken_ = 0;
};

}  // namespace castor::jit
