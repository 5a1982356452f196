// SPDX-License-Identifier: Apache-2.0
// The registers of the dense microkernel, inside jit/conv/dense only.
#pragma once

#include <cstddef>

#include "jit/conv/dense/tile_spec.hpp"
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
inline const Reg64 input(Operand::RBX);       ///< of the k step's channels
inline const Reg64 prefetched(Operand::RBX);  ///< weights, unless pixels come from the input
inline const Reg64 pixel_step(Operand::RBX);  ///< with tile registers
/// With tile registers: the next k step's weights and its offset; bytes of a row of the register
/// tile, which are those of its weights too; the first values of a row, and the bytes from one
/// row's to the next one's, 0 where all rows have the same.
inline const Reg64 tile_weights(Operand::R10);
inline const Reg64 tile_k_step(Operand::R11);
inline const Reg64 tile_scratch(Operand::RSI);  ///< while results are stored
inline const Reg64 row_bytes(Operand::RCX);
inline const Reg64 first_values(Operand::R14);
inline const Reg64 first_step(Operand::R15);
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

/// Some rows of a register tile.
struct TileRows {
  int begin = 0;
  int end = 0;
};

/// A register tile, as all of its emitters know it. Vector registers: accumulators, the
/// vectors of a k step, a broadcast operand, a product.
class RegisterTile {
 public:
  RegisterTile(const DenseTile& tile, const Target& target, Assembler& code)
      : tile_(tile),
        target_(target),
        lanes_(target.vector_bits() / 32),
        rows_(tile.rows()),
        vectors_(tile.vectors_of(lanes_)),
        held_vectors_(tile.held_vectors(lanes_)),
        code_(code) {}

 protected:
  Xmm sum(int row, int vector) const { return reg(row * vectors_ + vector); }
  Xmm vector(int index) const { return reg(summed_rows() * vectors_ + index % held_vectors_); }
  Xmm broadcast() const { return reg(summed_rows() * vectors_ + held_vectors_); }
  Xmm product() const { return reg(summed_rows() * vectors_ + held_vectors_ + 1); }
  /// With window sums of its own: the last row of sums, and the weights of that row.
  bool sums_pixels() const { return tile_.window_sums == WindowSums::own; }
  /// With window sums of its own that it stores for other tiles of channels.
  bool stores_window_sums() const { return tile_.window_sums == WindowSums::own_products; }
  /// Whether these are in the last row meanwhile, as far as there are registers; else in memory.
  bool has_row_of_sums() const {
    const int needed = (rows_ + 2) * vectors_ + 2;
    return sums_pixels() || (stores_window_sums() && needed <= target_.vector_registers());
  }
  int summed_rows() const { return rows_ + (has_row_of_sums() ? 1 : 0); }
  Xmm ones() const { return reg(summed_rows() * vectors_ + held_vectors_ + 2); }
  Xmm reg(int index) const { return vector_register(index, target_.vector_bits()); }

  bool by_pixels() const { return tile_.vectorised == Vectorised::pixels; }
  bool takes_input() const { return tile_.source != PixelSource::packed; }
  int vector_bytes() const { return 4 * lanes_; }
  int row_bytes() const { return vectors_ * vector_bytes(); }

  Xbyak::Address argument(size_t offset) { return code_.qword[reg::arguments + offset]; }
  /// A field of a vector's ConvStore; of vector 0 it may be one of the tile's TileOrigin.
  Xbyak::Address store(int of_vector, size_t offset) {
    return code_.ptr[reg::stores + static_cast<size_t>(of_vector) * sizeof(ConvStore) + offset];
  }
  void emit_zero(const Xmm& to);
  /// The address in an output of i32 at the first pixel that a vector stores.
  void emit_output_of(int of_vector);
  /// Moves the address of a row of the output to the next row's.
  void emit_add_output_step(const Reg64& to);

  const DenseTile& tile_;
  const Target& target_;
  const int lanes_;
  const int rows_;
  const int vectors_;
  const int held_vectors_;
  Assembler& code_;
};

}  // namespace castor::jit::dense
