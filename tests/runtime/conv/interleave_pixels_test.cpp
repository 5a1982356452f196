// SPDX-License-Identifier: Apache-2.0
// NCHW pixels as k groups of columns: every remainder of lines and vectors of pixels, and tiles of
// one vector or several, between pages that nobody may touch.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ir/support/integer_math.hpp"
#include "jit/target.hpp"
#include "runtime/conv/weight_rows.hpp"
#include "tools/testing/guarded_pages.hpp"

namespace castor::detail {
namespace {

constexpr std::byte untouched{0xa5};
constexpr int64_t vector_bytes = 64;

std::byte byte_of(int64_t channel, int64_t pixel) {
  return static_cast<std::byte>(channel * 197 + pixel * 31 + 1);
}

/// The pixels end where the input does, or `after` others follow.
void expect_interleaved(int64_t channels, int64_t pixels, int64_t vectors, int64_t after) {
  const int64_t step = pixels + after;
  const int64_t groups = channels / 4;
  const int64_t tile_bytes = groups * vectors * vector_bytes;
  const int64_t tiles = ceil_div(pixels, 16 * vectors);
  const auto x_bytes = static_cast<size_t>(channels * step);
  const auto y_bytes = static_cast<size_t>(tiles * tile_bytes);
  test::GuardedPages x_pages(x_bytes);
  test::GuardedPages y_pages(y_bytes);
  y_pages.fill(untouched);
  std::byte* const x = x_pages.at_end(x_bytes);
  std::byte* const y = y_pages.at_end(y_bytes);
  for (int64_t i = 0; i < channels * step; ++i) x[i] = byte_of(i / step, i % step);
  std::vector<int32_t> sums(static_cast<size_t>(ceil_div(pixels, int64_t{16}) * 16), -1);
  const bool is_signed = after == 1;
  interleave_pixels({x, step, channels}, pixels, {y, vectors, tile_bytes},
                    {after == 0 ? nullptr : sums.data(), is_signed});
  for (int64_t pixel = 0; pixel < pixels && after > 0; ++pixel) {
    int32_t expected = 0;
    for (int64_t channel = 0; channel < channels; ++channel) {
      const std::byte byte = byte_of(channel, pixel);
      expected += is_signed ? static_cast<int8_t>(byte) : static_cast<uint8_t>(byte);
    }
    ASSERT_EQ(sums[static_cast<size_t>(pixel)], expected) << pixel;
  }
  const int64_t stored = ceil_div(pixels, int64_t{16}) * 16;
  for (int64_t pixel = 0; pixel < tiles * 16 * vectors; ++pixel) {
    const int64_t tile = pixel / (16 * vectors);
    for (int64_t channel = 0; channel < channels; ++channel) {
      const int64_t at = tile * tile_bytes + channel / 4 * vectors * vector_bytes +
                         pixel % (16 * vectors) * 4 + channel % 4;
      const std::byte expected = pixel < pixels   ? byte_of(channel, pixel)
                                 : pixel < stored ? std::byte{}
                                                  : untouched;
      ASSERT_EQ(y[at], expected) << channels << " channels, " << pixels << " pixels, " << vectors
                                 << " vectors, at " << pixel << ", " << channel;
    }
  }
  EXPECT_TRUE(y_pages.is_filled_but(std::span(y, y_bytes), untouched));
}

TEST(InterleavePixels, OfEveryRemainder) {
  for (const int64_t channels : {4, 8, 12, 64}) {
    for (const int64_t pixels : {1, 15, 16, 17, 32, 49, 63, 64, 65, 127, 144, 200}) {
      for (const int64_t vectors : {1, 2, 3}) {
        for (const int64_t after : {0, 1, 70}) {
          expect_interleaved(channels, pixels, vectors, after);
        }
      }
    }
  }
}

TEST(InterleavePixels, OfNoPixels) { interleave_pixels({nullptr, 0, 4}, 0, {nullptr, 2, 128}); }

}  // namespace
}  // namespace castor::detail
