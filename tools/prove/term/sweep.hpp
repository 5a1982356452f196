// SPDX-License-Identifier: Apache-2.0
// Nodes that run to equal values are one.
#pragma once

#include "tools/prove/term/term.hpp"

namespace castor::prove {

/// The same function as `root`, in which nodes that depend on one input of at most 16 bits and have
/// equal values for all of its values are one node, or a constant. So two ways to widen an f16 are
/// told to be the same before a solver meets them.
Term with_equal_nodes_merged(const Term& root);

}  // namespace castor::prove
