// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/query/cases.hpp"

#include <algorithm>

namespace castor::prove {
namespace {

/// Exponents from `min` to `max`.
struct Window {
  int min;
  int max;
};

/// Below, numbers become what 0 does, or the least number, and above they overflow.
Window window_of(ElementType to, bool saturates) {
  if (is_whole(to)) return {-3, saturates ? bits_of(to) + 2 : 67};
  if (kind_of(to) == ElementKind::power_of_two) return {-130, 129};
  if (kind_of(to) == ElementKind::codebook) return {-8, 3};
  const castor::FloatFormat& format = info(to).format;
  return {-format.bias - format.mantissa_bits - 2, (1 << format.exponent_bits) - format.bias + 2};
}

bool for_each_exponent(ElementType type, ElementType to, bool saturates,
                       const std::function<bool(const Case&)>& visit) {
  const castor::FloatFormat& format = info(type).format;
  const Window window = window_of(to, saturates);
  const int last_field = (1 << format.exponent_bits) - 1;
  const int first = std::clamp(window.min + format.bias, 1, last_field);
  const int last = std::clamp(window.max + format.bias, first, last_field - 1);
  for (int upper = 2 * first; upper <= 2 * last + 1; ++upper) {
    Terms terms;
    const Term fraction = terms.input("fraction", format.mantissa_bits);
    const Term exponent = terms.constant(format.exponent_bits, static_cast<Bits>(upper / 2));
    const Term sign = terms.constant(1, static_cast<Bits>(upper % 2));
    const Term bits = concat(concat(sign, exponent), fraction);
    if (!visit({bits, terms.truth(true)})) return false;
  }
  Terms terms;
  const Term bits = terms.input("bits", bits_of(type));
  const Term field = extract(bits, format.mantissa_bits, format.exponent_bits);
  const Term is_below = less_unsigned(field, static_cast<Bits>(first));
  const Term is_above = less_unsigned(like(field, static_cast<Bits>(last)), field);
  return visit({bits, is_below}) && visit({bits, is_above});
}

/// `lead` is the value of the leading bits: all 0, or all 1.
bool for_each_lead(int bits, bool lead, const std::function<bool(const Case&)>& visit) {
  for (int count = 1; count <= bits; ++count) {
    Terms terms;
    Term value = terms.constant(count, lead ? ~Bits{0} : 0);
    if (count < bits) value = concat(value, terms.constant(1, lead ? 0 : 1));
    const int free = bits - value.width();
    if (free > 0) value = concat(value, terms.input("low", free));
    if (!visit({value, terms.truth(true)})) return false;
  }
  return true;
}

}  // namespace

bool has_cases(ElementType type) { return is_float(type) || is_integer(type); }

bool for_each_case(ElementType type, ElementType to, bool saturates,
                   const std::function<bool(const Case&)>& visit) {
  if (is_float(type)) return for_each_exponent(type, to, saturates, visit);
  return for_each_lead(bits_of(type), false, visit) && for_each_lead(bits_of(type), true, visit);
}

}  // namespace castor::prove
