// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/dense/tile_loop.hpp"

#include <cstddef>

namespace castor::jit::dense {

// ---- registers: accumulators, pixel tiles, vectors of weights

Xbyak::Tmm TileLoopEmitter::sum_tile(int index, int vector) const {
  return Xbyak::Tmm(index * vectors_ + vector);
}
Xbyak::Tmm TileLoopEmitter::pixel_tile(int index) const {
  return Xbyak::Tmm(tile_.pixel_tiles() * vectors_ + index % tile_.pixel_registers());
}
Xbyak::Tmm TileLoopEmitter::weight_tile(int vector) const {
  return Xbyak::Tmm(tile_.pixel_tiles() * vectors_ + tile_.pixel_registers() + vector);
}

// ---- a loop over tiles

/// The accumulators of a tile are stored in the first k step of the next one, each right before its
/// new first values and product, so that products never wait for stores; and what else becomes of
/// them goes on between those products.
void TileLoopEmitter::emit(const Reg64& output_step, const std::function<void()>& emit_output) {
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
  code_.mov(end_of_k_steps(), argument(offsetof(DenseArguments, k_step_count)));
  code_.shl(end_of_k_steps(), 2);
  code_.add(end_of_k_steps(), argument(offsetof(DenseArguments, k_steps)));
  order_.emit_first();
  order_.emit_begin();
  for_each_sum([&](int p, int v) { emit_first_values(p, v); });
  code_.align_to(32);
  code_.L(next_step);
  const uint32_t begin_of_step = code_.position();
  emit_products([](int, int) {});
  code_.L(after_products);
  order_.emit_prefetch_of_weights();
  emit_next_step(next_step);
  note_loop(begin_of_step);

  if (results_) order_.emit_leave_if_done(done);
  order_.emit_next(last_stores);
  order_.emit_begin();
  emit_output();
  emit_products([&](int p, int v) {
    emit_store(p, v, output_step);
    emit_first_values(p, v);
  });
  if (results_) results_->emit_start();
  code_.jmp(after_products, Xbyak::CodeGenerator::T_NEAR);

  code_.L(last_stores);
  emit_output();
  for_each_sum([&](int p, int v) { emit_store(p, v, output_step); });
  if (results_) {  // as the last slice of a tile that is none
    results_->emit_unlimited();
    results_->emit_start();
    code_.lea(reg::tile_k_step, code_.ptr[end_of_k_steps() - 4]);
    code_.jmp(after_products, Xbyak::CodeGenerator::T_NEAR);
  }
  code_.L(done);
}

/// Runs a slice of the results, and goes on with the next k step, if there is one.
void TileLoopEmitter::emit_next_step(const Xbyak::Label& next_step) {
  const Section loop = code_.section(CodeSection::k_loop);
  code_.add(reg::tile_weights, weight_step_bytes());
  if (results_) {
    results_->emit_slice();
    code_.mov(reg::row_bytes.cvt32(), order_.row_bytes());
  }
  code_.add(reg::tile_k_step, 4);
  code_.cmp(reg::tile_k_step, end_of_k_steps());
  code_.jne(next_step, Xbyak::CodeGenerator::T_NEAR);
}

void TileLoopEmitter::for_each_sum(const std::function<void(int, int)>& emit) const {
  for (int p = 0; p < tile_.pixel_tiles(); ++p) {
    for (int v = 0; v < vectors_; ++v) emit(p, v);
  }
}

/// Those of the channels, the same in each row; or those of the pixels, one row each.
void TileLoopEmitter::emit_first_values(int index, int vector) {
  const Section first = code_.section(CodeSection::first_values);
  const int offset = tile_.has_first_values_by_pixel ? tile_.first_position(index) * vector_bytes
                                                     : vector * vector_bytes;
  code_.tileloadd(sum_tile(index, vector), code_.ptr[reg::first_values + reg::first_step + offset]);
}

/// The products of a k step. `emit_before` emits what comes right before each. An operand is loaded
/// before its first product, so that loads from L2 go on beside products.
void TileLoopEmitter::emit_products(const std::function<void(int, int)>& emit_before) {
  {
    const Section step = code_.section(CodeSection::k_loop);
    code_.movsxd(reg::pixel, code_.dword[reg::tile_k_step]);
    code_.add(reg::pixel, reg::source);
  }
  int done = 0;
  for_each_sum([&](int p, int v) {
    if (p == 0) emit_weight_load(v);
    if (v == 0) emit_pixel_load(p);
    emit_before(p, v);
    emit_product(p, v);
    if (tile_.fetches_weights) emit_fetch(done);
    ++done;
    if (tile_.has_idle_products && done % 2 == 0) emit_idle_product();
  });
}

void TileLoopEmitter::emit_weight_load(int vector) {
  const Section load = code_.section(CodeSection::load_weights);
  const Xbyak::Address from = code_.ptr[reg::tile_weights + reg::row_bytes + vector * vector_bytes];
  tile_.streams_weights ? code_.tileloaddt1(weight_tile(vector), from)
                        : code_.tileloadd(weight_tile(vector), from);
}

/// `reg::pixel` goes on from the pixel tile before.
void TileLoopEmitter::emit_pixel_load(int index) {
  const Section load = code_.section(CodeSection::load_pixels);
  if (index > 0) {
    const size_t steps = offsetof(DenseArguments, pixel_tile_steps);
    code_.add(reg::pixel, argument(steps + sizeof(int64_t) * static_cast<size_t>(index - 1)));
  }
  const Xbyak::Address from = code_.ptr[reg::pixel + reg::pixel_step];
  tile_.streams_pixels ? code_.tileloaddt1(pixel_tile(index), from)
                       : code_.tileloadd(pixel_tile(index), from);
}

/// Brings weights of the k step after the next one to L1, some with each product.
void TileLoopEmitter::emit_fetch(int product) {
  constexpr int line_bytes = 64;
  const Section fetch = code_.section(CodeSection::prefetch);
  const int products = tile_.pixel_tiles() * vectors_;
  const int lines = weight_step_bytes() / line_bytes;
  for (int line = product * lines / products; line < (product + 1) * lines / products; ++line) {
    code_.prefetcht0(code_.ptr[reg::tile_weights + 2 * weight_step_bytes() + line * line_bytes]);
  }
}

void TileLoopEmitter::emit_product(int index, int vector) {
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
void TileLoopEmitter::emit_idle_product() {
  const Section products = code_.section(CodeSection::products);
  code_.vmulps(idle(), idle(), idle());
}

/// Goes on from the first row of the tile register before.
void TileLoopEmitter::emit_store(int index, int vector, const Reg64& output_step) {
  const Section stores = code_.section(results_ ? CodeSection::staging : CodeSection::stores);
  if (index > 0 && vector == 0) {
    const int positions = tile_.first_position(index) - tile_.first_position(index - 1);
    code_.imul(reg::tile_scratch, output_step, positions);
    code_.add(reg::row_output, reg::tile_scratch);
  }
  code_.tilestored(code_.ptr[reg::row_output + output_step + vector * vector_bytes],
                   sum_tile(index, vector));
}

/// The loop from `begin` to here, which multiplies the bytes of a k step.
void TileLoopEmitter::note_loop(uint32_t begin) {
  code_.note_loop({.begin = begin,
                   .elements = int64_t{tile_.pixels()} * tile_.channels * tile_.step_bytes,
                   .load_bytes = int64_t{tile_.pixels() + tile_.channels} * tile_.step_bytes,
                   .name = "k steps"});
}

// ---- the order of tiles

void TileOrder::emit_first() {
  emit_first_pixels();
  emit_first_channels();
}

void TileOrder::emit_leave_if_done(const Xbyak::Label& done) {
  code_.cmp(state(State::channel_tiles_left), 0);
  code_.je(done, Xbyak::CodeGenerator::T_NEAR);
}

void TileOrder::emit_set(State of, size_t argument_offset) {
  code_.mov(reg::pixel, argument(argument_offset));
  code_.mov(state(of), reg::pixel);
}

void TileOrder::emit_first_pixels() {
  const Section tiles = code_.section(CodeSection::tile_loop);
  emit_set(State::pixels, offsetof(DenseArguments, places));
  emit_set(State::tiles_left, offsetof(DenseArguments, tiles));
}

void TileOrder::emit_first_channels() {
  const Section tiles = code_.section(CodeSection::tile_loop);
  code_.mov(state(State::channel), 0);
  emit_set(State::channel_tiles_left, offsetof(DenseArguments, channel_tiles));
  emit_set(State::weights, offsetof(DenseArguments, weights));
  if (!tile_.has_first_values_by_pixel) {
    emit_set(State::first_values, offsetof(DenseArguments, start));
  }
  emit_prefetch_begin();
}

/// `channel_tiles_left` is 0 when none is left. What becomes of the tile before finds where that
/// was.
void TileOrder::emit_next(const Xbyak::Label& last) {
  const Section tiles = code_.section(CodeSection::tile_loop);
  Xbyak::Label next;
  code_.mov(reg::pixel, state(State::pixels));
  code_.mov(reg::pixel, code_.ptr[reg::pixel + offsetof(TileOrigin, pixel)]);
  code_.mov(state(State::result_pixel), reg::pixel);
  code_.mov(reg::pixel, state(State::channel));
  code_.mov(state(State::result_channel), reg::pixel);
  if (tile_.channels_inside) {
    emit_next_channels(next);
    emit_next_pixels();
    code_.jz(last, Xbyak::CodeGenerator::T_NEAR);
    emit_first_channels();
  } else {
    emit_next_pixels();
    code_.jnz(next, Xbyak::CodeGenerator::T_NEAR);
    emit_first_pixels();
    emit_next_channels(next);
    code_.jmp(last, Xbyak::CodeGenerator::T_NEAR);
  }
  code_.L(next);
}

/// Goes on to the next tile of channels; jumps, if there is one.
void TileOrder::emit_next_channels(const Xbyak::Label& there_is_one) {
  code_.add(state(State::channel), tile_.channels);
  if (!tile_.has_first_values_by_pixel) {
    code_.add(state(State::first_values), 4 * tile_.channels);
  }
  code_.mov(reg::pixel, argument(offsetof(DenseArguments, weight_tile_bytes)));
  code_.add(state(State::weights), reg::pixel);
  code_.dec(state(State::channel_tiles_left));
  if (tile_.prefetched_lines > 0) {
    emit_prefetch_begin();
    code_.cmp(state(State::channel_tiles_left), 0);
  }
  code_.jnz(there_is_one, Xbyak::CodeGenerator::T_NEAR);
}

/// Goes to the weights of the next tile of channels, or, where this is the last one, to its own.
void TileOrder::emit_prefetch_begin() {
  if (tile_.prefetched_lines == 0) return;
  Xbyak::Label last;
  code_.mov(reg::pixel, state(State::weights));
  code_.cmp(state(State::channel_tiles_left), 1);
  code_.jbe(last, Xbyak::CodeGenerator::T_NEAR);
  code_.add(reg::pixel, argument(offsetof(DenseArguments, weight_tile_bytes)));
  code_.L(last);
  code_.mov(state(State::prefetched), reg::pixel);
}

/// Lines after the last weights may be among them: a prefetch reads nothing.
void TileOrder::emit_prefetch_of_weights() {
  if (tile_.prefetched_lines == 0) return;
  const Section prefetch = code_.section(CodeSection::prefetch);
  constexpr int line = 64;
  code_.mov(reg::pixel, state(State::prefetched));
  for (int i = 0; i < tile_.prefetched_lines; ++i) {
    code_.prefetcht1(code_.ptr[reg::pixel + i * line]);
  }
  code_.add(state(State::prefetched), tile_.prefetched_lines * line);
}

/// Goes on to the next pixels; the zero flag says that there are none.
void TileOrder::emit_next_pixels() {
  code_.add(state(State::pixels), sizeof(TileOrigin));
  code_.dec(state(State::tiles_left));
}

void TileOrder::emit_begin() {
  const Section tiles = code_.section(CodeSection::tile_loop);
  code_.mov(reg::pixel, state(State::pixels));
  code_.mov(reg::source, argument(offsetof(DenseArguments, source)));
  code_.add(reg::source, code_.ptr[reg::pixel + offsetof(TileOrigin, source)]);
  code_.mov(reg::tile_weights, state(State::weights));
  if (tile_.has_first_values_by_pixel) {
    code_.imul(reg::first_values, code_.ptr[reg::pixel + offsetof(TileOrigin, pixel)],
               vector_bytes);
    code_.add(reg::first_values, argument(offsetof(DenseArguments, start)));
    code_.mov(reg::first_step.cvt32(), vector_bytes);
  } else {
    code_.mov(reg::first_values, state(State::first_values));
    code_.xor_(reg::first_step.cvt32(), reg::first_step.cvt32());
  }
  code_.mov(reg::pixel_step, argument(offsetof(DenseArguments, pixel_step)));
  code_.mov(reg::row_bytes.cvt32(), row_bytes());
  code_.mov(reg::tile_k_step, argument(offsetof(DenseArguments, k_steps)));
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
  for (int p = 0; p < tile.pixel_registers(); ++p) config.set(number++, pixels, tile.step_bytes);
  for (int v = 0; v < vectors; ++v) config.set(number++, tile.step_bytes / 4, row_bytes);
  return config;
}

}  // namespace castor::jit
