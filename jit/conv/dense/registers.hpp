// SPDX-License-Identifier: Apache-2.0
// The general registers of the dense microkernel, inside jit/conv/dense only.
#pragma once

#include "jit/emit/assembler.hpp"

namespace castor::jit::dense {

using Xbyak::Operand;
using Xbyak::Reg64;
using Xbyak::RegExp;
using Xbyak::Xmm;

/// General registers with one meaning throughout the code. An epilogue may overwrite RAX, RDX, RSI,
/// R9 and R13 to R15.
namespace reg {
inline const Reg64 arguments(Operand::RDI);
inline const Reg64 source(Operand::R8);          ///< of the tile's first pixel
inline const Reg64 stores(Operand::R10);         ///< the tile's ConvStore or TileOrigin
inline const Reg64 k_steps_end(Operand::R11);    ///< the end of the loop's offsets
inline const Reg64 tiles(Operand::RBP);          ///< `loop_bound` without a frame pointer
inline const Reg64 callers_stack(Operand::R12);  ///< `loop_bound` with a frame pointer
inline const Reg64 weights(Operand::R9);         ///< of the next k step
inline const Reg64 k_step(Operand::RSI);         ///< the next k step, from the end, counts up to 0
inline const Reg64 pixel(Operand::RAX);          ///< the k step's input at the tile's first pixel
inline const Reg64 output(Operand::RAX);         ///< of what is not stored by row groups
inline const Reg64 row_output(Operand::R13);     ///< of the next row of a row group
inline const Reg64 output_step(Operand::RDX);    ///< unless pixels come from the input
inline const Reg64 scratch(Operand::RCX);
inline const Reg64 k_groups(Operand::RCX);    ///< that are left
inline const Reg64 input(Operand::RBX);       ///< of the k step's four channels
inline const Reg64 prefetched(Operand::RBX);  ///< weights, unless pixels come from the input
inline const Reg64 pixel_step(Operand::RBX);  ///< with tile registers
/// With tile registers: the next k step's weights and its offset; bytes of a row of the register
/// tile, which are those of its weights too; the first values of a row, and 0, the bytes from one
/// row's to the next one's.
inline const Reg64 tile_weights(Operand::R10);
inline const Reg64 tile_k_step(Operand::R11);
inline const Reg64 tile_scratch(Operand::RSI);  ///< while results are stored
inline const Reg64 row_bytes(Operand::RCX);
inline const Reg64 first_values(Operand::R14);
inline const Reg64 no_step(Operand::R15);
inline const Reg64 window_sums(Operand::R15);  ///< where the tile leaves them
inline const Reg64 input_step(Operand::RCX);   ///< in the loop and the peeled k steps
inline const Reg64 input_steps_3(Operand::RDX);
inline const Reg64 staged(Operand::RCX);  ///< counts bytes of the staging buffer

/// How many tiles are left. With tile registers, which count tiles in the frame: the end of the
/// offsets of all k steps.
inline const Reg64& loop_bound(const Assembler& code) {
  return code.has_frame_pointer() ? callers_stack : tiles;
}
}  // namespace reg

}  // namespace castor::jit::dense
