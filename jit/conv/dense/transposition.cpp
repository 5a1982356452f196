// SPDX-License-Identifier: Apache-2.0
// The dense microkernel: transposition of register tiles whose pixels are consecutive in the
// output.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "jit/conv/dense/tile_emitter.hpp"

namespace castor::jit::dense {

namespace {

/// Channels that are transposed at a time.
constexpr int block_channels = 4;
/// With tile registers: the lanes of a tile's last transposed pixels, where these are fewer.
const Xbyak::Opmask last_stored_lanes(2);

}  // namespace

void Transposition::emit() {
  const Section transposed = code_.section(CodeSection::transposition);
  results_.epilogue ? emit_apply() : emit_stores();
}

/// One vector of pixels after the other.
void Transposition::emit_apply() {
  results_.epilogue->emit_begin();
  for (int index = 0; index < pixel_vectors(); ++index) {
    const TileRows pixels = pixel_vector(index);
    emit_stored_lane_count(stored_lanes, pixels.end - pixels.begin);
    emit_point(*results_.epilogue, 0, pixels.begin);
    emit_channel_blocks([&](int channels) {
      emit_block(pixels, channels, 0, block_channels);
      for (int channel = 0; channel < channels; ++channel) {
        results_.epilogue->emit_apply(reg(channel));
        results_.epilogue->emit_next_row();
      }
    });
  }
  results_.epilogue->emit_store_folds();
}

/// All pixels of a channel after each other: they are on one page, those of other channels are not.
void Transposition::emit_stores() {
  if (!keeps_stored_lanes()) emit_stored_lanes(0);
  const TileRows last = pixel_vector(pixel_vectors() - 1);
  const bool has_shorter_vector = last.end - last.begin < transposed_pixels();
  if (has_shorter_vector) emit_stored_lane_count(last_stored_lanes, last.end - last.begin);
  results_.tile_loop ? emit_output_of_results() : emit_output_of(0);
  emit_channel_blocks([&](int channels) {
    for (int index = 0; index < pixel_vectors(); ++index) {
      emit_block(pixel_vector(index), channels, index * block_channels,
                 pixel_vectors() * block_channels);
    }
    const Section stores = code_.section(CodeSection::stores);
    for (int channel = 0; channel < channels; ++channel) {
      for (int index = 0; index < pixel_vectors(); ++index) {
        const TileRows pixels = pixel_vector(index);
        const Xmm from = reg(index * block_channels + channel);
        const Xbyak::Address to = code_.ptr[reg::output + 4 * pixels.begin];
        if (pixels.end - pixels.begin == lanes_) {
          code_.vmovups(to, from);
        } else if (has_shorter_vector && index + 1 == pixel_vectors()) {
          code_.vmovdqu32(to | last_stored_lanes, from);
        } else {
          emit_partial_store(reg::output, from, pixels.end - pixels.begin, 4 * pixels.begin);
        }
      }
      emit_add_output_step(reg::output);
    }
  });
}

/// The address in an output of i32 whose rows are channels, at the tile's first pixel and channel.
void Transposition::emit_output_of_results() {
  const Section address = code_.section(CodeSection::output_address);
  code_.mov(reg::output, results_.tile_loop->result_pixel());
  code_.shl(reg::output, 2);
  code_.mov(reg::scratch, results_.tile_loop->result_channel());
  code_.imul(reg::scratch, reg::output_step);
  code_.add(reg::output, reg::scratch);
  code_.add(reg::output, argument(offsetof(DenseArguments, output)));
}

/// A loop over blocks of channels, and the remainder.
void Transposition::emit_channel_blocks(const std::function<void(int)>& emit_channels) {
  const int remainder = tile_.channels % block_channels;
  emit_staging_loop(0, 4 * block_channels, 4 * (tile_.channels - remainder),
                    [&] { emit_channels(block_channels); });
  if (remainder > 0) emit_channels(remainder);
}

/// Up to four channels: 4 by 4 blocks, one in each 128 bits. Registers of the results, and of
/// others.
void Transposition::emit_block(const TileRows& pixels, int count, int first, int others) {
  const Section transposition = code_.section(CodeSection::transposition);
  for (int row = 0; row < block_channels; ++row) emit_block_loads(pixels, row, first);
  const Xmm low_ab = reg(others);
  const Xmm high_ab = reg(others + 1);
  const Xmm low_cd = reg(others + 2);
  const Xmm high_cd = reg(others + 3);
  code_.vpunpckldq(low_ab, reg(first), reg(first + 1));
  code_.vpunpckldq(low_cd, reg(first + 2), reg(first + 3));
  code_.vpunpckhdq(high_ab, reg(first), reg(first + 1));
  code_.vpunpckhdq(high_cd, reg(first + 2), reg(first + 3));
  code_.vpunpcklqdq(reg(first), low_ab, low_cd);
  if (count > 1) code_.vpunpckhqdq(reg(first + 1), low_ab, low_cd);
  if (count > 2) code_.vpunpcklqdq(reg(first + 2), high_ab, high_cd);
  if (count > 3) code_.vpunpckhqdq(reg(first + 3), high_ab, high_cd);
}

/// Four channels of pixels row, row + 4, row + 8, row + 12, as far as there are any.
void Transposition::emit_block_loads(const TileRows& pixels, int row, int first) {
  const int count = pixels.end - pixels.begin;
  const auto block = [&](int pixel) {
    const int position = tile_.position_of(pixels.begin + pixel);
    return code_.ptr[Xbyak::util::rsp + reg::staged + position * row_bytes()];
  };
  const int to = first + row;
  code_.vmovups(Xmm(to), block(std::min(row, count - 1)));
  for (uint8_t lane = 1; row + 4 * lane < count; ++lane) {
    const Xbyak::Address from = block(row + 4 * lane);
    target_.has_avx512() ? code_.vinserti32x4(Xbyak::Zmm(to), Xbyak::Zmm(to), from, lane)
                         : code_.vinserti128(Xbyak::Ymm(to), Xbyak::Ymm(to), from, lane);
  }
}

namespace {

/// vshufi32x4: the even blocks of 128 bits of two registers, and the odd ones; and where each block
/// is, counted from 0, after these were taken twice.
constexpr uint8_t even_blocks = 0x88;
constexpr uint8_t odd_blocks = 0xdd;
constexpr std::array<size_t, 4> evens_first = {0, 2, 1, 3};

/// A register that may be none: what comes of it is not stored.
using MaybeRegister = std::optional<int>;
using FourRegisters = std::array<MaybeRegister, 4>;

/// What becomes of two registers: of their low or even parts, and of the others.
using Shuffle = std::function<void(const Xbyak::Zmm& to, const Xbyak::Zmm& a, const Xbyak::Zmm& b)>;
struct Shuffles {
  Shuffle low;
  Shuffle high;
};

/// Gives results of shuffles their registers: those of two registers go to the first of them and to
/// a free one.
class RegisterShuffler {
 public:
  explicit RegisterShuffler(std::vector<int> free) : free_(std::move(free)) {}

  void release(const FourRegisters& registers) {
    for (const MaybeRegister& one : registers) release(one);
  }
  /// Shuffles neighbours, then results of the same half.
  FourRegisters emit_four(const FourRegisters& from, const Shuffles& first,
                          const Shuffles& second) {
    const auto [low_01, high_01] = emit_pair(from[0], from[1], first);
    const auto [low_23, high_23] = emit_pair(from[2], from[3], first);
    const auto [result_0, result_1] = emit_pair(low_01, low_23, second);
    const auto [result_2, result_3] = emit_pair(high_01, high_23, second);
    return {result_0, result_1, result_2, result_3};
  }

 private:
  std::pair<MaybeRegister, MaybeRegister> emit_pair(MaybeRegister a, MaybeRegister b,
                                                    const Shuffles& shuffles) {
    if (!a) return {};
    const int to = free_.back();
    free_.pop_back();
    const Xbyak::Zmm first(*a);
    const Xbyak::Zmm second(b.value_or(*a));
    shuffles.low(Xbyak::Zmm(to), first, second);
    shuffles.high(first, first, second);
    release(b);
    return {to, a};
  }
  void release(MaybeRegister one) {
    if (one) free_.push_back(*one);
  }

  std::vector<int> free_;
};

}  // namespace

/// Sixteen channels of up to sixteen pixels, first four by four values in each 128 bits, then four
/// by four such blocks: hands on each channel's pixels.
void Transposition::emit_vector(int vector,
                                const std::function<void(int, const Xmm&)>& emit_result) {
  const Section transposition = code_.section(CodeSection::transposition);
  const Shuffles values = {[&](auto& to, auto& a, auto& b) { code_.vpunpckldq(to, a, b); },
                           [&](auto& to, auto& a, auto& b) { code_.vpunpckhdq(to, a, b); }};
  const Shuffles pairs = {[&](auto& to, auto& a, auto& b) { code_.vpunpcklqdq(to, a, b); },
                          [&](auto& to, auto& a, auto& b) { code_.vpunpckhqdq(to, a, b); }};
  const Shuffles blocks = {
      [&](auto& to, auto& a, auto& b) { code_.vshufi32x4(to, a, b, even_blocks); },
      [&](auto& to, auto& a, auto& b) { code_.vshufi32x4(to, a, b, odd_blocks); }};
  RegisterShuffler shuffler(free_registers(vector));
  std::array<FourRegisters, 4> rows = {};
  for (int pixel = 0; pixel < rows_; ++pixel) {
    rows[static_cast<size_t>(pixel / 4)][static_cast<size_t>(pixel % 4)] =
        sum(pixel, vector).getIdx();
  }
  for (FourRegisters& four : rows) four = shuffler.emit_four(four, values, pairs);
  for (size_t channel = 0; channel < 4; ++channel) {
    const FourRegisters results = shuffler.emit_four(
        {rows[0][channel], rows[1][channel], rows[2][channel], rows[3][channel]}, blocks, blocks);
    for (size_t block = 0; block < 4; ++block) {
      const auto of_vector = static_cast<int>(4 * block + channel);
      emit_result(of_vector, reg(*results[evens_first[block]]));
    }
    shuffler.release(results);
  }
}

/// Those that hold no sums of this vector or a later one.
std::vector<int> Transposition::free_registers(int vector) const {
  std::vector<int> free;
  for (int index = 0; index < target_.vector_registers(); ++index) {
    const bool is_sum = index < rows_ * vectors_ && index % vectors_ >= vector;
    if (!is_sum) free.push_back(index);
  }
  return free;
}

/// Results of channels that are four apart follow each other: each has an address without
/// arithmetic.
void Transposition::emit_in_registers() {
  const Section stores = code_.section(CodeSection::stores);
  const Reg64& four_steps = reg::scratch;
  const Reg64& twelve_steps = reg::k_step;
  emit_output_of(0);
  code_.lea(four_steps, code_.ptr[reg::output_step * 4]);
  code_.lea(twelve_steps, code_.ptr[four_steps + four_steps * 2]);
  const std::array channel_blocks = {RegExp(reg::output), reg::output + four_steps,
                                     reg::output + four_steps * 2, reg::output + twelve_steps};
  for (int vector = 0; vector < vectors_; ++vector) {
    if (vector > 0) code_.add(reg::output, twelve_steps);
    emit_vector(vector, [&](int channel, const Xmm& pixels) {
      const size_t block = static_cast<size_t>(channel) / block_channels;
      const Xbyak::Address to = code_.ptr[channel_blocks[block]];
      if (vector * lanes_ + channel < tile_.channels) {
        rows_ == lanes_ ? code_.vmovups(to, pixels) : code_.vmovdqu32(to | stored_lanes, pixels);
      }
      if (block + 1 == channel_blocks.size()) emit_add_output_step(reg::output);
    });
  }
}

}  // namespace castor::jit::dense
