// SPDX-License-Identifier: Apache-2.0
// Which nodes castor can compute, each by itself.
#pragma once

#include <string>
#include <vector>

#include "runtime/onnx/graph.hpp"

namespace castor::onnx {

/// What can become of a node.
struct Verdict {
  enum class Kind : uint8_t {
    taken,   ///< castor computes it
    folded,  ///< its outputs follow from constants: they are constants of the graph now
    unread,  ///< nothing that the graph gives depends on it: it need not run
    left,
  };
  Kind kind = Kind::left;
  std::string reason{};  ///< why it is left
};

/// Tries every node of a connected graph. Types that nobody declared follow from the nodes that are
/// taken; constants fold as long as they are small. Refuses (invalid_argument) nodes whose outputs
/// have other types than the graph declares; the message names the node, what was found and what
/// was declared. Where an engine runs the remainder, such a node is left to it.
Result<std::vector<Verdict>> examine(Graph& graph, Remainder remainder = Remainder::nobody);

}  // namespace castor::onnx
