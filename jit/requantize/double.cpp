// SPDX-License-Identifier: Apache-2.0
// To integers, in f64.
//
// Exact values are multiples of a common unit, so those that do not meet the middle between two
// integers miss it by at least 2^-49 of themselves (a difference of two whole numbers below 2^48 or
// so), far more than f64 rounds by. What is left are the middles themselves: half up lifts every
// value by 2^-50 of its magnitude, which moves middles over and nothing else; ties to even need the
// product right at middles, for which the factor's lower part is added.
// The library's products are exact here. Its saturations below 32 bits never show after those to
// at most 16 bits; the middles between its 64-bit accumulators' bits are cut_accumulator.cpp's.
#include <cmath>
#include <limits>

#include "jit/requantize/double_lanes.hpp"
#include "jit/requantize/embarc_multiplier.hpp"
#include "jit/requantize/methods.hpp"

namespace castor::jit {

namespace {

constexpr ElementType constant_types[] = {ElementType::f64, ElementType::f64, ElementType::f64};
constexpr ElementType more_types[] = {ElementType::f64, ElementType::f64, ElementType::f64,
                                      ElementType::f64};

/// Whether the library adds the destination's zero point to what is rounded and saturated.
bool adds_later(const RequantizeForm& form) {
  return !form.is_exact() && (!form.rounds_half_up() || form.to == QuantizedFormat::sa32);
}

class Double final : public RequantizeMethod {
 public:
  std::string_view name() const override { return "double"; }

  bool takes(const RequantizeForm& form) const override {
    return form.to && (form.is_exact() || form.from);
  }

  /// The source's zero point, the factor, the number that rounds with the destination's zero point
  /// in it; then the factor's lower part, or that zero point where it is added later.
  std::span<const ElementType> constants(const RequantizeForm& form) const override {
    const bool has_more = form.is_exact() ? !form.rounds_half_up() : adds_later(form);
    if (has_more) return more_types;
    return constant_types;
  }

  std::optional<SliceConstants> prepare(const RequantizeForm& form, const SliceParameters& slice,
                                        Effort) const override {
    const auto to_zero_point = static_cast<double>(slice.to_zero_point);
    SliceConstants result = {constant_bits(static_cast<double>(slice.from_zero_point))};
    if (form.is_exact()) {
      const int exponent = slice.to_frac - slice.from_frac;
      const double high = static_cast<double>(slice.from_scale) / slice.to_scale;
      const double low = std::fma(-high, slice.to_scale, slice.from_scale) / slice.to_scale;
      result[1] = constant_bits(std::ldexp(form.rounds_half_up() ? high : -high, exponent));
      result[2] = constant_bits(double_rounder + to_zero_point);
      result[3] = constant_bits(std::ldexp(low, exponent));
      return result;
    }
    const EmbarcMultiplier multiplier = embarc_multiplier(slice, form.rounds_half_up());
    if (form.has_32_bits() && !rounds_whole_accumulators(form, slice, multiplier)) {
      return std::nullopt;
    }
    const int shift = std::min(multiplier.shift, form.has_32_bits() ? 63 : 31);
    result[1] = constant_bits(std::ldexp(multiplier.scale, -shift));
    result[2] = constant_bits(double_rounder + (adds_later(form) ? 0.0 : to_zero_point));
    result[3] = constant_bits(to_zero_point);
    return result;
  }

  void lower(const RequantizeForm& form, const RequantizeLanes& lanes) const override {
    LaneBuilder& b = lanes.builder;
    const LaneId x = form.from ? difference(form, lanes) : finite_double(b, lanes.floats());
    const LaneId product = b.float_mul(x, lanes.constant(1));
    LaneId rounded = no_lane;
    if (form.rounds_half_up()) {
      rounded = b.float_add(lift_magnitude(b, product), lanes.constant(2));
    } else if (form.is_exact()) {  // the factor is negative: c - a * b
      const LaneId low = b.float_mul(x, lanes.constant(3));
      rounded = b.float_add(b.float_sub_product(low, x, lanes.constant(1)), lanes.constant(2));
    } else {
      rounded = b.float_add(product, lanes.constant(2));
    }
    if (adds_later(form)) {
      rounded = b.float_add(clamp_rounded(b, rounded, ElementType::i32), lanes.constant(3));
    }
    store_rounded(lanes, rounded, form.to_element());
  }
};

}  // namespace

const RequantizeMethod& double_method() {
  static constinit const Double method;
  return method;
}

}  // namespace castor::jit
