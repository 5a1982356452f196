// SPDX-License-Identifier: Apache-2.0
// DequantizeLinear, Conv (MatMul, Gemm), Relu, QuantizeLinear as one operator: which nodes it
// stands for, what keeps it from being one, and how near its results are to those of the nodes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "ir/interpreter/interpreter.hpp"
#include "runtime/onnx/plan.hpp"
#include "runtime/onnx/quantized_units.hpp"
#include "tests/support/onnx_plan.hpp"

namespace castor {
namespace {

using test::OnnxMaker;
using test::ops_of;
using test::plan_of;
using test::Spoiled;
using test::tensor;

constexpr int64_t channels = 4, filters = 5, side = 6;
constexpr float x_scale = 0.02f, y_scale = 0.05f;
constexpr int x_zero = 120, y_zero = 30;

struct Weights {
  std::vector<int8_t> w;
  std::vector<float> scales;
  std::vector<int32_t> bias;
};

Weights weights_of(std::mt19937& random) {
  Weights made;
  for (int i = 0; i < filters * channels * 9; ++i) {
    made.w.push_back(static_cast<int8_t>(static_cast<int>(random() % 255) - 127));
  }
  for (int m = 0; m < filters; ++m) {
    made.scales.push_back(0.004f + 0.001f * static_cast<float>(m));
    made.bias.push_back(static_cast<int32_t>(random() % 20001) - 10000);
  }
  return made;
}

/// x -> QuantizeLinear's result qx, DequantizeLinear, Conv of pads 1, (Relu), QuantizeLinear -> y.
OnnxMaker conv_unit(const Weights& weights, bool has_relu) {
  OnnxMaker maker;
  maker.input("qx", OnnxMaker::u8, {1, channels, side, side});
  maker.constant<float>("xs", OnnxMaker::f32, {}, {x_scale});
  maker.constant<uint8_t>("xz", OnnxMaker::u8, {}, {x_zero});
  maker.constant("w", OnnxMaker::i8, {filters, channels, 3, 3}, weights.w);
  maker.constant("ws", OnnxMaker::f32, {filters}, weights.scales);
  maker.constant("b", OnnxMaker::i32, {filters}, weights.bias);
  std::vector<float> bias_scales;
  for (const float scale : weights.scales) bias_scales.push_back(scale * x_scale);
  maker.constant("bs", OnnxMaker::f32, {filters}, bias_scales);
  maker.constant<float>("ys", OnnxMaker::f32, {}, {y_scale});
  maker.constant<uint8_t>("yz", OnnxMaker::u8, {}, {y_zero});
  maker.node("DequantizeLinear", {"qx", "xs", "xz"}, {"x"});
  OnnxMaker::integer(maker.node("DequantizeLinear", {"w", "ws"}, {"wf"}), "axis", 0);
  OnnxMaker::integer(maker.node("DequantizeLinear", {"b", "bs"}, {"bf"}), "axis", 0);
  OnnxMaker::integers(maker.node("Conv", {"x", "wf", "bf"}, {"c"}), "pads", {1, 1, 1, 1});
  if (has_relu) maker.node("Relu", {"c"}, {"r"});
  maker.node("QuantizeLinear", {has_relu ? "r" : "c", "ys", "yz"}, {"y"});
  maker.output("y", OnnxMaker::u8, {1, filters, side, side});
  return maker;
}

/// The unit in doubles, as the nodes say it one by one.
double real_result(const Weights& weights, const std::vector<uint8_t>& x, int64_t m, int64_t row,
                   int64_t column, bool has_relu) {
  double sum = 0;
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t k = 0; k < 9; ++k) {
      const int64_t at_row = row + k / 3 - 1;
      const int64_t at_column = column + k % 3 - 1;
      if (at_row < 0 || at_row >= side || at_column < 0 || at_column >= side) continue;
      const int code = x[static_cast<size_t>((c * side + at_row) * side + at_column)];
      const int weight = weights.w[static_cast<size_t>((m * channels + c) * 9 + k)];
      sum += (code - x_zero) * double{x_scale} * (weight * double{weights.scales[size_t(m)]});
    }
  }
  sum += weights.bias[size_t(m)] * (double{weights.scales[size_t(m)]} * x_scale);
  return has_relu ? std::max(sum, 0.0) : sum;
}

TEST(OnnxQuantizedUnits, ConvIsWithinOneStepOfItsNodes) {
  std::mt19937 random(3);
  for (const bool has_relu : {false, true}) {
    const Weights weights = weights_of(random);
    const onnx::Plan plan = plan_of(conv_unit(weights, has_relu));
    const auto wanted = has_relu ? std::vector<std::string>{"QLinearConv", "Max"}
                                 : std::vector<std::string>{"QLinearConv"};
    EXPECT_EQ(ops_of(plan), wanted);
    const auto function = whole_function(plan);
    ASSERT_TRUE(function) << function.error().message;
    std::vector<uint8_t> x(channels * side * side);
    for (uint8_t& code : x) code = static_cast<uint8_t>(random());
    std::vector<uint8_t> y(filters * side * side);
    const ConstView in(x.data(), ElementType::u8, {1, channels, side, side}, x.size());
    const View out(y.data(), ElementType::u8, {1, filters, side, side}, y.size());
    ASSERT_TRUE(interpret(**function, {&in, 1}, {&out, 1}));
    for (size_t i = 0; i < y.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      const double real =
          real_result(weights, x, at / (side * side), at / side % side, at % side, has_relu);
      const double exact = std::clamp(real / y_scale + y_zero, 0.0, 255.0);
      EXPECT_LE(std::abs(y[i] - exact), 0.5 + 1e-4) << i;
    }
  }
}

TEST(OnnxQuantizedUnits, StandForAllTheirNodes) {
  std::mt19937 random(3);
  const onnx::Plan plan = plan_of(conv_unit(weights_of(random), false));
  ASSERT_EQ(plan.graph.nodes.size(), 1u);
  EXPECT_EQ(plan.graph.nodes[0].origins, (std::vector<onnx::NodeIndex>{0, 1, 2, 3, 4}));
  EXPECT_EQ(plan.read.size(), 5u);
}

TEST(OnnxQuantizedUnits, StrictLeavesThemAlone) {
  std::mt19937 random(3);
  const onnx::Plan plan = plan_of(conv_unit(weights_of(random), false), true);
  EXPECT_EQ(plan.graph.nodes.size(), 5u);
  EXPECT_FALSE(plan.is_complete());
}

/// What somebody else reads stays beside the unit.
TEST(OnnxQuantizedUnits, SharedNodesStay) {
  std::mt19937 random(3);
  OnnxMaker maker = conv_unit(weights_of(random), false);
  maker.node("Abs", {"x"}, {"z"});
  maker.output("z", OnnxMaker::f32, {1, channels, side, side});
  EXPECT_EQ(ops_of(plan_of(maker)),
            (std::vector<std::string>{"DequantizeLinear", "QLinearConv", "Abs"}));
}

/// Makes a node one of somebody else's operators.
void give_away(OnnxMaker& maker, int node) {
  maker.import("somebody", 1);
  maker.graph().mutable_node(node)->set_domain("somebody");
}

const Spoiled spoiled[] = {
    {"the sum is read too",
     [](OnnxMaker& maker) {
       maker.node("Neg", {"c"}, {"z"});
       maker.output("z", OnnxMaker::f32, {1, filters, side, side});
     }},
    {"the bias has another scale",
     [](OnnxMaker& maker) {
       const std::vector<float> scales(filters, 0.5f);
       tensor(maker, "bs").set_raw_data(scales.data(), scales.size() * sizeof(float));
     }},
    {"the scale comes from outside",
     [](OnnxMaker& maker) {
       maker.input("runtime_scale", OnnxMaker::f32, {});
       maker.graph().mutable_node(0)->set_input(1, "runtime_scale");
     }},
    {"weights are scaled along another axis",
     [](OnnxMaker& maker) { maker.graph().mutable_node(1)->mutable_attribute(0)->set_i(1); }},
    {"x has no scale",
     [](OnnxMaker& maker) {
       auto& inputs = *maker.graph().mutable_node(0)->mutable_input();
       inputs.DeleteSubrange(1, 2);
     }},
    {"weights are dequantized from nothing",
     [](OnnxMaker& maker) { maker.graph().mutable_node(1)->set_input(0, ""); }},
    {"the result has no scale",
     [](OnnxMaker& maker) {
       auto& inputs = *maker.graph().mutable_node(4)->mutable_input();
       inputs.DeleteSubrange(1, 2);
     }},
    {"the result's type is unknown",
     [](OnnxMaker& maker) {
       maker.graph().mutable_node(4)->mutable_input()->RemoveLast();
       OnnxMaker::integer(*maker.graph().mutable_node(4), "output_dtype", 99);
     }},
    {"the result's type is not that of its zero point",
     [](OnnxMaker& maker) {
       OnnxMaker::integer(*maker.graph().mutable_node(4), "output_dtype", OnnxMaker::i8);
     }},
    {"the sum is the scale",
     [](OnnxMaker& maker) {
       maker.graph().mutable_node(4)->set_input(0, "ys");
       maker.graph().mutable_node(4)->set_input(1, "c");
     }},
    {"the convolution has a second result",
     [](OnnxMaker& maker) { maker.graph().mutable_node(3)->add_output("c2"); }},
    {"DequantizeLinear is another domain's", [](OnnxMaker& maker) { give_away(maker, 0); }},
    {"QuantizeLinear is another domain's", [](OnnxMaker& maker) { give_away(maker, 4); }},
    {"the convolution has no result",
     [](OnnxMaker& maker) {
       maker.graph().mutable_node(3)->clear_output();
       maker.graph().mutable_node(4)->set_input(0, "bf");
       maker.graph().mutable_output(0)->clear_type();
     }},
};

TEST(OnnxQuantizedUnits, WhatKeepsThemApart) {
  std::mt19937 random(3);
  for (const Spoiled& one : spoiled) {
    SCOPED_TRACE(one.name);
    OnnxMaker maker = conv_unit(weights_of(random), false);
    one.spoil(maker);
    const Result<onnx::Graph> graph = maker.read();
    ASSERT_TRUE(graph) << graph.error().message;
    const auto plan = make_plan(*graph);
    ASSERT_TRUE(plan) << plan.error().message;
    EXPECT_TRUE(std::ranges::find(plan->graph.nodes, "Conv", &onnx::Node::op_type) !=
                plan->graph.nodes.end());
  }
}

/// The largest with the zero point is the code of Relu's result where scales are positive, and Relu
/// is ONNX's own.
TEST(OnnxQuantizedUnits, WhatKeepsReluApart) {
  std::mt19937 random(3);
  OnnxMaker falling = conv_unit(weights_of(random), true);
  const float scale = -y_scale;
  tensor(falling, "ys").set_raw_data(&scale, sizeof scale);
  OnnxMaker foreign = conv_unit(weights_of(random), true);
  give_away(foreign, 4);
  for (const OnnxMaker* maker : {&falling, &foreign}) {
    EXPECT_NE(std::ranges::count(ops_of(plan_of(*maker)), "Conv"), 0);
  }
}

/// Scales of b go with the columns of all its matrices: its last axis, whatever its rank is.
TEST(OnnxQuantizedUnits, ColumnsOfSeveralMatrices) {
  struct Row {
    std::vector<int64_t> b;
    int64_t axis;
    bool is_fused;
  };
  const Row rows[] = {{{3, 3}, 1, true},     {{3, 3}, -1, true},    {{3, 3}, 0, false},
                      {{3, 3}, -2, false},   {{3, 3, 3}, 2, true},  {{3, 3, 3}, -1, true},
                      {{3, 3, 3}, 1, false}, {{3, 3, 3}, 0, false}, {{3}, 0, false}};
  for (const Row& row : rows) {
    SCOPED_TRACE(testing::Message() << row.b.size() << " axes, axis " << row.axis);
    OnnxMaker maker;
    maker.input("qa", OnnxMaker::u8, {2, 3});
    for (const char* s : {"as", "ys"}) maker.constant<float>(s, OnnxMaker::f32, {}, {0.5f});
    size_t elements = 1;
    for (const int64_t extent : row.b) elements *= static_cast<size_t>(extent);
    auto& b = maker.constant("b", OnnxMaker::i8, {}, std::vector<int8_t>(elements, 1));
    for (const int64_t extent : row.b) b.add_dims(extent);
    maker.constant<float>("bs", OnnxMaker::f32, {3}, {1, 2, 4});
    maker.node("DequantizeLinear", {"qa", "as"}, {"a"});
    OnnxMaker::integer(maker.node("DequantizeLinear", {"b", "bs"}, {"bf"}), "axis", row.axis);
    maker.node("MatMul", {"a", "bf"}, {"p"});
    maker.node("QuantizeLinear", {"p", "ys"}, {"y"});
    maker.output("y", OnnxMaker::u8, {});
    maker.graph().mutable_output(0)->clear_type();
    EXPECT_EQ(ops_of(plan_of(maker)).front() == "QLinearMatMul", row.is_fused);
  }
}

/// a[2, 3] by b, in the three forms that MatMul and Gemm have.
OnnxMaker product_unit(const std::string& op_type, bool is_transposed) {
  OnnxMaker maker;
  maker.input("qa", OnnxMaker::u8, {2, 3});
  maker.constant<float>("as", OnnxMaker::f32, {}, {0.5f});
  maker.constant<uint8_t>("az", OnnxMaker::u8, {}, {10});
  const std::vector<int8_t> b = {1, -2, 3, -4, 5, -6};  // [3, 2]
  const std::vector<int8_t> turned = {1, 3, 5, -2, -4, -6};
  if (is_transposed) {
    maker.constant("b", OnnxMaker::i8, {2, 3}, turned);
  } else {
    maker.constant("b", OnnxMaker::i8, {3, 2}, b);
  }
  maker.constant<float>("bs", OnnxMaker::f32, {2}, {0.25f, 0.5f});
  maker.constant<float>("ys", OnnxMaker::f32, {}, {0.125f});
  maker.constant<uint8_t>("yz", OnnxMaker::u8, {}, {100});
  maker.node("DequantizeLinear", {"qa", "as", "az"}, {"a"});
  auto& dequantize = maker.node("DequantizeLinear", {"b", "bs"}, {"bf"});
  OnnxMaker::integer(dequantize, "axis", is_transposed ? 0 : 1);
  auto& product = maker.node(op_type, {"a", "bf"}, {"p"});
  if (is_transposed) OnnxMaker::integer(product, "transB", 1);
  maker.node("QuantizeLinear", {"p", "ys", "yz"}, {"y"});
  maker.output("y", OnnxMaker::u8, {2, 2});
  return maker;
}

TEST(OnnxQuantizedUnits, Products) {
  struct Row {
    std::string op_type;
    bool is_transposed;
    std::string fused;
  };
  const Row rows[] = {
      {"MatMul", false, "QLinearMatMul"}, {"Gemm", false, "QGemm"}, {"Gemm", true, "QGemm"}};
  const std::vector<uint8_t> a = {11, 12, 13, 9, 10, 20};
  // (a - 10) * b = {1 + 6 + 15, -2 - 8 - 18}, {-1 + 50, 2 - 60}; times 0.5 * {.25, .5} / 0.125
  const std::vector<uint8_t> wanted = {100 + 22, 100 - 56, 100 + 49, 0};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.fused);
    const onnx::Plan plan = plan_of(product_unit(row.op_type, row.is_transposed));
    EXPECT_EQ(ops_of(plan), std::vector<std::string>{row.fused});
    const auto function = whole_function(plan);
    ASSERT_TRUE(function) << function.error().message;
    std::vector<uint8_t> y(4);
    const ConstView in(a.data(), ElementType::u8, {2, 3}, a.size());
    const View out(y.data(), ElementType::u8, {2, 2}, y.size());
    ASSERT_TRUE(interpret(**function, {&in, 1}, {&out, 1}));
    EXPECT_EQ(y, wanted);
  }
}

/// A bias of several scales has one for each column: a vector says no other axis.
TEST(OnnxQuantizedUnits, BiasesOfSeveralScales) {
  struct Row {
    std::vector<int64_t> extents;
    int64_t axis;
    bool is_fused;
  };
  const Row rows[] = {{{2}, 0, true}, {{2, 2}, 0, false}, {{2, 2}, 1, false}, {{2, 1}, 0, false}};
  for (const Row& row : rows) {
    OnnxMaker maker = product_unit("Gemm", false);
    size_t elements = 1;
    for (const int64_t extent : row.extents) elements *= static_cast<size_t>(extent);
    auto& c = maker.constant("c", OnnxMaker::i32, {}, std::vector<int32_t>(elements, 3));
    for (const int64_t extent : row.extents) c.add_dims(extent);
    maker.constant<float>("cs", OnnxMaker::f32, {2}, {0.125f, 0.25f});
    auto& dequantize = maker.node("DequantizeLinear", {"c", "cs"}, {"cf"});
    OnnxMaker::integer(dequantize, "axis", row.axis);
    maker.graph().mutable_node(2)->add_input("cf");
    EXPECT_EQ(ops_of(plan_of(maker)).back() == "QGemm", row.is_fused)
        << row.extents.size() << " axes, axis " << row.axis;
  }
}

/// An engine computes what stays beside a unit; a unit whose function reads what comes before is
/// none there.
TEST(OnnxQuantizedUnits, WhereAnEngineRunsTheRemainder) {
  std::mt19937 random(3);
  for (const bool is_read_elsewhere : {false, true}) {
    OnnxMaker maker = conv_unit(weights_of(random), false);
    if (is_read_elsewhere) {
      maker.node("Abs", {"x"}, {"z"});
      maker.output("z", OnnxMaker::f32, {1, channels, side, side});
    }
    Result<onnx::Graph> graph = maker.read();
    ASSERT_TRUE(graph) << graph.error().message;
    ASSERT_TRUE(connect(*graph));
    ASSERT_TRUE(fuse_quantized_units(*graph, onnx::Remainder::engine));
    const auto convolutions = std::ranges::count(graph->nodes, "QLinearConv", &onnx::Node::op_type);
    EXPECT_EQ(convolutions, is_read_elsewhere ? 0 : 1);
  }
}

}  // namespace
}  // namespace castor
