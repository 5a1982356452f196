// SPDX-License-Identifier: Apache-2.0
// Groups of nodes that can run at once: on random graphs, checked by following every path.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "runtime/onnx/groups.hpp"
#include "runtime/onnx/plan.hpp"
#include "tests/support/onnx_maker.hpp"

namespace castor {
namespace {

using onnx::Graph;
using onnx::NodeIndex;
using onnx::ValueIndex;

/// A graph in which node i computes value i from values of earlier nodes.
Graph random_graph(std::mt19937& random, size_t nodes) {
  Graph graph;
  for (size_t i = 0; i < nodes; ++i) graph.values.push_back({.name = std::to_string(i)});
  graph.values.push_back({.name = "x"});
  graph.inputs = {static_cast<ValueIndex>(nodes)};
  for (size_t i = 0; i < nodes; ++i) {
    onnx::Node node{.name = std::to_string(i), .op_type = "Op", .domain = ""};
    const size_t inputs = 1 + random() % 3;
    for (size_t k = 0; k < inputs; ++k) {
      const size_t reach = std::min<size_t>(i, 6);
      const bool is_outer = reach == 0 || random() % 8 == 0;
      node.inputs.push_back(is_outer ? graph.inputs[0]
                                     : static_cast<ValueIndex>(i - 1 - random() % reach));
    }
    node.outputs = {static_cast<ValueIndex>(i)};
    graph.nodes.push_back(std::move(node));
  }
  EXPECT_TRUE(connect(graph));
  return graph;
}

/// The nodes that depend on members of the group through a node outside.
bool is_convex(const Graph& graph, const std::set<NodeIndex>& group) {
  std::set<NodeIndex> after;  // outside, and dependent on the group
  for (NodeIndex index = 0; index < graph.nodes.size(); ++index) {
    bool depends = false;
    bool returns = false;
    for (const ValueIndex input : graph.nodes[index].inputs) {
      const NodeIndex producer = graph.values[input].producer;
      if (producer == onnx::no_node) continue;
      depends |= group.contains(producer) || after.contains(producer);
      returns |= after.contains(producer);
    }
    if (group.contains(index) && returns) return false;
    if (!group.contains(index) && depends) after.insert(index);
  }
  return true;
}

bool is_connected(const Graph& graph, const std::set<NodeIndex>& group) {
  std::set<NodeIndex> reached = {*group.begin()};
  for (size_t before = 0; before != reached.size();) {
    before = reached.size();
    for (const NodeIndex index : group) {
      for (const ValueIndex input : graph.nodes[index].inputs) {
        const NodeIndex producer = graph.values[input].producer;
        if (producer == onnx::no_node || !group.contains(producer)) continue;
        if (reached.contains(producer)) reached.insert(index);
        if (reached.contains(index)) reached.insert(producer);
      }
    }
  }
  return reached == group;
}

/// The groups can run one after the other, with the other nodes in between.
bool can_run_in_some_order(const Graph& graph, const std::vector<std::vector<NodeIndex>>& groups) {
  std::vector<size_t> unit(graph.nodes.size());
  for (size_t i = 0; i < unit.size(); ++i) unit[i] = groups.size() + i;
  for (size_t g = 0; g < groups.size(); ++g) {
    for (const NodeIndex index : groups[g]) unit[index] = g;
  }
  std::set<size_t> done;
  std::set<size_t> waiting(unit.begin(), unit.end());
  for (bool moves = true; moves && !waiting.empty();) {
    moves = false;
    for (const size_t candidate : std::set<size_t>(waiting)) {
      bool is_ready = true;
      for (NodeIndex index = 0; index < graph.nodes.size(); ++index) {
        if (unit[index] != candidate) continue;
        for (const ValueIndex input : graph.nodes[index].inputs) {
          const NodeIndex producer = graph.values[input].producer;
          if (producer == onnx::no_node || unit[producer] == candidate) continue;
          is_ready = is_ready && done.contains(unit[producer]);
        }
      }
      if (!is_ready) continue;
      done.insert(candidate);
      waiting.erase(candidate);
      moves = true;
    }
  }
  return waiting.empty();
}

TEST(OnnxGroups, AreConvexConnectedAndCanRun) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    const Graph graph = random_graph(random, 2 + random() % 40);
    std::vector<bool> is_eligible;
    for (size_t i = 0; i < graph.nodes.size(); ++i) is_eligible.push_back(random() % 4 != 0);
    const auto groups = convex_groups(graph, is_eligible);
    std::set<NodeIndex> seen;
    for (const auto& group : groups) {
      const std::set<NodeIndex> members(group.begin(), group.end());
      EXPECT_TRUE(is_convex(graph, members));
      EXPECT_TRUE(is_connected(graph, members));
      for (const NodeIndex index : group) {
        EXPECT_TRUE(is_eligible[index]);
        EXPECT_TRUE(seen.insert(index).second);
      }
    }
    EXPECT_EQ(seen.size(), static_cast<size_t>(std::ranges::count(is_eligible, true)));
    EXPECT_TRUE(can_run_in_some_order(graph, groups));
  }
}

TEST(OnnxGroups, AllOfAChainAreOne) {
  std::mt19937 random(1);
  const Graph graph = random_graph(random, 30);
  const auto groups = convex_groups(graph, std::vector<bool>(graph.nodes.size(), true));
  // With nothing in between, only nodes that read no other node's value are apart.
  for (size_t i = 0; i + 1 < groups.size(); ++i) {
    for (const NodeIndex index : groups[i]) {
      for (const NodeIndex reader : graph.values[graph.nodes[index].outputs[0]].consumers) {
        EXPECT_TRUE(std::ranges::find(groups[i], reader) != groups[i].end());
      }
    }
  }
}

/// Language models have tens of thousands of nodes. Every second node is left, so that groups are
/// many and searches for paths go through others.
TEST(OnnxGroups, OfAHundredThousandNodesTakeNoMinutes) {
  constexpr int layers = 25000;
  test::OnnxMaker maker;
  maker.input("x", test::OnnxMaker::f32, {2, 3});
  std::string last = "x";
  for (int layer = 0; layer < layers; ++layer) {
    const std::string prefix = "layer" + std::to_string(layer);
    maker.node("Relu", {last}, {prefix + "/a"});
    maker.node("Neg", {prefix + "/a"}, {prefix + "/b"});
    maker.node("Erf", {prefix + "/b"}, {prefix + "/c"});
    maker.node("Add", {prefix + "/a", prefix + "/c"}, {prefix + "/d"});
    last = prefix + "/d";
  }
  maker.output(last, test::OnnxMaker::f32, {2, 3});
  const Result<onnx::Graph> graph = maker.read();
  ASSERT_TRUE(graph) << graph.error().message;
  std::vector<bool> is_eligible;
  for (const onnx::Node& node : graph->nodes) is_eligible.push_back(node.op_type != "Erf");
  const auto groups = convex_groups(*graph, is_eligible);
  // Relu and Neg of a layer are one with the Add before; the Add waits for the Erf.
  ASSERT_EQ(groups.size(), layers + 1u);
  for (size_t i = 1; i < layers; ++i) EXPECT_EQ(groups[i].size(), 3u) << i;
}

/// Two long rows of nodes, of which each reads its neighbour in the row before. With `waiting`, a
/// node between the rows waits for each of the first row, so that what is between is moved.
std::vector<size_t> group_sizes_of_rows(int width, bool waiting) {
  test::OnnxMaker maker;
  maker.input("x", test::OnnxMaker::f32, {2, 3});
  const auto add_row = [&](const char* op, const char* from, const char* to) {
    for (int i = 0; i < width; ++i) {
      const std::string number = std::to_string(i);
      maker.node(op, {from == std::string("x") ? from : from + number}, {to + number});
      if (*to != 'a') maker.output(to + number, test::OnnxMaker::f32, {2, 3});
    }
  };
  add_row("Relu", "x", "a");
  if (waiting) add_row("Erf", "a", "b");
  add_row("Neg", "a", "c");
  const Result<onnx::Graph> graph = maker.read();
  EXPECT_TRUE(graph) << graph.error().message;
  if (!graph) return {};
  std::vector<bool> is_eligible;
  for (const onnx::Node& node : graph->nodes) is_eligible.push_back(node.op_type != "Erf");
  std::vector<size_t> sizes;
  for (const auto& group : convex_groups(*graph, is_eligible)) sizes.push_back(group.size());
  return sizes;
}

TEST(OnnxGroups, NeighboursInLongRowsAreTogether) {
  EXPECT_EQ(group_sizes_of_rows(60000, false), std::vector<size_t>(60000, 2));
  EXPECT_EQ(group_sizes_of_rows(1000, true), std::vector<size_t>(1000, 2));
}

/// Each pair would take as many steps as there are nodes in a row: an hour for the largest file.
TEST(OnnxGroups, OfAGraphMadeToTakeLongSomeStaySmall) {
  constexpr size_t width = 80000;
  const std::vector<size_t> sizes = group_sizes_of_rows(width, true);
  const auto pairs = static_cast<size_t>(std::count(sizes.begin(), sizes.end(), size_t{2}));
  EXPECT_GT(pairs, 100u);
  EXPECT_LT(pairs, width);
  EXPECT_EQ(2 * pairs + static_cast<size_t>(std::count(sizes.begin(), sizes.end(), size_t{1})),
            2 * width);
}

/// Nodes that castor lacks do not matter where no output depends on them.
TEST(OnnxGroups, WhatNothingReadsNeedNotRun) {
  test::OnnxMaker maker;
  maker.input("x", test::OnnxMaker::f32, {2, 3});
  maker.node("Relu", {"x"}, {"y"});
  maker.node("Exp", {"y"}, {"z"});
  maker.node("Neg", {"x"}, {"v"});
  maker.node("Abs", {"v"}, {"w"});
  maker.output("y", test::OnnxMaker::f32, {2, 3});
  Result<onnx::Graph> graph = maker.read();
  ASSERT_TRUE(graph) << graph.error().message;
  const auto plan = make_plan(std::move(*graph));
  ASSERT_TRUE(plan) << plan.error().message;
  using Kind = onnx::Verdict::Kind;
  std::vector<Kind> kinds;
  for (const onnx::Verdict& verdict : plan->verdicts) kinds.push_back(verdict.kind);
  EXPECT_EQ(kinds, (std::vector<Kind>{Kind::taken, Kind::unread, Kind::unread, Kind::unread}));
  EXPECT_TRUE(plan->is_complete());
  EXPECT_EQ(plan->units.size(), 1u);
  EXPECT_TRUE(whole_function(*plan));
}

}  // namespace
}  // namespace castor
