// SPDX-License-Identifier: Apache-2.0
// The products of register tiles that are made of tile registers (AMX), inside jit/conv/dense only:
// pixel tiles by vectors of channels. A product takes 16 cycles where a load takes 8, so that a k
// step of two pixel tiles by two vectors, with four loads, is bound by its products.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "jit/conv/dense/coroutine.hpp"
#include "jit/conv/dense/registers.hpp"
#include "jit/conv/dense/tile_spec.hpp"

namespace castor::jit::dense {

/// The order of tiles, and what the frame has of the one that is next.
class TileOrder {
  /// What is in the frame, 8 bytes each.
  enum class State : int {
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

 public:
  static constexpr int frame_bytes = 8 * static_cast<int>(State::count);

  /// `frame`: bytes from the stack pointer to `frame_bytes` of its own.
  TileOrder(const DenseTile& tile, Assembler& code, int frame)
      : tile_(tile), frame_(frame), code_(code) {}

  /// Goes to the first tile.
  void emit_first();
  /// Goes on to the next tile, or to `last` without any being left.
  void emit_next(const Xbyak::Label& last);
  /// Loads what the tile's k steps have in registers.
  void emit_begin();
  /// Prefetches the part of the next tile of channels' weights that is a k step's.
  void emit_prefetch_of_weights();
  /// Jumps if no tile is left.
  void emit_leave_if_done(const Xbyak::Label& done);

  /// The first pixel and channel of the tile whose accumulators are looked after.
  Xbyak::Address result_pixel() { return state(State::result_pixel); }
  Xbyak::Address result_channel() { return state(State::result_channel); }

  static constexpr int vector_bytes = 4 * DenseTile::tile_rows;
  int row_bytes() const { return tile_.vectors_of(DenseTile::tile_rows) * vector_bytes; }

 private:
  void emit_set(State of, size_t argument_offset);
  void emit_first_pixels();
  void emit_first_channels();
  void emit_next_channels(const Xbyak::Label& there_is_one);
  void emit_next_pixels();
  void emit_prefetch_begin();

  Xbyak::Address argument(size_t offset) { return code_.qword[reg::arguments + offset]; }
  Xbyak::Address state(State of) {
    return code_.qword[Xbyak::util::rsp + frame_ + 8 * static_cast<int>(of)];
  }

  const DenseTile& tile_;
  const int frame_;
  Assembler& code_;
};

/// Emits the loop over tiles, with the K loop in it.
class TileLoopEmitter {
 public:
  static constexpr int frame_bytes = TileOrder::frame_bytes;

  /// `frame`: bytes from the stack pointer to `frame_bytes` of its own. `results`: what becomes of
  /// a tile's accumulators after they are stored, or null where nothing does.
  TileLoopEmitter(const DenseTile& tile, Assembler& code, int frame, Coroutine* results)
      : tile_(tile),
        vectors_(tile.vectors_of(DenseTile::tile_rows)),
        code_(code),
        results_(results),
        order_(tile, code, frame) {}

  /// All tiles. `emit_output` puts to row_output where a tile's accumulators are stored, row by row
  /// at a distance of `output_step`; then the results go on with them.
  void emit(const Reg64& output_step, const std::function<void()>& emit_output);

  /// The first pixel and channel of the tile whose accumulators are looked after.
  Xbyak::Address result_pixel() { return order_.result_pixel(); }
  Xbyak::Address result_channel() { return order_.result_channel(); }

 private:
  void emit_first_values(int index, int vector);
  void emit_next_step(const Xbyak::Label& next_step);
  void emit_products(const std::function<void(int, int)>& emit_before);
  void emit_weight_load(int vector);
  void emit_pixel_load(int index);
  void emit_fetch(int product);
  void emit_product(int index, int vector);
  void emit_idle_product();
  void emit_store(int index, int vector, const Reg64& output_step);
  void for_each_sum(const std::function<void(int, int)>& emit) const;
  void note_loop(uint32_t begin);

  Xbyak::Tmm sum_tile(int index, int vector) const;
  Xbyak::Tmm pixel_tile(int index) const;
  Xbyak::Tmm weight_tile(int vector) const;
  int weight_step_bytes() const { return tile_.step_bytes / 4 * order_.row_bytes(); }
  static Xbyak::Zmm idle() { return Xbyak::Zmm(31); }  ///< zeros
  const Reg64& end_of_k_steps() const { return reg::loop_bound(code_); }
  Xbyak::Address argument(size_t offset) { return code_.qword[reg::arguments + offset]; }

  static constexpr int vector_bytes = TileOrder::vector_bytes;

  const DenseTile& tile_;
  const int vectors_;
  Assembler& code_;
  Coroutine* const results_;
  TileOrder order_;
};

}  // namespace castor::jit::dense
