// SPDX-License-Identifier: Apache-2.0
#include "jit/lower/scaled_products.hpp"

#include "ir/types/convert_options.hpp"

namespace castor::jit {

namespace {

bool is_small_float(ElementType type) { return is_float(type) && bits_of(type) <= 8; }

/// The operation that gives a value, where it is that one and the nest computes it.
const Operation* defined_by(const FunctionFacts& facts, ValueId value, OpKind op) {
  const Operation* operation = facts.defining[value];
  const bool is_it = operation != nullptr && operation->op == op && !facts.in_memory[value];
  return is_it ? operation : nullptr;
}

/// The source that has the value's elements as `element`; -1 where there is none.
int32_t source_of(const Nest& nest, ValueId value, ElementType element) {
  for (size_t k = 0; k < nest.inputs.size(); ++k) {
    const bool is_it = nest.inputs[k].value == value && nest.inputs[k].accumulator < 0;
    if (is_it && nest.program.sources[k].element == element) return static_cast<int32_t>(k);
  }
  return -1;
}

/// What a value is in f32, exactly.
ValueId widened(const FunctionFacts& facts, ValueId value) {
  const Operation* widens = defined_by(facts, value, OpKind::convert);
  if (widens == nullptr) return no_value;
  const ElementType from = facts.function.type_of(widens->operands[0]).element;
  const ConvertOptions options =
      canonical_options(from, ElementType::f32, convert_options(*widens));
  return options == ConvertOptions{} ? widens->operands[0] : no_value;
}

/// A nest's result, where that is a conversion of an f32 product and nothing else.
struct RoundedProduct {
  const Operation* rounds = nullptr;
  const Operation* multiplies = nullptr;
};
RoundedProduct rounded_product(const FunctionFacts& facts, const Nest& nest) {
  if (nest.inputs.size() != 2 || nest.outputs.size() != 1) return {};
  const Operation* rounds = facts.defining[nest.space];
  if (rounds == nullptr || rounds->op != OpKind::convert) return {};
  const ValueId product = rounds->operands[0];
  const Operation* multiplies = defined_by(facts, product, OpKind::mul);
  const bool is_f32 = facts.function.type_of(product).element == ElementType::f32;
  return multiplies != nullptr && is_f32 ? RoundedProduct{rounds, multiplies} : RoundedProduct{};
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
  const RoundedProduct product = rounded_product(facts, nest);
  if (product.rounds == nullptr || nest.program.sinks[0].element != ElementType::bf16) return {};
  if (facts.function.type_of(nest.space).element != ElementType::bf16) return {};
  if (convert_options(*product.rounds) != ConvertOptions{}) return {};
  const Factors factors = factors_of(facts, nest, *product.multiplies, is_small_float);
  if (factors.elements < 0) return {};
  return {factors.elements, factors.scales,
          facts.significands.is_power(factors.scale_value) ? 1 : 0};
}

ScaledFloats find_scaled_floats(const FunctionFacts& facts, const Nest& nest) {
  const RoundedProduct product = rounded_product(facts, nest);
  const ElementType to =
      nest.program.sinks.empty() ? ElementType::f32 : nest.program.sinks[0].element;
  if (product.rounds == nullptr || !has_power_codes(to)) return {};
  if (facts.function.type_of(nest.space).element != to) return {};
  ConvertOptions options = convert_options(*product.rounds);
  options.nan = {};  // the lane program converts NaNs
  if (options != ConvertOptions{.overflow = Overflow::saturate}) return {};
  const Factors factors = factors_of(facts, nest, *product.multiplies,
                                     [](ElementType type) { return type == ElementType::bf16; });
  if (factors.elements < 0 || !facts.significands.is_power(factors.scale_value)) return {};
  return {factors.elements, factors.scales};
}

}  // namespace castor::jit
