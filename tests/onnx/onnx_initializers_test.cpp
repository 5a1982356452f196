// SPDX-License-Identifier: Apache-2.0
// Initializers that castor cannot read as tensors: the nodes that read them are left, the others
// are taken. Files of old versions list initializers among the inputs too.
#include <gtest/gtest.h>
#include <onnx.pb.h>

#include "runtime/onnx/plan.hpp"
#include "tests/support/onnx_maker.hpp"

namespace castor {
namespace {

using test::OnnxMaker;

constexpr int32_t strings = 8;  // TensorProto.DataType

/// y = x + w, z = -x, with w for the caller to add.
OnnxMaker sum_and_negation() {
  OnnxMaker maker;
  maker.input("x", OnnxMaker::f32, {2});
  maker.node("Add", {"x", "w"}, {"y"});
  maker.node("Neg", {"x"}, {"z"});
  maker.output("y", OnnxMaker::f32, {2});
  maker.output("z", OnnxMaker::f32, {2});
  return maker;
}

void add_sparse(OnnxMaker& maker) {
  auto& values = *maker.graph().add_sparse_initializer()->mutable_values();
  values.set_name("w");
  values.set_data_type(OnnxMaker::f32);
  values.add_dims(1);
  values.add_float_data(3);
}

void add_strings(OnnxMaker& maker) {
  auto& tensor = *maker.graph().add_initializer();
  tensor.set_name("w");
  tensor.set_data_type(strings);
  tensor.add_dims(2);
}

struct Case {
  const char* name;
  void (*add)(OnnxMaker&);
};

constexpr Case cases[] = {{"sparse", add_sparse}, {"strings", add_strings}};

TEST(OnnxInitializers, ThatCastorLacksLeaveTheirNodes) {
  for (const Case& row : cases) {
    for (const bool is_input : {false, true}) {
      SCOPED_TRACE(row.name + std::string(is_input ? ", an input too" : ""));
      OnnxMaker maker = sum_and_negation();
      row.add(maker);
      if (is_input) maker.input("w", OnnxMaker::f32, {2});
      Result<onnx::Graph> graph = maker.read();
      ASSERT_TRUE(graph) << graph.error().message;
      EXPECT_EQ(graph->inputs.size(), 2u);
      const auto plan = make_plan(std::move(*graph));
      ASSERT_TRUE(plan) << plan.error().message;
      const bool is_typed = is_input;  // the file says what its type is: at run time it may be one
      EXPECT_EQ(plan->verdicts[0].kind == onnx::Verdict::Kind::taken, is_typed);
      EXPECT_EQ(plan->verdicts[1].kind, onnx::Verdict::Kind::taken);
    }
  }
}

TEST(OnnxInitializers, SparseOnesHaveNamesOfTheirOwn) {
  OnnxMaker twice = sum_and_negation();
  add_sparse(twice);
  add_sparse(twice);
  const auto graph = twice.read();
  ASSERT_FALSE(graph);
  EXPECT_EQ(graph.error().message, "the sparse initializer 'w' is there twice, or has no name");
}

}  // namespace
}  // namespace castor
