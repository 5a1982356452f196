// SPDX-License-Identifier: Apache-2.0
// Scalar numerics: one element as raw bits, one conversion as one exact rounding.
#pragma once

#include <cstdint>

#include "ir/types/convert_options.hpp"
#include "ir/types/element_type.hpp"

namespace castor::numerics {

/// Converts one element from its raw bits (in the low `bits_of(from)` bits) to the raw bits of
/// the result. Exactly one rounding; the options must be admitted (check_convert_options).
/// Pure integer code: independent of MXCSR and of the machine. Thread safe.
/// Source: ir/README.md, Convert.
uint64_t convert(uint64_t bits, ElementType from, ElementType to, const ConvertOptions& options);

}  // namespace castor::numerics
