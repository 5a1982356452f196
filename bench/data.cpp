// SPDX-License-Identifier: Apache-2.0
#include "bench/data.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "ir/numerics/scalar.hpp"
#include "tools/testing/samples.hpp"

namespace castor::bench {

namespace {

constexpr uint64_t seed = 20240607;

/// Values from `low` to `high`.
struct Range {
  double low;
  double high;
};

constexpr int far_exponent = 40;  // values beyond 2^40 are left out

/// The exponent of the largest power of two that a floating format holds.
int largest_exponent(const FloatFormat& format) {
  const int last_field = (1 << format.exponent_bits) - 1;
  return last_field - (format.specials == FloatSpecials::ieee ? 1 : 0) - format.bias;
}

Range range_of(ElementType type) {
  const double far = std::ldexp(1.0, far_exponent);
  switch (kind_of(type)) {
    case ElementKind::boolean: return {-2, 2};
    case ElementKind::codebook: return {-1, 1};
    case ElementKind::power_of_two: return {0, far};
    case ElementKind::floating: {
      const double largest =
          std::ldexp(1.0, std::min(far_exponent, largest_exponent(info(type).format)));
      return {-largest, largest};
    }
    default: break;
  }
  return {std::max(static_cast<double>(integer_min(type)), -far),
          std::min(static_cast<double>(integer_max(type)), far)};
}

/// The values that both types hold; a few around zero where one of them is boolean.
Range common_range(ElementType from, ElementType to) {
  const Range a = range_of(from);
  const Range b = range_of(to);
  return {std::max(a.low, b.low), std::min(a.high, b.high)};
}

/// The smallest exponent of a normal value; of integers that of 1/2, which gives 0.
int smallest_exponent(ElementType type) {
  constexpr int of_nf4 = -3;
  if (kind_of(type) == ElementKind::codebook) return of_nf4;
  if (is_float(type)) return std::max(1 - info(type).format.bias, -far_exponent);
  return kind_of(type) == ElementKind::power_of_two ? -far_exponent : -1;
}

/// A value that both types hold, from a number in [0, 1).
double ordinary_value(ElementType from, ElementType to, double unit) {
  if (is_boolean(from)) return unit < 0.5 ? 0 : 1;
  const Range range = common_range(from, to);
  if (is_integer(from)) return range.low + std::floor(unit * (range.high - range.low + 1));
  if (kind_of(from) == ElementKind::power_of_two || kind_of(to) == ElementKind::power_of_two) {
    const int low = std::max(smallest_exponent(from), smallest_exponent(to));
    const double exponent = low + unit * (std::log2(range.high) - low);
    return kind_of(from) == ElementKind::power_of_two ? std::exp2(std::floor(exponent))
                                                      : std::exp2(exponent);
  }
  return range.low + unit * (range.high - range.low);
}

}  // namespace

std::vector<std::byte> ordinary_tile(ElementType from, ElementType to, size_t count) {
  std::mt19937_64 random(seed);
  std::vector<uint64_t> patterns(count);
  for (uint64_t& pattern : patterns) {
    const double unit = static_cast<double>(random() >> 11) * 0x1p-53;
    const auto value = std::bit_cast<uint64_t>(ordinary_value(from, to, unit));
    pattern = numerics::convert(value, ElementType::f64, from, {});
  }
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
