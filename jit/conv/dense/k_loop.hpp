// SPDX-License-Identifier: Apache-2.0
// The K loop of the dense microkernel (k_loop.cpp), with the pixels that it takes from the input
// (input_pixels.cpp) and the zero-point compensation (compensation.cpp): inside jit/conv/dense
// only.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "jit/conv/dense/registers.hpp"

namespace castor::jit::dense {

/// The four sign bits of a k group.
inline constexpr uint32_t sign_bits = 0x80808080;

/// Pixels that a tile reads from the input, in channels of their own, and packs for other tiles
/// unless they are read once.
class InputPixels final : RegisterTile {
 public:
  explicit InputPixels(const RegisterTile& tile) : RegisterTile(tile) {}

  /// Before a tile's first k step; also clears the window sums that the tile adds up for itself.
  void emit_start();
  /// Pixels of a k step, to the registers and, for others, to the packed input: all vectors, or,
  /// where these pass, some of them.
  void emit_vectors(int first, int end);
  /// Goes on to the channels of the next k step.
  void emit_next_channels();
  /// Puts the sums in order, where pixels are in another one until all products are done.
  void emit_sums_in_order();

 private:
  bool is_widened() const { return tile_.engine == ProductEngine::i16_pairs; }
  /// With VBMI, unless sums are put in order.
  bool permutes() const { return target_.has_avx512() && !reorders_sums(tile_); }
  std::vector<RegExp> channels() const;
  void emit_sign_flip(const Xmm& bytes);
  void emit_widened_vectors(int first);
  void emit_permuted_vector(std::span<const RegExp> channels, int index);
  void emit_interleaved_vector(std::span<const RegExp> channels, int index);
  void emit_unpacked_vectors(std::span<const RegExp> channels, int first);
  void emit_order_of_512_bits(int row, int first);
  void emit_order_of_256_bits(int row, int first);
};

/// The zero-point compensation, by window sums that were made before or that the tile adds up
/// itself.
class Compensation final : RegisterTile {
 public:
  explicit Compensation(const RegisterTile& tile) : RegisterTile(tile) {}

  /// First values less the products of window sums and the zero point, of which there is one for
  /// each pixel.
  void emit_first_values();
  /// Window sums that the tile stores: before the first k step, and with each.
  void emit_start_of_sums();
  void emit_added_pixels();
  /// After all products of some rows: what first values do not have.
  void emit(const TileRows& rows);
  /// Emits sum -= window sums times zero points, or products of both. `product` is overwritten.
  void emit_subtract(const Xmm& sum, const Xmm& window_sums, const Xmm& zero_points,
                     const Xmm& product);

 private:
  void emit_window_sums_of_rows(const Reg64& to);
  void emit_sums_or_argument(bool of_sums, size_t else_argument);
  void emit_own(const TileRows& rows);
};

/// A k step: its operands and products.
class KStep final : RegisterTile {
 public:
  KStep(const RegisterTile& tile, InputPixels& input, Compensation& compensation)
      : RegisterTile(tile), input_(input), compensation_(compensation) {}

  /// Before a loop over k steps: what comes after one may have used the register.
  void emit_start_of_sign_flips();
  /// The products of some rows, `position` k steps after the one whose offset is at `at`.
  void emit(const RegExp& at, int position, const TileRows& rows);
  void emit_prefetch_of_next_weights();
  /// Bytes of the weights of one k step.
  int weight_bytes() const { return by_pixels() ? 4 * rows_ : row_bytes(); }

 private:
  void emit_vectors(int position, int first, int end);
  void emit_prefetch_of_next_tile();
  void emit_broadcast(const RegExp& row);
  void emit_passing_pixels(int position, const TileRows& rows);
  /// A row of the tile times the vectors of the k step from `first` to `end`.
  void emit_products(int row, int position, int first, int end);
  RegExp vector_address(int vector, int position) const;
  RegExp row_address(int row, int position) const;
  /// The constant of sign flips: products of bytes need no register of their own.
  Xmm sign_flip() const { return product(); }

  InputPixels& input_;
  Compensation& compensation_;
};

/// Emits the values of a register tile's accumulators.
class KLoopEmitter final : RegisterTile {
 public:
  explicit KLoopEmitter(const RegisterTile& tile)
      : RegisterTile(tile), input_(tile), compensation_(tile), step_(tile, input_, compensation_) {}
  KLoopEmitter(const KLoopEmitter&) = delete;
  KLoopEmitter& operator=(const KLoopEmitter&) = delete;

  /// The first values of a tile's accumulators.
  void emit_start();
  /// All k steps but the peeled ones.
  void emit_loop();
  /// The peeled k steps of one row group after another, each followed by its zero-point
  /// compensation, unless first values have it, and by what `emit_end` emits. All rows are one
  /// group where none are peeled.
  void emit_row_groups(const std::function<void(const TileRows&)>& emit_end);

 private:
  void emit_first_values();
  void emit_prefetch_of_output();
  void emit_k_steps();
  void emit_peeled_k_steps(const TileRows& group);
  void note_loop(uint32_t begin, int k_steps);

  InputPixels input_;
  Compensation compensation_;
  KStep step_;
};

}  // namespace castor::jit::dense
