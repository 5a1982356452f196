// SPDX-License-Identifier: Apache-2.0
#include "ir/numerics/requantize_embarc.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "ir/numerics/float_ops.hpp"
#include "ir/numerics/scalar.hpp"

namespace castor::numerics {

namespace {

/// Fixed-point operations on a signed type Int, as the library defines them.
template <class Int>
struct Fixed {
  static constexpr int bits = 8 * static_cast<int>(sizeof(Int));
  static constexpr int64_t min = std::numeric_limits<Int>::min();
  static constexpr int64_t max = std::numeric_limits<Int>::max();

  static int64_t clamp(int64_t x) { return std::clamp(x, min, max); }
  static int64_t add(int64_t a, int64_t b) { return clamp(a + b); }
  static int64_t sub(int64_t a, int64_t b) { return clamp(a - b); }
  /// Redundant sign bits; bits - 1 for 0.
  static int norm(int64_t x) {
    const auto magnitude = static_cast<uint64_t>(x < 0 ? ~x : x);
    return bits - 1 - static_cast<int>(std::bit_width(magnitude));
  }
  static int64_t shift_left(int64_t x, int count) {
    if (count < 0) return x >> std::min(-count, 63);
    if (count > bits - 1) return x == 0 ? 0 : x < 0 ? min : max;
    return clamp(x * (int64_t{1} << count));
  }
  static int64_t shift_right(int64_t x, int count, RequantizeRounding rounding) {
    if (count < 0) return shift_left(x, -count);
    if (count == 0) return x;
    if (count > bits - 1) return 0;
    const int64_t half = int64_t{1} << (count - 1);
    if (rounding == RequantizeRounding::half_up) return add(x, half) >> count;
    const int64_t below = x >> count;
    const int64_t fraction = x - (below << count);
    return below + (fraction > half || (fraction == half && below % 2 != 0) ? 1 : 0);
  }
};
using Fixed16 = Fixed<int16_t>;
using Fixed32 = Fixed<int32_t>;

/// s_src / s_dst * 2^(n_dst - n_src) as scale * 2^-shift.
struct Multiplier {
  int64_t scale;
  int shift;
};

Multiplier multiplier(const SliceQuantization& from, const SliceQuantization& to,
                      RequantizeRounding rounding) {
  const int up = Fixed32::norm(from.scale) - Fixed16::norm(to.scale);
  const int64_t quotient = (int64_t{from.scale} << up) / to.scale;
  const int down = 16 - Fixed32::norm(quotient);
  return {Fixed16::clamp(Fixed32::shift_right(quotient, down, rounding)),
          up + from.frac - to.frac - down};
}

bool has_32_bits(const SliceQuantization& side) { return side.format == QuantizedFormat::sa32; }

uint64_t f32_of(int64_t value) {
  return convert(static_cast<uint64_t>(value), ElementType::i64, ElementType::f32, {});
}
/// value * 2^exponent rounded once to f32; exact before that.
uint64_t scaled_f32(double value, int exponent) {
  return convert(std::bit_cast<uint64_t>(std::ldexp(value, exponent)), ElementType::f64,
                 ElementType::f32, {});
}

}  // namespace

uint64_t embarc_integer(int64_t x, const SliceQuantization& from, const SliceQuantization& to,
                        RequantizeRounding rounding) {
  const ElementType container = info(*to.format).container;
  const auto [scale, shift] = multiplier(from, to, rounding);
  if (!has_32_bits(from) && !has_32_bits(to)) {
    const int64_t product = Fixed16::sub(x, from.zero_point) * scale;
    const int64_t value = Fixed32::shift_right(product, std::min(shift, 31), rounding);
    return saturated(Fixed32::add(value, to.zero_point), container);
  }
  const int64_t difference = Fixed32::sub(x, from.zero_point);
  const int difference_norm = Fixed32::norm(difference);
  const int scale_norm = Fixed32::norm(scale);
  const int64_t product = (difference << difference_norm) * (scale << scale_norm);
  const int count = std::min(shift, 63) + scale_norm + difference_norm - 32;
  const int64_t value = Fixed32::shift_right(product >> 32, count, rounding);
  return saturated(Fixed32::add(value, to.zero_point), container);
}

uint64_t embarc_from_f32(uint64_t bits, const SliceQuantization& to) {
  constexpr ElementType f32 = ElementType::f32;
  const uint64_t reciprocal = float_ops::div(f32_of(1), f32_of(to.scale), f32);
  const auto exact = std::bit_cast<float>(static_cast<uint32_t>(reciprocal));
  const uint64_t factor = scaled_f32(exact, to.frac);
  const bool is_positive = bits >> 31 == 0 && bits != 0;
  const uint64_t half = scaled_f32(is_positive ? 0.5 : -0.5, 0);
  const uint64_t sum = float_ops::add(float_ops::mul(bits, factor, f32), half, f32);
  const int64_t value = signed_of(convert(sum, f32, ElementType::i32, {}), ElementType::i32);
  return saturated(Fixed32::add(value, to.zero_point), info(*to.format).container);
}

uint64_t embarc_to_f32(int64_t x, const SliceQuantization& from) {
  const uint64_t factor = scaled_f32(from.scale, -from.frac);
  return float_ops::mul(f32_of(Fixed32::sub(x, from.zero_point)), factor, ElementType::f32);
}

}  // namespace castor::numerics
