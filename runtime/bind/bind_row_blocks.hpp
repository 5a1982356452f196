// SPDX-License-Identifier: Apache-2.0
// Binds a function's nests for one block of rows at a time.
#pragma once

#include "runtime/bind/row_blocks.hpp"

namespace castor::detail {

/// Makes the only step of `bound`, whose tensors are bound already. `shapes` are those of all rows.
Status bind_row_blocks(BoundState& bound, const BoundShapes& shapes, const RowBlocks& blocks);

}  // namespace castor::detail
