// SPDX-License-Identifier: Apache-2.0
// Binding of nests: where operands are stored, their access patterns, scratch, and the code for
// that.
#pragma once

#include <span>

#include "ir/support/result.hpp"
#include "ir/verify/infer.hpp"

namespace castor::detail {

struct BoundState;

/// Completes `bound.steps` and `bound.scratch_bytes` from the tensors, which are bound already. May
/// generate code. Throws std::bad_alloc. Rows that are independent are done in blocks of about
/// `block_bytes` (see RowBlocks).
Status bind_nests(BoundState& bound, std::span<const Dims> input_shapes, int64_t block_bytes);

/// The same for the function's values of these shapes, nest after nest, where a call runs the steps
/// `repetitions` times, on other tensors each time.
Status bind_steps(BoundState& bound, BoundShapes shapes, int64_t repetitions);

}  // namespace castor::detail
