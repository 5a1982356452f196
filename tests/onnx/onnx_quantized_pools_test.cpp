// SPDX-License-Identifier: Apache-2.0
// DequantizeLinear, MaxPool, QuantizeLinear as one MaxPool of codes: which nodes it stands for,
// what keeps it from being one, and that its bits are those of the nodes.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "ir/interpreter/interpreter.hpp"
#include "runtime/onnx/plan.hpp"
#include "tests/support/onnx_plan.hpp"

namespace castor {
namespace {

using test::OnnxMaker;
using test::ops_of;
using test::plan_of;
using test::Spoiled;
using test::tensor;

constexpr int64_t codes = 256;

/// All codes of a type, dequantized, the larger of each two, quantized again.
OnnxMaker pool_unit(bool is_signed, float scale, uint8_t zero, int64_t kernel = 2) {
  const int32_t type = is_signed ? OnnxMaker::i8 : OnnxMaker::u8;
  OnnxMaker maker;
  maker.input("qx", type, {1, 1, codes});
  for (const char* s : {"xs", "ys"}) maker.constant<float>(s, OnnxMaker::f32, {}, {scale});
  for (const char* z : {"xz", "yz"}) maker.constant<uint8_t>(z, type, {}, {zero});
  maker.node("DequantizeLinear", {"qx", "xs", "xz"}, {"x"});
  OnnxMaker::integers(maker.node("MaxPool", {"x"}, {"p"}), "kernel_shape", {kernel});
  maker.node("QuantizeLinear", {"p", "ys", "yz"}, {"y"});
  maker.output("y", type, {1, 1, codes + 1 - kernel});
  return maker;
}

std::vector<uint8_t> pooled_codes(const onnx::Plan& plan, bool is_signed, int64_t kernel) {
  const auto function = whole_function(plan);
  EXPECT_TRUE(function) << function.error().message;
  const ElementType type = is_signed ? ElementType::i8 : ElementType::u8;
  std::vector<uint8_t> x;
  for (int i = 0; i < codes; ++i) x.push_back(static_cast<uint8_t>(i * 93));  // each once
  std::vector<uint8_t> y(static_cast<size_t>(codes + 1 - kernel));
  const ConstView in(x.data(), type, {1, 1, codes}, x.size());
  const View out(y.data(), type, {1, 1, codes + 1 - kernel}, y.size());
  EXPECT_TRUE(interpret(**function, {&in, 1}, {&out, 1}));
  return y;
}

TEST(OnnxQuantizedPools, GiveTheBitsOfTheirNodes) {
  constexpr float largest = std::numeric_limits<float>::max() / 255;
  for (const float scale : {0.02f, 1.0f / 3, 0x1p-149f, 0x1.8p-140f, 0x1p-126f, 1e30f, largest}) {
    for (const uint8_t zero : {0, 1, 120, 128, 255}) {
      for (const bool is_signed : {false, true}) {
        for (const int64_t kernel : {1, 2}) {
          const OnnxMaker maker = pool_unit(is_signed, scale, zero, kernel);
          const onnx::Plan unit = plan_of(maker);
          EXPECT_EQ(ops_of(unit), std::vector<std::string>{"MaxPool"});
          EXPECT_EQ(pooled_codes(unit, is_signed, kernel),
                    pooled_codes(plan_of(maker, true), is_signed, kernel))
              << scale << ", " << int{zero};
        }
      }
    }
  }
}

TEST(OnnxQuantizedPools, StandForTheirNodes) {
  const onnx::Plan plan = plan_of(pool_unit(false, 0.5f, 3));
  ASSERT_EQ(plan.graph.nodes.size(), 1u);
  EXPECT_EQ(plan.graph.nodes[0].origins, (std::vector<onnx::NodeIndex>{0, 1, 2}));
}

/// A zero point that is left out is 0.
TEST(OnnxQuantizedPools, WithoutZeroPoints) {
  OnnxMaker maker = pool_unit(false, 0.5f, 0);
  maker.graph().mutable_node(0)->mutable_input()->RemoveLast();
  EXPECT_EQ(ops_of(plan_of(maker)), std::vector<std::string>{"MaxPool"});
}

/// Two pools and another node read what is dequantized.
TEST(OnnxQuantizedPools, SharedNodesStay) {
  OnnxMaker maker = pool_unit(false, 0.5f, 3);
  OnnxMaker::integers(maker.node("MaxPool", {"x"}, {"p2"}), "kernel_shape", {3});
  maker.node("QuantizeLinear", {"p2", "ys", "yz"}, {"y2"});
  maker.output("y2", OnnxMaker::u8, {1, 1, codes - 2});
  EXPECT_EQ(ops_of(plan_of(maker)), (std::vector<std::string>{"MaxPool", "MaxPool"}));
  maker.node("Abs", {"x"}, {"z"});
  maker.output("z", OnnxMaker::f32, {1, 1, codes});
  EXPECT_EQ(ops_of(plan_of(maker)),
            (std::vector<std::string>{"DequantizeLinear", "MaxPool", "MaxPool", "Abs"}));
}

void set_scales(OnnxMaker& maker, float x, float y) {
  tensor(maker, "xs").set_raw_data(&x, sizeof x);
  tensor(maker, "ys").set_raw_data(&y, sizeof y);
}

const Spoiled spoiled[] = {
    {"another scale",
     [](OnnxMaker& maker) { set_scales(maker, 0.5f, std::nextafter(0.5f, 1.0f)); }},
    {"scales below 0", [](OnnxMaker& maker) { set_scales(maker, -0.5f, -0.5f); }},
    {"scales of 0", [](OnnxMaker& maker) { set_scales(maker, 0, 0); }},
    {"scales without number", [](OnnxMaker& maker) { set_scales(maker, NAN, NAN); }},
    {"numbers beyond the largest", [](OnnxMaker& maker) { set_scales(maker, 1e37f, 1e37f); }},
    {"another zero point", [](OnnxMaker& maker) { tensor(maker, "yz").set_raw_data("\4", 1); }},
    {"no zero point at the end",
     [](OnnxMaker& maker) { maker.graph().mutable_node(2)->mutable_input()->RemoveLast(); }},
    {"another type",
     [](OnnxMaker& maker) {
       tensor(maker, "yz").set_data_type(OnnxMaker::i8);
       maker.graph().mutable_output(0)->clear_type();
     }},
    {"the scale comes from outside",
     [](OnnxMaker& maker) {
       maker.input("runtime_scale", OnnxMaker::f32, {});
       for (const int node : {0, 2})
         maker.graph().mutable_node(node)->set_input(1, "runtime_scale");
     }},
    {"the maxima are read too",
     [](OnnxMaker& maker) {
       maker.node("Neg", {"p"}, {"z"});
       maker.output("z", OnnxMaker::f32, {1, 1, codes - 1});
     }},
    {"the indices are read",
     [](OnnxMaker& maker) {
       maker.graph().mutable_node(1)->add_output("indices");
       maker.output("indices", OnnxMaker::i64, {1, 1, codes - 1});
     }},
    {"numbers of f16",
     [](OnnxMaker& maker) {
       OnnxMaker::integer(*maker.graph().mutable_node(0), "output_dtype", 10);
     }},
    {"quotients of f16",
     [](OnnxMaker& maker) { OnnxMaker::integer(*maker.graph().mutable_node(2), "precision", 10); }},
};

TEST(OnnxQuantizedPools, WhatKeepsThemApart) {
  for (const Spoiled& one : spoiled) {
    SCOPED_TRACE(one.name);
    OnnxMaker maker = pool_unit(false, 0.5f, 3);
    one.spoil(maker);
    const auto ops = ops_of(plan_of(maker));
    ASSERT_GE(ops.size(), 3u);
    EXPECT_EQ(ops[0], "DequantizeLinear");
    EXPECT_EQ(ops[2], "QuantizeLinear");
  }
}

}  // namespace
}  // namespace castor
