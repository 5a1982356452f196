// SPDX-License-Identifier: Apache-2.0
// Boundary patterns of the floats with infinities (f16, bf16, f32, f64).
#pragma once

#include <cstdint>
#include <vector>

#include "ir/types/element_type.hpp"

namespace castor::samples {

/// Patterns of an IEEE-like float type, unordered and with repetitions; see boundary_patterns.
std::vector<uint64_t> float_boundaries(ElementType type);

}  // namespace castor::samples
