// SPDX-License-Identifier: Apache-2.0
// From f32 and fixed point to integers of at most 16 bits, exactly, in f32.
//
// Results change at x = m, where m = (2 k + 1) scale / 2^(frac + 1) for whole k. Where f32 holds
// every such m, no x is between m and its neighbour in f32, and the quotient x / (scale / 2^frac)
// rounded once to f32 is on the same side of k + 1/2 as x is of m: below m, by at least one unit
// in the last place of x, it is at least half a unit of k + 1/2 below that. Rounded once means
// here: a product by the factor's upper part added to one by its lower part, 48 bits together, in
// one operation.
#include <cmath>

#include "jit/requantize/methods.hpp"

namespace castor::jit {

namespace {

/// Beyond every result, doubled and with a zero point; f32 holds halves up to here.
constexpr double max_quotient = 0x1p20;
/// Sums with it are whole: from 2^23 to 2^24 the unit in the last place is 1.
constexpr float rounder = 0x1.8p23F;

constexpr ElementType scaled_types[] = {ElementType::f32, ElementType::f32, ElementType::i32};
constexpr ElementType scaled_even_types[] = {ElementType::f32, ElementType::f32, ElementType::f32};
constexpr ElementType fixed_types[] = {ElementType::f32};

/// Fixed point has a power of two for a factor and no zero point.
bool gives_fixed_point(const RequantizeForm& form) { return !info(*form.to).is_asymmetric; }

/// f32 itself, or fixed point without its power of two.
LaneId source(const RequantizeForm& form, const RequantizeLanes& lanes) {
  if (!form.from) return lanes.floats();
  return lanes.builder.integer_to_float(lanes.integers(), true, LaneType::f32);
}

/// The value times the factor, rounded once.
LaneId product(const RequantizeForm& form, const RequantizeLanes& lanes) {
  LaneBuilder& b = lanes.builder;
  const LaneId x = source(form, lanes);
  if (gives_fixed_point(form)) return b.float_mul(x, lanes.constant(0));
  const LaneId low = b.float_mul(x, lanes.constant(1));
  return b.float_sub_product(low, x, lanes.constant(0));
}

/// Clamped to what saturates, NaN as 0. Products of integers are small.
LaneId finite(const RequantizeForm& form, LaneBuilder& b, LaneId value) {
  if (form.from) return value;
  return b.zero_unless(b.compare(FloatPredicate::ordered, value, value),
                       b.clamp_magnitude(value, max_quotient));
}

class FloatQuotient final : public RequantizeMethod {
 public:
  std::string_view name() const override { return "float quotient"; }

  bool takes(const RequantizeForm& form) const override {
    const bool has_exact_source = !form.from || !info(*form.from).is_asymmetric;
    return form.is_exact() && form.to && has_exact_source && !form.has_32_bits();
  }

  std::span<const ElementType> constants(const RequantizeForm& form) const override {
    if (gives_fixed_point(form)) return fixed_types;
    return form.rounds_half_up() ? scaled_types : scaled_even_types;
  }

  std::optional<SliceConstants> prepare(const RequantizeForm& form, const SliceParameters& slice,
                                        Effort) const override {
    // Both parts of the factor are normal numbers.
    const int exponent = slice.to_frac - slice.from_frac;
    if (exponent < -80 || exponent > 100) return std::nullopt;
    const double factor = std::ldexp(form.rounds_half_up() ? 2.0 : 1.0, exponent);
    if (form.from) {
      const double largest = std::ldexp(factor, bits_of(form.from_element()) - 1);
      if (largest / slice.to_scale > max_quotient) return std::nullopt;
    }
    if (gives_fixed_point(form)) return SliceConstants{constant_bits(static_cast<float>(factor))};
    const int64_t min = integer_min(form.to_element());
    const auto max = static_cast<int64_t>(integer_max(form.to_element()));
    const int64_t zero_point = slice.to_zero_point;
    const int64_t farthest = std::max(std::abs(min - zero_point), std::abs(max - zero_point));
    if ((2 * farthest + 1) * slice.to_scale > int64_t{1} << 24) return std::nullopt;
    const double ratio = factor / slice.to_scale;
    const auto upper = static_cast<float>(ratio);
    const float below = std::nextafter(upper, 0.0F);
    const float high = static_cast<double>(upper) < ratio ? upper : below;
    // Above the ratio by less than it can tell, and never 0: infinity times it is infinity.
    const double low = (ratio - static_cast<double>(high)) * (1 + 0x1p-22) + ratio * 0x1p-50;
    SliceConstants result = {constant_bits(-high), constant_bits(static_cast<float>(low))};
    result[2] = form.rounds_half_up()
                    ? constant_bits(2 * slice.to_zero_point + 1)
                    : constant_bits(rounder + static_cast<float>(slice.to_zero_point));
    return result;
  }

  void lower(const RequantizeForm& form, const RequantizeLanes& lanes) const override {
    LaneBuilder& b = lanes.builder;
    const LaneId value = finite(form, b, product(form, lanes));
    if (form.rounds_half_up()) {  // of twice the quotient
      const LaneId halves = b.float_to_signed(value, 32, LaneRounding::down);
      const LaneId more =
          gives_fixed_point(form) ? b.constant(LaneType::i32, 1) : lanes.constant(2);
      lanes.store(b.shift_right_signed(b.add(halves, more), 1), Narrowing::saturate_to_signed);
      return;
    }
    const LaneId more = gives_fixed_point(form)
                            ? b.float_constant(LaneType::f32, static_cast<double>(rounder))
                            : lanes.constant(2);
    const LaneId bits = b.float_add(value, more);
    const LaneId base = b.constant(LaneType::i32, constant_bits(rounder));
    lanes.store(b.sub(bits, base), Narrowing::saturate_to_signed);
  }
};

}  // namespace

const RequantizeMethod& float_quotient_method() {
  static constinit const FloatQuotient method;
  return method;
}

}  // namespace castor::jit
