// SPDX-License-Identifier: Apache-2.0
// The dense microkernel: transposition of register tiles whose pixels are consecutive in the
// output.
#include <algorithm>

#include "jit/conv/dense/tile_emitter.hpp"

namespace castor::jit::dense {

namespace {

/// Channels that are transposed at a time.
constexpr int block_channels = 4;
/// With tile registers: the lanes of a tile's last transposed pixels, where these are fewer.
const Xbyak::Opmask last_stored_lanes(2);

}  // namespace

/// Four channels at a time are transposed, and stored or go through the epilogue.
void DenseEmitter::emit_transposed() {
  const Section transposed = code_.section(CodeSection::transposition);
  epilogue_ ? emit_transposed_epilogue() : emit_transposed_stores();
}

/// One vector of pixels after the other.
void DenseEmitter::emit_transposed_epilogue() {
  epilogue_->emit_begin();
  for (int index = 0; index < pixel_vectors(); ++index) {
    const TileRows pixels = pixel_vector(index);
    emit_stored_lane_count(stored_lanes, pixels.end - pixels.begin);
    emit_point(*epilogue_, 0, pixels.begin);
    emit_channel_blocks([&](int channels) {
      emit_transposition(pixels, channels, 0, block_channels);
      for (int channel = 0; channel < channels; ++channel) {
        epilogue_->emit_apply(reg(channel));
        epilogue_->emit_next_row();
      }
    });
  }
}

/// All pixels of a channel after each other: they are on one page, those of other channels are not.
void DenseEmitter::emit_transposed_stores() {
  if (!keeps_stored_lanes()) emit_stored_lanes(0);
  const TileRows last = pixel_vector(pixel_vectors() - 1);
  const bool has_shorter_vector = last.end - last.begin < transposed_pixels();
  if (has_shorter_vector) emit_stored_lane_count(last_stored_lanes, last.end - last.begin);
  emit_output_of(0);
  emit_channel_blocks([&](int channels) {
    for (int index = 0; index < pixel_vectors(); ++index) {
      emit_transposition(pixel_vector(index), channels, index * block_channels,
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
          emit_masked_store(reg::output, from, 4 * pixels.begin);
        }
      }
      emit_add_output_step(reg::output);
    }
  });
}

/// A loop over blocks of channels, and the remainder.
void DenseEmitter::emit_channel_blocks(const std::function<void(int)>& emit_block) {
  const int remainder = tile_.channels % block_channels;
  emit_staging_loop(0, 4 * block_channels, 4 * (tile_.channels - remainder),
                    [&] { emit_block(block_channels); });
  if (remainder > 0) emit_block(remainder);
}

/// Up to four channels: 4 by 4 blocks, one in each 128 bits. Registers of the results, and of
/// others.
void DenseEmitter::emit_transposition(const TileRows& pixels, int count, int first, int others) {
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
void DenseEmitter::emit_block_loads(const TileRows& pixels, int row, int first) {
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

}  // namespace castor::jit::dense
