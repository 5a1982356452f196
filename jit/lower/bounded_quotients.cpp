// SPDX-License-Identifier: Apache-2.0
#include "jit/lower/bounded_quotients.hpp"

#include <algorithm>
#include <bit>
#include <optional>

#include "ir/shape/broadcast.hpp"
#include "ir/shape/reduction.hpp"
#include "ir/types/convert_options.hpp"
#include "ir/types/elements.hpp"
#include "jit/lane/quotient_facts.hpp"

namespace castor::jit {

namespace {

/// What tells the range that a division's dividend is in.
class Range {
 public:
  /// `scaling`: divides or multiplies the dividend.
  Range(const Function& function, const std::vector<const Operation*>& defining,
        const Operation& scaling)
      : function_(function),
        defining_(defining),
        scaling_(scaling),
        dividend_(before_widening(scaling.operands[0])) {}

  bool bounds_quotient() const { return is_fraction_of_range(scaling_.operands[1]); }

  bool bounds_product() const {
    const Operation* reciprocal = defined_by(scaling_.operands[1], OpKind::div);
    return reciprocal != nullptr && number(reciprocal->operands[0]) == 1.0f &&
           is_fraction_of_range(reciprocal->operands[1]);
  }

 private:
  bool is_fraction_of_range(ValueId divisor) const {
    // Roundings of the fraction and its reciprocal make the quotient larger by less than this
    // factor.
    constexpr double more = 1 + 0x1p-20;
    const Operation* fraction = defined_by(divisor, OpKind::div);
    if (fraction == nullptr) return false;
    const std::optional<float> parts = number(fraction->operands[1]);
    const bool fits = parts && *parts >= 1 && *parts * more <= max_bounded_quotient;
    return fits && (is_magnitude(fraction->operands[0]) || is_difference(fraction->operands[0]));
  }

  const Operation* defined_by(ValueId value, OpKind op) const {
    const Operation* operation = defining_[value];
    return operation != nullptr && operation->op == op ? operation : nullptr;
  }

  /// The value that a conversion widens, or the value itself.
  ValueId before_widening(ValueId value) const {
    const Operation* conversion = defined_by(value, OpKind::convert);
    if (conversion == nullptr || !(convert_options(*conversion) == ConvertOptions{})) return value;
    const ElementType from = function_.type_of(conversion->operands[0]).element;
    const bool widens = from == ElementType::f16 || from == ElementType::bf16;
    return widens ? conversion->operands[0] : value;
  }

  /// A constant of f32 with one element.
  std::optional<float> number(ValueId value) const {
    const Operation* constant = defined_by(value, OpKind::constant);
    const bool is_f32 = function_.type_of(value).element == ElementType::f32;
    if (constant == nullptr || !is_f32 || constant->data->bytes.size() != sizeof(float)) {
      return std::nullopt;
    }
    const uint64_t bits = read_element(constant->data->bytes.data(), ElementType::f32, 0);
    return std::bit_cast<float>(static_cast<uint32_t>(bits));
  }

  /// Whether a value is a reduction of the dividend, and each element meets its own result: there
  /// is one, or results and elements are aligned axis by axis.
  bool reduces_dividend(ValueId value, OpKind op) const {
    const Operation* reduction = defined_by(before_widening(value), op);
    if (reduction == nullptr || reduction->operands[0] != dividend_) return false;
    const auto rank = static_cast<int>(function_.type_of(dividend_).shape.size());
    const std::vector<bool> reduced = reduced_axes(*reduction, rank);
    if (std::ranges::all_of(reduced, [](bool is_reduced) { return is_reduced; })) return true;
    const Result<ReductionOptions> options = reduction_options(*reduction);
    const Result<BroadcastRule> rule = broadcast_rule(scaling_);
    return options && options->keep_dims && rule && rule->mode == BroadcastMode::numpy;
  }

  bool is_magnitude(ValueId value) const { return reduces_dividend(value, OpKind::reduce_max_abs); }

  /// max(the largest, number) - min(the lowest, number): numbers on either side of 0.
  bool is_difference(ValueId value) const {
    const Operation* difference = defined_by(value, OpKind::sub);
    if (difference == nullptr) return false;
    const Operation* highest = defined_by(difference->operands[0], OpKind::max);
    const Operation* lowest = defined_by(difference->operands[1], OpKind::min);
    if (highest == nullptr || lowest == nullptr) return false;
    const std::optional<float> above = number(highest->operands[1]);
    const std::optional<float> below = number(lowest->operands[1]);
    return above && below && *above >= 0 && *below <= 0 &&
           reduces_dividend(highest->operands[0], OpKind::reduce_max) &&
           reduces_dividend(lowest->operands[0], OpKind::reduce_min);
  }

  const Function& function_;
  const std::vector<const Operation*>& defining_;
  const Operation& scaling_;
  const ValueId dividend_;
};

}  // namespace

bool has_bounded_quotient(const Function& function, const std::vector<const Operation*>& defining,
                          const Operation& division) {
  return function.type_of(division.results[0]).element == ElementType::f32 &&
         Range(function, defining, division).bounds_quotient();
}

bool has_bounded_product(const Function& function, const std::vector<const Operation*>& defining,
                         const Operation& multiplication) {
  return function.type_of(multiplication.results[0]).element == ElementType::f32 &&
         Range(function, defining, multiplication).bounds_product();
}

}  // namespace castor::jit
