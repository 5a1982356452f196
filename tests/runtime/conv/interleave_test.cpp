// SPDX-License-Identifier: Apache-2.0
// Loops of packing by themselves: bytes widened to i16, NHWC pixels and weights made to k groups,
// i32 transposed. Every remainder, between pages that nobody may touch.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "ir/support/integer_math.hpp"
#include "runtime/conv/interleave.hpp"
#include "tools/testing/guarded_pages.hpp"

namespace castor::detail {
namespace {

constexpr std::byte untouched{0xa5};

std::byte byte_at(int64_t i) { return static_cast<std::byte>(i * 151 + i / 256 * 7 + 3); }

/// What a loop reads, and an untouched destination; both end where nobody may touch.
class Buffers {
 public:
  Buffers(int64_t x_bytes, int64_t y_bytes)
      : x_pages_(static_cast<size_t>(x_bytes)),
        y_pages_(static_cast<size_t>(y_bytes)),
        x_(x_pages_.at_end(static_cast<size_t>(x_bytes))),
        y_(y_pages_.at_end(static_cast<size_t>(y_bytes)), static_cast<size_t>(y_bytes)) {
    for (int64_t i = 0; i < x_bytes; ++i) x_[i] = byte_at(i);
    y_pages_.fill(untouched);
  }
  std::byte* x() const { return x_; }
  std::byte* y() const { return y_.data(); }
  bool is_untouched_around_y() const { return y_pages_.is_filled_but(y_, untouched); }

 private:
  test::GuardedPages x_pages_;
  test::GuardedPages y_pages_;
  std::byte* x_;
  std::span<std::byte> y_;
};

/// The number that a byte is, less the zero point, modulo 2^16.
uint16_t widened(std::byte byte, bool is_signed, int32_t zero_point) {
  const int number = is_signed ? static_cast<int8_t>(byte) : static_cast<uint8_t>(byte);
  return static_cast<uint16_t>(number - zero_point);
}

void expect_widened(int64_t count, int64_t rows, bool is_signed, int32_t zero_point) {
  SCOPED_TRACE(testing::Message() << rows << " rows of " << count << (is_signed ? " i8" : " u8")
                                  << " less " << zero_point);
  const int64_t step = count + 3;
  const int64_t to_step = 2 * count + 5;
  const Buffers buffers((rows - 1) * step + count, (rows - 1) * to_step + 2 * count);
  std::byte* const x = buffers.x();
  std::byte* const y = buffers.y();
  widen_to_i16({.first = x, .step = step, .count = count, .rows = rows}, is_signed, zero_point, y,
               to_step);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < count; ++i) {
      uint16_t number;
      std::memcpy(&number, y + row * to_step + 2 * i, sizeof(number));
      ASSERT_EQ(number, widened(x[row * step + i], is_signed, zero_point)) << row << ", " << i;
    }
    for (int64_t i = 2 * count; i < to_step && row + 1 < rows; ++i) {
      ASSERT_EQ(y[row * to_step + i], untouched) << "after row " << row;
    }
  }
  EXPECT_TRUE(buffers.is_untouched_around_y());
}

TEST(Interleave, BytesAreWidened) {
  for (int64_t count = 1; count <= 50; ++count) {
    for (const int64_t rows : {1, 3}) {
      for (const int32_t zero_point : {0, 1, 127}) {
        expect_widened(count, rows, false, zero_point + 128);
        expect_widened(count, rows, true, -zero_point);
      }
    }
  }
}

/// Padding and what is between rows is untouched; reads end with the slack after the last pixel.
void expect_transposed(jit::ProductEngine engine, int64_t channels, int64_t pixels,
                       bool is_signed) {
  const bool is_pairs = engine == jit::ProductEngine::i16_pairs;
  SCOPED_TRACE(testing::Message() << channels << (is_signed ? " i8" : " u8") << " channels, "
                                  << pixels << " pixels, " << (is_pairs ? "pairs" : "bytes"));
  const int64_t held = is_pairs ? 2 : 4;
  const int64_t k_groups = ceil_div(channels, held);
  const int64_t step = channels + 5;
  const int64_t row_step = pixels + 1;
  const uint8_t sign_flip = is_signed ? 0x80 : 0;
  const int32_t zero_point = is_signed ? -3 : 120;
  const Buffers buffers((pixels - 1) * step + transposed_bytes(engine, channels),
                        4 * ((k_groups - 1) * row_step + pixels));
  std::byte* const x = buffers.x();
  std::byte* const y = buffers.y();
  transpose_k_groups({x, step, channels, pixels}, k_group_spec(engine, held, sign_flip, zero_point),
                     {reinterpret_cast<uint32_t*>(y), row_step});
  for (int64_t k = 0; k < k_groups; ++k) {
    for (int64_t pixel = 0; pixel < pixels; ++pixel) {
      uint32_t expected = 0;
      for (int64_t i = 0; i < held && k * held + i < channels; ++i) {
        const std::byte byte = x[pixel * step + k * held + i];
        const uint32_t element = is_pairs ? widened(byte, is_signed, zero_point)
                                          : std::to_integer<uint32_t>(byte) ^ sign_flip;
        expected |= element << (i * (is_pairs ? 16 : 8));
      }
      uint32_t packed;
      std::memcpy(&packed, y + 4 * (k * row_step + pixel), sizeof(packed));
      ASSERT_EQ(packed, expected) << "k group " << k << ", pixel " << pixel;
    }
    if (k + 1 == k_groups) continue;
    ASSERT_EQ(y[4 * (k * row_step + pixels)], untouched) << "after row " << k;
  }
  EXPECT_TRUE(buffers.is_untouched_around_y());
}

TEST(Interleave, ChannelsOfPixelsAreTransposed) {
  for (const auto engine : {jit::ProductEngine::i16_pairs, jit::ProductEngine::u8_i8_dot}) {
    for (int64_t channels = 1; channels <= 70; ++channels) {
      for (const int64_t pixels : {8, 9, 15, 16, 63, 64, 65, 71, 131}) {
        expect_transposed(engine, channels, pixels, false);
        expect_transposed(engine, channels, pixels, true);
      }
    }
  }
}

/// Units of k groups at adjacent positions of the filter, of 1 to 16 output channels.
void expect_joined(jit::ProductEngine engine, int64_t channels, int64_t positions,
                   int64_t k_groups) {
  const bool is_pairs = engine == jit::ProductEngine::i16_pairs;
  SCOPED_TRACE(testing::Message() << channels << " channels, " << positions << " positions, "
                                  << k_groups << (is_pairs ? " pairs" : " fours"));
  const int64_t held = is_pairs ? 2 : 4;
  const int64_t weights = held * k_groups * positions;
  const int64_t row_step = weights + interleave_slack;
  const int64_t slots = positions * k_groups;
  const int64_t to_step = 4 * channels + 8;
  const Buffers buffers(channels * row_step, (slots - 1) * to_step + 4 * channels);
  std::byte* const x = buffers.x();
  std::byte* const y = buffers.y();
  std::vector<std::byte> columns(static_cast<size_t>(ceil_div(weights, int64_t{16}) * 16 * 16));
  transpose_bytes(x, row_step, channels, weights, columns.data());
  std::array<int16_t, joined_channels> zeros = {};
  for (int64_t i = 0; is_pairs && i < channels; ++i) {
    zeros[static_cast<size_t>(i)] = static_cast<int16_t>(i * 17);
  }
  join_elements({columns.data(), positions, slots}, k_group_spec(engine, held, 0x80, 0), zeros,
                {y, to_step, channels});
  for (int64_t slot = 0; slot < slots; ++slot) {
    for (int64_t channel = 0; channel < channels; ++channel) {
      uint32_t expected = 0;
      for (int64_t i = 0; i < held; ++i) {
        const int64_t input = slot / positions * held + i;
        const std::byte byte = x[channel * row_step + input * positions + slot % positions];
        uint32_t element = std::to_integer<uint32_t>(byte) ^ 0x80;
        if (is_pairs) element = (element - static_cast<uint32_t>(channel) * 17) & 0xffff;
        expected |= element << (i * (is_pairs ? 16 : 8));
      }
      uint32_t joined;
      std::memcpy(&joined, y + slot * to_step + 4 * channel, sizeof(joined));
      ASSERT_EQ(joined, expected) << "slot " << slot << ", channel " << channel;
    }
    if (slot + 1 < slots) {
      ASSERT_EQ(y[slot * to_step + 4 * channels], untouched) << "after slot " << slot;
    }
  }
  EXPECT_TRUE(buffers.is_untouched_around_y());
}

TEST(Interleave, WeightsAreJoined) {
  for (const auto engine : {jit::ProductEngine::i16_pairs, jit::ProductEngine::u8_i8_dot}) {
    for (int64_t channels = 1; channels <= joined_channels; ++channels) {
      for (const int64_t positions : {1, 3, 9, 25}) {
        for (const int64_t k_groups : {1, 2, 7}) {
          expect_joined(engine, channels, positions, k_groups);
        }
      }
    }
  }
}

TEST(Interleave, NumbersAreTransposed) {
  for (int64_t rows = 1; rows <= 19; ++rows) {
    for (int64_t columns = 1; columns <= 19; ++columns) {
      SCOPED_TRACE(testing::Message() << rows << " by " << columns);
      const int64_t to_step = rows + 1;
      const Buffers buffers(4 * rows * columns, 4 * ((columns - 1) * to_step + rows));
      auto* const x = reinterpret_cast<int32_t*>(buffers.x());
      std::byte* const y = buffers.y();
      for (int64_t i = 0; i < rows * columns; ++i) x[i] = static_cast<int32_t>(i * 7919);
      transpose_i32(x, columns, rows, columns, reinterpret_cast<int32_t*>(y), to_step);
      for (int64_t column = 0; column < columns; ++column) {
        for (int64_t row = 0; row < rows; ++row) {
          int32_t number;
          std::memcpy(&number, y + 4 * (column * to_step + row), sizeof(number));
          ASSERT_EQ(number, x[row * columns + column]) << row << ", " << column;
        }
        if (column + 1 < columns) {
          ASSERT_EQ(y[4 * (column * to_step + rows)], untouched);
        }
      }
      EXPECT_TRUE(buffers.is_untouched_around_y());
    }
  }
}

}  // namespace
}  // namespace castor::detail
