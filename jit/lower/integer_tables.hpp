// SPDX-License-Identifier: Apache-2.0
// Integers and booleans to floats of so few bits that a byte table has all codes.
#pragma once

#include <optional>

#include "ir/types/convert_options.hpp"
#include "jit/lower/lane_tensor.hpp"

namespace castor::jit {

/// The codes of clamped integers in floats that overflow to their largest number, below that of i8
/// (f4, f6, nf4). Nothing for other types, and for bytes whose own
/// table takes fewer steps.
std::optional<LaneTensor> convert_integer_by_table(LaneBuilder& builder, LaneTensor& source,
                                                   ElementType to, const ConvertOptions& options);

/// i16 and u16 to floats all of whose numbers are below 2^9 (f8e4m3, f8e4m3fnuz), by a table of the
/// clamped integers. Nothing for other types and targets.
std::optional<LaneTensor> convert_i16_by_table(LaneBuilder& builder, LaneTensor& source,
                                               ElementType to, const ConvertOptions& options);

}  // namespace castor::jit
