// SPDX-License-Identifier: Apache-2.0
// The vector registers of grouped kernels of channels-last layouts: inside jit/conv only.
#pragma once

#include <algorithm>

#include "jit/conv/dot_product.hpp"
#include "jit/conv/grouped_nhwc_kernel.hpp"
#include "jit/emit/assembler.hpp"

namespace castor::jit {

inline bool has_words(const Target& target) {
  return product_engine_of(target) == ProductEngine::i16_pairs;
}
inline bool has_vbmi(const Target& target) { return target.supports(Feature::avx512_vbmi); }

/// The vector registers of one kernel, given out in the order of the members; `spare` ones are
/// left.
class NhwcRegisters {
 public:
  using Vector = Xbyak::Xmm;

  NhwcRegisters(const GroupedNhwcForm& form, const Target& target, int spare)
      : form_(form), bits_(target.vector_bits()) {
    const int all = target.vector_registers() - spare;
    const bool has_avx512 = target.has_avx512();
    const bool splits_words = vectors_of_weight(form, target) > 1;
    quad = take();
    if (has_avx512) padding = take();
    if (has_avx512 && form.parts == 0) order = take();
    if (has_avx512 && form.parts == 0 && !has_vbmi(target)) transposed = take();
    if (form.flips_input) flip = take();
    if (form.parts > 0 || form.is_partial || !has_avx512) pixel = take();
    if (splits_words) {
      odd_taps = take();
      even_bytes = take();
    }
    if (has_words(target) || form.signed_input) product = take();
    if (form.subtracts_window_sums) first_window_sum_ = take(form.outputs);
    first_sum_ = take(form.outputs * form.sum_rows());
    fit = taken_ <= all;
    record = record_vectors(form, target);
    if (!form.subtracts_window_sums && !has_words(target)) record -= form.zero_points();
    kept_ = fit ? std::min(record, all - taken_) : 0;
  }

  Vector quad, padding, order, transposed, flip, pixel, odd_taps, even_bytes, product;
  bool fit = false;
  int record = 0;  ///< vectors of a record that the code reads

  Vector window_sum(int output) const { return vector(first_window_sum_.getIdx() + output); }
  /// Of an output row with that number; they take turns.
  Vector sum(int row, int output) const {
    return vector(first_sum_.getIdx() + row % form_.sum_rows() * form_.outputs + output);
  }
  /// Some vectors of the record stay in registers, others are read each time.
  bool keeps(int index) const { return index < kept_; }
  Vector kept(int index) const { return vector(taken_ + index); }
  /// A bit for each that is in use.
  uint32_t taken() const { return (uint32_t{1} << (taken_ + kept_)) - 1; }

 private:
  Vector vector(int index) const { return vector_register(index, bits_); }
  Vector take(int count = 1) {
    taken_ += count;
    return vector(taken_ - count);
  }

  const GroupedNhwcForm& form_;
  const int bits_;
  Vector first_window_sum_, first_sum_;
  int taken_ = 0;
  int kept_ = 0;
};

}  // namespace castor::jit
