// SPDX-License-Identifier: Apache-2.0
// When a conversion copies, and when two conversions are one.
#pragma once

#include <optional>

#include "ir/types/convert_options.hpp"
#include "ir/types/element_type.hpp"

namespace castor {

/// `second` applied to the results of `first`, options included.
struct ConversionPair {
  ElementType from;
  ConvertOptions first;
  ElementType middle;
  ConvertOptions second;
  ElementType to;
};

/// Whether a conversion from a type to itself copies every bit pattern. Boolean does not, as it
/// normalises bytes to 0 and 1, unless the operand is known to be `normalised`.
bool copies_bits(ElementType type, const ConvertOptions& options, bool normalised);

/// The options with which one conversion `from` -> `to` gives the pair's bits for every bit
/// pattern of `from`; nothing when no rule shows that. Both options must be admitted. Of boolean,
/// the integers of whole bytes, bf16, f16, f32 and f64 no pair that is one conversion is missed,
/// but for bf16 -> f16 -> integer. Source: ir/README.md, Convert.
std::optional<ConvertOptions> merge_conversions(const ConversionPair& pair);

}  // namespace castor
