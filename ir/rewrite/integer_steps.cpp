// SPDX-License-Identifier: Apache-2.0
#include "ir/rewrite/integer_steps.hpp"

#include <algorithm>
#include <cmath>

#include "ir/types/convert_options.hpp"
#include "ir/types/elements.hpp"

namespace castor::detail {

namespace {

bool surely_equal(const Shape& a, const Shape& b) {
  return a == b && std::ranges::all_of(a, [](const Dim& dim) { return dim != Dim::any(); });
}

/// The definition of a value, where it is that op; else null.
const Operation* find(const Definitions& definitions, ValueId value, OpKind op) {
  const Operation* operation = value == no_value ? nullptr : definitions[value];
  return operation != nullptr && operation->op == op ? operation : nullptr;
}

/// Whether a conversion is one of integers that saturates.
bool saturates_integers(const Function& function, const Operation& conversion) {
  return is_integer(function.type_of(conversion.operands[0]).element) &&
         is_integer(function.type_of(conversion.results[0]).element) &&
         convert_options(conversion).overflow == Overflow::saturate;
}

bool is_zero(const Definitions& definitions, ValueId value) {
  const Operation* constant = find(definitions, value, OpKind::constant);
  return constant != nullptr && std::ranges::all_of(constant->data->bytes, [](std::byte byte) {
           return byte == std::byte{0};
         });
}

/// The number of a constant of i32 with one element.
std::optional<int32_t> single_number(const Function& function, const Definitions& definitions,
                                     ValueId value) {
  const Operation* constant = find(definitions, value, OpKind::constant);
  if (constant == nullptr || function.type_of(value).element != ElementType::i32) {
    return std::nullopt;
  }
  const std::vector<std::byte>& bytes = constant->data->bytes;
  if (bytes.size() != sizeof(int32_t)) return std::nullopt;
  return static_cast<int32_t>(
      static_cast<uint32_t>(read_element(bytes.data(), ElementType::i32, 0)));
}

/// The bounds of a clamp; infinite where there is none.
struct Bounds {
  double lo;
  double hi;
};

Bounds bounds_of(const Operation& clamp) {
  return {find_number(clamp.attributes, "lo").value_or(-HUGE_VAL),
          find_number(clamp.attributes, "hi").value_or(HUGE_VAL)};
}

Bounds bounds_of(ElementType type) {
  return {static_cast<double>(integer_min(type)), static_cast<double>(integer_max(type))};
}

/// A sum of a clamp and a number; `clamp` is null where the value is none.
struct OffsetClamp {
  const Operation* clamp = nullptr;
  int32_t offset = 0;
};

OffsetClamp offset_clamp(const Function& function, const Definitions& definitions, ValueId value) {
  const Operation* sum = find(definitions, value, OpKind::add);
  if (sum == nullptr) return {};
  for (const size_t first : {size_t{0}, size_t{1}}) {
    const Operation* clamp = find(definitions, sum->operands[first], OpKind::clamp);
    const auto offset = single_number(function, definitions, sum->operands[1 - first]);
    if (clamp != nullptr && offset) return {clamp, *offset};
  }
  return {};
}

}  // namespace

ValueId operand_beside_zero(const Function& function, const Definitions& definitions,
                            const Operation& operation) {
  const TensorType& type = function.type_of(operation.results[0]);
  const bool is_sum = operation.op == OpKind::add;
  if ((!is_sum && operation.op != OpKind::sub) || !is_integer(type.element)) return no_value;
  for (const size_t zero : {size_t{1}, size_t{0}}) {
    if (zero == 0 && !is_sum) break;
    const ValueId other = operation.operands[1 - zero];
    if (is_zero(definitions, operation.operands[zero]) &&
        surely_equal(function.type_of(other).shape, type.shape)) {
      return other;
    }
  }
  return no_value;
}

ValueId operand_of_needless_clamp(const Function& function, const Definitions& definitions,
                                  const Operation& conversion) {
  const ElementType type = function.type_of(conversion.results[0]).element;
  const Operation* clamp = find(definitions, conversion.operands[0], OpKind::clamp);
  if (clamp == nullptr || !saturates_integers(function, conversion)) return no_value;
  const Bounds bounds = bounds_of(*clamp);
  const Bounds of_type = bounds_of(type);
  const bool is_needless = bounds.lo <= of_type.lo && bounds.hi >= of_type.hi;
  return is_needless ? clamp->operands[0] : no_value;
}

std::optional<Operation> clamp_of_offsets(const Function& function, const Definitions& definitions,
                                          const Operation& subtraction) {
  const TensorType& type = function.type_of(subtraction.results[0]);
  if (subtraction.op != OpKind::sub || type.element != ElementType::i32) return std::nullopt;
  const auto subtracted = single_number(function, definitions, subtraction.operands[1]);
  const Operation* widened = find(definitions, subtraction.operands[0], OpKind::convert);
  if (!subtracted || widened == nullptr) return std::nullopt;
  const ElementType narrow = function.type_of(widened->operands[0]).element;
  const Operation* narrowed = find(definitions, widened->operands[0], OpKind::convert);
  if (narrowed == nullptr || !saturates_integers(function, *narrowed) || bits_of(narrow) > 16) {
    return std::nullopt;
  }
  const OffsetClamp sum = offset_clamp(function, definitions, narrowed->operands[0]);
  if (sum.clamp == nullptr || sum.offset != *subtracted) return std::nullopt;
  const TensorType& clamped = function.type_of(sum.clamp->results[0]);
  if (clamped.element != ElementType::i32 || !surely_equal(clamped.shape, type.shape)) {
    return std::nullopt;
  }
  constexpr double small = 0x1p20;  // sums of such numbers do not wrap
  const Bounds bounds = bounds_of(*sum.clamp);
  const auto is_small = [](double bound) { return std::abs(bound) <= small; };
  if (!is_small(bounds.lo) || !is_small(bounds.hi) || !is_small(sum.offset)) return std::nullopt;
  const Bounds of_type = bounds_of(narrow);
  // The bounds of a clamp apply one after the other: what is below the type's becomes its least.
  const auto saturated = [&](double bound) {
    return std::clamp(bound, of_type.lo - sum.offset, of_type.hi - sum.offset);
  };
  return Operation{.op = OpKind::clamp,
                   .operands = {sum.clamp->operands[0]},
                   .attributes = {{"lo", {saturated(bounds.lo)}}, {"hi", {saturated(bounds.hi)}}},
                   .results = subtraction.results,
                   .where = subtraction.where};
}

}  // namespace castor::detail
