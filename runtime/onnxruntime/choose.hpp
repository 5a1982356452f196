// SPDX-License-Identifier: Apache-2.0
// Which nodes of a graph the plugin takes.
#pragma once

#include <vector>

#include "runtime/onnx/examine.hpp"
#include "runtime/onnx/graph.hpp"

namespace castor::onnxruntime {

/// How kernels multiply integers of 8 bits.
enum class Products {
  widened,  ///< as i16, without VNNI: half as many in an instruction
  dot,      ///< four in a lane, with VNNI
  tiles,    ///< with AMX
};

struct ChoiceOptions {
  double min_gain = 1;  ///< how many times as fast a group must be expected to be; 0: any
  Products products = Products::dot;
};

/// What is left and why; one entry for each node of the graph.
struct Choice {
  std::vector<std::vector<onnx::NodeIndex>> groups;  ///< convex, in the graph's order
  std::vector<std::string> left;                     ///< reasons; empty for nodes of groups
};

/// Groups around products of integers: those, what quantizes their operands and what follows them.
/// Left alone: what ONNX Runtime computes as fast or fuses better (see fusions.hpp), sums of
/// floats, whose order would differ, and groups that are not expected to be `min_gain` times as
/// fast. With a `min_gain` of 0 nothing that castor can compute is left.
Choice choose(const onnx::Graph& graph, const std::vector<onnx::Verdict>& verdicts,
              const ChoiceOptions& options);

}  // namespace castor::onnxruntime
