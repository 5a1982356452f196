// SPDX-License-Identifier: Apache-2.0
// The K loop of the dense microkernel: pixels that a tile reads from the input, in channels of
// their own, instead of packed ones, and packs for other tiles of channels.
#include <array>
#include <cstddef>
#include <cstdint>

#include "jit/conv/dense/k_loop.hpp"
#include "jit/emit/vector_constant.hpp"

namespace castor::jit::dense {

void InputPixels::emit_start() {
  code_.mov(reg::input, store(0, offsetof(TileOrigin, pixel)));
  code_.add(reg::input, argument(offsetof(DenseArguments, input)));
  code_.mov(reg::input_step, argument(offsetof(DenseArguments, input_step)));
  if (is_widened()) return;
  code_.lea(reg::input_steps_3, code_.ptr[reg::input_step + reg::input_step * 2]);
  if (permutes()) {
    code_.vmovups(product(), code_.constant(vector_constant<uint8_t>(
                                 512, [](int i) { return i % 4 * 16 + i / 4; })));
  }
  if (!sums_pixels()) return;
  code_.vpbroadcastd(ones(), code_.constant_of(uint32_t{0x01010101}));
  for (int v = 0; v < vectors_; ++v) emit_zero(sum(rows_, v));
}

std::vector<RegExp> InputPixels::channels() const {
  const RegExp first = reg::input;
  if (is_widened()) return {first, first + reg::input_step};
  return {first, first + reg::input_step, first + reg::input_step * 2, first + reg::input_steps_3};
}

void InputPixels::emit_vectors(int first, int end) {
  const Section loads = code_.section(CodeSection::load_pixels);
  const int at_once = is_widened() ? 2 : reorders_sums(tile_) ? 4 : 1;
  for (int i = first; i < end; i += at_once) {
    if (is_widened()) {
      emit_widened_vectors(i);
    } else if (reorders_sums(tile_)) {
      emit_unpacked_vectors(channels(), i);
    } else if (permutes()) {
      emit_permuted_vector(channels(), i);
    } else {
      emit_interleaved_vector(channels(), i);
    }
  }
  for (int i = first; i < end; ++i) {
    const Xmm& to = vector(i);
    if (!is_widened() && tile_.source == PixelSource::signed_input) emit_sign_flip(to);
    if (!tile_.reads_input_once) code_.vmovups(code_.ptr[reg::pixel + i * vector_bytes()], to);
  }
}

/// Tiles of more bytes than a cache line are so wide that their next lines would displace others'
/// (a b of 768 x 768 by one row: 0.65 instead of 0.80 of a stream).
void InputPixels::emit_next_channels() {
  constexpr int line_bytes = 64;
  const std::vector<RegExp> all = channels();
  if (vectors_ * lanes_ <= line_bytes) {
    const Section prefetch = code_.section(CodeSection::prefetch);
    for (const RegExp& channel : all) code_.prefetcht0(code_.ptr[channel + line_bytes]);
  }
  const Section step = code_.section(CodeSection::load_pixels);
  code_.lea(reg::input, code_.ptr[reg::input + reg::input_step * static_cast<int>(all.size())]);
}

/// Adds 128 to bytes of the input, modulo 256.
void InputPixels::emit_sign_flip(const Xmm& bytes) {
  if (target_.has_avx512()) {
    code_.vpxord(bytes, bytes, code_.repeated_constant(sign_bits));
  } else {
    code_.vpxor(
        bytes, bytes,
        code_.constant(vector_constant<uint8_t>(256, [](int) { return sign_bits & 0xff; })));
  }
}

/// Two vectors, or the last one alone. Bytes of two channels are interleaved before they are
/// widened.
void InputPixels::emit_widened_vectors(int first) {
  const int at = first * lanes_;
  const RegExp channel_0 = reg::input + at;
  const RegExp channel_1 = channel_0 + reg::input_step;
  const Xmm low = Xmm(vector(first).getIdx());
  const Xmm high = Xmm(product().getIdx());
  const auto emit_widening = [&](int of_vector, const Xmm& pairs) {
    tile_.source == PixelSource::signed_input ? code_.vpmovsxbw(vector(of_vector), pairs)
                                              : code_.vpmovzxbw(vector(of_vector), pairs);
  };
  if (first + 1 == vectors_) {
    code_.vmovq(low, code_.qword[channel_0]);
    code_.vmovq(high, code_.qword[channel_1]);
    code_.vpunpcklbw(low, low, high);
    return emit_widening(first, low);
  }
  code_.vmovups(low, code_.ptr[channel_0]);
  code_.vpunpckhbw(high, low, code_.ptr[channel_1]);
  code_.vpunpcklbw(low, low, code_.ptr[channel_1]);
  emit_widening(first, low);
  emit_widening(first + 1, high);
}

/// Sixteen pixels in order.
void InputPixels::emit_permuted_vector(std::span<const RegExp> channels, int index) {
  constexpr int lanes = ConvStore::max_lanes;
  const Xbyak::Zmm to(vector(index).getIdx());
  code_.vmovdqu32(Xmm(to.getIdx()), code_.ptr[channels[0] + index * lanes]);
  for (size_t c = 1; c < channels.size(); ++c) {
    code_.vinserti32x4(to, to, code_.ptr[channels[c] + index * lanes], c);
  }
  code_.vpermb(to, Xbyak::Zmm(product().getIdx()), to);
}

/// Eight pixels in order: of sixteen, if there is a vector for the others, the lower or upper half.
void InputPixels::emit_interleaved_vector(std::span<const RegExp> channels, int index) {
  const Xbyak::Ymm to(vector(index).getIdx());
  const Xmm of_01(to.getIdx());
  const Xmm of_23(product().getIdx());
  const Xmm other(broadcast().getIdx());
  const auto emit_pairs = [&](const Xmm& pairs, const RegExp& first, const RegExp& second) {
    const int at = index / 2 * 2 * lanes_;
    if (index % 2 == 1) {
      code_.vmovups(pairs, code_.ptr[first + at]);
      code_.vpunpckhbw(pairs, pairs, code_.ptr[second + at]);
    } else if (index + 1 < vectors_) {
      code_.vmovups(pairs, code_.ptr[first + at]);
      code_.vpunpcklbw(pairs, pairs, code_.ptr[second + at]);
    } else {
      code_.vmovq(pairs, code_.qword[first + at]);
      code_.vmovq(other, code_.qword[second + at]);
      code_.vpunpcklbw(pairs, pairs, other);
    }
  };
  emit_pairs(of_01, channels[0], channels[1]);
  emit_pairs(of_23, channels[2], channels[3]);
  const Section interleave = code_.section(CodeSection::interleave);
  code_.vpunpckhwd(other, of_01, of_23);
  code_.vpunpcklwd(of_01, of_01, of_23);
  code_.vinserti128(to, to, other, 1);
}

/// Four vectors by two shuffles each, which leave 128 bits i of vector j with the pixels 4 j to
/// 4 j + 3 of sixteen i: emit_sums_in_order puts the sums in order, once a tile.
void InputPixels::emit_unpacked_vectors(std::span<const RegExp> channels, int first) {
  const std::array to = {vector(first), vector(first + 1), vector(first + 2), vector(first + 3)};
  const Xmm low_01 = product();
  const Xmm low_23 = broadcast();
  for (size_t c = 0; c < channels.size(); ++c) {
    code_.vmovups(to[c], code_.ptr[channels[c] + first * lanes_]);
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

/// Four vectors of each row at a time.
void InputPixels::emit_sums_in_order() {
  if (!reorders_sums(tile_)) return;
  const Section order = code_.section(CodeSection::pixels_in_order);
  for (int row = 0; row < rows_; ++row) {
    for (int first = 0; first < vectors_; first += 4) {
      target_.has_avx512() ? emit_order_of_512_bits(row, first)
                           : emit_order_of_256_bits(row, first);
    }
  }
}

/// Transposes blocks of 128 bits.
void InputPixels::emit_order_of_512_bits(int row, int first) {
  constexpr uint8_t low_halves = 0x44;
  constexpr uint8_t high_halves = 0xee;
  constexpr uint8_t even = 0x88;
  constexpr uint8_t odd = 0xdd;
  const auto work = [&](int i) { return Xbyak::Zmm(vector(i).getIdx()); };
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

/// Lower halves come first, then upper ones.
void InputPixels::emit_order_of_256_bits(int row, int first) {
  constexpr uint8_t lower = 0x20;
  constexpr uint8_t upper = 0x31;
  const Xbyak::Ymm work(vector(0).getIdx());
  const auto a = [&](int i) { return Xbyak::Ymm(sum(row, first + i).getIdx()); };
  code_.vperm2i128(work, a(0), a(1), upper);
  code_.vperm2i128(a(0), a(0), a(1), lower);
  code_.vperm2i128(a(1), a(2), a(3), lower);
  code_.vperm2i128(a(3), a(2), a(3), upper);
  code_.vmovaps(a(2), work);
}

}  // namespace castor::jit::dense
