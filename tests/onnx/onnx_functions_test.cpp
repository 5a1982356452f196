// SPDX-License-Identifier: Apache-2.0
// Functions of models, and bodies of control flow.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "runtime/onnx/plan.hpp"
#include "tests/support/onnx_maker.hpp"
#include "tests/support/onnx_models.hpp"
#include "tests/support/onnx_plan.hpp"

namespace castor {
namespace {

using test::OnnxMaker;
using test::plan_of;

std::string ops_of(const onnx::Plan& plan) {
  const auto function = whole_function(plan);
  return function ? test::ops_of(**function) : function.error().message;
}

/// Scale(a) {by, offset = 1} = a * by + offset.
void add_scale(OnnxMaker& maker) {
  maker.import("mine", 1);
  auto& function = *maker.model().add_functions();
  function.set_name("Scale");
  function.set_domain("mine");
  function.add_input("a");
  function.add_output("b");
  function.add_attribute("by");
  function.add_opset_import()->set_version(21);
  auto& offset = *function.add_attribute_proto();
  offset.set_name("offset");
  offset.set_type(1);
  offset.set_f(1);
  for (const char* name : {"by", "offset"}) {
    auto& constant = *function.add_node();
    constant.set_op_type("Constant");
    constant.add_output(name);
    auto& attribute = *constant.add_attribute();
    attribute.set_name("value_float");
    attribute.set_type(1);
    attribute.set_ref_attr_name(name);
  }
  auto& mul = *function.add_node();
  mul.set_op_type("Mul");
  mul.add_input("a");
  mul.add_input("by");
  mul.add_output("scaled");
  auto& add = *function.add_node();
  add.set_op_type("Add");
  add.add_input("scaled");
  add.add_input("offset");
  add.add_output("b");
}

TEST(OnnxFunctions, CallsBecomeTheirNodes) {
  OnnxMaker maker;
  add_scale(maker);
  maker.input("x", OnnxMaker::f32, {2});
  auto& first = maker.node("Scale", {"x"}, {"t"});
  first.set_domain("mine");
  OnnxMaker::number(first, "by", 2);
  auto& second = maker.node("Scale", {"t"}, {"y"});
  second.set_domain("mine");
  OnnxMaker::number(second, "by", 3);
  OnnxMaker::number(second, "offset", 5);
  maker.output("y", OnnxMaker::f32, {2});
  const onnx::Plan plan = plan_of(maker);
  EXPECT_EQ(ops_of(plan), "mul, add, mul, add");
  std::vector<float> constants;
  for (const onnx::Value& value : plan.graph.values) {
    if (!value.constant || value.constant->data->bytes.size() != sizeof(float)) continue;
    float number = 0;
    std::memcpy(&number, value.constant->data->bytes.data(), sizeof number);
    constants.push_back(number);
  }
  std::ranges::sort(constants);
  EXPECT_EQ(constants, (std::vector<float>{1, 2, 3, 5}));
}

TEST(OnnxFunctions, AttributesWithoutAValueAreLeftOut) {
  OnnxMaker maker;
  add_scale(maker);
  maker.input("x", OnnxMaker::f32, {2});
  maker.node("Scale", {"x"}, {"y"}).set_domain("mine");
  maker.output("y", OnnxMaker::f32, {2});
  EXPECT_NE(ops_of(plan_of(maker)).find("a constant of a kind that castor lacks"),
            std::string::npos);
}

/// What a body reads must be there when its node runs: no group may hide it.
TEST(OnnxFunctions, WhatBodiesReadLeavesItsUnit) {
  OnnxMaker maker;
  maker.input("x", OnnxMaker::f32, {2});
  maker.input("c", 9, {});
  maker.node("Neg", {"x"}, {"inner"});
  maker.node("Abs", {"inner"}, {"y"});
  auto& choice = maker.node("If", {"c"}, {"z"});
  for (const char* branch : {"then_branch", "else_branch"}) {
    auto& attribute = *choice.add_attribute();
    attribute.set_name(branch);
    attribute.set_type(5);
    auto& node = *attribute.mutable_g()->add_node();
    node.set_op_type("Identity");
    node.add_input("inner");
    node.add_output("out");
    attribute.mutable_g()->add_output()->set_name("out");
  }
  maker.output("y", OnnxMaker::f32, {2});
  maker.output("z", OnnxMaker::f32, {2});
  const onnx::Plan plan = plan_of(maker);
  ASSERT_EQ(plan.units.size(), 1u);
  std::vector<std::string> results;
  for (const onnx::ValueIndex index : plan.units[0].results) {
    results.push_back(plan.graph.values[index].name);
  }
  EXPECT_EQ(results, (std::vector<std::string>{"inner", "y"}));
}

}  // namespace
}  // namespace castor
