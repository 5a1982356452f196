// SPDX-License-Identifier: Apache-2.0
// Blocks of blocked broadcasts.
#pragma once

#include "ir/shape/broadcast.hpp"
#include "tools/fuzz/random.hpp"

namespace castor::fuzz {

/// Blocks along one or two axes of A, whose extents are those.
BroadcastRule draw_blocks(Random& random, const Dims& extents);

/// B's extents for A's.
Dims blocks_of(Dims extents, const BroadcastRule& rule);

/// A's extents for B's, the last block short at random.
Dims target_of_blocks(Random& random, Dims extents, const BroadcastRule& rule);

}  // namespace castor::fuzz
