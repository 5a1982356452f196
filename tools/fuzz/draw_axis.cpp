// SPDX-License-Identifier: Apache-2.0
#include "tools/fuzz/draw_axis.hpp"

#include <algorithm>

namespace castor::fuzz {

namespace {

/// Room for an input and a few positions more below 2^63.
constexpr int64_t greatest_span = INT64_MAX - 1024;

}  // namespace

int64_t draw_magnitude(Random& random, int64_t greatest) {
  if (random.percent(40)) return random.between(1, std::min<int64_t>(greatest, 4));
  if (random.percent(20)) return greatest;
  const int64_t power = int64_t{1} << random.between(1, 62);
  return std::clamp<int64_t>(power + random.between(-1, 1), 1, greatest);
}

ConvolutionAxis draw_extreme_axis(Random& random, int64_t input) {
  ConvolutionAxis axis{.input = input, .kernel = random.between(1, 3)};
  const int64_t last_tap = axis.kernel - 1;
  axis.dilation = draw_magnitude(random, greatest_span / std::max<int64_t>(last_tap, 1));
  axis.output = random.between(1, 4);
  const int64_t room = greatest_span - axis.window();
  axis.stride = draw_magnitude(
      random, axis.output == 1 ? INT64_MAX : std::max<int64_t>(room / (axis.output - 1), 1));
  const bool is_too_large = random.percent(10);  // by less than a stride
  if (is_too_large) axis.output = 1;
  const int64_t taken = (axis.output - 1) * axis.stride + axis.window();
  const int64_t slack = random.between(0, std::min<int64_t>(axis.stride - 1, 3));
  const int64_t missing = std::min(random.between(1, 3), axis.stride);
  const int64_t padded = is_too_large ? taken - missing : taken + slack;
  const int64_t padding = std::max<int64_t>(padded - input, 0);
  const int64_t met = random.between(0, axis.output - 1) * axis.stride +
                      random.between(0, last_tap) * axis.dilation;
  const int64_t position = random.between(0, std::max<int64_t>(input - 1, 0));
  axis.pad_begin = std::clamp<int64_t>(met - position, 0, padding);
  axis.pad_end = padding - axis.pad_begin;
  return axis;
}

}  // namespace castor::fuzz
