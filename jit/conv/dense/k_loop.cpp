// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/dense/k_loop.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include "jit/conv/emit_dot_product.hpp"

namespace castor::jit::dense {

// ---- first values

void KLoopEmitter::emit_start() {
  const Section first = code_.section(CodeSection::first_values);
  code_.mov(reg::source, argument(offsetof(DenseArguments, source)));
  code_.add(reg::source, store(0, offsetof(TileOrigin, source)));
  if (tile_.prefetches_output) emit_prefetch_of_output();
  tile_.window_sums == WindowSums::products ? compensation_.emit_first_values()
                                            : emit_first_values();
  code_.mov(reg::weights, argument(offsetof(DenseArguments, weights)));
  if (takes_input()) input_.emit_start();
  if (stores_window_sums()) compensation_.emit_start_of_sums();
}

void KLoopEmitter::emit_first_values() {
  code_.mov(reg::scratch, argument(offsetof(DenseArguments, start)));
  for (int row = 0; row < rows_; ++row) {
    for (int vector = 0; vector < vectors_; ++vector) {
      // Copies of registers take no port and no load.
      if (by_pixels()) {
        vector == 0 ? code_.vpbroadcastd(sum(row, 0), code_.ptr[reg::scratch + 4 * row])
                    : code_.vmovaps(sum(row, vector), sum(row, 0));
      } else if (row == 0) {
        code_.vmovups(sum(row, vector), code_.ptr[reg::scratch + vector * vector_bytes()]);
      } else {
        code_.vmovaps(sum(row, vector), sum(0, vector));
      }
    }
  }
}

void KLoopEmitter::emit_prefetch_of_output() {
  const Section prefetch = code_.section(CodeSection::prefetch);
  emit_output_of(0);
  for (int row = 0; row < rows_; ++row) {
    if (row > 0) emit_add_output_step(reg::output);
    for (int vector = 0; vector < vectors_; ++vector) {
      code_.prefetchw(code_.ptr[reg::output + vector * vector_bytes()]);
    }
  }
}

// ---- loops

void KLoopEmitter::emit_loop() {
  if (!tile_.loops_k_groups) return emit_k_steps();
  const Section groups = code_.section(CodeSection::group_loop);
  Xbyak::Label next_group;
  code_.mov(reg::k_groups, argument(offsetof(DenseArguments, k_groups)));
  code_.L(next_group);
  emit_k_steps();
  code_.add(reg::source, argument(offsetof(DenseArguments, k_group_step)));
  code_.dec(reg::k_groups);
  code_.jnz(next_group, Xbyak::CodeGenerator::T_NEAR);
}

/// Two k steps at a time, an odd one first; an even number, which may be 0, before peeled ones.
void KLoopEmitter::emit_k_steps() {
  const Section loop = code_.section(CodeSection::k_loop);
  const TileRows all = {0, rows_};
  const RegExp at = reg::k_steps_end + reg::k_step;
  Xbyak::Label pairs;
  Xbyak::Label done;
  Xbyak::Label next;
  code_.mov(reg::k_step, argument(offsetof(DenseArguments, k_steps)));
  code_.sub(reg::k_step, reg::k_steps_end);
  step_.emit_start_of_sign_flips();
  if (tile_.peeled_k_steps > 0) {
    code_.test(reg::k_step, reg::k_step);
    code_.jz(done, Xbyak::CodeGenerator::T_NEAR);
  } else {
    code_.test(reg::k_step, 4);
    code_.jz(pairs, Xbyak::CodeGenerator::T_NEAR);
    step_.emit(at, 0, all);
    code_.add(reg::weights, step_.weight_bytes());
    code_.add(reg::k_step, 4);
    code_.jz(done, Xbyak::CodeGenerator::T_NEAR);
    code_.L(pairs);
  }
  code_.align_to(32);
  code_.L(next);
  const uint32_t begin = code_.position();
  step_.emit(at, 0, all);
  step_.emit_prefetch_of_next_weights();
  step_.emit(at, 1, all);
  code_.add(reg::weights, 2 * step_.weight_bytes());
  code_.add(reg::k_step, 8);
  code_.jnz(next, Xbyak::CodeGenerator::T_NEAR);
  note_loop(begin, 2);
  code_.L(done);
}

/// The loop from `begin` to here; its elements are products of single values.
void KLoopEmitter::note_loop(uint32_t begin, int k_steps) {
  const int64_t values = tile_.engine == ProductEngine::i16_pairs ? 2 : 4;  // in a k group
  const int64_t products = int64_t{k_steps} * rows_ * vectors_ * lanes_ * values;
  const int pixel_bytes = takes_input() ? channels_of_k_group(tile_.engine) : 4;
  const int vector_operands = by_pixels() ? vectors_ * lanes_ * pixel_bytes : step_.weight_bytes();
  const int64_t bytes = int64_t{k_steps} * (vector_operands + 4 * rows_);
  const bool packs = takes_input() && !tile_.reads_input_once;
  code_.note_loop({.begin = begin,
                   .elements = products,
                   .load_bytes = bytes,
                   .store_bytes = packs ? int64_t{k_steps} * row_bytes() : 0,
                   .name = "k steps"});
}

void KLoopEmitter::emit_row_groups(const std::function<void(const TileRows&)>& emit_end) {
  const int count = tile_.peeled_k_steps > 0 ? tile_.group_rows : rows_;
  for (int first = 0; first < rows_; first += count) {
    const TileRows group = {first, std::min(first + count, rows_)};
    emit_peeled_k_steps(group);
    compensation_.emit(group);
    input_.emit_sums_in_order();
    emit_end(group);
  }
}

void KLoopEmitter::emit_peeled_k_steps(const TileRows& group) {
  const int count = tile_.peeled_k_steps;
  if (count == 0) return;
  const Section loop = code_.section(CodeSection::peeled_k_loop);
  Xbyak::Label next;
  code_.mov(reg::k_step, -4 * count);
  step_.emit_start_of_sign_flips();
  code_.L(next);
  step_.emit(reg::k_steps_end + reg::k_step + 4 * count, 0, group);
  code_.add(reg::weights, step_.weight_bytes());
  code_.add(reg::k_step, 4);
  code_.jnz(next, Xbyak::CodeGenerator::T_NEAR);
  code_.sub(reg::weights, step_.weight_bytes() * count);
}

// ---- a k step

void KStep::emit(const RegExp& at, int position, const TileRows& rows) {
  if (!tile_.reads_input_once) {
    code_.movsxd(reg::pixel, code_.dword[at + 4 * position]);
    code_.add(reg::pixel, reg::source);
  }
  if (tile_.passes_pixels()) return emit_passing_pixels(position, rows);
  const bool is_first = rows.begin == 0;
  if (takes_input() && is_first) {
    input_.emit_vectors(0, vectors_);
    input_.emit_next_channels();
  } else {
    emit_vectors(position, 0, vectors_);
    if (by_pixels() && is_first) emit_prefetch_of_next_tile();
  }
  for (int row = rows.begin; row < rows.end; ++row) emit_products(row, position, 0, vectors_);
  for (int v = 0; sums_pixels() && is_first && v < vectors_; ++v) {
    const Section sums = code_.section(CodeSection::window_sums);
    emit_dot_product(code_, target_, tile_.engine, sum(rows_, v), vector(v), ones(), product());
  }
  if (stores_window_sums() && is_first) compensation_.emit_added_pixels();
}

/// All rows take the vectors that are there before the next ones are loaded.
void KStep::emit_passing_pixels(int position, const TileRows& rows) {
  for (int first = 0; first < vectors_; first += held_vectors_) {
    const int end = std::min(first + held_vectors_, vectors_);
    takes_input() ? input_.emit_vectors(first, end) : emit_vectors(position, first, end);
    for (int row = rows.begin; row < rows.end; ++row) emit_products(row, position, first, end);
  }
  takes_input() ? input_.emit_next_channels() : emit_prefetch_of_next_tile();
}

void KStep::emit_vectors(int position, int first, int end) {
  const Section loads =
      code_.section(by_pixels() ? CodeSection::load_pixels : CodeSection::load_weights);
  for (int i = first; i < end; ++i) {
    code_.vmovups(vector(i), code_.ptr[vector_address(i, position)]);
  }
}

/// The operands: packed weights are consecutive, input is at the k step's pixel.
RegExp KStep::vector_address(int vector, int position) const {
  if (by_pixels()) return reg::pixel + vector * vector_bytes();
  return reg::weights + (position * weight_bytes() + vector * vector_bytes());
}

RegExp KStep::row_address(int row, int position) const {
  if (by_pixels()) return reg::weights + (position * weight_bytes() + 4 * row);
  return reg::pixel + tile_.source_offset(row);
}

/// Packed input comes from L2; no hardware prefetcher sees which cache lines the next tile needs.
void KStep::emit_prefetch_of_next_tile() {
  const Section prefetch = code_.section(CodeSection::prefetch);
  if (!target_.has_avx512()) return;
  for (int i = 0; i < vectors_; ++i) {
    code_.prefetcht0(code_.ptr[reg::pixel + (vectors_ + i) * vector_bytes()]);
  }
}

/// Hardware prefetchers see the next tile's weights when they are needed: where L2 has none of
/// them, its first pixels would wait for all.
void KStep::emit_prefetch_of_next_weights() {
  if (!tile_.prefetches_weights) return;
  const Section prefetch = code_.section(CodeSection::prefetch);
  code_.prefetcht1(code_.ptr[reg::prefetched]);
  code_.add(reg::prefetched, argument(offsetof(DenseArguments, prefetch_step)));
}

void KStep::emit_start_of_sign_flips() {
  if (!tile_.has_sign_flip) return;
  const Section loads = code_.section(CodeSection::load_pixels);
  code_.vpbroadcastd(sign_flip(), code_.constant_of(sign_bits));
}

void KStep::emit_broadcast(const RegExp& row) {
  if (!tile_.has_sign_flip) {
    code_.vpbroadcastd(broadcast(), code_.ptr[row]);
  } else if (target_.has_avx512()) {
    code_.vpxord(broadcast(), sign_flip(), code_.ptr_b[row]);
  } else {
    code_.vpbroadcastd(broadcast(), code_.ptr[row]);
    code_.vpxor(broadcast(), broadcast(), sign_flip());
  }
}

/// The only row's operand stays in its register.
void KStep::emit_products(int row, int position, int first, int end) {
  const Section products = code_.section(CodeSection::products);
  if (first == 0 || rows_ > 1) emit_broadcast(row_address(row, position));
  for (int i = first; i < end; ++i) {
    const Xmm inputs = by_pixels() ? vector(i) : broadcast();
    const Xmm weights = by_pixels() ? broadcast() : vector(i);
    emit_dot_product(code_, target_, tile_.engine, sum(row, i), inputs, weights, product());
  }
}

}  // namespace castor::jit::dense
