// SPDX-License-Identifier: Apache-2.0
// The options of `convert`, and which of them each kind of conversion admits.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "ir/support/export.hpp"
#include "ir/support/result.hpp"
#include "ir/types/element_type.hpp"

namespace castor {

/// What happens to a value outside the destination's range. `by_type` is the rule of the types
/// (integers wrap, float to integer saturates, floats overflow to infinity). `saturate` gives the
/// largest finite number, for infinities too; `saturate_finite` lets infinities be infinities where
/// the destination has them, and is `saturate` in all else.
enum class Overflow : uint8_t { by_type, saturate, wrap, nan, saturate_finite };

/// How a value between two of the destination's is rounded. `by_type`: float to integer
/// truncates, everything else goes to the nearest, ties to even. `half_up` is floor(x + 1/2),
/// computed as if exactly.
enum class Rounding : uint8_t {
  by_type,
  toward_zero,
  nearest_even,
  nearest_away,
  down,
  up,
  half_up,
};

/// What a NaN becomes in a float format without one.
enum class NanMode : uint8_t { by_type, zero };

inline constexpr std::array<std::string_view, 5> overflow_names = {"", "saturate", "wrap", "nan",
                                                                   "saturate_finite"};
inline constexpr std::array<std::string_view, 7> rounding_names = {
    "", "toward_zero", "nearest_even", "nearest_away", "down", "up", "half_up"};
inline constexpr std::array<std::string_view, 2> nan_mode_names = {"", "zero"};

/// Attributes of one conversion; the default value is the op's default.
struct ConvertOptions {
  Overflow overflow = Overflow::by_type;
  Rounding rounding = Rounding::by_type;
  NanMode nan = NanMode::by_type;
  friend bool operator==(const ConvertOptions&, const ConvertOptions&) = default;
};

/// "overflow = saturate, rounding = down"; empty for the defaults.
CASTOR_API std::string to_string(const ConvertOptions& options);

CASTOR_API std::optional<Overflow> overflow_named(std::string_view name);
CASTOR_API std::optional<Rounding> rounding_named(std::string_view name);
CASTOR_API std::optional<NanMode> nan_mode_named(std::string_view name);

/// Checks that each option is one of its enumeration (invalid_argument).
CASTOR_API Status check_enumerations(const ConvertOptions& options);

/// Checks the options against the row of the conversion table (ir/README.md, Convert)
/// that the two types select; `saturate` and `saturate_finite` are accepted everywhere. The error
/// names the option, the types and what the row admits.
CASTOR_API Status check_convert_options(ElementType from, ElementType to,
                                        const ConvertOptions& options);

/// The same options with every default that the types imply written out as `by_type`, so that
/// two spellings of one conversion compare equal.
CASTOR_API ConvertOptions canonical_options(ElementType from, ElementType to,
                                            ConvertOptions options);

}  // namespace castor
