// SPDX-License-Identifier: Apache-2.0
// A graph as functions of castor, and what is left of it.
#pragma once

#include <string>
#include <vector>

#include "runtime/onnx/examine.hpp"
#include "runtime/onnx/graph.hpp"

namespace castor::onnx {

/// Nodes that are one function.
struct Unit {
  std::vector<NodeIndex> nodes;  ///< ascending
  FunctionPtr function;
  std::vector<ValueIndex> parameters;  ///< the graph's values that it takes, in its order
  std::vector<ValueIndex> results;     ///< those that others read, in its order
};

/// The function of nodes that form a convex group. Constants of the graph are constants of it.
Result<Unit> make_unit(const Graph& graph, std::vector<NodeIndex> nodes, std::string name);

struct PlanOptions {
  /// Take every node for itself: DequantizeLinear, Conv, QuantizeLinear is no qlinear_conv.
  bool strict = false;
};

/// What became of the graph. Units and nodes are in an order in which they can run.
struct Plan {
  std::vector<std::string> read;  ///< the nodes as they were read, in order: see `describe`
  Graph graph;                    ///< with types, constants and quantized units filled in
  std::vector<Verdict> verdicts;  ///< what became of each of the graph's nodes
  std::vector<Unit> units;        ///< every taken node is in one

  bool is_complete() const;  ///< whether no node is left
};

/// The whole graph as one function of its inputs, in their order. Fails (unsupported) where a node
/// is left; the message names the first one.
Result<FunctionPtr> whole_function(const Plan& plan);

/// Makes functions of all nodes that castor has. Fails for graphs that contradict themselves; see
/// `connect` and `examine`.
Result<Plan> make_plan(Graph graph, const PlanOptions& options = {});

}  // namespace castor::onnx
