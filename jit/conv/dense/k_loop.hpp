// SPDX-License-Identifier: Apache-2.0
// The K loop of the dense microkernel (k_loop.cpp, input_pixels.cpp, compensation.cpp): inside
// jit/conv/dense only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "jit/conv/dense/registers.hpp"
#include "jit/conv/dense/tile_spec.hpp"
#include "jit/emit/assembler.hpp"

namespace castor::jit::dense {

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

  /// Emits sum -= window sums times zero points, or products of both. `product` is overwritten.
  void emit_subtract_window_sums(const Xmm& sum, const Xmm& window_sums, const Xmm& zero_points,
                                 const Xmm& product);

  bool by_pixels() const { return tile_.vectorised == Vectorised::pixels; }
  bool takes_input() const { return tile_.source != PixelSource::packed; }
  int vector_bytes() const { return 4 * lanes_; }
  int row_bytes() const { return vectors_ * vector_bytes(); }

  Xbyak::Address argument(size_t offset) { return code_.qword[reg::arguments + offset]; }
  /// A field of a vector's ConvStore; of vector 0 it may be one of the tile's TileOrigin.
  Xbyak::Address store(int of_vector, size_t offset) {
    return code_.ptr[reg::stores + static_cast<size_t>(of_vector) * sizeof(ConvStore) + offset];
  }
  /// The address in an output of i32 at the first pixel that a vector stores.
  void emit_output_of(int of_vector);
  /// Moves the address of a row of the output to the next row's.
  void emit_add_output_step(const Reg64& to);

  const DenseTile& tile_;
  const Target& target_;
  const int lanes_;
  const int rows_;
  const int vectors_;
  Assembler code_;

 private:
  static constexpr uint32_t sign_bits = 0x80808080;  ///< the four of a k group

  void emit_first_values();
  void emit_window_sums_of_rows(const Reg64& to);
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
  void note_loop(uint32_t begin, int k_steps);
  /// Bytes of the weights of one k step.
  int weight_bytes() const { return by_pixels() ? 4 * rows_ : row_bytes(); }
};

}  // namespace castor::jit::dense
