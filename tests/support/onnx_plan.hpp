// SPDX-License-Identifier: Apache-2.0
// Plans of models that a test makes, and models with one thing wrong.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/onnx/plan.hpp"
#include "tests/support/onnx_maker.hpp"

namespace castor::test {

/// The model's plan; an empty one, and a failure, where there is none.
inline onnx::Plan plan_of(const OnnxMaker& maker, bool strict = false) {
  Result<onnx::Graph> graph = maker.read();
  EXPECT_TRUE(graph) << graph.error().message;
  if (!graph) return {};
  Result<onnx::Plan> plan = make_plan(std::move(*graph), {.strict = strict});
  EXPECT_TRUE(plan) << plan.error().message;
  return plan ? std::move(*plan) : onnx::Plan{};
}

/// The operators of its nodes, in order.
inline std::vector<std::string> ops_of(const onnx::Plan& plan) {
  std::vector<std::string> ops;
  for (const onnx::Node& node : plan.graph.nodes) ops.push_back(node.op_type);
  return ops;
}

/// One thing that is wrong in an otherwise good model.
struct Spoiled {
  std::string name;
  std::function<void(OnnxMaker&)> spoil;
};

/// The initializer of that name.
inline onnx_file::TensorProto& tensor(OnnxMaker& maker, const std::string& name) {
  auto& all = *maker.graph().mutable_initializer();
  return *std::ranges::find(all, name, &onnx_file::TensorProto::name);
}

}  // namespace castor::test
