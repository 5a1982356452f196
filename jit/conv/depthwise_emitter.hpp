// SPDX-License-Identifier: Apache-2.0
// The code of depthwise kernels: inside jit/conv only.
#pragma once

#include <array>
#include <memory>

#include "jit/conv/depthwise_kernel.hpp"
#include "jit/conv/depthwise_registers.hpp"
#include "jit/conv/row_epilogue.hpp"
#include "jit/conv/row_walk.hpp"

namespace castor::jit::depthwise {

using Xbyak::Operand;
using Xbyak::Opmask;
using Xbyak::Reg64;
using Xbyak::Zmm;

/// Registers with one meaning throughout the code.
namespace reg {
inline const Reg64 arguments(Operand::RDI);
inline const Reg64 weights(Operand::R9);     ///< of the channel
inline const Reg64 start(Operand::R10);      ///< of the channel
inline const Reg64 input(Operand::RCX);      ///< first row of the block
inline const Reg64 output(Operand::R8);      ///< of the block
inline const Reg64 bands(Operand::RBP);      ///< the entry of blocks
inline const Reg64 blocks(Operand::R12);     ///< still to come
inline const Reg64 columns(Operand::R11);    ///< the entry of column positions
inline const Reg64 positions(Operand::R13);  ///< of them still to come
inline const Reg64 from(Operand::RSI);       ///< the next row at the column position
inline const Reg64 to(Operand::RDX);         ///< the next output
inline const Reg64 row_step(Operand::R14);
inline const Reg64 output_step(Operand::R15);
inline const Reg64 scratch(Operand::RBX);
inline const Reg64 prefetched(Operand::RAX);  ///< not with an epilogue
}  // namespace reg

inline const std::array saved_registers = {reg::bands,    reg::blocks,      reg::positions,
                                           reg::row_step, reg::output_step, reg::scratch};

/// Masks: of the lanes that are stored, of the bytes of a guarded source, and of a shuffle's.
inline const Opmask stored(1);  // as an epilogue has it
inline const Opmask guard(2);
inline const Opmask in_row(3);
inline Opmask taken(int dword) { return Opmask(7 - dword); }

/// An epilogue may overwrite masks but for those of so many shuffles.
inline constexpr int max_epilogue_dwords = 2;
inline constexpr uint32_t epilogue_taken_masks = 0xc0;
/// Of the stack, in front of the epilogue's frame: where the caller's stack is.
inline constexpr int stack_bytes = 64;

/// The number that makes 1 of an odd one, modulo 2^32. Each step doubles the bits that are right.
inline constexpr uint32_t inverse_of_odd(uint32_t odd) {
  uint32_t inverse = odd;
  for (int bits = 3; bits < 32; bits *= 2) inverse *= 2 - odd * inverse;
  return inverse;
}

/// Vectors that a kernel leaves to an epilogue; null: none.
inline int spare_vectors(const TileEpilogue* epilogue) {
  return vectors_for(epilogue) + (epilogue == nullptr ? 0 : vectors_of_packs(*epilogue));
}

/// Emits one kernel. The methods are in the order of the code that they emit.
class DepthwiseEmitter {
 public:
  DepthwiseEmitter(const DepthwiseForm& form, const Target& target, const TileEpilogue* epilogue,
                   std::span<uint8_t> buffer)
      : form_(form),
        target_(target),
        vectors_(form, target, spare_vectors(epilogue)),
        code_(buffer) {
    if (epilogue == nullptr) return;
    packed_ = packed_epilogue(*epilogue);
    const TakenRegisters taken = {vectors_.taken(), epilogue_taken_masks};
    epilogue_ = std::make_unique<RowEpilogueEmitter>(code_, target, packed_ ? *packed_ : *epilogue,
                                                     taken, stack_bytes, reg::to, reg::output_step);
  }

  bool fits_frame() const { return !epilogue_ || epilogue_->fits_frame(); }

  MachineCode emit() {
    emit_entry();
    Xbyak::Label next_channel;
    Xbyak::Label next_blocks;
    code_.L(next_channel);
    emit_channel();
    code_.L(next_blocks);
    emit_blocks();
    code_.add(reg::bands, static_cast<int>(sizeof(DepthwiseBlocks)));
    code_.cmp(reg::bands, argument(offsetof(DepthwiseArguments, blocks_end)));
    code_.jb(next_blocks, Xbyak::CodeGenerator::T_NEAR);
    emit_channel_step();
    code_.jb(next_channel, Xbyak::CodeGenerator::T_NEAR);
    emit_exit();
    return code_.finish();
  }

 private:
  /// Where an input row lies.
  enum class Place : uint8_t { inside, guarded, outside };

  void emit_entry();
  void enter_epilogue();
  void emit_channel();
  void emit_row_start();
  void emit_blocks();
  void emit_blocks_of_code();
  void emit_shuffles();
  void emit_positions();
  void emit_block();
  void emit_row(int row);
  void load_source(int dword, int row);
  template <class Vector>
  void load_source(const Vector& source, const Vector& padding, const Vector& flip, int dword,
                   int row);
  void set_guard(int source, int row);
  void shuffle(int dword);
  void split_words(const Zmm& taps);
  void begin_sums(int row);
  void multiply(int row, const Zmm& taps, int dword);
  void multiply_add(const Zmm& sum, const Zmm& taps, int weight);
  void multiply_add_words(const Zmm& sum, const Zmm& taps, int weight);
  void emit_store(int output);
  void emit_channel_step();
  void emit_exit();

  int sources() const { return form_.dword_step == 0 ? 1 : form_.dwords; }
  Place place_of(int row) const {
    const int from_end = form_.input_rows(block_) - 1 - row;
    if (row < block_.above || from_end < block_.below) return Place::outside;
    const bool guarded =
        row < block_.above + block_.guarded_above || from_end < block_.below + block_.guarded_below;
    return guarded ? Place::guarded : Place::inside;
  }
  /// A guarded row among them all.
  int guarded_index(int row) const {
    const int first_below = form_.input_rows(block_) - block_.below - block_.guarded_below;
    return row < first_below ? row - block_.above : row - first_below + block_.guarded_above;
  }
  RowWalk walk() const { return {form_.rows, form_.row_stride, block_.outputs}; }
  Xbyak::Address argument(size_t offset) { return code_.qword[reg::arguments + offset]; }
  Xbyak::Address of_blocks(size_t offset) { return code_.qword[reg::bands + offset]; }
  Xbyak::Address of_columns(size_t offset) { return code_.ptr[reg::columns + offset]; }
  Xbyak::Address weight_address(int index) { return code_.ptr[reg::weights + 4 * index]; }

  const DepthwiseForm& form_;
  const Target& target_;
  const DepthwiseRegisters vectors_;
  DepthwiseBlock block_;  ///< whose code is being emitted
  Assembler code_;
  std::optional<TileEpilogue> packed_;            ///< the epilogue, where its stores pack
  std::unique_ptr<RowEpilogueEmitter> epilogue_;  ///< null where there is none
};

}  // namespace castor::jit::depthwise
