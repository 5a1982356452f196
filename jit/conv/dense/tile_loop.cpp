// SPDX-License-Identifier: Apache-2.0
// The K loop of register tiles that are made of tile registers (AMX): pixel tiles by vectors of
// channels. A product takes 16 cycles where a load takes 8, so that a k step of two pixel tiles by
// two vectors, with four loads, is bound by its products.
#include <algorithm>
#include <cstddef>

#include "jit/conv/dense/k_loop.hpp"

namespace castor::jit::dense {

// ---- registers: accumulators, pixel tiles, vectors of weights

Xbyak::Tmm KLoopEmitter::sum_tile(int index, int vector) const {
  return Xbyak::Tmm(index * vectors_ + vector);
}
Xbyak::Tmm KLoopEmitter::pixel_tile(int index) const {
  return Xbyak::Tmm(tile_.pixel_tiles() * vectors_ + index);
}
Xbyak::Tmm KLoopEmitter::weight_tile(int vector) const {
  return Xbyak::Tmm(tile_.pixel_tiles() * (vectors_ + 1) + vector);
}

TileConfig KLoopEmitter::tile_config() const {
  const int pixels = tile_.pixels_of_tile();
  TileConfig config;
  for (int p = 0; p < tile_.pixel_tiles(); ++p) {
    for (int v = 0; v < vectors_; ++v) {
      config.set(sum_tile(p, v).getIdx(), pixels, vector_bytes());
    }
    config.set(pixel_tile(p).getIdx(), pixels, tile_.step_bytes);
  }
  for (int v = 0; v < vectors_; ++v) {
    config.set(weight_tile(v).getIdx(), tile_.step_bytes / 4, vector_bytes());
  }
  return config;
}

/// The row of the register tile with which a pixel tile begins.
int KLoopEmitter::first_row(int index) const {
  const int row = index / tile_.column_tiles();
  const int column = index % tile_.column_tiles() * tile_.pixels_of_tile();
  return row * tile_.columns + std::min(column, tile_.columns - tile_.pixels_of_tile());
}

// ---- code

/// The first values are those of the channels, in each row: a load without a step.
void KLoopEmitter::emit_tile_start() {
  code_.mov(reg::scratch, argument(offsetof(DenseArguments, start)));
  code_.xor_(reg::k_step.cvt32(), reg::k_step.cvt32());
  for (int p = 0; p < tile_.pixel_tiles(); ++p) {
    for (int v = 0; v < vectors_; ++v) {
      code_.tileloadd(sum_tile(p, v), code_.ptr[reg::scratch + reg::k_step + v * vector_bytes()]);
    }
  }
  code_.mov(reg::weights, argument(offsetof(DenseArguments, weights)));
  code_.mov(reg::pixel_step.cvt32(), tile_.pixel_step);
  code_.mov(reg::row_bytes.cvt32(), row_bytes());
}

void KLoopEmitter::emit_tile_loop() {
  Xbyak::Label next;
  code_.mov(reg::k_step, argument(offsetof(DenseArguments, k_steps)));
  code_.sub(reg::k_step, reg::k_steps_end);
  code_.align_to(32);
  code_.L(next);
  code_.movsxd(reg::pixel, code_.dword[reg::k_steps_end + reg::k_step]);
  code_.add(reg::pixel, reg::source);
  for (int p = 0; p < tile_.pixel_tiles(); ++p) {
    const int row = first_row(p);
    const int offset =
        row / tile_.columns * tile_.row_step + row % tile_.columns * tile_.pixel_step;
    code_.tileloadd(pixel_tile(p), code_.ptr[reg::pixel + reg::pixel_step + offset]);
  }
  for (int v = 0; v < vectors_; ++v) {
    code_.tileloadd(weight_tile(v), code_.ptr[reg::weights + reg::row_bytes + v * vector_bytes()]);
  }
  for (int p = 0; p < tile_.pixel_tiles(); ++p) {
    for (int v = 0; v < vectors_; ++v) {
      emit_tile_product(sum_tile(p, v), pixel_tile(p), weight_tile(v));
    }
  }
  code_.add(reg::weights, tile_.step_bytes / 4 * row_bytes());
  code_.add(reg::k_step, 4);
  code_.jnz(next, Xbyak::CodeGenerator::T_NEAR);
}

void KLoopEmitter::emit_tile_product(const Xbyak::Tmm& sum, const Xbyak::Tmm& pixels,
                                     const Xbyak::Tmm& weights) {
  if (tile_.x_is_signed) {
    tile_.w_is_signed ? code_.tdpbssd(sum, pixels, weights) : code_.tdpbsud(sum, pixels, weights);
  } else {
    tile_.w_is_signed ? code_.tdpbusd(sum, pixels, weights) : code_.tdpbuud(sum, pixels, weights);
  }
}

void KLoopEmitter::emit_tile_stores(const Reg64& to, const Reg64& step) {
  for (int p = 0; p < tile_.pixel_tiles(); ++p) {
    if (p > 0) {
      code_.imul(reg::pixel, step, first_row(p) - first_row(p - 1));
      code_.add(to, reg::pixel);
    }
    for (int v = 0; v < vectors_; ++v) {
      code_.tilestored(code_.ptr[to + step + v * vector_bytes()], sum_tile(p, v));
    }
  }
}

}  // namespace castor::jit::dense
