// SPDX-License-Identifier: Apache-2.0
// Names of extents: models write what they like, functions have identifiers, and two names never
// become one.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "runtime/onnx/extent_names.hpp"

namespace castor {
namespace {

onnx::Graph graph_with(const std::vector<std::string>& names) {
  onnx::Graph graph;
  for (const std::string& name : names) {
    onnx::Value value{.name = "x"};
    value.shape = Shape{Dim::any(), 3};
    (*value.shape)[0].name = name;
    graph.values.push_back(std::move(value));
  }
  return graph;
}

std::vector<std::string> names_in(const onnx::Graph& graph) {
  std::vector<std::string> names;
  for (const onnx::Value& value : graph.values) names.push_back((*value.shape)[0].name);
  return names;
}

TEST(OnnxExtentNames, IdentifiersStay) {
  const std::vector<std::string> names = {"batch", "seq_len", "B", "_", "v", "v1", "vx_1", "v_1"};
  onnx::Graph graph = graph_with(names);
  name_extents(graph);
  EXPECT_EQ(names_in(graph), names);
}

TEST(OnnxExtentNames, DifferentNamesStayDifferent) {
  const std::vector<std::string> names = {"s0 + 1", "s0 - 1", "s0___1",   "s0 + 1",
                                          "2*n",    "n2_n",   "",         "v0_1",
                                          "v12_0",  "n_v0_1", "\xc3\xa9", "s0___1_2"};
  onnx::Graph graph = graph_with(names);
  name_extents(graph);
  const std::vector<std::string> made = names_in(graph);
  for (size_t i = 0; i < names.size(); ++i) {
    for (size_t k = 0; k < names.size(); ++k) {
      EXPECT_EQ(made[i] == made[k], names[i] == names[k]) << names[i] << ", " << names[k];
    }
    EXPECT_TRUE(names[i].empty() || onnx::identifier(made[i]) == made[i]) << made[i];
    EXPECT_NE(made[i], onnx::generated_name(0, 1));
    EXPECT_NE(made[i], onnx::generated_name(12, 0));
  }
}

TEST(OnnxExtentNames, TheSecondTimeNothingChanges) {
  onnx::Graph graph = graph_with({"s0 + 1", "s0 - 1", "v0_1", "7"});
  name_extents(graph);
  const std::vector<std::string> made = names_in(graph);
  name_extents(graph);
  EXPECT_EQ(names_in(graph), made);
}

}  // namespace
}  // namespace castor
