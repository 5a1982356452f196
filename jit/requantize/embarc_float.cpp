// SPDX-License-Identifier: Apache-2.0
// The library's conversions from and to f32, operation by operation in f32.
// Source: embARC MLI 2.0, conversion of fp32 tensors.
#include <cmath>
#include <limits>

#include "jit/requantize/methods.hpp"

namespace castor::jit {

namespace {

constexpr int32_t min = std::numeric_limits<int32_t>::min();
constexpr int32_t max = std::numeric_limits<int32_t>::max();

constexpr ElementType fixed_types[] = {ElementType::f32};
constexpr ElementType narrow_types[] = {ElementType::f32, ElementType::i32};
constexpr ElementType wide_types[] = {ElementType::f32, ElementType::i32, ElementType::i32,
                                      ElementType::i32};
constexpr ElementType to_float_types[] = {ElementType::i32, ElementType::i32, ElementType::i32,
                                          ElementType::f32};

bool has_zero_point(const RequantizeForm& form) { return info(*form.to).is_asymmetric; }

/// x clamped to what `addend` may be added to, or subtracted from, within 32 bits.
LaneId clamped(LaneBuilder& b, LaneId x, LaneId low, LaneId high) {
  return b.min_signed(b.max_signed(x, low), high);
}

/// f = (1 / scale) * 2^frac; trunc(x f +- 0.5) saturated to i32, plus the zero point, saturated.
class EmbarcFromFloat final : public RequantizeMethod {
 public:
  std::string_view name() const override { return "embarc, from float"; }

  bool takes(const RequantizeForm& form) const override { return !form.is_exact() && !form.from; }

  std::span<const ElementType> constants(const RequantizeForm& form) const override {
    if (form.has_32_bits()) return wide_types;
    if (has_zero_point(form)) return narrow_types;
    return fixed_types;
  }

  std::optional<SliceConstants> prepare(const RequantizeForm&, const SliceParameters& slice,
                                        Effort) const override {
    const float reciprocal = 1.0F / static_cast<float>(slice.to_scale);
    const double factor = std::ldexp(static_cast<double>(reciprocal), slice.to_frac);
    const int32_t zero_point = slice.to_zero_point;
    return SliceConstants{constant_bits(to_f32(factor)), constant_bits(zero_point),
                          constant_bits(min - std::min(zero_point, 0)),
                          constant_bits(max - std::max(zero_point, 0))};
  }

  void lower(const RequantizeForm& form, const RequantizeLanes& lanes) const override {
    LaneBuilder& b = lanes.builder;
    const LaneId x = lanes.floats();
    const LaneId product = b.float_mul(x, lanes.constant(0));
    const LaneId is_number = b.compare(FloatPredicate::ordered, product, product);
    const LaneId half = b.merge_bits(0x80000000, x, b.float_constant(LaneType::f32, 0.5));
    if (!form.has_32_bits()) {
      const LaneId bounded = b.zero_unless(is_number, b.clamp_magnitude(product, 0x1p20));
      const LaneId whole =
          b.float_to_signed(b.float_add(bounded, half), 32, LaneRounding::toward_zero);
      const LaneId result = has_zero_point(form) ? b.add(whole, lanes.constant(1)) : whole;
      lanes.store(result, Narrowing::saturate_to_signed);
      return;
    }
    const LaneId sum = b.float_add(b.zero_unless(is_number, product), half);
    const LaneId whole = b.float_to_signed(sum, 32, LaneRounding::toward_zero);
    const LaneId is_above =
        b.compare(FloatPredicate::greater_equal, sum, b.float_constant(LaneType::f32, 0x1p31));
    const LaneId saturated =
        b.select(is_above, b.constant(LaneType::i32, constant_bits(max)), whole);
    const LaneId bounded = clamped(b, saturated, lanes.constant(2), lanes.constant(3));
    lanes.store(b.add(bounded, lanes.constant(1)), Narrowing::truncate);
  }
};

/// x - zero_point saturated to i32, as f32, times f = scale * 2^-frac.
class EmbarcToFloat final : public RequantizeMethod {
 public:
  std::string_view name() const override { return "embarc, to float"; }

  bool takes(const RequantizeForm& form) const override {
    return !form.is_exact() && !form.to && form.has_32_bits();
  }

  std::span<const ElementType> constants(const RequantizeForm&) const override {
    return to_float_types;
  }

  std::optional<SliceConstants> prepare(const RequantizeForm&, const SliceParameters& slice,
                                        Effort) const override {
    const int32_t zero_point = slice.from_zero_point;
    const double factor = std::ldexp(slice.from_scale, -slice.from_frac);
    return SliceConstants{constant_bits(zero_point), constant_bits(min + std::max(zero_point, 0)),
                          constant_bits(max + std::min(zero_point, 0)),
                          constant_bits(to_f32(factor))};
  }

  void lower(const RequantizeForm&, const RequantizeLanes& lanes) const override {
    LaneBuilder& b = lanes.builder;
    const LaneId bounded = clamped(b, lanes.integers(), lanes.constant(1), lanes.constant(2));
    const LaneId difference = b.sub(bounded, lanes.constant(0));
    const LaneId value = b.integer_to_float(difference, true, LaneType::f32);
    lanes.store(b.float_mul(value, lanes.constant(3)), Narrowing::truncate);
  }
};

}  // namespace

const RequantizeMethod& embarc_from_float_method() {
  static constinit const EmbarcFromFloat method;
  return method;
}

const RequantizeMethod& embarc_to_float_method() {
  static constinit const EmbarcToFloat method;
  return method;
}

}  // namespace castor::jit
