// SPDX-License-Identifier: Apache-2.0
#include "ir/types/convert_options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ir/support/enumeration.hpp"

namespace castor {

namespace {

/// One row of the table of conversions: which options it admits beside `saturate` and
/// `saturate_finite`.
struct Row {
  std::string_view conversion;
  bool wrap;
  bool overflow_nan;
  bool integer_roundings;  ///< the six roundings of float -> integer
  bool e8m0_roundings;     ///< nearest_even, up, down, half_up
  bool nan_zero;
};

constexpr Row row_same = {"to the same type", false, false, false, false, false};
constexpr Row row_to_boolean = {"to boolean", false, false, false, false, false};
constexpr Row row_int_to_int = {"integer to integer", false, false, false, false, false};
constexpr Row row_float_to_int = {"float to integer", true, false, true, false, false};
constexpr Row row_to_float = {"to float", false, false, false, false, false};
constexpr Row row_to_finite = {"to a float without NaN", false, false, false, false, true};
constexpr Row row_to_e8m0 = {"to f8e8m0", false, true, false, true, false};
constexpr Row row_to_nf4 = {"to nf4", false, false, false, false, false};

const Row& row_of(ElementType from, ElementType to) {
  if (from == to) return row_same;
  if (is_boolean(to)) return row_to_boolean;
  if (is_integer(to)) {
    return is_whole(from) ? row_int_to_int : row_float_to_int;
  }
  if (is_float(to) && !has_nans(to)) return row_to_finite;
  if (to == ElementType::f8e8m0) return row_to_e8m0;
  if (to == ElementType::nf4) return row_to_nf4;
  return row_to_float;
}

bool admits(const Row& row, Overflow overflow) {
  switch (overflow) {
    case Overflow::by_type:
    case Overflow::saturate:
    case Overflow::saturate_finite: return true;
    case Overflow::wrap: return row.wrap;
    case Overflow::nan: return row.overflow_nan;
  }
  return false;
}

bool admits(const Row& row, Rounding rounding) {
  switch (rounding) {
    case Rounding::by_type: return true;
    case Rounding::toward_zero:
    case Rounding::nearest_away: return row.integer_roundings;
    case Rounding::nearest_even:
    case Rounding::down:
    case Rounding::up:
    case Rounding::half_up: return row.integer_roundings || row.e8m0_roundings;
  }
  return false;
}

Error refused(std::string_view option, std::string_view value, ElementType from, ElementType to,
              const Row& row, std::string_view admitted) {
  return {ErrorCode::invalid_function,
          fmt::format("convert: {} = {} does not apply to {} -> {} (conversion {}); expected {}",
                      option, value, name_of(from), name_of(to), row.conversion, admitted)};
}

template <class Enum, size_t N>
std::optional<Enum> named(const std::array<std::string_view, N>& names, std::string_view name) {
  const auto at = std::find(names.begin() + 1, names.end(), name);
  if (at == names.end()) return std::nullopt;
  return static_cast<Enum>(at - names.begin());
}

/// Whether no finite number of `from` exceeds those of `to`; both have infinities.
bool holds_range(ElementType to, ElementType from) {
  const FloatFormat& wide = info(to).format;
  const FloatFormat& narrow = info(from).format;
  if (wide.exponent_bits != narrow.exponent_bits) return wide.exponent_bits > narrow.exponent_bits;
  return wide.mantissa_bits >= narrow.mantissa_bits;
}

/// What saturate_finite comes to: itself only where infinities and finite numbers that overflow are
/// told apart.
Overflow plain_saturate_finite(ElementType from, ElementType to) {
  if (!has_infinities(from) || !has_infinities(to)) return Overflow::saturate;
  return holds_range(to, from) ? Overflow::by_type : Overflow::saturate_finite;
}

}  // namespace

std::optional<Overflow> overflow_named(std::string_view name) {
  return named<Overflow>(overflow_names, name);
}
std::optional<Rounding> rounding_named(std::string_view name) {
  return named<Rounding>(rounding_names, name);
}
std::optional<NanMode> nan_mode_named(std::string_view name) {
  return named<NanMode>(nan_mode_names, name);
}

std::string to_string(const ConvertOptions& options) {
  std::string text;
  const auto add = [&](std::string_view name, std::string_view value) {
    if (value.empty()) return;
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", name, value);
  };
  add("overflow", name_in(overflow_names, options.overflow));
  add("rounding", name_in(rounding_names, options.rounding));
  add("nan", name_in(nan_mode_names, options.nan));
  return text;
}

Status check_enumerations(const ConvertOptions& options) {
  Status status = check_enumeration("overflow", options.overflow, overflow_names.size());
  if (status) status = check_enumeration("rounding", options.rounding, rounding_names.size());
  if (status) status = check_enumeration("nan", options.nan, nan_mode_names.size());
  return status;
}

Status check_convert_options(ElementType from, ElementType to, const ConvertOptions& options) {
  Status status = check_enumerations(options);
  if (status) status = check_enumeration("element type", from, element_table.size());
  if (status) status = check_enumeration("element type", to, element_table.size());
  if (!status) return status;
  const Row& row = row_of(from, to);
  if (!admits(row, options.overflow)) {
    return refused("overflow", overflow_names[static_cast<size_t>(options.overflow)], from, to, row,
                   row.wrap           ? "saturate, saturate_finite or wrap"
                   : row.overflow_nan ? "saturate, saturate_finite or nan"
                                      : "saturate or saturate_finite");
  }
  if (!admits(row, options.rounding)) {
    return refused("rounding", rounding_names[static_cast<size_t>(options.rounding)], from, to, row,
                   row.e8m0_roundings ? "nearest_even, up, down or half_up" : "no rounding");
  }
  if (options.nan != NanMode::by_type && !row.nan_zero) {
    return refused("nan", nan_mode_names[static_cast<size_t>(options.nan)], from, to, row,
                   "no nan option");
  }
  return {};
}

ConvertOptions canonical_options(ElementType from, ElementType to, ConvertOptions options) {
  const Row& row = row_of(from, to);
  if (options.overflow == Overflow::saturate_finite) {
    options.overflow = plain_saturate_finite(from, to);
  }
  if (&row == &row_float_to_int) {
    if (options.overflow == Overflow::saturate) options.overflow = Overflow::by_type;
    if (options.rounding == Rounding::toward_zero) options.rounding = Rounding::by_type;
  }
  if (&row == &row_to_e8m0 && options.rounding == Rounding::nearest_even) {
    options.rounding = Rounding::by_type;
  }
  const bool saturation_is_void = &row == &row_to_boolean || &row == &row_to_finite ||
                                  &row == &row_to_nf4 || &row == &row_to_e8m0 || is_boolean(from) ||
                                  (from == to && !has_infinities(from));
  if (saturation_is_void && options.overflow == Overflow::saturate) {
    options.overflow = Overflow::by_type;
  }
  if (!has_nans(from)) options.nan = NanMode::by_type;
  return options;
}

}  // namespace castor
