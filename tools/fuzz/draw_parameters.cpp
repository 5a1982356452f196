// SPDX-License-Identifier: Apache-2.0
#include "tools/fuzz/draw_parameters.hpp"

#include <algorithm>

#include "tools/fuzz/image.hpp"

namespace castor::fuzz {

namespace {

constexpr int scale_bits = 14;  // a scale of 2^14 stands for 1 where frac is 14 more

NumberRange one(int64_t number) {
  return {static_cast<int32_t>(number), static_cast<int32_t>(number)};
}

/// At the limits of what types can hold.
NumberRange draw_extreme(Random& random, const QuantizationRule& rule) {
  switch (random.below(4)) {
    case 0: return one(rule.min);
    case 1: return one(rule.max);
    case 2: return {rule.min, rule.max};
    default: break;
  }
  const int64_t a = random.between(rule.min, rule.max);
  const int64_t b = std::clamp<int64_t>(a + random.between(-3, 3), rule.min, rule.max);
  return {static_cast<int32_t>(std::min(a, b)), static_cast<int32_t>(std::max(a, b))};
}

/// `step`: fractional bits that a scale of 1 would have.
NumberRange draw_usual(Random& random, const QuantizationRule& rule, QuantizedFormat format,
                       int64_t step) {
  if (rule.parameter == &Quantization::zero_point) {
    return random.percent(30) ? one(0) : NumberRange{-140, 140};
  }
  if (rule.parameter == &Quantization::scale) {
    return random.percent(35) ? one(int64_t{1} << scale_bits) : NumberRange{8192, 32767};
  }
  const bool is_wide = bits_of(info(format).container) > 8;
  const int64_t more = is_wide ? random.between(0, 20) : random.between(-1, 1);
  const int64_t frac = step + more + (info(format).is_asymmetric ? scale_bits : 0);
  return {static_cast<int32_t>(frac), static_cast<int32_t>(frac + random.between(0, 1))};
}

}  // namespace

void draw_ranges(Random& random, DrawnSide& from, DrawnSide& to) {
  const size_t kind = random.below(4);
  const size_t extreme_percent = kind < 2 ? 0 : kind == 2 ? 30 : 100;
  const int64_t step = random.between(-4, 12);
  for (DrawnSide* side : {&from, &to}) {
    for (size_t r = 0; r < quantization_rules.size(); ++r) {
      const QuantizationRule& rule = quantization_rules[r];
      if (!side->has(rule)) continue;
      side->ranges[r] = random.percent(extreme_percent)
                            ? draw_extreme(random, rule)
                            : draw_usual(random, rule, *side->format, step);
    }
  }
}

std::vector<uint64_t> draw_elements(Random& random, const ParameterOperand& operand,
                                    int64_t entries) {
  return range_patterns(operand.element, operand.range.min, operand.range.max,
                        static_cast<size_t>(entries), random.next());
}

QuantizationPtr draw_quantization(Random& random, const DrawnSide& side, int64_t slices) {
  if (!side.format) return nullptr;
  Quantization quantization{.format = *side.format, .axis = side.axis};
  for (size_t r = 0; r < quantization_rules.size(); ++r) {
    const QuantizationRule& rule = quantization_rules[r];
    if (!side.has(rule) || side.is_open[r]) continue;
    const ParameterOperand like{ElementType::i32, {}, side.ranges[r]};
    const int64_t count = quantization.is_per_axis() ? slices : 1;
    std::vector<int32_t>& entries = (quantization.*rule.parameter).emplace();
    for (uint64_t bits : draw_elements(random, like, count)) {
      entries.push_back(static_cast<int32_t>(static_cast<uint32_t>(bits)));
    }
  }
  return std::make_shared<const Quantization>(std::move(quantization));
}

}  // namespace castor::fuzz
