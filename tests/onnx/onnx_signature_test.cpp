// SPDX-License-Identifier: Apache-2.0
// Nodes that ONNX's checker would refuse are left, with the reason: taking them would give them a
// meaning that nobody wrote.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "runtime/onnx/plan.hpp"
#include "tests/support/onnx_maker.hpp"

namespace castor {
namespace {

using onnx_file::NodeProto;
using test::OnnxMaker;

struct Row {
  std::string op_type;
  std::function<void(NodeProto&)> spoil;
  std::string reason;
  int64_t opset = 21;
};

void two_inputs(NodeProto& node) { node.add_input("x"); }

const Row rows[] = {
    {"Relu", two_inputs, "it has 2 inputs, expected 1"},
    {"Relu", [](NodeProto& node) { node.add_output("z"); }, "it has 2 outputs, expected 1"},
    {"Add",
     [](NodeProto& node) {
       two_inputs(node);
       two_inputs(node);
     },
     "it has 3 inputs, expected 2"},
    {"Sum", [](NodeProto& node) { node.clear_input(); }, "it has 0 inputs, expected at least 1"},
    {"Clip",
     [](NodeProto& node) {
       for (int i = 0; i < 3; ++i) two_inputs(node);
     },
     "it has 4 inputs, expected 1 to 3"},
    {"ReduceSum", [](NodeProto& node) { OnnxMaker::number(node, "keepdims", 0); },
     "its attribute keepdims is a float, expected an integer"},
    {"LeakyRelu", [](NodeProto& node) { OnnxMaker::integer(node, "alpha", 2); },
     "its attribute alpha is an integer, expected a float"},
    {"Flatten", [](NodeProto& node) { OnnxMaker::text(node, "axis", "1"); },
     "its attribute axis is a string, expected an integer"},
    {"Squeeze", [](NodeProto& node) { OnnxMaker::integer(node, "axes", 0); },
     "its attribute axes is an integer, expected integers", 11},
    {"Abs", [](NodeProto& node) { OnnxMaker::integer(node, "axis", 1); },
     "Abs has no attribute axis"},
    {"Abs", [](NodeProto& node) { node.add_attribute()->set_name("axi"); },
     "Abs has no attribute axi"},
    {"BitwiseNot", [](NodeProto&) {},
     "BitwiseNot is there from version 18 on, the operator set has version 17", 17},
    {"BitShift",
     [](NodeProto& node) {
       two_inputs(node);
       OnnxMaker::text(node, "direction", "UPWARDS");
     },
     "direction is 'UPWARDS', expected LEFT or RIGHT"},
    {"Cast",
     [](NodeProto& node) {
       OnnxMaker::integer(node, "to", 1);
       OnnxMaker::text(node, "round_mode", "zzz");
     },
     "round_mode is zzz, expected up, down or nearest"},
};

TEST(OnnxSignature, WhatContradictsTheOperatorIsLeft) {
  for (const Row& row : rows) {
    SCOPED_TRACE(row.op_type + ": " + row.reason);
    OnnxMaker maker(row.opset);
    maker.input("x", OnnxMaker::f32, {2, 3});
    row.spoil(maker.node(row.op_type, {"x"}, {"y"}));
    maker.output("y", OnnxMaker::f32, {});
    maker.graph().mutable_output(0)->clear_type();
    Result<onnx::Graph> graph = maker.read();
    ASSERT_TRUE(graph) << graph.error().message;
    const auto plan = make_plan(std::move(*graph));
    ASSERT_TRUE(plan) << plan.error().message;
    EXPECT_EQ(plan->verdicts[0].kind, onnx::Verdict::Kind::left);
    EXPECT_EQ(plan->verdicts[0].reason, row.reason);
  }
}

}  // namespace
}  // namespace castor
