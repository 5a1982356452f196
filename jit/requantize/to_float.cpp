// SPDX-License-Identifier: Apache-2.0
// From integers to f32: the difference from the zero point times scale / 2^frac.
#include <cmath>

#include "jit/requantize/methods.hpp"

namespace castor::jit {

namespace {

constexpr ElementType float_types[] = {ElementType::f32, ElementType::f32};
constexpr ElementType double_types[] = {ElementType::f64, ElementType::f64};

/// Integers of at most 16 bits: f32 holds the difference (17 bits) and the factor (15 bits), so
/// that their product is rounded once.
class ToFloat final : public RequantizeMethod {
 public:
  std::string_view name() const override { return "to float"; }

  bool takes(const RequantizeForm& form) const override {
    return !form.to && form.from && !form.has_32_bits();
  }

  std::span<const ElementType> constants(const RequantizeForm&) const override {
    return float_types;
  }

  std::optional<SliceConstants> prepare(const RequantizeForm& form, const SliceParameters& slice,
                                        Effort) const override {
    const double factor = std::ldexp(slice.from_scale, -slice.from_frac);
    // The library's factor may be infinite.
    if (form.is_exact() && factor >= 0x1p128) return std::nullopt;
    return SliceConstants{constant_bits(static_cast<float>(slice.from_zero_point)),
                          constant_bits(to_f32(factor))};
  }

  void lower(const RequantizeForm&, const RequantizeLanes& lanes) const override {
    LaneBuilder& b = lanes.builder;
    const LaneId x = b.integer_to_float(lanes.integers(), true, LaneType::f32);
    const LaneId difference = b.float_sub(x, lanes.constant(0));
    lanes.store(b.float_mul(difference, lanes.constant(1)), Narrowing::truncate);
  }
};

/// In f64, which holds the product (48 bits), rounded once to f32.
class ToFloatThroughDouble final : public RequantizeMethod {
 public:
  std::string_view name() const override { return "to float through double"; }

  bool takes(const RequantizeForm& form) const override {
    return form.is_exact() && !form.to && form.from;
  }

  std::span<const ElementType> constants(const RequantizeForm&) const override {
    return double_types;
  }

  std::optional<SliceConstants> prepare(const RequantizeForm&, const SliceParameters& slice,
                                        Effort) const override {
    return SliceConstants{constant_bits(static_cast<double>(slice.from_zero_point)),
                          constant_bits(std::ldexp(slice.from_scale, -slice.from_frac))};
  }

  void lower(const RequantizeForm&, const RequantizeLanes& lanes) const override {
    LaneBuilder& b = lanes.builder;
    const LaneId x = b.integer_to_float(lanes.integers(), true, LaneType::f64);
    const LaneId difference = b.float_sub(x, lanes.constant(0));
    lanes.store(b.f64_to_f32(b.float_mul(difference, lanes.constant(1))), Narrowing::truncate);
  }
};

}  // namespace

const RequantizeMethod& to_float_method() {
  static constinit const ToFloat method;
  return method;
}

const RequantizeMethod& to_float_through_double_method() {
  static constinit const ToFloatThroughDouble method;
  return method;
}

}  // namespace castor::jit
