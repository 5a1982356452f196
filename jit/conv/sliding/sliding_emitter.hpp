// SPDX-License-Identifier: Apache-2.0
// What the emitters of both sliding kernels share: the walk down the rows of a row range, and its
// products. Inside jit/conv only.
#pragma once

#include <algorithm>
#include <memory>
#include <type_traits>

#include "jit/conv/epilogue/epilogue_emitter.hpp"
#include "jit/conv/sliding/sliding_spec.hpp"
#include "jit/emit/assembler.hpp"

namespace castor::jit::sliding {

using Xbyak::Operand;
using Xbyak::Opmask;
using Xbyak::Reg64;
using Xbyak::Xmm;
using Xbyak::Ymm;
using Xbyak::Zmm;

inline bool has_vbmi(const Target& target) { return target.supports(Feature::avx512_vbmi); }
/// Whether a spec's rows, strides and instructions are what kernels of the target have.
inline bool has_code_for(const SlidingSpec& spec, const Target& target) {
  return spec.rows >= 1 && std::max(spec.rows, spec.row_stride) <= SlidingSpec::max_filter_rows &&
         (spec.has_pairs() || product_engine_of(target) == ProductEngine::u8_i8_dot);
}

/// Vector registers, given out one after the other; `spare` ones are left.
class VectorPool {
 public:
  VectorPool(const Target& target, int spare)
      : bits_(target.vector_bits()), all_(target.vector_registers() - spare) {}
  /// Whether there were enough.
  bool fit() const { return room() >= 0; }
  /// Whether a vector of the panel stays in a register; others are read each time.
  bool keeps(int index) const { return index < kept_; }
  Xmm kept(int index) const { return vector(first_kept_ + index); }
  /// A bit for each register that is given out.
  uint32_t taken() const { return (uint32_t{1} << (taken_ - 1) << 1) - 1; }

 protected:
  int room() const { return all_ - taken_; }
  /// Keeps vectors of a panel in registers, while any are left.
  void keep(int panel) {
    first_kept_ = taken_;
    kept_ = std::clamp(room(), 0, panel);
    taken_ += kept_;
  }
  Xmm take(int count = 1) {
    taken_ += count;
    return vector(taken_ - count);
  }
  Xmm vector(int index) const { return vector_register(index, bits_); }

 private:
  int bits_;
  int all_;
  int taken_ = 0;
  int first_kept_ = 0;
  int kept_ = 0;
};

/// A loop over the elements of an array, at least one: `at` goes on to the address in `end`.
template <class EmitBody>
void emit_each(Assembler& code, CodeSection section, const Reg64& at, size_t bytes,
               const Xbyak::Address& end, const EmitBody& body) {
  const Section loop = code.section(section);
  Xbyak::Label next;
  code.L(next);
  body();
  code.add(at, static_cast<uint32_t>(bytes));
  code.cmp(at, end);
  code.jb(next, Xbyak::CodeGenerator::T_NEAR);
}

/// The walk down the rows of a range. `Registers` are a VectorPool that names the registers of the
/// walk. Derived classes gather the k groups of a row, and store.
template <class Spec, class Registers>
class SlidingEmitter {
 protected:
  SlidingEmitter(const Spec& spec, const Target& target, int spare, const CodeBuffer& buffer)
      : spec_(spec),
        target_(target),
        vectors_(spec, target, spare),
        code_(buffer, target.frame_pointers) {}
  ~SlidingEmitter() = default;

  inline static const Reg64 arguments{Operand::RDI};
  /// Of the layer's weights: the panel of the output channel, or of the vector of channels.
  inline static const Reg64 weights{Operand::R9};
  /// Of the stack, below the epilogue's frame: where the caller's stack is.
  static constexpr int stack_bytes = 64;

  /// What begins the accumulator of an output: the start, and window sums if there are.
  virtual void emit_first_sum(const Xmm& sum, int output) = 0;
  /// Loads an input row, and calls `emit_products` for all its k groups.
  virtual void emit_row(int row) = 0;
  /// Stores the accumulators of an output row, from which window sums are subtracted.
  virtual void emit_stores(int output_row) = 0;

  /// The code of all ranges of the spec, of which `number` names one.
  template <class EmitRange>
  void emit_any_range(const Xbyak::Address& number, const EmitRange& emit_range) {
    const Section ranges = code_.section(CodeSection::range_loop);
    Xbyak::Label done;
    for (size_t i = 0; i < spec_.ranges.size(); ++i) {
      Xbyak::Label next;
      const bool is_last = i + 1 == spec_.ranges.size();
      if (!is_last) {
        code_.cmp(number, static_cast<uint32_t>(i));
        code_.jne(next, Xbyak::CodeGenerator::T_NEAR);
      }
      range_ = spec_.ranges[i];
      emit_range();
      if (!is_last) code_.jmp(done, Xbyak::CodeGenerator::T_NEAR);
      code_.L(next);
    }
    code_.L(done);
  }

  Xbyak::Address panel_vector(int index) {
    if (broadcasts) return code_.ptr_b[weights + 4 * index];
    return code_.ptr[weights + target_.vector_bits() / 8 * index];
  }
  /// The vectors of the panel that stay in registers.
  void emit_kept() {
    const Section load = code_.section(CodeSection::load_weights);
    for (int i = 0; vectors_.keeps(i); ++i) emit_read(vectors_.kept(i), i);
  }
  /// All rows of a range. What window sums have added up to is added where an accumulator begins
  /// and subtracted at the end, so that the rows between remain. `from` goes on by `row_step`.
  void emit_rows(const Reg64& from, const Operand& row_step) {
    for (int output = 0; spec_.subtracts_window_sums && output < spec_.outputs; ++output) {
      const Section first = code_.section(CodeSection::window_sums);
      emit_xor(vectors_.window_sum(output), vectors_.window_sum(output));
    }
    for (int row = 0; row < spec_.input_rows(range_); ++row) {
      if (spec_.first_output(row) <= spec_.last_output(range_, row)) {
        emit_first_sums(row);
        emit_row(row);
      }
      {
        const Section next = code_.section(CodeSection::next_row);
        code_.add(from, row_step);
      }
      const int done = row - spec_.rows + 1;
      if (done >= 0 && done % spec_.row_stride == 0) emit_stores(done / spec_.row_stride);
    }
  }

  /// A k group of a row: into the accumulators of outputs, and into window sums.
  void emit_products(int row, const Xmm& taps, int k_group) {
    const int weights_of_row = spec_.row_weights();
    for (int output = 0; output < spec_.outputs; ++output) {
      if (!spec_.takes(output, k_group)) continue;
      if (spec_.sums_window_of(k_group)) {
        const Section sums = code_.section(CodeSection::window_sums);
        emit_product(vectors_.window_sum(output), taps,
                     spec_.rows * weights_of_row + spec_.zero_point_of(output, k_group));
      }
      const Section products = code_.section(CodeSection::products);
      const int weight = spec_.weight_of(output, k_group);
      for (int i = spec_.first_output(row); i <= spec_.last_output(range_, row); ++i) {
        const int tap_row = row - i * spec_.row_stride;
        emit_product(vectors_.sum(i, output), taps, tap_row * weights_of_row + weight);
      }
    }
  }

  void emit_xor(const Xmm& to, const Xmm& with) {
    has_avx512() ? code_.vpxord(to, to, with) : code_.vpxor(to, to, with);
  }
  /// Without VNNI: u8 as i16, the even ones to `to`, and the odd ones.
  void emit_split(const Xmm& to, const Xmm& bytes) {
    if (spec_.weight_parts() == 1) return;
    code_.vpsrlw(vectors_.odd_taps, bytes, 8);
    has_avx512() ? code_.vpandd(to, bytes, vectors_.even_bytes)
                 : code_.vpand(to, bytes, vectors_.even_bytes);
  }
  void emit_split_constant() {
    if (spec_.weight_parts() == 1) return;
    code_.vpbroadcastd(vectors_.even_bytes, code_.constant_of(uint32_t{0x00ff00ff}));
  }
  void emit_flip_constant() {
    if (!spec_.flips_input) return;
    code_.vpbroadcastd(vectors_.flip, code_.constant_of(uint32_t{0x80808080}));
  }

  /// Makes room for the epilogue's frame, and keeps there where the caller's stack is.
  /// `return_bytes` are below it where epilogues are applied. Overwrites `scratch`.
  void emit_enter_epilogue(const Reg64& scratch, int return_bytes, size_t operands) {
    code_.enter_aligned_frame(scratch, stack_bytes + epilogue_->frame_bytes());
    code_.store_callers_stack(scratch);
    if (return_bytes > 0) code_.lower_stack(return_bytes);
    epilogue_->emit_enter(argument(operands));
    epilogue_->emit_begin();
    if (return_bytes > 0) code_.raise_stack(return_bytes);
  }
  void emit_exit(std::span<const Reg64> saved, int return_bytes) {
    const Section exit = code_.section(CodeSection::exit);
    if (epilogue_) {
      if (return_bytes > 0) code_.lower_stack(return_bytes);
      epilogue_->emit_store_folds();
      epilogue_->emit_leave();
      code_.leave_aligned_frame(return_bytes);
    }
    code_.vzeroupper();
    code_.pop_all(saved);
    code_.emit_return();
  }

  /// The loop from `begin` to here, which computes the outputs of a range for vectors of pixels or
  /// channels.
  void note_range(uint32_t begin) {
    const int64_t lanes = target_.vector_bits() / 32;
    const int64_t results = lanes * spec_.outputs * range_.outputs;
    code_.note_loop({.begin = begin,
                     .elements = results,
                     .load_bytes = lanes * spec_.outputs * spec_.input_rows(range_),
                     .store_bytes = results * 4,
                     .name = "rows of a range"});
  }

  bool has_avx512() const { return target_.has_avx512(); }
  Xbyak::Address argument(size_t offset) { return code_.qword[arguments + offset]; }

  const Spec& spec_;
  const Target& target_;
  const Registers vectors_;
  RowRange range_;  ///< whose code is being emitted
  Assembler code_;
  std::unique_ptr<EpilogueEmitter> epilogue_;  ///< null where there is none

 private:
  /// In NCHW a weight is one 32-bit lane, the same for all.
  static constexpr bool broadcasts = std::is_same_v<Spec, DepthwiseSpec>;

  /// Of the output row that begins with an input row.
  void emit_first_sums(int row) {
    if (row % spec_.row_stride != 0 || row / spec_.row_stride >= range_.outputs) return;
    const Section first = code_.section(CodeSection::first_values);
    for (int output = 0; output < spec_.outputs; ++output) {
      emit_first_sum(vectors_.sum(row / spec_.row_stride, output), output);
    }
  }

  /// sum += taps times the weights of that number.
  void emit_product(const Xmm& sum, const Xmm& taps, int weight) {
    const int parts = spec_.weight_parts();
    const int index = spec_.orders() + weight * parts;
    emit_product_of_part(sum, taps, index);
    if (parts > 1) emit_product_of_part(sum, vectors_.odd_taps, index + 1);
  }

  void emit_read(const Xmm& to, int index) {
    broadcasts ? code_.vpbroadcastd(to, code_.ptr[weights + 4 * index])
               : code_.vmovups(to, panel_vector(index));
  }

  /// `index` in the panel.
  void emit_product_of_part(const Xmm& sum, const Xmm& taps, int index) {
    const bool keeps = vectors_.keeps(index);
    const Xmm& product = vectors_.product;
    const auto encoding = has_avx512() ? Xbyak::EvexEncoding : Xbyak::VexEncoding;
    // Words have no broadcast of their own.
    const bool loads = !keeps && (spec_.signed_input || (broadcasts && spec_.has_pairs()));
    if (loads) emit_read(product, index);
    const Xmm loaded = keeps ? vectors_.kept(index) : product;
    if (spec_.signed_input) return code_.vpdpbusd(sum, loaded, taps, encoding);
    const Xbyak::Address at = panel_vector(index);
    const Operand& weight = keeps || loads ? static_cast<const Operand&>(loaded) : at;
    if (!spec_.has_pairs()) return code_.vpdpbusd(sum, taps, weight, encoding);
    code_.vpmaddwd(product, taps, weight);
    code_.vpaddd(sum, sum, product);
  }
};

}  // namespace castor::jit::sliding
