// SPDX-License-Identifier: Apache-2.0
#include "jit/lower/significands.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "ir/types/elements.hpp"

namespace castor::jit {

namespace {

/// All that a type can hold.
Significand of_type(ElementType type) {
  if (!is_float(type)) return {bits_of(type), 0};
  const FloatFormat& format = info(type).format;
  return {format.mantissa_bits + 1, 1 - format.bias - format.mantissa_bits};
}

/// Powers of two from the least one on.
constexpr Significand power_significand = {1, -127};

/// The largest exponent of any type's numbers.
constexpr int largest_exponent = 1023;

/// That of a finite number.
Significand of_number(float number) {
  constexpr int digits = std::numeric_limits<float>::digits;
  if (number == 0) return {1, 0};
  int exponent = 0;
  const auto integer =
      static_cast<uint32_t>(std::ldexp(std::frexp(std::fabs(number), &exponent), digits));
  const int zeros = std::countr_zero(integer);
  return {digits - zeros, exponent - digits + zeros};
}

/// That of an f32 constant of one element, else of its type.
Significand of_constant(const Operation& operation, ElementType type) {
  const bool is_single = type == ElementType::f32 && operation.data->bytes.size() == sizeof(float);
  if (!is_single) return of_type(type);
  const uint64_t bits = read_element(operation.data->bytes.data(), type, 0);
  const auto number = std::bit_cast<float>(static_cast<uint32_t>(bits));
  return std::isfinite(number) ? of_number(number) : of_type(type);
}

/// A power of two does not lengthen what it is multiplied by.
int bits_of_product(const Significand& a, const Significand& b) {
  if (a.bits == 1) return b.bits;
  return b.bits == 1 ? a.bits : a.bits + b.bits;
}

Significand of_element(ElementType type) {
  return type == ElementType::f8e8m0 ? power_significand : of_type(type);
}

bool is_known(ElementType type) {
  return is_float(type) || is_integer(type) || type == ElementType::f8e8m0;
}

/// Whether a conversion may give the largest number of a float type for one that is beyond it.
bool may_saturate(ElementType from, ElementType to, const ConvertOptions& options) {
  const bool gives_infinity = has_infinities(to) && options.overflow == Overflow::by_type;
  const bool holds_range = from == to || (is_float(from) && info(to).format.exponent_bits >
                                                                info(from).format.exponent_bits);
  return is_float(to) && !gives_infinity && !holds_range;
}

bool holds(ElementType type, const Significand& number) {
  const Significand all = of_type(type);
  return is_float(type) && number.bits <= all.bits && number.last_place >= all.last_place;
}

}  // namespace

Significands::Significands(const Function& function, std::span<const ElementType> carried) {
  for (const ElementType type : carried) significands_.push_back(of_element(type));
  for (const Operation& operation : function.operations) {
    if (operation.results.size() != 1) continue;
    const ValueId result = operation.results[0];
    const Significand computed = of_result(operation, carried);
    // Numbers that are rounded below the normal ones get no longer by it.
    const ElementType type = carried[result];
    if (is_float(type) && computed.bits <= of_type(type).bits) significands_[result] = computed;
  }
}

bool Significands::fits(ValueId value, ElementType type) const {
  return holds(type, significands_[value]);
}

bool Significands::fits_normal(ValueId value, ElementType type) const {
  return is_float(type) && significands_[value].bits <= of_type(type).bits;
}

/// What the result is before it is rounded, where that is known.
Significand Significands::of_result(const Operation& operation,
                                    std::span<const ElementType> carried) const {
  const ElementType type = carried[operation.results[0]];
  const Significand own = of_element(type);
  const auto operand = [&](size_t i) { return significands_[operation.operands[i]]; };
  switch (operation.op) {
    case OpKind::convert: {
      const ElementType from = carried[operation.operands[0]];
      const bool is_kept = is_known(from) && !may_saturate(from, type, convert_options(operation));
      return is_kept ? operand(0) : own;
    }
    case OpKind::broadcast:
    case OpKind::reshape: return operand(0);
    case OpKind::constant: return of_constant(operation, type);
    case OpKind::mul:
      return {bits_of_product(operand(0), operand(1)),
              operand(0).last_place + operand(1).last_place};
    case OpKind::div:
      if (operand(1).bits != 1) return own;
      return {operand(0).bits, operand(0).last_place - largest_exponent};
    default: return own;
  }
}

}  // namespace castor::jit
