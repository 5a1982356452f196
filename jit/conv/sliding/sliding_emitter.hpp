// SPDX-License-Identifier: Apache-2.0
// What the emitters of both sliding kernels share: the walk down the rows of a block, and its
// products. Inside jit/conv only.
#pragma once

#include <algorithm>
#include <type_traits>

#include "jit/conv/sliding/sliding_spec.hpp"
#include "jit/emit/assembler.hpp"

namespace castor::jit::sliding {

using Xbyak::Operand;
using Xbyak::Opmask;
using Xbyak::Reg64;
using Xbyak::Xmm;
using Xbyak::Ymm;
using Xbyak::Zmm;

/// Beyond these code gets long.
inline constexpr int max_filter_rows = 16;
inline constexpr int max_input_rows = 64;

/// Whether a form has at most so many blocks, of rows that are not too many.
template <class Form>
bool has_short_code(const Form& form, size_t max_blocks) {
  return form.rows >= 1 && form.rows <= max_filter_rows && form.row_stride <= max_filter_rows &&
         form.blocks.size() <= max_blocks &&
         std::ranges::all_of(form.blocks, [&](const SlidingBlock& block) {
           return form.input_rows(block) <= max_input_rows;
         });
}

inline bool has_vbmi(const Target& target) { return target.supports(Feature::avx512_vbmi); }
/// Whether the target has the instructions of an engine.
inline bool has_engine(const Target& target, ProductEngine engine) {
  return engine == ProductEngine::i16_pairs || engine == product_engine_of(target);
}

/// Vector registers, given out one after the other; `spare` ones are left.
class VectorPool {
 public:
  VectorPool(const Target& target, int spare)
      : bits_(target.vector_bits()), all_(target.vector_registers() - spare) {}
  /// A bit for each register that is given out.
  uint32_t taken() const { return (uint32_t{1} << (taken_ - 1) << 1) - 1; }

 protected:
  int room() const { return all_ - taken_; }
  Xmm take(int count = 1) {
    taken_ += count;
    return vector(taken_ - count);
  }
  Xmm vector(int index) const { return vector_register(index, bits_); }

 private:
  int bits_;
  int all_;
  int taken_ = 0;
};

/// Which output rows take an input row. Rows are counted from the first one that any output takes;
/// output o takes those from o * stride on.
struct RowWalk {
  int rows = 1;    ///< of the filter
  int stride = 1;  ///< rows from one output to the next
  int outputs = 0;

  /// The first output that takes an input row, and the last one; none where that one is before it.
  int first_output(int row) const { return row < rows ? 0 : (row - rows) / stride + 1; }
  int last_output(int row) const { return std::min(row / stride, outputs - 1); }
  /// The output that begins, or is done, with an input row; -1: none.
  int begun_by(int row) const {
    return row % stride == 0 && row / stride < outputs ? row / stride : -1;
  }
  int done_by(int row) const {
    const int first = row - rows + 1;
    return first >= 0 && first % stride == 0 ? first / stride : -1;
  }
};

/// The walk down the rows of a block. `Registers` are a VectorPool that names the registers of the
/// walk; what is read of a row, and where sums go, is the derived class's.
template <class Form, class Registers>
class SlidingEmitter {
 protected:
  SlidingEmitter(const Form& form, const Target& target, int spare, std::span<uint8_t> buffer)
      : form_(form), target_(target), vectors_(form, target, spare), code_(buffer) {}
  ~SlidingEmitter() = default;

  /// Of the layer's weights: the panel of the output channel, or of the vector of channels.
  inline static const Reg64 weights{Operand::R9};

  /// What begins the sum of an output of a place: the start, and window sums where there are any.
  virtual void emit_first_sum(const Xmm& sum, int output) = 0;
  /// Reads an input row, and calls `emit_products` for all its k groups.
  virtual void emit_row(int row) = 0;
  /// Stores the sums of an output row, from which window sums are subtracted.
  virtual void emit_stores(int output_row) = 0;

  /// The code of all blocks of the form, of which `number` names one.
  template <class EmitBlock>
  void emit_any_block(const Xbyak::Address& number, const EmitBlock& emit_block) {
    Xbyak::Label done;
    for (size_t i = 0; i < form_.blocks.size(); ++i) {
      Xbyak::Label next;
      const bool is_last = i + 1 == form_.blocks.size();
      if (!is_last) {
        code_.cmp(number, static_cast<uint32_t>(i));
        code_.jne(next, Xbyak::CodeGenerator::T_NEAR);
      }
      block_ = form_.blocks[i];
      emit_block();
      if (!is_last) code_.jmp(done, Xbyak::CodeGenerator::T_NEAR);
      code_.L(next);
    }
    code_.L(done);
  }

  /// All rows of a block. What window sums have added up to is added where a sum begins and
  /// subtracted at the end, so that the rows between remain. `from` goes on by `row_step`.
  void emit_rows(const Reg64& from, const Reg64& row_step) {
    for (int output = 0; form_.sums_windows() && output < form_.outputs; ++output) {
      const Xmm sum = vectors_.window_sum(output);
      has_avx512() ? code_.vpxord(sum, sum, sum) : code_.vpxor(sum, sum, sum);
    }
    for (int row = 0; row < form_.input_rows(block_); ++row) {
      if (walk().first_output(row) <= walk().last_output(row)) {
        emit_first_sums(walk().begun_by(row));
        emit_row(row);
      }
      code_.add(from, row_step);
      if (const int done = walk().done_by(row); done >= 0) {
        emit_stores(done);
      }
    }
  }

  /// A k group of a row: into the sums of outputs, and into window sums.
  void emit_products(int row, const Xmm& taps, int k_group) {
    const int weights_of_row = form_.row_weights();
    for (int output = 0; output < form_.outputs; ++output) {
      if (!form_.takes(output, k_group)) continue;
      if (form_.sums_window_of(k_group)) {
        emit_product(vectors_.row_sum(output), taps,
                     form_.rows * weights_of_row + form_.zero_point_of(output, k_group));
      }
      const int weight = form_.weight_of(output, k_group);
      for (int i = walk().first_output(row); i <= walk().last_output(row); ++i) {
        const int tap = row - i * form_.row_stride;
        emit_product(vectors_.sum(i, output), taps, tap * weights_of_row + weight);
      }
    }
  }

  /// Without VNNI: bytes as words, the even ones to `to`, and the odd ones.
  void emit_split(const Xmm& to, const Xmm& bytes) {
    if (form_.vectors_of_weight() == 1) return;
    code_.vpsrlw(vectors_.odd_taps, bytes, 8);
    has_avx512() ? code_.vpandd(to, bytes, vectors_.even_bytes)
                 : code_.vpand(to, bytes, vectors_.even_bytes);
  }
  void emit_split_constant() {
    if (form_.vectors_of_weight() == 1) return;
    code_.vpbroadcastd(vectors_.even_bytes, code_.constant_of(uint32_t{0x00ff00ff}));
  }
  void emit_flip_constant() {
    if (!form_.flips_input) return;
    code_.vpbroadcastd(vectors_.flip, code_.constant_of(uint32_t{0x80808080}));
  }
  /// Makes room on the stack, and keeps there where the caller's is. Overwrites `scratch`.
  void enter_frame(const Reg64& scratch, int bytes) {
    code_.mov(scratch, Xbyak::util::rsp);
    code_.sub(Xbyak::util::rsp, bytes);
    code_.and_(Xbyak::util::rsp, -64);
    code_.mov(code_.qword[Xbyak::util::rsp], scratch);
  }

  bool has_avx512() const { return target_.has_avx512(); }
  /// Of output rows.
  RowWalk walk() const { return {form_.rows, form_.row_stride, block_.outputs}; }

  const Form& form_;
  const Target& target_;
  const Registers vectors_;
  SlidingBlock block_;  ///< whose code is being emitted
  Assembler code_;

 private:
  /// In NCHW weights are dwords, the same for all lanes.
  static constexpr bool broadcasts = std::is_same_v<Form, DepthwiseForm>;

  void emit_first_sums(int output_row) {
    if (output_row < 0) return;
    for (int output = 0; output < form_.outputs; ++output) {
      emit_first_sum(vectors_.sum(output_row, output), output);
    }
  }

  /// sum += taps times the weights of that number.
  void emit_product(const Xmm& sum, const Xmm& taps, int weight) {
    const int vectors = form_.vectors_of_weight();
    const int index = form_.orders() + weight * vectors;
    emit_product_of_vector(sum, taps, index);
    if (vectors > 1) emit_product_of_vector(sum, vectors_.odd_taps, index + 1);
  }

  /// `index` in the panel.
  void emit_product_of_vector(const Xmm& sum, const Xmm& taps, int index) {
    const bool keeps = vectors_.keeps(index);
    const Xmm& product = vectors_.product;
    const auto encoding = has_avx512() ? Xbyak::EvexEncoding : Xbyak::VexEncoding;
    const int bytes = broadcasts ? 4 : target_.vector_bits() / 8;
    const Xbyak::Address at = code_.ptr[weights + bytes * index];
    const bool loads = !keeps && (form_.signed_input || (broadcasts && form_.has_words()));
    if (loads) broadcasts ? code_.vpbroadcastd(product, at) : code_.vmovups(product, at);
    const Xmm of_register = keeps ? vectors_.kept(index) : product;
    const bool is_register = keeps || loads;
    if (form_.signed_input) return code_.vpdpbusd(sum, of_register, taps, encoding);
    if (form_.has_words()) {
      is_register ? code_.vpmaddwd(product, taps, of_register) : code_.vpmaddwd(product, taps, at);
      return code_.vpaddd(sum, sum, product);
    }
    if (is_register) return code_.vpdpbusd(sum, taps, of_register, encoding);
    const Xbyak::Address operand = broadcasts ? code_.ptr_b[weights + bytes * index] : at;
    code_.vpdpbusd(sum, taps, operand, encoding);
  }
};

}  // namespace castor::jit::sliding
