// SPDX-License-Identifier: Apache-2.0
// x * factor + addend in f32 or f64, rounded to the nearest integer.
//
// The exact value of an element, (x - z) s / t * 2^e + w, is a multiple of a fixed fraction; so the
// middles between two integers are either met exactly or missed by at least a certain distance. The
// addend lifts all values by half that distance: what met a middle is rounded up, and no other
// value changes sides as long as all errors of the arithmetic together stay below that half.
#include <cmath>
#include <limits>
#include <numeric>

#include "jit/requantize/embarc_multiplier.hpp"
#include "jit/requantize/methods.hpp"

namespace castor::jit {

namespace {

/// The least distance, but 0, of an exact value from the middle between two integers: of
/// a D - b (2 k + 1) over 2 b for all whole D and k, where a / b is twice the ratio.
double min_distance(const SliceParameters& slice, int exponent) {
  const uint64_t a = uint64_t{2} * static_cast<uint64_t>(slice.from_scale) << std::max(exponent, 0);
  const uint64_t b = static_cast<uint64_t>(slice.to_scale) << std::max(-exponent, 0);
  return static_cast<double>(std::gcd(a, b)) / (2.0 * static_cast<double>(b));
}

/// The exact ratio of a slice's scales, or the library's multiplier.
struct Ratio {
  double value;     ///< rounded once to f64
  double distance;  ///< the least distance, but 0, of a value from the middle between two integers
};

std::optional<Ratio> exact_ratio(const SliceParameters& slice) {
  const int exponent = slice.to_frac - slice.from_frac;
  if (exponent < -45 || exponent > 40) return std::nullopt;
  return Ratio{std::ldexp(slice.from_scale / double(slice.to_scale), exponent),
               min_distance(slice, exponent)};
}

/// Where the library's 64-bit accumulators lose nothing that shows.
std::optional<Ratio> embarc_ratio(const RequantizeForm& form, const SliceParameters& slice) {
  const EmbarcMultiplier multiplier = embarc_multiplier(slice, true);
  const int shift = std::min(multiplier.shift, 63);
  if (shift < -40) return std::nullopt;
  if (!rounds_whole_accumulators(form, slice, multiplier)) return std::nullopt;
  return Ratio{std::ldexp(multiplier.scale, -shift), std::ldexp(1.0, -std::max(shift, 1))};
}

/// In f32, or in f64.
template <class Float>
class RoundedFloat final : public RequantizeMethod {
 public:
  static constexpr bool is_double = sizeof(Float) == sizeof(double);
  static constexpr int digits = is_double ? 53 : 24;
  static constexpr ElementType element = is_double ? ElementType::f64 : ElementType::f32;
  static constexpr ElementType constant_types[] = {element, element};

  std::string_view name() const override { return is_double ? "rounded double" : "rounded float"; }

  bool takes(const RequantizeForm& form) const override {
    if (!form.rounds_half_up() || !form.from || !form.to) return false;
    if (!is_double) return form.is_exact() && !form.has_32_bits();
    // (Differences of 32 bits may saturate in the library: i32_product.cpp.)
    return form.is_exact() || (form.has_32_bits() && form.from != QuantizedFormat::sa32);
  }

  std::span<const ElementType> constants(const RequantizeForm&) const override {
    return constant_types;
  }

  std::optional<SliceConstants> prepare(const RequantizeForm& form, const SliceParameters& slice,
                                        Effort) const override {
    const std::optional<Ratio> ratio =
        form.is_exact() ? exact_ratio(slice) : embarc_ratio(form, slice);
    if (!ratio) return std::nullopt;
    const double lift = ratio->distance / 2;
    const double addend = slice.to_zero_point - slice.from_zero_point * ratio->value + lift;
    // Elements whose results do not saturate, and the next ones, are below `max`; the others'
    // errors grow no faster than they are beyond it.
    const double max = std::ldexp(1.0, bits_of(form.to_element()) - 1) + 2;
    const double parts =
        std::abs(slice.to_zero_point) + std::abs(slice.from_zero_point) * ratio->value + lift;
    const double errors = std::ldexp(2 * max + 2 * parts + 2, -digits) + std::ldexp(parts, -50);
    const double largest =
        std::ldexp(ratio->value, bits_of(form.from_element()) - 1) + std::abs(addend);
    if (!(errors < lift) || !(largest < 0x1p31 - 0x1p8)) return std::nullopt;
    return SliceConstants{constant_bits(static_cast<Float>(-ratio->value)),
                          constant_bits(static_cast<Float>(addend))};
  }

  void lower(const RequantizeForm&, const RequantizeLanes& lanes) const override {
    LaneBuilder& b = lanes.builder;
    const LaneType lane = is_double ? LaneType::f64 : LaneType::f32;
    const LaneId x = b.integer_to_float(lanes.integers(), true, lane);
    const LaneId value = b.float_sub_product(lanes.constant(1), x, lanes.constant(0));
    lanes.store(b.float_to_signed(value, 32, LaneRounding::nearest_even),
                Narrowing::saturate_to_signed);
  }
};

/// In f32 with the ratio in two parts, whose 48 bits leave nothing but the roundings of the sums:
/// x * low + addend, then x * high + that.
class SplitRoundedFloat final : public RequantizeMethod {
 public:
  static constexpr ElementType constant_types[] = {ElementType::f32, ElementType::f32,
                                                   ElementType::f32};

  std::string_view name() const override { return "split rounded float"; }

  bool takes(const RequantizeForm& form) const override {
    return form.is_exact() && form.rounds_half_up() && form.from && form.to && !form.has_32_bits();
  }

  std::span<const ElementType> constants(const RequantizeForm&) const override {
    return constant_types;
  }

  std::optional<SliceConstants> prepare(const RequantizeForm& form, const SliceParameters& slice,
                                        Effort) const override {
    const std::optional<Ratio> ratio = exact_ratio(slice);
    if (!ratio) return std::nullopt;
    const double lift = ratio->distance / 2;
    const double addend = slice.to_zero_point - slice.from_zero_point * ratio->value + lift;
    const double parts =
        std::abs(slice.to_zero_point) + std::abs(slice.from_zero_point) * ratio->value + lift;
    // Below 2^(bits - 1), beyond which results saturate, the last sum is off by at most half a unit
    // in the last place of 2^(bits - 2); the first, and its addend, by less than a unit in the last
    // place of `parts`.
    const int bits = bits_of(form.to_element());
    const double errors = std::ldexp(1.0, bits - 26) + std::ldexp(parts, -23) +
                          std::ldexp(std::ldexp(1.0, bits) + parts, -46);
    const double largest =
        std::ldexp(ratio->value, bits_of(form.from_element()) - 1) + std::abs(addend);
    if (!(errors < lift) || !(largest < 0x1p31 - 0x1p8)) return std::nullopt;
    const auto high = static_cast<float>(ratio->value);
    const auto low = static_cast<float>(ratio->value - static_cast<double>(high));
    return SliceConstants{constant_bits(-high), constant_bits(-low),
                          constant_bits(static_cast<float>(addend))};
  }

  void lower(const RequantizeForm&, const RequantizeLanes& lanes) const override {
    LaneBuilder& b = lanes.builder;
    const LaneId x = b.integer_to_float(lanes.integers(), true, LaneType::f32);
    const LaneId low = b.float_sub_product(lanes.constant(2), x, lanes.constant(1));
    const LaneId value = b.float_sub_product(low, x, lanes.constant(0));
    lanes.store(b.float_to_signed(value, 32, LaneRounding::nearest_even),
                Narrowing::saturate_to_signed);
  }
};

}  // namespace

const RequantizeMethod& split_rounded_float_method() {
  static constinit const SplitRoundedFloat method;
  return method;
}

const RequantizeMethod& rounded_float_method() {
  static constinit const RoundedFloat<float> method;
  return method;
}

const RequantizeMethod& rounded_double_method() {
  static constinit const RoundedFloat<double> method;
  return method;
}

}  // namespace castor::jit
