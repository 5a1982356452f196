// SPDX-License-Identifier: Apache-2.0
#include "jit/requantize/double_lanes.hpp"

namespace castor::jit {

namespace {

LaneId clamp_between(LaneBuilder& b, LaneId value, double min, double max) {
  const LaneId above = b.float_max(b.float_constant(LaneType::f64, min), value);
  return b.float_min(b.float_constant(LaneType::f64, max), above);
}

}  // namespace

LaneId difference(const RequantizeForm& form, const RequantizeLanes& lanes) {
  LaneBuilder& b = lanes.builder;
  const LaneId x = b.integer_to_float(lanes.integers(), true, LaneType::f64);
  const LaneId exact = b.float_sub(x, lanes.constant(0));
  if (form.is_exact()) return exact;
  const ElementType bounds = form.has_32_bits() ? ElementType::i32 : ElementType::i16;
  return clamp_between(b, exact, static_cast<double>(integer_min(bounds)),
                       static_cast<double>(integer_max(bounds)));
}

LaneId finite_double(LaneBuilder& b, LaneId x) {
  const LaneId number = b.zero_unless(b.compare(FloatPredicate::ordered, x, x), x);
  return clamp_between(b, b.f32_to_f64(number), -0x1p300, 0x1p300);
}

LaneId lift_magnitude(LaneBuilder& b, LaneId value) {
  return b.float_sub_product(value, b.magnitude(value), b.float_constant(LaneType::f64, -0x1p-50));
}

LaneId clamp_rounded(LaneBuilder& b, LaneId sum, ElementType integer) {
  return clamp_between(b, sum, double_rounder + static_cast<double>(integer_min(integer)),
                       double_rounder + static_cast<double>(integer_max(integer)));
}

void store_rounded(const RequantizeLanes& lanes, LaneId sum, ElementType to) {
  LaneBuilder& b = lanes.builder;
  lanes.store(b.truncate(clamp_rounded(b, sum, to), 32), Narrowing::truncate);
}

}  // namespace castor::jit
