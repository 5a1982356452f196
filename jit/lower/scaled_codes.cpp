// SPDX-License-Identifier: Apache-2.0
#include "jit/lower/scaled_codes.hpp"

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

/// The small floats that a value is, as f32.
ValueId widened_codes(const FunctionFacts& facts, ValueId value) {
  const Operation* widens = defined_by(facts, value, OpKind::convert);
  if (widens == nullptr) return no_value;
  const ElementType from = facts.function.type_of(widens->operands[0]).element;
  const ConvertOptions options =
      canonical_options(from, ElementType::f32, convert_options(*widens));
  return is_small_float(from) && options == ConvertOptions{} ? widens->operands[0] : no_value;
}

}  // namespace

ScaledCodes find_scaled_codes(const FunctionFacts& facts, const Nest& nest) {
  const Function& function = facts.function;
  if (nest.inputs.size() != 2 || nest.outputs.size() != 1) return {};
  if (nest.program.sinks[0].element != ElementType::bf16) return {};
  const Operation* rounds = facts.defining[nest.space];
  if (rounds == nullptr || rounds->op != OpKind::convert) return {};
  if (function.type_of(nest.space).element != ElementType::bf16) return {};
  if (convert_options(*rounds) != ConvertOptions{}) return {};
  const ValueId product = rounds->operands[0];
  const Operation* multiplies = defined_by(facts, product, OpKind::mul);
  if (multiplies == nullptr || function.type_of(product).element != ElementType::f32) return {};
  for (const size_t factor : {size_t{0}, size_t{1}}) {
    const ValueId codes = widened_codes(facts, multiplies->operands[factor]);
    const ValueId scales = multiplies->operands[1 - factor];
    if (codes == no_value) continue;
    const ScaledCodes found = {source_of(nest, codes, function.type_of(codes).element),
                               source_of(nest, scales, ElementType::f32),
                               facts.significands.is_power(scales) ? 1 : 0};
    if (found.codes >= 0 && found.scales >= 0) return found;
  }
  return {};
}

}  // namespace castor::jit
