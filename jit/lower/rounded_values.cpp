// SPDX-License-Identifier: Apache-2.0
#include "jit/lower/rounded_values.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ir/types/convert_options.hpp"

namespace castor::jit {

namespace {

constexpr double max_bound = 0x1p20;

/// A bound of `clamp` that is a small integer.
std::optional<int32_t> small_bound(const Operation& clamp, std::string_view name) {
  const std::optional<double> bound = find_number(clamp.attributes, name);
  const bool is_small = bound && std::abs(*bound) <= max_bound && std::floor(*bound) == *bound;
  return is_small ? std::optional(static_cast<int32_t>(*bound)) : std::nullopt;
}

/// Whether a NaN that an operation of the type computes is one in the type as well.
bool has_f32_nans(ElementType type) { return is_float(type) && bits_of(type) >= 16; }

bool saturates(const ConvertOptions& options) {
  return options.overflow == Overflow::by_type || options.overflow == Overflow::saturate;
}

/// Whether a conversion of a float to an integer does not round down or up, which tells the least
/// numbers of either sign from 0.
bool rounds_small_numbers_to_zero(const ConvertOptions& options) {
  return options.rounding != Rounding::down && options.rounding != Rounding::up;
}

/// Whether the operation converts a float to an integer and saturates.
bool is_saturating_conversion(const Function& function, const Operation& operation) {
  if (operation.op != OpKind::convert) return false;
  const ElementType from = function.type_of(operation.operands[0]).element;
  const ElementType to = function.type_of(operation.results[0]).element;
  return is_float(from) && is_integer(to) &&
         saturates(canonical_options(from, to, convert_options(operation)));
}

/// Whether the operation converts f32 to a small float of few binades, to nearest.
bool is_encoding(const Function& function, const Operation& operation) {
  if (operation.op != OpKind::convert) return false;
  const ElementType from = function.type_of(operation.operands[0]).element;
  const ElementType to = function.type_of(operation.results[0]).element;
  const bool is_limited = kind_of(to) == ElementKind::floating && bits_of(to) <= 8;
  if (from != ElementType::f32 || !is_limited) return false;
  const ConvertOptions options = canonical_options(from, to, convert_options(operation));
  return options.rounding == Rounding::by_type &&
         (options.overflow == Overflow::by_type || options.overflow == Overflow::saturate);
}

constexpr int max_bits = 16;  // integers are saturated to 16 at most

/// Whether a constant of i32 has but numbers from `least` to the largest of 16 bits.
bool holds_from(const Operation& constant, int32_t least) {
  constexpr int32_t largest = (1 << max_bits) - 1;
  const std::vector<std::byte>& bytes = constant.data->bytes;
  for (size_t at = 0; at + sizeof(int32_t) <= bytes.size(); at += sizeof(int32_t)) {
    int32_t number;
    std::memcpy(&number, bytes.data() + at, sizeof number);
    if (number < least || number > largest) return false;
  }
  return true;
}

/// By value: whether it is an i32 whose magnitude 16 bits hold.
struct SmallIntegers {
  explicit SmallIntegers(const Function& function)
      : any(function.values.size()), not_negative(function.values.size()) {
    for (const Operation& operation : function.operations) {
      const ValueId result = operation.results[0];
      if (function.type_of(result).element != ElementType::i32) continue;
      if (operation.op == OpKind::constant) {
        any[result] = holds_from(operation, 1 - (1 << max_bits));
        not_negative[result] = holds_from(operation, 0);
      }
      if (operation.op == OpKind::convert) {
        const ElementType from = function.type_of(operation.operands[0]).element;
        any[result] = is_integer(from) && bits_of(from) <= max_bits;
        not_negative[result] = any[result] && is_unsigned_integer(from);
      }
    }
  }

  std::vector<bool> any;
  std::vector<bool> not_negative;
};

/// By value: whether all that reads an i32 saturates it to at most 16 bits, or adds a small number
/// and saturates the sum.
class SaturatedValues {
 public:
  explicit SaturatedValues(const Function& function)
      : with_any(function.values.size(), true),
        with_not_negative(function.values.size(), true),
        narrowed_(function.values.size(), true) {
    const SmallIntegers small(function);
    for (ValueId result : function.results) set(result, false, false, false);
    for (size_t i = function.operations.size(); i-- > 0;) {  // readers first
      const Operation& operation = function.operations[i];
      const bool narrows = saturates_to_16_bits(function, operation);
      const ValueId result = operation.results[0];
      const bool adds = operation.op == OpKind::add && narrowed_[result] &&
                        function.type_of(result).element == ElementType::i32;
      for (size_t at = 0; at < operation.operands.size(); ++at) {
        if (operation.operands[at] == no_value) continue;
        const ValueId other = adds ? operation.operands[1 - at] : no_value;
        set(operation.operands[at], narrows, narrows || (adds && small.any[other]),
            narrows || (adds && small.not_negative[other]));
      }
    }
  }

  std::vector<bool> with_any;
  std::vector<bool> with_not_negative;  ///< what is added, if anything, is not negative

 private:
  static bool saturates_to_16_bits(const Function& function, const Operation& operation) {
    const ElementType to = function.type_of(operation.results[0]).element;
    return operation.op == OpKind::convert && is_integer(to) && bits_of(to) <= max_bits &&
           convert_options(operation).overflow == Overflow::saturate;
  }

  /// What one reader of a value tells.
  void set(ValueId value, bool narrows, bool adds_any, bool adds_not_negative) {
    if (!narrows) narrowed_[value] = false;
    if (!adds_any) with_any[value] = false;
    if (!adds_not_negative) with_not_negative[value] = false;
  }

  std::vector<bool> narrowed_;  // all readers saturate it
};

/// Both ranges and what is between them.
void unite(std::optional<SmallRange>& all, const SmallRange& range) {
  if (!all) all = range;
  all->lo = std::min(all->lo, range.lo);
  all->hi = std::max(all->hi, range.hi);
}

}  // namespace

SmallRange range_of_type(ElementType integer) {
  return {static_cast<int32_t>(integer_min(integer)), static_cast<int32_t>(integer_max(integer))};
}

std::optional<SmallRange> clamped_range(const Operation& operation) {
  if (operation.op != OpKind::clamp) return std::nullopt;
  const std::optional<int32_t> lo = small_bound(operation, "lo");
  const std::optional<int32_t> hi = small_bound(operation, "hi");
  return lo && hi && *lo <= *hi ? std::optional(SmallRange{*lo, *hi}) : std::nullopt;
}

RoundedValues::RoundedValues(const Function& function)
    : ranges_(function.values.size()),
      may_be_least_(function.values.size(), true),
      may_be_beyond_(function.values.size(), true),
      small_(function.values.size(), false),
      encoded_(function.values.size(), false),
      nearest_(function.values.size()) {
  const SaturatedValues saturated(function);
  const size_t values = function.values.size();
  std::vector<bool> is_read(values, false);
  std::vector<bool> has_range(values, true);  // all readers so far clamp it to small numbers
  std::vector<bool> is_small(values, true);   // as far as all readers so far tell
  std::vector<bool> is_nearest(values, true);
  std::vector<bool> is_encoded(values, true);
  for (ValueId result : function.results) {
    has_range[result] = is_small[result] = is_encoded[result] = false;
  }
  for (size_t i = function.operations.size(); i-- > 0;) {  // readers first
    const Operation& operation = function.operations[i];
    const ValueId result = operation.results[0];
    const ElementType element = function.type_of(result).element;
    const std::optional<SmallRange> range = clamped_range(operation);
    const bool saturates = is_saturating_conversion(function, operation);
    const bool is_ranged =
        saturates && element == ElementType::i32 && ranges_[result] && has_range[result];
    if (!is_ranged) ranges_[result].reset();
    const bool rounds = saturates && (is_ranged || bits_of(element) <= 16) &&
                        rounds_small_numbers_to_zero(convert_options(operation));
    const bool encodes = is_encoding(function, operation);
    const bool is_even = rounds && convert_options(operation).rounding == Rounding::nearest_even;
    for (ValueId operand : operation.operands) {
      if (operand == no_value) continue;
      is_read[operand] = true;
      if (!rounds) is_small[operand] = false;
      if (!is_even) is_nearest[operand] = false;
      if (!encodes) is_encoded[operand] = false;
      if (is_even) unite(nearest_[operand], is_ranged ? *ranges_[result] : range_of_type(element));
      if (!saturated.with_not_negative[result]) may_be_least_[operand] = false;
      if (!saturated.with_any[result]) may_be_beyond_[operand] = false;
      if (!range) {
        has_range[operand] = false;
      } else if (has_range[operand]) {
        unite(ranges_[operand], *range);
      }
    }
  }
  for (ValueId value = 0; value < values; ++value) {
    small_[value] =
        is_small[value] && is_read[value] && has_f32_nans(function.type_of(value).element);
    encoded_[value] = is_encoded[value] && is_read[value];
    if (!is_nearest[value]) nearest_[value].reset();
  }
}

}  // namespace castor::jit
