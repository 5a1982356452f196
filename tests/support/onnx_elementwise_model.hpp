// SPDX-License-Identifier: Apache-2.0
// ONNX's node tests as graphs of any number of nodes: what functions of elementwise ops are made
// from. (tests/support/onnx_node.hpp reads the folders of one node.)
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/onnx_node.hpp"

namespace castor::test {

/// Values of an attribute; only the member that the attribute's kind selects is set.
struct OnnxNodeAttribute {
  int64_t i = 0;
  float f = 0;
  std::string s;
  std::vector<int64_t> ints;
  std::optional<OnnxTensor> tensor;
};

struct OnnxGraphNode {
  std::string op_type;
  std::vector<std::string> inputs;  ///< empty: left out
  std::vector<std::string> outputs;
  std::map<std::string, OnnxNodeAttribute> attributes;

  bool has_input(size_t i) const { return i < inputs.size() && !inputs[i].empty(); }
  const OnnxNodeAttribute* find(const std::string& attribute) const;
  int64_t integer(const std::string& attribute, int64_t otherwise) const;
  float number(const std::string& attribute, float otherwise) const;
};

/// One data set: a tensor for each of the graph's inputs and outputs.
struct OnnxGraphData {
  std::map<std::string, OnnxTensor> inputs;  ///< by the value's name; initializers among them
  std::vector<OnnxTensor> outputs;           ///< in the graph's order
};

struct OnnxGraphTest {
  std::string name;  ///< the name of its folder
  std::vector<OnnxGraphNode> nodes;
  std::vector<std::string> outputs;
  std::vector<OnnxGraphData> data_sets;  ///< none where a value of the graph is no tensor
};

/// Fails with `io` for files that are missing or contradict themselves.
Result<OnnxGraphTest> read_onnx_graph_test(const std::filesystem::path& folder);

}  // namespace castor::test
