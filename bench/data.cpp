// SPDX-License-Identifier: Apache-2.0
#include "bench/data.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "ir/numerics/scalar.hpp"
#include "tests/support/samples.hpp"

namespace castor::bench {

namespace {

constexpr uint64_t seed = 20240607;

/// Values from `low` to `high`.
struct Range {
  double low;
  double high;
};

Range range_of(ElementType type) {
  constexpr double far = 1099511627776.0;  // 2^40
  if (is_float(type)) {
    const FloatFormat& format = info(type).format;
    const double largest =
        std::ldexp(1.0, std::min(40, (1 << format.exponent_bits) - 2 - format.bias));
    return {-largest, largest};
  }
  return {std::max(static_cast<double>(integer_min(type)), -far),
          std::min(static_cast<double>(integer_max(type)), far)};
}

/// The values that both types hold; a few around zero where one of them is boolean.
Range common_range(ElementType from, ElementType to) {
  const Range a = range_of(from);
  const Range b = is_boolean(to) ? Range{-2, 2} : range_of(to);
  return {std::max(a.low, b.low), std::min(a.high, b.high)};
}

/// A special value of a floating format with infinities and NaNs, from random bits.
uint64_t special_pattern(ElementType type, uint64_t random) {
  const FloatFormat& format = info(type).format;
  const uint64_t mantissa_mask = (uint64_t{1} << format.mantissa_bits) - 1;
  const uint64_t exponent_mask = (uint64_t{1} << format.exponent_bits) - 1;
  const uint64_t sign = (random >> 63) << (bits_of(type) - 1);
  const uint64_t mantissa = random & mantissa_mask;
  const auto with_exponent = [&](uint64_t exponent) { return exponent << format.mantissa_bits; };
  switch ((random >> 60) & 3) {
    case 0: return sign | with_exponent(exponent_mask) | std::max<uint64_t>(mantissa, 1);
    case 1: return sign | with_exponent(exponent_mask);
    case 2: return sign | mantissa;
    default: break;
  }
  return (random >> 59) & 1 ? sign : sign | with_exponent(exponent_mask - 1) | mantissa;
}

}  // namespace

std::vector<std::byte> ordinary_tile(ElementType from, ElementType to, size_t count) {
  const Range range = common_range(from, to);
  std::mt19937_64 random(seed);
  std::vector<uint64_t> patterns(count);
  for (uint64_t& pattern : patterns) {
    const double unit = static_cast<double>(random() >> 11) * 0x1p-53;
    double value = range.low + unit * (range.high - range.low);
    if (is_boolean(from)) value = unit < 0.5 ? 0 : 1;
    pattern = numerics::convert(std::bit_cast<uint64_t>(value), ElementType::f64, from, {});
  }
  return samples::pack(from, patterns);
}

std::vector<std::byte> special_tile(ElementType from, size_t count) {
  std::mt19937_64 random(seed);
  std::vector<uint64_t> patterns(count);
  for (uint64_t& pattern : patterns) pattern = special_pattern(from, random());
  return samples::pack(from, patterns);
}

void fill(std::span<std::byte> tensor, std::span<const std::byte> tile) {
  while (!tensor.empty()) {
    const size_t bytes = std::min(tensor.size(), tile.size());
    std::memcpy(tensor.data(), tile.data(), bytes);
    tensor = tensor.subspan(bytes);
  }
}

}  // namespace castor::bench
