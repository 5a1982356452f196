// SPDX-License-Identifier: Apache-2.0
// x * factor + addend in f32, rounded to the nearest integer.
//
// The exact value of an element, (x - z) s / t * 2^e + w, lies on a lattice; so the middles between
// two integers are either met exactly or missed by a certain distance at least. The addend lifts
// all values by half that distance: what met a middle is rounded up, and no other value changes
// sides as long as all errors of f32 together stay below that half.
#include <cmath>
#include <numeric>

#include "jit/requantize/methods.hpp"

namespace castor::jit {

namespace {

constexpr ElementType ports[] = {ElementType::f32, ElementType::f32};

/// The least distance, but 0, of an exact value from the middle between two integers: of
/// a D - b (2 k + 1) over 2 b for all whole D and k, where a / b is twice the ratio.
double least_distance(const SliceParameters& slice, int exponent) {
  const uint64_t a = uint64_t{2} * static_cast<uint64_t>(slice.from_scale) << std::max(exponent, 0);
  const uint64_t b = static_cast<uint64_t>(slice.to_scale) << std::max(-exponent, 0);
  return static_cast<double>(std::gcd(a, b)) / (2.0 * static_cast<double>(b));
}

class RoundedFloat final : public RequantizeMethod {
 public:
  std::string_view name() const override { return "rounded float"; }

  bool takes(const RequantizeForm& form) const override {
    return form.is_exact() && form.rounds_half_up() && form.from && form.to && !form.has_32_bits();
  }

  std::span<const ElementType> constants(const RequantizeForm&) const override { return ports; }

  std::optional<SliceConstants> prepare(const RequantizeForm& form, const SliceParameters& slice,
                                        Effort) const override {
    const int exponent = slice.to_frac - slice.from_frac;
    if (exponent < -30 || exponent > 20) return std::nullopt;
    const double ratio = std::ldexp(slice.from_scale / double(slice.to_scale), exponent);
    const double lift = least_distance(slice, exponent) / 2;
    const double addend = slice.to_zero_point - slice.from_zero_point * ratio + lift;
    // Elements whose results do not saturate, and the next ones, are below this; the others' errors
    // grow no faster than they are beyond it.
    const double most = std::ldexp(1.0, bits_of(form.to_element()) - 1) + 2;
    const double errors =
        std::ldexp(2 * most + 2 * std::abs(addend) + 2, -24) + std::ldexp(std::abs(addend), -50);
    const double largest = std::ldexp(ratio, bits_of(form.from_element()) - 1) + std::abs(addend);
    if (!(errors < lift) || !(largest < 0x1p30)) return std::nullopt;
    return SliceConstants{constant_bits(static_cast<float>(-ratio)),
                          constant_bits(static_cast<float>(addend))};
  }

  void lower(const RequantizeForm&, const RequantizeLanes& lanes) const override {
    LaneBuilder& b = lanes.builder;
    const LaneId x = b.integer_to_float(lanes.integers(), true, LaneType::f32);
    const LaneId value = b.float_sub_product(lanes.constant(1), x, lanes.constant(0));
    lanes.store(b.float_to_signed(value, 32, LaneRounding::nearest_even),
                Narrowing::saturate_to_signed);
  }
};

}  // namespace

const RequantizeMethod& rounded_float_method() {
  static const RoundedFloat method;
  return method;
}

}  // namespace castor::jit
