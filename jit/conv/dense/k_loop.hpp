// SPDX-License-Identifier: Apache-2.0
// The K loop of the dense microkernel (k_loop.cpp, input_pixels.cpp, compensation.cpp): inside
// jit/conv/dense only.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "jit/conv/dense/coroutine.hpp"
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
inline const Reg64 tiles(Operand::RBP);          ///< that are left; elsewhere with a frame pointer
inline const Reg64 callers_stack(Operand::R12);  ///< unused with a frame pointer
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
}  // namespace reg

/// Some rows of a register tile.
struct TileRows {
  int begin = 0;
  int end = 0;
};

/// Emits the values of a register tile's accumulators. Vector registers: accumulators, the vectors
/// of a k step, a broadcast operand, a product.
class KLoopEmitter {
 protected:
  KLoopEmitter(const DenseTile& tile, const Target& target, const CodeBuffer& buffer)
      : tile_(tile),
        target_(target),
        lanes_(target.vector_bits() / 32),
        rows_(tile.rows()),
        vectors_(tile.vectors_of(lanes_)),
        code_(buffer, target.frame_pointers) {}

  /// The first values of a tile's accumulators.
  void emit_start();
  /// All k steps but the peeled ones.
  void emit_loop();
  /// The peeled k steps of one row group after another, each followed by its zero-point
  /// compensation, unless first values have it, and by what `emit_end` emits. All rows are one
  /// group where none are peeled.
  void emit_row_groups(const std::function<void(const TileRows&)>& emit_end);

  // With tile registers (tile_registers.cpp):
  /// All tiles. `emit_output` puts to row_output where a tile's accumulators are stored, row by row
  /// at a distance of `output_step`; then `results_` goes on with them, if there is anything to do.
  void emit_tiles(const Reg64& output_step, const std::function<void()>& emit_output);

  Xmm sum(int row, int vector) const { return reg(row * vectors_ + vector); }
  Xmm vector(int index) const { return reg(summed_rows() * vectors_ + index); }
  Xmm broadcast() const { return reg((summed_rows() + 1) * vectors_); }
  Xmm product() const { return reg((summed_rows() + 1) * vectors_ + 1); }
  /// The constant of sign flips: products of bytes need no register of their own.
  Xmm sign_flip() const { return product(); }
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
  /// Whether pixels from the input are in an order of their own until all products are done.
  bool unpacks_input() const { return tile_.reads_input_once && vectors_ % 4 == 0; }
  Xmm ones() const { return reg((summed_rows() + 1) * vectors_ + 2); }
  Xmm reg(int index) const { return vector_register(index, target_.vector_bits()); }

  void emit_window_sums_of_rows(const Reg64& to);
  /// Emits sum -= window sums times zero points, or products of both. `product` is overwritten.
  void emit_subtract_window_sums(const Xmm& sum, const Xmm& window_sums, const Xmm& zero_points,
                                 const Xmm& product);

  /// How many tiles are left: with a frame pointer in the register that need not keep the stack.
  const Reg64& tiles_left() const {
    return code_.has_frame_pointer() ? reg::callers_stack : reg::tiles;
  }
  /// With tile registers, which count tiles in the frame, the same register: after the offsets of
  /// all k steps.
  const Reg64& end_of_k_steps() const { return tiles_left(); }
  bool by_pixels() const { return tile_.vectorised == Vectorised::pixels; }
  bool takes_input() const { return tile_.source != PixelSource::packed; }
  int vector_bytes() const { return 4 * lanes_; }
  int row_bytes() const { return vectors_ * vector_bytes(); }

  Xbyak::Address argument(size_t offset) { return code_.qword[reg::arguments + offset]; }
  /// A field of a vector's ConvStore; of vector 0 it may be one of the tile's TileOrigin. With tile
  /// registers it is the pixel of the tile before, whose accumulators are looked after.
  Xbyak::Address store(int of_vector, size_t offset) {
    if (tile_.has_tiles()) {
      assert(offset == offsetof(TileOrigin, pixel));
      return state(TileState::result_pixel);
    }
    return code_.ptr[reg::stores + static_cast<size_t>(of_vector) * sizeof(ConvStore) + offset];
  }
  /// The address in an output of i32 at the first pixel that a vector stores.
  void emit_output_of(int of_vector);
  /// Moves the address of a row of the output to the next row's.
  void emit_add_output_step(const Reg64& to);

  // With tile registers:
  /// What the loop over tiles keeps in the frame, 8 bytes each.
  enum class TileState : int {
    result_pixel,  ///< the first of the tile before, whose accumulators are looked after
    result_channel,
    pixels,      ///< address: where the tile's pixels are
    tiles_left,  ///< with the same channels
    channel,     ///< the tile's first one, from that of the call
    channel_tiles_left,
    weights,  ///< address: those for the tile's channels
    first_values,
    prefetched,  ///< address: what is prefetched next
    count
  };
  static constexpr int tile_state_bytes = 8 * static_cast<int>(TileState::count);
  Xbyak::Address state(TileState of) {
    return code_.qword[Xbyak::util::rsp + tile_state_at_ + 8 * static_cast<int>(of)];
  }

  const DenseTile& tile_;
  const Target& target_;
  const int lanes_;
  const int rows_;
  const int vectors_;
  Assembler code_;
  std::optional<Coroutine> results_;  ///< with tile registers: all after their stores
  int tile_state_at_ = 0;             ///< with tile registers: from the stack pointer

 private:
  static constexpr uint32_t sign_bits = 0x80808080;  ///< the four of a k group

  void emit_first_values();
  void emit_compensated_values();
  void emit_sums_or_argument(bool of_sums, size_t else_argument);
  void emit_start_of_input();
  void emit_start_of_sums();
  void emit_added_pixels();
  void emit_own_compensation(const TileRows& rows);
  void emit_prefetch_of_output();
  void emit_k_steps();
  void emit_k_step(const RegExp& at, int position, const TileRows& rows);
  void emit_vectors(int position);
  void emit_vectors_of_input();
  void emit_sign_flip(const Xmm& bytes);
  void emit_permuted_vector(const std::array<RegExp, 4>& channels, int index);
  void emit_unpacked_vectors(const std::array<RegExp, 4>& channels, int first);
  void emit_pixels_in_order();
  void emit_prefetch_of_next_tile();
  void emit_prefetch_of_next_weights();
  void emit_start_of_sign_flips();
  void emit_broadcast(const RegExp& row);
  void emit_products(int row, int position);
  void emit_peeled_k_steps(const TileRows& group);
  void emit_compensation(const TileRows& rows);
  RegExp vector_address(int vector, int position) const;
  RegExp row_address(int row, int position) const;
  void for_each_sum(const std::function<void(int, int)>& emit) const;
  void emit_prefetch_begin();
  void emit_prefetch_of_weights();
  void emit_set(TileState of, size_t argument_offset);
  void emit_first_pixels();
  void emit_first_channels();
  void emit_next_tile(const Xbyak::Label& last);
  void emit_next_channels(const Xbyak::Label& there_is_one);
  void emit_next_pixels();
  void emit_tile_begin();
  void emit_first_values(int index, int vector);
  void emit_next_step(const Xbyak::Label& next_step);
  void emit_operand_loads();
  void emit_pixel_load(int index);
  void emit_later_pixels(int index);
  void emit_tile_product(int index, int vector);
  void emit_idle_product();
  void emit_tile_store(int index, int vector, const Reg64& output_step);
  void note_loop(uint32_t begin, int k_steps);
  void note_tile_loop(uint32_t begin);
  Xbyak::Tmm sum_tile(int index, int vector) const;
  Xbyak::Tmm pixel_tile(int index) const;
  Xbyak::Tmm weight_tile(int vector) const;
  static Xbyak::Zmm idle() { return Xbyak::Zmm(31); }  ///< with tile registers: zeros
  /// Bytes of the weights of one k step.
  int weight_bytes() const { return by_pixels() ? 4 * rows_ : row_bytes(); }
};

}  // namespace castor::jit::dense
