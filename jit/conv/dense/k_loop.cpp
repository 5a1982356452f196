// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/dense/k_loop.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include "jit/emit/vector_constant.hpp"

namespace castor::jit::dense {

namespace {

constexpr uint32_t sign_bits = 0x80808080;  ///< the four of a k group

/// Emits sum += inputs times weights, k group by k group. `product` may be overwritten.
void emit_dot_product(Assembler& code, const Target& target, ProductEngine engine,
                      const Xbyak::Xmm& sum, const Xbyak::Xmm& inputs, const Xbyak::Xmm& weights,
                      const Xbyak::Xmm& product) {
  if (engine == ProductEngine::i16_pairs) {
    code.vpmaddwd(product, inputs, weights);
    code.vpaddd(sum, sum, product);
    return;
  }
  const bool are_exchanged = engine == ProductEngine::i8_u8_dot;
  const Xbyak::Xmm& of_u8 = are_exchanged ? weights : inputs;
  const Xbyak::Xmm& of_i8 = are_exchanged ? inputs : weights;
  target.has_avx512() ? code.vpdpbusd(sum, of_u8, of_i8)
                      : code.vpdpbusd(sum, of_u8, of_i8, Xbyak::VexEncoding);
}

}  // namespace

void KLoopEmitter::emit_subtract_window_sums(const Xmm& sum, const Xmm& window_sums,
                                             const Xmm& zero_points, const Xmm& product) {
  if (tile_.window_sums == WindowSums::products) {
    code_.vpsubd(sum, sum, window_sums);
  } else if (tile_.window_sums != WindowSums::words) {
    code_.vpmulld(product, window_sums, zero_points);
    code_.vpsubd(sum, sum, product);
  } else if (target_.has_avx512()) {
    code_.vpdpwssd(sum, window_sums, zero_points);
  } else {
    code_.vpdpwssd(sum, window_sums, zero_points, Xbyak::VexEncoding);
  }
}

void KLoopEmitter::emit_output_of(int of_vector) {
  const Section address = code_.section(CodeSection::output_address);
  code_.mov(reg::output, store(of_vector, offsetof(TilePlace, pixel)));
  code_.shl(reg::output, 2);
  if (tile_.has_tiles()) {  // transposed: channels are rows
    code_.mov(reg::scratch, state(TileState::result_channel));
    code_.imul(reg::scratch, reg::output_step);
    code_.add(reg::output, reg::scratch);
  }
  code_.add(reg::output, argument(offsetof(DenseArguments, output)));
}

void KLoopEmitter::emit_add_output_step(const Reg64& to) {
  const Section address = code_.section(CodeSection::output_address);
  takes_input() ? code_.add(to, argument(offsetof(DenseArguments, output_step)))
                : code_.add(to, reg::output_step);
}

// ---- first values

void KLoopEmitter::emit_start() {
  const Section first = code_.section(CodeSection::first_values);
  code_.mov(reg::source, argument(offsetof(DenseArguments, source)));
  code_.add(reg::source, store(0, offsetof(TilePlace, source)));
  if (tile_.prefetches_output) emit_prefetch_of_output();
  tile_.window_sums == WindowSums::products ? emit_compensated_values() : emit_first_values();
  code_.mov(reg::weights, argument(offsetof(DenseArguments, weights)));
  if (takes_input()) emit_start_of_input();
  if (stores_window_sums()) emit_start_of_sums();
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

/// Less the products of window sums and the zero point, of which there is one for each pixel.
void KLoopEmitter::emit_compensated_values() {
  constexpr size_t start = offsetof(DenseArguments, start);
  emit_sums_or_argument(by_pixels(), start);
  for (int i = 0; i < vectors_; ++i) {
    code_.vmovups(vector(i), code_.ptr[reg::scratch + i * vector_bytes()]);
  }
  emit_sums_or_argument(!by_pixels(), start);
  for (int row = 0; row < rows_; ++row) {
    code_.vpbroadcastd(broadcast(), code_.ptr[reg::scratch + 4 * row]);
    for (int i = 0; i < vectors_; ++i) {
      by_pixels() ? code_.vpsubd(sum(row, i), broadcast(), vector(i))
                  : code_.vpsubd(sum(row, i), vector(i), broadcast());
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

void KLoopEmitter::emit_start_of_input() {
  code_.mov(reg::input, store(0, offsetof(TilePlace, pixel)));
  code_.add(reg::input, argument(offsetof(DenseArguments, input)));
  code_.mov(reg::input_step, argument(offsetof(DenseArguments, input_step)));
  code_.lea(reg::input_steps_3, code_.ptr[reg::input_step + reg::input_step * 2]);
  if (!unpacks_input()) {
    code_.vmovups(product(), code_.constant(vector_constant<uint8_t>(
                                 512, [](int i) { return i % 4 * 16 + i / 4; })));
  }
  if (!sums_pixels()) return;
  code_.vpbroadcastd(ones(), code_.constant_of(uint32_t{0x01010101}));
  for (int v = 0; v < vectors_; ++v) code_.vpxord(sum(rows_, v), sum(rows_, v), sum(rows_, v));
}

void KLoopEmitter::emit_start_of_sums() {
  const Section sums = code_.section(CodeSection::window_sums);
  emit_window_sums_of_rows(reg::window_sums);
  for (int i = 0; i < vectors_; ++i) {
    const Xmm& zero = has_row_of_sums() ? sum(rows_, i) : broadcast();
    code_.vpxord(zero, zero, zero);
    if (!has_row_of_sums()) code_.vmovups(code_.ptr[reg::window_sums + i * vector_bytes()], zero);
  }
}

/// Times the zero point. In memory a sum takes some 17 cycles from one k step to the next, a little
/// longer than the products of a tile that has no registers for it.
void KLoopEmitter::emit_added_pixels() {
  const Section sums = code_.section(CodeSection::window_sums);
  const auto zero_point = code_.ptr_b[reg::arguments + offsetof(DenseArguments, zero_point_bytes)];
  for (int i = 0; i < vectors_; ++i) {
    if (has_row_of_sums()) {
      code_.vpdpbusd(sum(rows_, i), vector(i), zero_point);
      continue;
    }
    const Xbyak::Address in_memory = code_.ptr[reg::window_sums + i * vector_bytes()];
    code_.vmovups(broadcast(), in_memory);
    code_.vpdpbusd(broadcast(), vector(i), zero_point);
    code_.vmovups(in_memory, broadcast());
  }
}

/// Subtracts the window sums that the tile has added up, which are complete with the first group's
/// last k step.
void KLoopEmitter::emit_own_compensation(const TileRows& rows) {
  for (int i = 0; i < vectors_; ++i) {
    const Xbyak::Address in_memory = code_.ptr[reg::window_sums + i * vector_bytes()];
    const Xmm& sums = has_row_of_sums() ? sum(rows_, i) : vector(i);
    if (!has_row_of_sums()) {
      code_.vmovups(sums, in_memory);
    } else if (rows.begin == 0) {
      code_.vmovups(in_memory, sums);
    }
    for (int row = rows.begin; row < rows.end; ++row) {
      code_.vpsubd(sum(row, i), sum(row, i), sums);
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
  emit_start_of_sign_flips();
  if (tile_.peeled_k_steps > 0) {
    code_.test(reg::k_step, reg::k_step);
    code_.jz(done, Xbyak::CodeGenerator::T_NEAR);
  } else {
    code_.test(reg::k_step, 4);
    code_.jz(pairs, Xbyak::CodeGenerator::T_NEAR);
    emit_k_step(at, 0, all);
    code_.add(reg::weights, weight_bytes());
    code_.add(reg::k_step, 4);
    code_.jz(done, Xbyak::CodeGenerator::T_NEAR);
    code_.L(pairs);
  }
  code_.align_to(32);
  code_.L(next);
  const uint32_t begin = code_.position();
  emit_k_step(at, 0, all);
  emit_prefetch_of_next_weights();
  emit_k_step(at, 1, all);
  code_.add(reg::weights, 2 * weight_bytes());
  code_.add(reg::k_step, 8);
  code_.jnz(next, Xbyak::CodeGenerator::T_NEAR);
  note_loop(begin, 2);
  code_.L(done);
}

/// The loop from `begin` to here; its elements are products of single values.
void KLoopEmitter::note_loop(uint32_t begin, int k_steps) {
  const int64_t values = tile_.engine == ProductEngine::i16_pairs ? 2 : 4;  // in a k group
  const int64_t products = int64_t{k_steps} * rows_ * vectors_ * lanes_ * values;
  const int64_t bytes = int64_t{k_steps} * (row_bytes() + 4 * rows_);
  code_.note_loop({.begin = begin, .elements = products, .load_bytes = bytes, .name = "k steps"});
}

void KLoopEmitter::emit_row_groups(const std::function<void(const TileRows&)>& emit_end) {
  const int count = tile_.peeled_k_steps > 0 ? tile_.group_rows : rows_;
  for (int first = 0; first < rows_; first += count) {
    const TileRows group = {first, std::min(first + count, rows_)};
    emit_peeled_k_steps(group);
    emit_compensation(group);
    if (unpacks_input()) emit_pixels_in_order();
    emit_end(group);
  }
}

void KLoopEmitter::emit_peeled_k_steps(const TileRows& group) {
  const int count = tile_.peeled_k_steps;
  if (count == 0) return;
  const Section loop = code_.section(CodeSection::peeled_k_loop);
  Xbyak::Label next;
  code_.mov(reg::k_step, -4 * count);
  emit_start_of_sign_flips();
  code_.L(next);
  emit_k_step(reg::k_steps_end + reg::k_step + 4 * count, 0, group);
  code_.add(reg::weights, weight_bytes());
  code_.add(reg::k_step, 4);
  code_.jnz(next, Xbyak::CodeGenerator::T_NEAR);
  code_.sub(reg::weights, weight_bytes() * count);
}

// ---- products

/// Emits the products of some rows, `position` k steps after the one whose offset is at `at`.
void KLoopEmitter::emit_k_step(const RegExp& at, int position, const TileRows& rows) {
  code_.movsxd(reg::pixel, code_.dword[at + 4 * position]);
  code_.add(reg::pixel, reg::source);
  const bool is_first = rows.begin == 0;
  if (takes_input() && is_first) {
    emit_vectors_of_input();
  } else {
    emit_vectors(position);
    if (by_pixels() && is_first) emit_prefetch_of_next_tile();
  }
  for (int row = rows.begin; row < rows.end; ++row) emit_products(row, position);
  for (int v = 0; sums_pixels() && is_first && v < vectors_; ++v) {
    const Section sums = code_.section(CodeSection::window_sums);
    emit_dot_product(code_, target_, tile_.engine, sum(rows_, v), vector(v), ones(), product());
  }
  if (stores_window_sums() && is_first) emit_added_pixels();
}

void KLoopEmitter::emit_vectors(int position) {
  const Section loads =
      code_.section(by_pixels() ? CodeSection::load_pixels : CodeSection::load_weights);
  for (int i = 0; i < vectors_; ++i) {
    code_.vmovups(vector(i), code_.ptr[vector_address(i, position)]);
  }
}

/// The operands: packed weights are consecutive, input is at the k step's pixel.
RegExp KLoopEmitter::vector_address(int vector, int position) const {
  if (by_pixels()) return reg::pixel + vector * vector_bytes();
  return reg::weights + (position * weight_bytes() + vector * vector_bytes());
}

RegExp KLoopEmitter::row_address(int row, int position) const {
  if (by_pixels()) return reg::weights + (position * weight_bytes() + 4 * row);
  return reg::pixel + tile_.source_offset(row);
}

/// The pixels of four channels, to the registers and to the packed input.
void KLoopEmitter::emit_vectors_of_input() {
  const Section loads = code_.section(CodeSection::load_pixels);
  constexpr int line_bytes = 64;
  const std::array channels = {RegExp(reg::input), reg::input + reg::input_step,
                               reg::input + reg::input_step * 2, reg::input + reg::input_steps_3};
  if (unpacks_input()) {
    for (int first = 0; first < vectors_; first += 4) {
      emit_unpacked_vectors(channels, first);
    }
  } else {
    for (int i = 0; i < vectors_; ++i) emit_permuted_vector(channels, i);
  }
  for (int i = 0; i < vectors_; ++i) {
    const Xmm& to = vector(i);
    if (tile_.source == PixelSource::signed_input) emit_sign_flip(to);
    if (!tile_.reads_input_once) code_.vmovups(code_.ptr[reg::pixel + i * vector_bytes()], to);
  }
  // Tiles of more bytes are so wide that their next lines would displace others' (a b of 768 x 768
  // by one row: 0.65 instead of 0.80 of a stream).
  if (vectors_ * ConvStore::max_lanes <= line_bytes) {
    const Section prefetch = code_.section(CodeSection::prefetch);
    for (const RegExp& channel : channels) code_.prefetcht0(code_.ptr[channel + line_bytes]);
  }
  code_.lea(reg::input, code_.ptr[reg::input + reg::input_step * 4]);
}

/// Adds 128 to bytes of the input, modulo 256.
void KLoopEmitter::emit_sign_flip(const Xmm& bytes) {
  assert(target_.has_avx512());
  code_.vpxord(bytes, bytes, code_.repeated_constant(sign_bits));
}

/// Sixteen pixels in order.
void KLoopEmitter::emit_permuted_vector(const std::array<RegExp, 4>& channels, int index) {
  constexpr int lanes = ConvStore::max_lanes;
  const Xbyak::Zmm to(vector(index).getIdx());
  code_.vmovdqu32(Xmm(to.getIdx()), code_.ptr[channels[0] + index * lanes]);
  for (size_t c = 1; c < channels.size(); ++c) {
    code_.vinserti32x4(to, to, code_.ptr[channels[c] + index * lanes], c);
  }
  code_.vpermb(to, Xbyak::Zmm(product().getIdx()), to);
}

/// Four vectors by two shuffles each, which leave 128 bits i of vector j with the pixels 4 j to
/// 4 j + 3 of sixteen i: emit_pixels_in_order puts the sums in order, once a tile.
void KLoopEmitter::emit_unpacked_vectors(const std::array<RegExp, 4>& channels, int first) {
  const std::array to = {vector(first), vector(first + 1), vector(first + 2), vector(first + 3)};
  const Xmm low_01 = product();
  const Xmm low_23 = broadcast();
  for (size_t c = 0; c < channels.size(); ++c) {
    code_.vmovdqu32(to[c], code_.ptr[channels[c] + first * ConvStore::max_lanes]);
  }
  const Section interleave = code_.section(CodeSection::interleave);
  code_.vpunpcklbw(low_01, to[0], to[1]);
  code_.vpunpckhbw(to[1], to[0], to[1]);
  code_.vpunpcklbw(low_23, to[2], to[3]);
  code_.vpunpckhbw(to[3], to[2], to[3]);
  code_.vpunpcklwd(to[0], low_01, low_23);
  code_.vpunpcklwd(to[2], to[1], to[3]);
  code_.vpunpckhwd(to[3], to[1], to[3]);
  code_.vpunpckhwd(to[1], low_01, low_23);
}

/// Transposes blocks of 128 bits of four vectors of each row at a time.
void KLoopEmitter::emit_pixels_in_order() {
  const Section order = code_.section(CodeSection::pixels_in_order);
  constexpr uint8_t low_halves = 0x44;
  constexpr uint8_t high_halves = 0xee;
  constexpr uint8_t even = 0x88;
  constexpr uint8_t odd = 0xdd;
  const auto work = [&](int i) { return Xbyak::Zmm(vector(i).getIdx()); };
  for (int row = 0; row < rows_; ++row) {
    for (int first = 0; first < vectors_; first += 4) {
      const auto a = [&](int i) { return Xbyak::Zmm(sum(row, first + i).getIdx()); };
      code_.vshufi32x4(work(0), a(0), a(1), low_halves);
      code_.vshufi32x4(work(1), a(0), a(1), high_halves);
      code_.vshufi32x4(work(2), a(2), a(3), low_halves);
      code_.vshufi32x4(work(3), a(2), a(3), high_halves);
      code_.vshufi32x4(a(0), work(0), work(2), even);
      code_.vshufi32x4(a(1), work(0), work(2), odd);
      code_.vshufi32x4(a(2), work(1), work(3), even);
      code_.vshufi32x4(a(3), work(1), work(3), odd);
    }
  }
}

/// Packed input comes from L2; no hardware prefetcher sees which cache lines the next tile needs.
void KLoopEmitter::emit_prefetch_of_next_tile() {
  const Section prefetch = code_.section(CodeSection::prefetch);
  if (!target_.has_avx512()) return;
  for (int i = 0; i < vectors_; ++i) {
    code_.prefetcht0(code_.ptr[reg::pixel + (vectors_ + i) * vector_bytes()]);
  }
}

/// Hardware prefetchers see the next tile's weights when they are needed: where L2 has none of
/// them, its first pixels would wait for all.
void KLoopEmitter::emit_prefetch_of_next_weights() {
  if (!tile_.prefetches_weights) return;
  const Section prefetch = code_.section(CodeSection::prefetch);
  code_.prefetcht1(code_.ptr[reg::prefetched]);
  code_.add(reg::prefetched, argument(offsetof(DenseArguments, prefetch_step)));
}

/// Before a loop over k steps: what comes after one may have used the register.
void KLoopEmitter::emit_start_of_sign_flips() {
  if (!tile_.has_sign_flip) return;
  const Section loads = code_.section(CodeSection::load_pixels);
  code_.vpbroadcastd(sign_flip(), code_.constant_of(sign_bits));
}

void KLoopEmitter::emit_broadcast(const RegExp& row) {
  if (!tile_.has_sign_flip) {
    code_.vpbroadcastd(broadcast(), code_.ptr[row]);
  } else if (target_.has_avx512()) {
    code_.vpxord(broadcast(), sign_flip(), code_.ptr_b[row]);
  } else {
    code_.vpbroadcastd(broadcast(), code_.ptr[row]);
    code_.vpxor(broadcast(), broadcast(), sign_flip());
  }
}

void KLoopEmitter::emit_products(int row, int position) {
  const Section products = code_.section(CodeSection::products);
  emit_broadcast(row_address(row, position));
  for (int i = 0; i < vectors_; ++i) {
    const Xmm inputs = by_pixels() ? vector(i) : broadcast();
    const Xmm weights = by_pixels() ? broadcast() : vector(i);
    emit_dot_product(code_, target_, tile_.engine, sum(row, i), inputs, weights, product());
  }
}

/// The address of the window sums of the register tile's pixels.
void KLoopEmitter::emit_window_sums_of_rows(const Reg64& to) {
  code_.mov(to, store(0, by_pixels() ? offsetof(TilePlace, source) : offsetof(TilePlace, pixel)));
  if (!by_pixels()) code_.shl(to, 2);
  code_.add(to, argument(offsetof(DenseArguments, window_sums)));
}

/// scratch = the address of the window sums of the register tile's pixels, or else an argument.
void KLoopEmitter::emit_sums_or_argument(bool of_sums, size_t else_argument) {
  if (of_sums) return emit_window_sums_of_rows(reg::scratch);
  code_.mov(reg::scratch, argument(else_argument));
}

/// Subtracts window sums times zero points: those along the vectors are loaded once. Products of
/// both are part of the first values.
void KLoopEmitter::emit_compensation(const TileRows& rows) {
  const bool is_done = tile_.window_sums == WindowSums::products;
  if (is_done || tile_.window_sums == WindowSums::none) return;
  const Section compensation = code_.section(CodeSection::compensation);
  if (stores_window_sums()) return emit_own_compensation(rows);
  constexpr size_t zero_points = offsetof(DenseArguments, weight_zero_points);
  if (!sums_pixels()) emit_sums_or_argument(by_pixels(), zero_points);
  for (int i = 0; !sums_pixels() && i < vectors_; ++i) {
    code_.vmovups(vector(i), code_.ptr[reg::scratch + i * vector_bytes()]);
  }
  emit_sums_or_argument(!by_pixels(), zero_points);
  for (int row = rows.begin; row < rows.end; ++row) {
    code_.vpbroadcastd(broadcast(), code_.ptr[reg::scratch + 4 * row]);
    for (int i = 0; i < vectors_; ++i) {
      const Xmm along = sums_pixels() ? sum(rows_, i) : vector(i);
      emit_subtract_window_sums(sum(row, i), along, broadcast(), product());
    }
  }
}

}  // namespace castor::jit::dense
