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

/// Emits the loop over tiles, with the K loop in it.
class TileLoopEmitter {
  /// What the loop keeps in the frame, 8 bytes each.
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

  /// `frame`: bytes from the stack pointer to `frame_bytes` of its own. `results`: what becomes of
  /// a tile's accumulators after they are stored, or null where nothing does.
  TileLoopEmitter(const DenseTile& tile, Assembler& code, int frame, Coroutine* results)
      : tile_(tile),
        vectors_(tile.vectors_of(DenseTile::tile_rows)),
        frame_(frame),
        code_(code),
        results_(results) {}

  /// All tiles. `emit_output` puts to row_output where a tile's accumulators are stored, row by row
  /// at a distance of `output_step`; then the results go on with them.
  void emit(const Reg64& output_step, const std::function<void()>& emit_output);

  /// The first pixel and channel of the tile whose accumulators are looked after.
  Xbyak::Address result_pixel() { return state(State::result_pixel); }
  Xbyak::Address result_channel() { return state(State::result_channel); }

 private:
  void emit_set(State of, size_t argument_offset);
  void emit_first_pixels();
  void emit_first_channels();
  void emit_next_tile(const Xbyak::Label& last);
  void emit_next_channels(const Xbyak::Label& there_is_one);
  void emit_next_pixels();
  void emit_prefetch_begin();
  void emit_prefetch_of_weights();
  void emit_tile_begin();
  void emit_first_values(int index, int vector);
  void emit_next_step(const Xbyak::Label& next_step);
  void emit_operand_loads();
  void emit_pixel_load(int index);
  void emit_later_pixels(int index);
  void emit_product(int index, int vector);
  void emit_idle_product();
  void emit_store(int index, int vector, const Reg64& output_step);
  void for_each_sum(const std::function<void(int, int)>& emit) const;
  void note_loop(uint32_t begin);

  Xbyak::Tmm sum_tile(int index, int vector) const;
  Xbyak::Tmm pixel_tile(int index) const;
  Xbyak::Tmm weight_tile(int vector) const;
  static Xbyak::Zmm idle() { return Xbyak::Zmm(31); }  ///< zeros
  const Reg64& end_of_k_steps() const { return reg::loop_bound(code_); }
  int row_bytes() const { return vectors_ * vector_bytes; }

  Xbyak::Address argument(size_t offset) { return code_.qword[reg::arguments + offset]; }
  Xbyak::Address state(State of) {
    return code_.qword[Xbyak::util::rsp + frame_ + 8 * static_cast<int>(of)];
  }

  static constexpr int vector_bytes = 4 * DenseTile::tile_rows;

  const DenseTile& tile_;
  const int vectors_;
  const int frame_;
  Assembler& code_;
  Coroutine* const results_;
};

}  // namespace castor::jit::dense
