// SPDX-License-Identifier: Apache-2.0
// The shape that `reshape` gives.
#pragma once

#include "ir/shape/shape.hpp"

namespace castor {

/// The target, whose one unnamed `?` (of extents: one -1) follows from the count of the data's
/// elements where that is known. Counts must be equal, as far as they are known. The error names
/// both shapes and what does not fit.
Result<Shape> reshaped(const Shape& data, const Shape& target);
Result<Dims> reshaped(const Dims& data, const Dims& target);

}  // namespace castor
