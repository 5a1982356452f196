// SPDX-License-Identifier: Apache-2.0
#include "jit/lower/scaled_products.hpp"

#include "ir/types/convert_options.hpp"

namespace castor::jit {

namespace {

bool is_small_float(ElementType type) { return is_float(type) && bits_of(type) <= 8; }

/// The source that has the value's elements as `element`; -1 where there is none.
int32_t source_of(const Nest& nest, ValueId value, ElementType element) {
  for (size_t k = 0; k < nest.inputs.size(); ++k) {
    const bool is_it =
        nest.inputs[k].value == value && nest.inputs[k].accumulator < 0 && !nest.inputs[k].tap;
    if (is_it && nest.program.sources[k].element == element) return static_cast<int32_t>(k);
  }
  return -1;
}

/// What a value is in f32, exactly.
ValueId widened(const FunctionFacts& facts, ValueId value) {
  const Operation* widens = facts.computed_by(value, OpKind::convert);
  if (widens == nullptr) return no_value;
  const ElementType from = facts.function.type_of(widens->operands[0]).element;
  const ConvertOptions options =
      canonical_options(from, ElementType::f32, convert_options(*widens));
  return options == ConvertOptions{} ? widens->operands[0] : no_value;
}

/// A nest's result, where that is a conversion of an f32 product or quotient and nothing else.
struct RoundedResult {
  const Operation* rounds = nullptr;
  const Operation* computes = nullptr;
};
RoundedResult rounded_result(const FunctionFacts& facts, const Nest& nest, OpKind op) {
  if (nest.inputs.size() != 2 || nest.outputs.size() != 1) return {};
  const Operation* rounds = facts.defining[nest.space];
  if (rounds == nullptr || rounds->op != OpKind::convert) return {};
  const ValueId computed = rounds->operands[0];
  const Operation* computes = facts.computed_by(computed, op);
  const bool is_f32 = facts.function.type_of(computed).element == ElementType::f32;
  return computes != nullptr && is_f32 ? RoundedResult{rounds, computes} : RoundedResult{};
}

/// Whether a nest's result of that type rounds to nearest even and saturates. The lane program
/// converts NaNs.
bool encodes(const FunctionFacts& facts, const Nest& nest, const Operation& rounds,
             ElementType to) {
  const bool is_stored_so = nest.program.sinks[0].element == to;
  if (!is_stored_so || facts.function.type_of(nest.space).element != to) return false;
  ConvertOptions options = convert_options(rounds);
  options.nan = {};
  return options == ConvertOptions{.overflow = Overflow::saturate};
}

/// The sources of a product: elements of a type that `is_element` accepts, widened, and f32.
struct Factors {
  int32_t elements = -1;
  int32_t scales = -1;
  ValueId scale_value = no_value;
};
template <class IsElement>
Factors factors_of(const FunctionFacts& facts, const Nest& nest, const Operation& multiplies,
                   const IsElement& is_element) {
  for (const size_t factor : {size_t{0}, size_t{1}}) {
    const ValueId elements = widened(facts, multiplies.operands[factor]);
    const ValueId scales = multiplies.operands[1 - factor];
    if (elements == no_value) continue;
    const ElementType type = facts.function.type_of(elements).element;
    const Factors found = {source_of(nest, elements, type),
                           source_of(nest, scales, ElementType::f32), scales};
    if (is_element(type) && found.elements >= 0 && found.scales >= 0) return found;
  }
  return {};
}

bool has_power_codes(ElementType type) {
  return type == ElementType::f8e4m3 || type == ElementType::f8e5m2 || type == ElementType::f4e2m1;
}

}  // namespace

ScaledCodes find_scaled_codes(const FunctionFacts& facts, const Nest& nest) {
  const RoundedResult product = rounded_result(facts, nest, OpKind::mul);
  if (product.rounds == nullptr || nest.program.sinks[0].element != ElementType::bf16) return {};
  if (facts.function.type_of(nest.space).element != ElementType::bf16) return {};
  if (convert_options(*product.rounds) != ConvertOptions{}) return {};
  const Factors factors = factors_of(facts, nest, *product.computes, is_small_float);
  if (factors.elements < 0) return {};
  return {factors.elements, factors.scales,
          facts.significands.is_power(factors.scale_value) ? 1 : 0};
}

ScaledFloats find_scaled_floats(const FunctionFacts& facts, const Nest& nest) {
  const RoundedResult product = rounded_result(facts, nest, OpKind::mul);
  if (product.rounds == nullptr) return {};
  const ElementType to = nest.program.sinks[0].element;
  if (!has_power_codes(to) || !encodes(facts, nest, *product.rounds, to)) return {};
  const Factors factors = factors_of(facts, nest, *product.computes,
                                     [](ElementType type) { return type == ElementType::bf16; });
  if (factors.elements < 0 || !facts.significands.is_power(factors.scale_value)) return {};
  return {factors.elements, factors.scales};
}

DividedFloats find_divided_floats(const FunctionFacts& facts, const Nest& nest) {
  const RoundedResult quotient = rounded_result(facts, nest, OpKind::div);
  if (quotient.rounds == nullptr) return {};
  if (!encodes(facts, nest, *quotient.rounds, ElementType::f4e2m1)) return {};
  const ValueId dividend = widened(facts, quotient.computes->operands[0]);
  if (dividend == no_value) return {};
  const DividedFloats found = {source_of(nest, dividend, ElementType::bf16),
                               source_of(nest, quotient.computes->operands[1], ElementType::f32)};
  return found.floats >= 0 && found.divisors >= 0 ? found : DividedFloats{};
}

}  // namespace castor::jit
