// SPDX-License-Identifier: Apache-2.0
// Binding of nests: where operands are stored, their access patterns, scratch, and the code for
// that.
#pragma once

#include <span>

#include "ir/shape/shape.hpp"
#include "ir/support/result.hpp"

namespace castor::detail {

struct BoundState;

/// Completes `bound.steps` and `bound.scratch_bytes` from the tensors, which are bound already. May
/// generate code. Throws std::bad_alloc.
Status bind_nests(BoundState& bound, std::span<const Dims> input_shapes);

}  // namespace castor::detail
