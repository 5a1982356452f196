// SPDX-License-Identifier: Apache-2.0
// Register tiles that are made of tile registers (AMX): pixel tiles by vectors of channels. A
// product takes 16 cycles where a load takes 8, so that a k step of two pixel tiles by two vectors,
// with four loads, is bound by its products.
#include <algorithm>
#include <cstddef>

#include "jit/conv/dense/tile_emitter.hpp"

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

// ---- a loop over tiles

/// The accumulators of a tile are stored in the first k step of the next one, each right before its
/// new first values and product, so that products never wait for stores; and what else becomes of
/// them goes on between those products.
void KLoopEmitter::emit_tiles(const Reg64& output_step, const std::function<void()>& emit_output) {
  Xbyak::Label next_step;
  Xbyak::Label after_products;
  Xbyak::Label last_stores;
  Xbyak::Label done;
  const Section tiles = code_.section(CodeSection::tile_loop);
  if (results_) {
    code_.mov(reg::scratch, argument(offsetof(DenseArguments, k_step_count)));
    results_->emit_enter();
  }
  if (tile_.has_idle_products) {
    const Section products = code_.section(CodeSection::products);
    code_.vpxord(idle(), idle(), idle());
  }
  emit_tile_begin();
  for_each_sum([&](int p, int v) { emit_first_values(p, v); });
  code_.align_to(32);
  code_.L(next_step);
  const uint32_t begin_of_step = code_.position();
  emit_operand_loads();
  for_each_sum([&](int p, int v) {
    emit_tile_product(p, v);
    if (tile_.has_idle_products && (p * vectors_ + v) % 2 == 1) emit_idle_product();
  });
  code_.L(after_products);
  emit_next_step(next_step);
  note_tile_loop(begin_of_step);

  code_.add(reg::stores, sizeof(TilePlace));
  code_.dec(tiles_left());
  code_.jz(last_stores, Xbyak::CodeGenerator::T_NEAR);
  if (results_) code_.js(done, Xbyak::CodeGenerator::T_NEAR);
  emit_tile_begin();
  emit_operand_loads();
  emit_output();
  for_each_sum([&](int p, int v) {
    emit_tile_store(p, v, output_step);
    emit_first_values(p, v);
    emit_tile_product(p, v);
  });
  if (results_) results_->emit_start();
  code_.jmp(after_products, Xbyak::CodeGenerator::T_NEAR);

  code_.L(last_stores);
  emit_output();
  for_each_sum([&](int p, int v) { emit_tile_store(p, v, output_step); });
  if (results_) {  // as the last slice of a tile that is none
    results_->emit_unlimited();
    results_->emit_start();
    code_.mov(reg::k_step, -4);
    code_.jmp(after_products, Xbyak::CodeGenerator::T_NEAR);
  }
  code_.L(done);
}

/// Runs a slice of the results, and goes on with the next k step, if there is one.
void KLoopEmitter::emit_next_step(const Xbyak::Label& next_step) {
  const Section loop = code_.section(CodeSection::k_loop);
  code_.add(reg::weights, tile_.step_bytes / 4 * row_bytes());
  if (results_) {
    results_->emit_slice();
    code_.mov(reg::row_bytes.cvt32(), row_bytes());
  }
  code_.add(reg::k_step, 4);
  code_.jnz(next_step, Xbyak::CodeGenerator::T_NEAR);
}

void KLoopEmitter::for_each_sum(const std::function<void(int, int)>& emit) const {
  for (int p = 0; p < tile_.pixel_tiles(); ++p) {
    for (int v = 0; v < vectors_; ++v) emit(p, v);
  }
}

void KLoopEmitter::emit_tile_begin() {
  const Section tiles = code_.section(CodeSection::tile_loop);
  code_.mov(reg::source, argument(offsetof(DenseArguments, source)));
  code_.add(reg::source, code_.ptr[reg::stores + offsetof(TilePlace, source)]);
  code_.mov(reg::weights, argument(offsetof(DenseArguments, weights)));
  code_.mov(reg::first_values, argument(offsetof(DenseArguments, start)));
  code_.xor_(reg::no_step.cvt32(), reg::no_step.cvt32());
  code_.mov(reg::pixel_step, argument(offsetof(DenseArguments, pixel_step)));
  code_.mov(reg::row_bytes.cvt32(), row_bytes());
  code_.mov(reg::k_step, argument(offsetof(DenseArguments, k_steps)));
  code_.sub(reg::k_step, reg::k_steps_end);
}

/// Those of the channels, the same in each row.
void KLoopEmitter::emit_first_values(int index, int vector) {
  const Section first = code_.section(CodeSection::first_values);
  code_.tileloadd(sum_tile(index, vector),
                  code_.ptr[reg::first_values + reg::no_step + vector * vector_bytes()]);
}

void KLoopEmitter::emit_operand_loads() {
  {
    const Section step = code_.section(CodeSection::k_loop);
    code_.movsxd(reg::pixel, code_.dword[reg::k_steps_end + reg::k_step]);
    code_.add(reg::pixel, reg::source);
  }
  for (int p = 0; p < tile_.pixel_tiles(); ++p) {
    const Section load = code_.section(CodeSection::load_pixels);
    if (p > 0) {
      const size_t steps = offsetof(DenseArguments, pixel_tile_steps);
      code_.add(reg::pixel, argument(steps + sizeof(int64_t) * static_cast<size_t>(p - 1)));
    }
    code_.tileloadd(pixel_tile(p), code_.ptr[reg::pixel + reg::pixel_step]);
  }
  for (int v = 0; v < vectors_; ++v) {
    const Section load = code_.section(CodeSection::load_weights);
    const Xbyak::Address from = code_.ptr[reg::weights + reg::row_bytes + v * vector_bytes()];
    tile_.streams_weights ? code_.tileloaddt1(weight_tile(v), from)
                          : code_.tileloadd(weight_tile(v), from);
  }
}

void KLoopEmitter::emit_tile_product(int index, int vector) {
  const Section products = code_.section(CodeSection::products);
  const Xbyak::Tmm sum = sum_tile(index, vector);
  const Xbyak::Tmm pixels = pixel_tile(index);
  const Xbyak::Tmm weights = weight_tile(vector);
  if (tile_.x_is_signed) {
    tile_.w_is_signed ? code_.tdpbssd(sum, pixels, weights) : code_.tdpbsud(sum, pixels, weights);
  } else {
    tile_.w_is_signed ? code_.tdpbusd(sum, pixels, weights) : code_.tdpbuud(sum, pixels, weights);
  }
}

/// A product of zeros, which raises no flags. It computes nothing; why layers of many k steps, with
/// no multiplication in vector registers otherwise, are faster by it is not known.
void KLoopEmitter::emit_idle_product() {
  const Section products = code_.section(CodeSection::products);
  code_.vmulps(idle(), idle(), idle());
}

/// Goes on from the first row of the tile register before.
void KLoopEmitter::emit_tile_store(int index, int vector, const Reg64& output_step) {
  const Section stores = code_.section(results_ ? CodeSection::staging : CodeSection::stores);
  if (index > 0 && vector == 0) {
    code_.imul(reg::pixel, output_step, tile_.first_row(index) - tile_.first_row(index - 1));
    code_.add(reg::row_output, reg::pixel);
  }
  code_.tilestored(code_.ptr[reg::row_output + output_step + vector * vector_bytes()],
                   sum_tile(index, vector));
}

/// The loop from `begin` to here, which multiplies the bytes of a k step.
void KLoopEmitter::note_tile_loop(uint32_t begin) {
  code_.note_loop({.begin = begin,
                   .elements = int64_t{tile_.pixels()} * tile_.channels * tile_.step_bytes,
                   .load_bytes = int64_t{tile_.pixels() + tile_.channels} * tile_.step_bytes,
                   .name = "k steps"});
}

// ---- what becomes of the accumulators

/// Their accumulators go to the output, or to the staging buffer.
void DenseEmitter::emit_tile_registers() {
  const Section loop = code_.section(CodeSection::tile_loop);
  if (!is_staged()) return emit_tiles(reg::output_step, [&] { emit_row_output(); });
  Xbyak::Label tiles;
  results_.emplace(code_, results_context());
  code_.jmp(tiles, Xbyak::CodeGenerator::T_NEAR);
  results_->emit_begin();
  emit_tile_results();
  results_->emit_end();
  code_.L(tiles);
  emit_tiles(reg::row_bytes, [&] { code_.mov(reg::row_output, Xbyak::util::rsp); });
}

void DenseEmitter::emit_tile_results() {
  if (!epilogue_) code_.mov(reg::output_step, argument(offsetof(DenseArguments, output_step)));
  if (tile_.window_sums != WindowSums::none) emit_staged_compensation();
  if (transposes()) return emit_transposed();
  epilogue_ ? emit_rows_epilogue() : emit_staged_rows();
}

/// In a loop over pixels, whose window sums follow each other.
void DenseEmitter::emit_staged_compensation() {
  const Section compensation = code_.section(CodeSection::compensation);
  const Reg64 next_sum = reg::row_output;
  const Xmm window_sum = reg(vectors_);
  const Xmm sums = reg(vectors_ + 1);
  const Xmm product = reg(vectors_ + 2);
  code_.mov(reg::scratch, argument(offsetof(DenseArguments, weight_zero_points)));
  for (int v = 0; v < vectors_; ++v) {
    code_.vmovups(reg(v), code_.ptr[reg::scratch + v * vector_bytes()]);
  }
  emit_window_sums_of_rows(next_sum);
  emit_staging_loop(0, row_bytes(), staging_bytes(), [&] {
    const Section subtraction = code_.section(CodeSection::compensation);
    code_.vpbroadcastd(window_sum, code_.ptr[next_sum]);
    code_.add(next_sum, 4);
    for (int v = 0; v < vectors_; ++v) {
      const Xbyak::Address at = code_.ptr[Xbyak::util::rsp + reg::staged + v * vector_bytes()];
      code_.vmovups(sums, at);
      emit_subtract_window_sums(sums, window_sum, reg(v), product);
      code_.vmovups(at, sums);
    }
  });
}

void DenseEmitter::emit_staged_rows() {
  const Section stores = code_.section(CodeSection::stores);
  emit_row_output();
  emit_staging_loop(0, row_bytes(), staging_bytes(), [&] {
    const Section rows = code_.section(CodeSection::stores);
    for (int v = 0; v < vectors_; ++v) {
      const int offset = v * vector_bytes();
      const bool is_whole = v + 1 < vectors_ || last_lanes() == lanes_;
      code_.vmovups(reg(v), code_.ptr[Xbyak::util::rsp + reg::staged + offset]);
      is_whole ? code_.vmovups(code_.ptr[reg::row_output + offset], reg(v))
               : emit_masked_store(reg::row_output, reg(v), offset);
    }
    emit_add_output_step(reg::row_output);
  });
}

}  // namespace castor::jit::dense

namespace castor::jit {

/// In the order of the registers above.
TileConfig tile_configuration(const DenseTile& tile) {
  constexpr int row_bytes = 4 * DenseTile::tile_rows;
  const int vectors = tile.vectors_of(DenseTile::tile_rows);
  const int pixels = tile.pixels_of_tile();
  TileConfig config;
  int number = 0;
  for (int sum = 0; sum < tile.pixel_tiles() * vectors; ++sum) {
    config.set(number++, pixels, row_bytes);
  }
  for (int p = 0; p < tile.pixel_tiles(); ++p) config.set(number++, pixels, tile.step_bytes);
  for (int v = 0; v < vectors; ++v) config.set(number++, tile.step_bytes / 4, row_bytes);
  return config;
}

}  // namespace castor::jit
