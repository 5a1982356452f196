// SPDX-License-Identifier: Apache-2.0
// Conversions of single bytes that a table does faster than arithmetic.
#pragma once

#include <optional>

#include "ir/element_type.hpp"
#include "jit/lane/program.hpp"
#include "jit/target.hpp"

namespace castor::jit {

/// What each byte of an 8-bit integer or boolean becomes in a 16-bit float, for the pairs and
/// targets where looking it up beats converting it: VBMI, whose byte permutations hold 128
/// entries (every 8-bit integer is exact, so no option matters).
std::optional<ByteTable> byte_table(const Target& target, ElementType from, ElementType to);

}  // namespace castor::jit
