// SPDX-License-Identifier: Apache-2.0
// Nodes that can become one function together.
#pragma once

#include <vector>

#include "runtime/onnx/graph.hpp"

namespace castor::onnx {

/// The largest convex groups that grow along edges, of nodes that `is_eligible` marks. Convex: no
/// path between two nodes of a group goes through a node outside, so that the group can run at
/// once; and each group is connected. Groups, and the nodes of each, are in the graph's order.
/// Edges are the values that one node computes and another reads, unless they became constants and
/// nobody runs the remainder. Groups of graphs that were made to take long may be smaller than they
/// could be.
std::vector<std::vector<NodeIndex>> convex_groups(const Graph& graph,
                                                  const std::vector<bool>& is_eligible,
                                                  Remainder remainder = Remainder::nobody);

}  // namespace castor::onnx
