// SPDX-License-Identifier: Apache-2.0
// The epilogue of kernels that make the channels of pixels in any order, as a routine of its own
// that the kernel's code calls for each vector of sums: so it is there once.
#pragma once

#include "jit/conv/tile_epilogue_emitter.hpp"

namespace castor::jit {

/// Rows of the result are pixels. What is the same for all of them is done once for some channels,
/// by another routine. Besides `taken`, both may overwrite all vectors and all masks but k1, which
/// names the lanes; of general registers RAX.
class PixelEpilogueEmitter final : public TileEpilogueEmitter {
 public:
  /// Where its operands lie in the frame, in front of `TileEpilogueEmitter`'s part.
  static constexpr int operand_bytes = 128;

  /// `frame`: bytes from the routine's stack pointer to the operands' part. `pixel` and `channel`
  /// are the registers that say where sums belong, counted from where the operands lie.
  PixelEpilogueEmitter(Assembler& code, const Target& target, const TileEpilogue& epilogue,
                       const TakenRegisters& taken, int frame, const Xbyak::Reg64& pixel,
                       const Xbyak::Reg64& channel);

  /// Makes all ready; the stack pointer is the routine's. `operands`: where the address of their
  /// EpilogueOperands lies. Overwrites `pixel`.
  void begin(const Xbyak::Address& operands);
  /// The routine for what is the same for all pixels of the channels; comes first.
  void emit_channels_routine();
  /// The routine for sums in that vector. It asks for the lines of results so many pixels `ahead`.
  void emit_routine(const Xbyak::Xmm& sums, const Xbyak::Address& ahead);

  ChunkAddress emit_chunk_address(size_t operand, int) override;

 private:
  Xbyak::Address slot(size_t operand, size_t field);
  void prefetch(const Xbyak::Address& ahead);

  const int operands_;
  const Xbyak::Reg64 pixel_;
  const Xbyak::Reg64 channel_;
};

}  // namespace castor::jit
