// SPDX-License-Identifier: Apache-2.0
// ONNX Runtime's graph as one of castor's.
#pragma once

#include <vector>

#include "runtime/onnx/graph.hpp"
#include "runtime/onnxruntime/host.hpp"

namespace castor::onnxruntime {

/// A graph, connected, with ONNX Runtime's node for each of its nodes.
struct HostGraph {
  onnx::Graph graph;
  std::vector<const abi::OrtNode*> nodes;
};

/// Reads a graph. Constants are copied where a node that castor has an operator for reads them, and
/// where they are small. What is read of a body's outer graph is an input of the node; values that
/// another provider's nodes use are as well.
Result<HostGraph> read_graph(const Host& host, const abi::OrtGraph* graph);

/// A tensor of ONNX Runtime's: its type, or nothing where castor lacks it, extents and bytes.
struct HostTensor {
  std::optional<ElementType> element{};
  Dims shape{};
  const void* data = nullptr;
};
Result<HostTensor> read_tensor(const Host& host, const abi::OrtValue* value);

}  // namespace castor::onnxruntime
