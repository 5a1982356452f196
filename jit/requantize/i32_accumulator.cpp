// SPDX-License-Identifier: Apache-2.0
// The library's 64-bit accumulators of differences of 32 bits, in 32-bit lanes.
//
// The library moves the difference d to the left by its redundant sign bits u, the multiplier s, of
// 15 bits, by its own 16, and cuts the lower 32 of the product's 64 bits off: these are the lower
// m = 16 - u bits of P = d s, as far as m is positive. What is left it shifts to the right by
// K = shift - m in all, rounded half up, or to the left where K is negative. Bits of P that are cut
// off where K is positive are below the one that rounds, and where it is not, that one is cut off
// too: so the result is always (cut(P) + 2^(shift - 1)) >> shift.
//
// With d = 2^16 a + b, b unsigned, that is (a s << (16 - shift)) + ((cut(b s) + 2^(shift - 1)) >>
// shift), for shifts from 1 to 16 (i32_product.cpp has the larger ones). Sums are modulo 2^32;
// which elements saturate is known before: the result grows with d (powers of two lose no bits).
#include <cstdlib>

#include "jit/requantize/embarc_multiplier.hpp"
#include "jit/requantize/methods.hpp"

namespace castor::jit {

namespace {

constexpr int64_t min = std::numeric_limits<int32_t>::min();
constexpr int64_t max = std::numeric_limits<int32_t>::max();

constexpr std::array<ElementType, 11> constant_types = [] {
  std::array<ElementType, 11> all{};
  all.fill(ElementType::i32);
  return all;
}();

/// The indices of constants.
enum : size_t {
  from_zero_point,
  scale,
  upper_scale,  ///< scale * 2^16
  half,
  down,  ///< the shift
  up,    ///< 16 - shift
  to_zero_point,
  lowest,   ///< the least x whose result does not saturate
  highest,  ///< the largest such
  below,    ///< the result of what is less than `lowest`
  above,
};

int64_t saturated(int64_t value) { return std::clamp(value, min, max); }

/// The multiplier with 15 bits, and its shift.
struct Factor {
  int64_t scale;
  int shift;

  /// floor(value * 2^shift / scale)
  int64_t quotient(int64_t value) const {
    const int64_t scaled = value * (int64_t{1} << shift);
    return scaled / scale - (scaled % scale < 0 ? 1 : 0);
  }
  /// The library's product of a difference, before it saturates.
  int64_t product(int64_t d) const {
    const int redundant_bits = std::countl_zero(static_cast<uint32_t>(std::abs(d))) - 1;
    const int64_t lost = (int64_t{1} << std::max(16 - redundant_bits, 0)) - 1;
    return ((d * scale & ~lost) + (int64_t{1} << (shift - 1))) >> shift;
  }
  /// The least difference whose product is at least `value`; the one above all where none is. What
  /// is cut off moves it by a few.
  int64_t first_from(int64_t value) const {
    int64_t d = std::clamp(quotient(value - 1), min, max + 1);
    while (d <= max && product(d) < value) ++d;
    return d;
  }
};

class I32Accumulator final : public RequantizeMethod {
 public:
  std::string_view name() const override { return "i32 accumulator"; }

  bool takes(const RequantizeForm& form) const override {
    return !form.is_exact() && form.rounds_half_up() && form.from == QuantizedFormat::sa32 &&
           form.to == QuantizedFormat::sa32;
  }

  std::span<const ElementType> constants(const RequantizeForm&) const override {
    return constant_types;
  }

  std::optional<SliceConstants> prepare(const RequantizeForm&, const SliceParameters& slice,
                                        Effort) const override {
    const EmbarcMultiplier multiplier = embarc_multiplier_of_15_bits(slice, true);
    const Factor factor{multiplier.scale, multiplier.shift};
    if (factor.shift < 1 || factor.shift > 16) return std::nullopt;
    const int64_t x_zero = slice.from_zero_point;
    const int64_t y_zero = slice.to_zero_point;
    const int64_t first_right = factor.first_from(min + std::max<int64_t>(-y_zero, 0));
    const int64_t first_above = factor.first_from(max + 1 - std::max<int64_t>(y_zero, 0));
    const auto result = [&](int64_t d) { return saturated(saturated(factor.product(d)) + y_zero); };
    SliceConstants constants{};
    const auto set = [&constants](size_t index, int64_t value) {
      constants[index] = constant_bits(static_cast<int32_t>(value));
    };
    set(from_zero_point, x_zero);
    set(scale, factor.scale);
    set(upper_scale, factor.scale << 16);
    set(half, int64_t{1} << (factor.shift - 1));
    set(down, factor.shift);
    set(up, 16 - factor.shift);
    set(to_zero_point, y_zero);
    set(lowest, saturated(first_right + x_zero));
    set(highest, saturated(first_above - 1 + x_zero));
    set(below, result(min));
    set(above, result(max));
    return constants;
  }

  void lower(const RequantizeForm&, const RequantizeLanes& lanes) const override {
    LaneBuilder& b = lanes.builder;
    const LaneId x = lanes.integers();
    const LaneId d = b.sub(x, lanes.constant(from_zero_point));
    // -1 << m is -2^17 shifted to the right by the zeros above |d|, one more than u. (That of -2^n
    // has one zero less than it has redundant bits; but its products end in n zeros.)
    const LaneId kept = b.shift_right_signed_by(b.constant(LaneType::i32, 0xFFFE0000),
                                                b.leading_zeros(b.absolute(d)));
    const LaneId low_half = b.bit_and(d, b.constant(LaneType::i32, 0xFFFF));
    const LaneId cut = b.bit_and(b.mul(low_half, lanes.constant(scale)), kept);
    const LaneId lower =
        b.shift_right_signed_by(b.add(cut, lanes.constant(half)), lanes.constant(down));
    const LaneId upper =
        b.shift_left_by(b.dot_i16_pairs(d, lanes.constant(upper_scale)), lanes.constant(up));
    const LaneId inner = b.add(b.add(upper, lower), lanes.constant(to_zero_point));
    const LaneId high = lanes.constant(highest);
    const LaneId low = lanes.constant(lowest);
    const LaneId not_above = b.select(b.greater_signed(x, high), lanes.constant(above), inner);
    lanes.store(b.select(b.greater_signed(low, x), lanes.constant(below), not_above),
                Narrowing::truncate);
  }
};

}  // namespace

const RequantizeMethod& i32_accumulator_method() {
  static constinit const I32Accumulator method;
  return method;
}

}  // namespace castor::jit
