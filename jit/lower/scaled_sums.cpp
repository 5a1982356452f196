// SPDX-License-Identifier: Apache-2.0
#include "jit/lower/scaled_sums.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "jit/lower/function_facts.hpp"

namespace castor::jit {

namespace {

// ---- Factors.

constexpr int64_t max_pairs = 1 << 17;
constexpr int max_ulps = 8;  // by which factors differ from the quotients of scales
/// Ratio of the factors, and magnitude of the integers, at most: then a product of f32 and an
/// integer, and the sum of it and another such product that is rounded to f32, have at most 53
/// significant bits, so that in f64 both are exact: where the smaller factor's first bit is 2^e,
/// the sum is a multiple of 2^(e - 23) and less than 2^(e + 28).
constexpr float max_ratio = 0x1p16f;
constexpr int max_integer = 1 << 10;

int64_t count_of(const SmallRange& range) { return int64_t{range.hi} - range.lo + 1; }

bool has_small_integers(const SmallRange& range) {
  return range.lo >= -max_integer && range.hi <= max_integer;
}

/// Rounds numbers of magnitude up to 2^21 to nearest even.
float rounded(float number) {
  constexpr float shift = 0x1.8p23f;
  const volatile float shifted = number + shift;
  return shifted - shift;
}

/// All pairs of one sum, and what becomes of them.
class SumTable {
 public:
  explicit SumTable(const ScaledSum& sum)
      : sum_(sum),
        lo_(static_cast<float>(sum.result.lo)),
        hi_(static_cast<float>(sum.result.hi)),
        results_(static_cast<size_t>(count_of(sum.a) * count_of(sum.b))) {
    size_t at = 0;
    for (int32_t a = sum.a.lo; a <= sum.a.hi; ++a) {
      for (int32_t b = sum.b.lo; b <= sum.b.hi; ++b) add(a, b, results_[at++]);
    }
  }

  /// Whether all quotients were small.
  bool is_usable() const { return is_usable_; }

  bool holds(const SumFactors& factors) const {
    const auto is_same = [&](const Pair& pair) {
      return result(factors, pair.a, static_cast<float>(pair.b) * factors.b) == pair.result;
    };
    return std::ranges::all_of(near_ties_, is_same) && holds_for_all(factors);
  }

 private:
  struct Pair {
    int32_t a;
    int32_t b;
    float result;
  };

  void add(int32_t a, int32_t b, float& result) {
    constexpr float max_quotient = 0x1p20f;
    constexpr double near_tie = 0x1p-10;
    const float scaled_a = static_cast<float>(a) * sum_.a_scale;
    const float scaled_b = static_cast<float>(b) * sum_.b_scale;
    const float quotient = (scaled_a + scaled_b) / sum_.divisor;
    if (!(std::abs(quotient) <= max_quotient)) is_usable_ = false;
    if (!is_usable_) return;
    result = std::clamp(rounded(quotient), lo_, hi_);
    const double to_tie = std::abs(quotient - std::floor(quotient) - 0.5);
    if (to_tie < near_tie) near_ties_.push_back({a, b, result});
  }

  /// With the product of b.
  float result(const SumFactors& factors, int32_t a, float scaled_b) const {
    const double exact = static_cast<double>(factors.a) * a + scaled_b;
    return std::clamp(rounded(static_cast<float>(exact)), lo_, hi_);
  }

  bool holds_for_all(const SumFactors& factors) const {
    size_t at = 0;
    for (int32_t a = sum_.a.lo; a <= sum_.a.hi; ++a) {
      for (int32_t b = sum_.b.lo; b <= sum_.b.hi; ++b) {
        const float scaled_b = static_cast<float>(b) * factors.b;
        if (result(factors, a, scaled_b) != results_[at++]) return false;
      }
    }
    return true;
  }

  const ScaledSum sum_;
  const float lo_;
  const float hi_;
  bool is_usable_ = true;
  std::vector<float> results_;
  std::vector<Pair> near_ties_;  // other factors change these first
};

bool is_scale(float number) { return number >= 0x1p-60f && number <= 0x1p60f; }

float moved(float number, int units) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(number) + static_cast<uint32_t>(units));
}

// ---- Finding.

std::optional<float> number(const FunctionFacts& facts, ValueId value) {
  if (facts.function.type_of(value).element != ElementType::f32) return std::nullopt;
  const std::optional<uint64_t> bits = facts.immediate(value);
  if (!bits) return std::nullopt;
  return std::bit_cast<float>(static_cast<uint32_t>(*bits));
}

/// The range of an integer.
std::optional<SmallRange> range_of(const FunctionFacts& facts, ValueId value) {
  constexpr int max_bits = 8;
  const ElementType element = facts.function.type_of(value).element;
  if (is_integer(element) && bits_of(element) <= max_bits) {
    return range_of_type(element);
  }
  const Operation* operation = facts.defining[value];
  if (element != ElementType::i32 || operation == nullptr) return std::nullopt;
  if (operation->op == OpKind::convert) {
    const ElementType from = facts.function.type_of(operation->operands[0]).element;
    const bool widens = is_integer(from) && bits_of(from) <= max_bits;
    return widens ? range_of(facts, operation->operands[0]) : std::nullopt;
  }
  return clamped_range(*operation);
}

/// The range of an integer that is converted to f32 and multiplied by a number.
struct Scaled {
  const Operation* multiplication;
  SmallRange range;
  float scale;
};

std::optional<Scaled> scaled_integer(const FunctionFacts& facts, ValueId value) {
  const Operation* product = facts.computed_by(value, OpKind::mul);
  if (product == nullptr) return std::nullopt;
  const std::optional<float> scale = number(facts, product->operands[1]);
  const Operation* conversion = facts.computed_by(product->operands[0], OpKind::convert);
  if (!scale || !is_scale(*scale) || conversion == nullptr) return std::nullopt;
  const std::optional<SmallRange> range = range_of(facts, conversion->operands[0]);
  if (!range) return std::nullopt;
  return Scaled{product, *range, *scale};
}

}  // namespace

std::optional<SumFactors> sum_factors(const ScaledSum& sum) {
  if (!has_small_integers(sum.a) || !has_small_integers(sum.b)) return std::nullopt;
  if (count_of(sum.a) * count_of(sum.b) > max_pairs) return std::nullopt;
  const SumFactors nearest = {sum.a_scale / sum.divisor, sum.b_scale / sum.divisor};
  const float ratio = nearest.a / nearest.b;
  if (!is_scale(nearest.a) || !is_scale(nearest.b) || ratio > max_ratio || ratio < 1 / max_ratio) {
    return std::nullopt;
  }
  const SumTable table(sum);
  if (!table.is_usable()) return std::nullopt;
  for (int distance = 0; distance <= max_ulps; ++distance) {
    for (int a = -distance; a <= distance; ++a) {
      for (int b = -distance; b <= distance; ++b) {
        if (std::max(std::abs(a), std::abs(b)) != distance) continue;
        const SumFactors factors = {moved(nearest.a, a), moved(nearest.b, b)};
        if (table.holds(factors)) return factors;
      }
    }
  }
  return std::nullopt;
}

std::optional<ScaledSumValues> find_scaled_sum(const FunctionFacts& facts,
                                               const Operation& division) {
  const std::optional<SmallRange> result = facts.rounded.nearest_range(division.results[0]);
  const Operation* addition = facts.computed_by(division.operands[0], OpKind::add);
  const std::optional<float> divisor = number(facts, division.operands[1]);
  if (!result || addition == nullptr || !divisor || !is_scale(*divisor)) return std::nullopt;
  const auto a = scaled_integer(facts, addition->operands[0]);
  const auto b = scaled_integer(facts, addition->operands[1]);
  if (!a || !b) return std::nullopt;
  return ScaledSumValues{{a->range, b->range, a->scale, b->scale, *divisor, *result},
                         addition,
                         {a->multiplication, b->multiplication}};
}

LaneId lower_scaled_sum(LaneBuilder& builder, LaneId a, LaneId b, const SumFactors& factors) {
  const auto factor = [&](float value) { return builder.float_constant(LaneType::f32, value); };
  const LaneId product = builder.float_mul(builder.unconverted_integer(b), factor(factors.b));
  return builder.float_sub_product(product, builder.unconverted_integer(a), factor(-factors.a));
}

}  // namespace castor::jit
