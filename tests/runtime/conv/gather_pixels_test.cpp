// SPDX-License-Identifier: Apache-2.0
// Channels of NCHW pixels brought together for tile registers: every remainder of blocks of
// channels and lanes of pixels, between pages that nobody may touch.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "ir/support/integer_math.hpp"
#include "jit/target.hpp"
#include "runtime/conv/interleave.hpp"
#include "tools/testing/guarded_pages.hpp"

namespace castor::detail {
namespace {

constexpr std::byte untouched{0xa5};

std::byte byte_of(int64_t channel, int64_t pixel) {
  return static_cast<std::byte>(channel * 197 + pixel * 31 + 1);
}

/// The pixels end where the input does, or `after` others follow.
void expect_gathered(int64_t channels, int64_t pixels, int64_t after) {
  const int64_t channel_step = pixels + after;
  const int64_t held = ceil_div(channels, int64_t{4}) * 4;
  const auto x_bytes = static_cast<size_t>(channels * channel_step);
  const auto y_bytes = static_cast<size_t>(pixels * held);
  test::GuardedPages x_pages(x_bytes);
  test::GuardedPages y_pages(y_bytes);
  y_pages.fill(untouched);
  std::byte* const x = x_pages.at_end(x_bytes);
  std::byte* const y = y_pages.at_end(y_bytes);
  for (int64_t i = 0; i < channels * channel_step; ++i) {
    x[i] = byte_of(i / channel_step, i % channel_step);
  }
  gather_pixels({x, channel_step, channels, pixels, x + x_bytes}, y, held);
  for (int64_t pixel = 0; pixel < pixels; ++pixel) {
    for (int64_t channel = 0; channel < held; ++channel) {
      const std::byte expected = channel < channels ? byte_of(channel, pixel) : std::byte{};
      ASSERT_EQ(y[pixel * held + channel], expected)
          << channels << " channels, " << pixels << " pixels, " << after << " after them, at "
          << pixel << ", " << channel;
    }
  }
  EXPECT_TRUE(y_pages.is_filled_but(std::span(y, y_bytes), untouched));
}

TEST(GatherPixels, OfEveryRemainder) {
  if (!jit::host().runs(Tier::avx512)) GTEST_SKIP() << "the CPU has no AVX-512";
  for (const int64_t channels : {1, 3, 4, 5, 16, 31, 63, 64, 65, 100, 128, 130}) {
    for (const int64_t pixels : {1, 2, 7, 14, 15, 16, 17, 31, 32, 33, 49}) {
      for (const int64_t after : {0, 1, 20}) expect_gathered(channels, pixels, after);
    }
  }
}

}  // namespace
}  // namespace castor::detail
