// SPDX-License-Identifier: Apache-2.0
// The library's 64-bit accumulators, in f64.
//
// The library moves the difference d to the left by its redundant sign bits u, the multiplier by
// its own v, keeps the upper half h of their product of 64 bits, and shifts that to the right by
// K = shift + v + u - 32, rounded (to the left, where K is negative). So h is d * multiplier /
// 2^shift in units of g = 2^-K, cut down to a whole number of them. Here d * multiplier / 2^shift
// is an exact product of f64, and g follows from the magnitude's power of two.
#include <cmath>

#include "jit/requantize/double_lanes.hpp"
#include "jit/requantize/embarc_multiplier.hpp"
#include "jit/requantize/methods.hpp"

namespace castor::jit {

namespace {

constexpr ElementType constant_types[] = {ElementType::f64, ElementType::f64, ElementType::f64,
                                          ElementType::f64};

/// The largest power of two not above the magnitude of a number of f64 other than 0.
LaneId power_of_two(LaneBuilder& b, LaneId value) {
  return b.bit_and(value, b.constant(LaneType::i64, 0x7FF0000000000000));
}

/// 1 / a power of two.
LaneId inverse(LaneBuilder& b, LaneId power) {
  return b.sub(b.constant(LaneType::i64, 0x7FE0000000000000), power);
}

class CutAccumulator final : public RequantizeMethod {
 public:
  std::string_view name() const override { return "cut accumulator"; }

  bool takes(const RequantizeForm& form) const override {
    return !form.is_exact() && form.from && form.to && form.has_32_bits();
  }

  /// The source's zero point, multiplier / 2^shift, the unit of a difference whose magnitude's
  /// power of two is 1, and the destination's zero point.
  std::span<const ElementType> constants(const RequantizeForm&) const override {
    return constant_types;
  }

  std::optional<SliceConstants> prepare(const RequantizeForm& form, const SliceParameters& slice,
                                        Effort) const override {
    const EmbarcMultiplier multiplier = embarc_multiplier(slice, form.rounds_half_up());
    const int shift = std::min(multiplier.shift, 63);
    const int scale_norm = redundant_sign_bits(multiplier.scale, 32);
    // A magnitude of 2^p has 30 - p redundant sign bits: 2^-K = 2^(2 - shift - v) * 2^p.
    return SliceConstants{constant_bits(static_cast<double>(slice.from_zero_point)),
                          constant_bits(std::ldexp(multiplier.scale, -shift)),
                          constant_bits(std::ldexp(1.0, 2 - shift - scale_norm)),
                          constant_bits(static_cast<double>(slice.to_zero_point))};
  }

  void lower(const RequantizeForm& form, const RequantizeLanes& lanes) const override {
    LaneBuilder& b = lanes.builder;
    const LaneId d = difference(form, lanes);
    const LaneId product = b.float_mul(d, lanes.constant(1));
    // Redundant sign bits are those of d, or of -1 - d where that is not negative: |d + 1/2| is
    // either of them and 1/2.
    const LaneId moved = b.float_add(d, b.float_constant(LaneType::f64, 0.5));
    const LaneId power = power_of_two(b, moved);
    const LaneId unit = b.float_mul(power, lanes.constant(2));
    const LaneId cut =
        b.float_mul(b.round(b.float_mul(product, inverse(b, unit)), LaneRounding::down), unit);
    const LaneId value = form.rounds_half_up() ? lift_magnitude(b, cut) : cut;
    const LaneId sum = b.float_add(value, b.float_constant(LaneType::f64, double_rounder));
    const LaneId shifted = clamp_rounded(b, sum, ElementType::i32);
    store_rounded(lanes, b.float_add(shifted, lanes.constant(3)), form.to_element());
  }
};

}  // namespace

const RequantizeMethod& cut_accumulator_method() {
  static constinit const CutAccumulator method;
  return method;
}

}  // namespace castor::jit
