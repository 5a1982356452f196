// SPDX-License-Identifier: Apache-2.0
// Single nodes whose rules have more to them than a translation: what they give, or why they are
// left.
#include <fmt/format.h>

#include <bit>

#include "ir/numerics/scalar.hpp"
#include "runtime/onnx/examine.hpp"
#include "tests/support/interpreted.hpp"
#include "tests/support/onnx_plan.hpp"

namespace castor::test {
namespace {

constexpr int32_t f16 = 10, boolean = 9, f6e2m3 = 27;  // TensorProto.DataType

std::vector<uint64_t> patterns_of(const std::vector<float>& numbers, ElementType type) {
  std::vector<uint64_t> patterns;
  for (const float number : numbers) {
    patterns.push_back(
        numerics::convert(std::bit_cast<uint32_t>(number), ElementType::f32, type, {}));
  }
  return patterns;
}

/// The sums of these do not fit f16, or round there.
TEST(OnnxRules, MeansOfHalvesAreComputedInF32) {
  struct Row {
    int64_t elements;
    float number;
    float mean;
  };
  for (const Row& row : {Row{65536, 0.5f, 0.5f}, Row{4096, 20, 20}, Row{2049, 4, 4}}) {
    for (const bool pools : {false, true}) {
      OnnxMaker maker(17);
      maker.input("x", f16, {1, 1, row.elements});
      auto& node = maker.node(pools ? "GlobalAveragePool" : "ReduceMean", {"x"}, {"y"});
      if (!pools) OnnxMaker::integers(node, "axes", {2});
      maker.output("y", f16, {1, 1, 1});
      const FunctionPtr function = maker.function();
      ASSERT_TRUE(function);
      const std::vector<float> numbers(static_cast<size_t>(row.elements), row.number);
      const Patterns x{
          ElementType::f16, {1, 1, row.elements}, patterns_of(numbers, ElementType::f16)};
      EXPECT_EQ(interpreted(*function, {x}).elements, patterns_of({row.mean}, ElementType::f16))
          << row.elements << (pools ? " pooled" : "");
    }
  }
}

TEST(OnnxRules, QuantizedTypesThatAttributesName) {
  const auto quantized = [](int64_t output, int64_t precision) {
    OnnxMaker maker(25);
    maker.input("x", OnnxMaker::f32, {4});
    maker.constant<float>("s", OnnxMaker::f32, {}, {1});
    auto& node = maker.node("QuantizeLinear", {"x", "s"}, {"q"});
    if (output != 0) OnnxMaker::integer(node, "output_dtype", output);
    if (precision != 0) OnnxMaker::integer(node, "precision", precision);
    maker.node("DequantizeLinear", {"q", "s"}, {"y"});
    maker.output("y", OnnxMaker::f32, {4});
    return maker;
  };
  const FunctionPtr function = quantized(f6e2m3, 1).function();
  ASSERT_TRUE(function);
  const Patterns x{ElementType::f32, {4}, patterns_of({-1.5, 0.25, 3.7f, 100}, ElementType::f32)};
  EXPECT_EQ(interpreted(*function, {x}).elements,
            patterns_of({-1.5, 0.25, 3.75, 7.5}, ElementType::f32));
  struct Row {
    int64_t output;
    int64_t precision;
    const char* reason;
  };
  for (const Row& row :
       {Row{8, 0, "output_dtype is STRING"}, Row{99, 0, "output_dtype is data type 99"},
        Row{0, 99, "precision is data type 99"}}) {
    EXPECT_EQ(plan_of(quantized(row.output, row.precision)).verdicts.front().reason, row.reason);
  }
}

TEST(OnnxRules, OperatorSetsThatAreNewerAreLeft) {
  OnnxMaker maker(17);
  maker.import("f", 1);
  onnx_file::FunctionProto& function = *maker.model().add_functions();
  function.set_domain("f");
  function.set_name("Twice");
  function.add_input("a");
  function.add_output("b");
  auto* import = function.add_opset_import();
  import->set_version(30);
  onnx_file::NodeProto& body = *function.add_node();
  body.set_op_type("Neg");
  body.add_input("a");
  body.add_output("b");
  maker.input("x", OnnxMaker::f32, {2});
  maker.node("Twice", {"x"}, {"y"}).set_domain("f");
  maker.output("y", OnnxMaker::f32, {2});
  EXPECT_EQ(plan_of(maker).verdicts.front().reason,
            "it is of operator set 30, expected at most 25");
}

TEST(OnnxRules, PowTakesNoShapeOfItsExponent) {
  const auto squared = [](std::initializer_list<int64_t> exponent,
                          std::initializer_list<int64_t> result) {
    OnnxMaker maker;
    maker.input("x", OnnxMaker::f32, {3});
    maker.constant<float>("e", OnnxMaker::f32, exponent, {2});
    maker.node("Pow", {"x", "e"}, {"y"});
    maker.output("y", OnnxMaker::f32, result);
    return plan_of(maker);
  };
  EXPECT_TRUE(squared({1}, {3}).is_complete());
  EXPECT_TRUE(squared({}, {3}).is_complete());
  EXPECT_EQ(squared({1, 1}, {1, 3}).verdicts.front().reason,
            "the exponent has more axes than the base");
}

/// With an engine for the other nodes, a node whose declared shape is wrong does not refuse the
/// model.
TEST(OnnxRules, ContradictingNodesAreLeftToAnEngine) {
  OnnxMaker maker;
  maker.input("x", OnnxMaker::f32, {3});
  maker.node("Neg", {"x"}, {"t"});
  maker.node("Abs", {"x"}, {"y"});
  maker.output("t", OnnxMaker::f32, {4});
  maker.output("y", OnnxMaker::f32, {3});
  Result<onnx::Graph> graph = maker.read();
  ASSERT_TRUE(graph) << graph.error().message;
  ASSERT_TRUE(connect(*graph));
  onnx::Graph copy = *graph;
  EXPECT_FALSE(examine(copy));
  const auto verdicts = examine(*graph, onnx::Remainder::engine);
  ASSERT_TRUE(verdicts) << verdicts.error().message;
  EXPECT_EQ((*verdicts)[0].kind, onnx::Verdict::Kind::left);
  EXPECT_NE((*verdicts)[0].reason.find("declared as"), std::string::npos) << (*verdicts)[0].reason;
  EXPECT_EQ((*verdicts)[1].kind, onnx::Verdict::Kind::taken);
}

/// False is below true; the largest of nothing is false, the least true.
TEST(OnnxRules, ExtremesOfBooleans) {
  struct Row {
    std::vector<uint64_t> x;
    uint64_t least;
    uint64_t largest;
  };
  for (const Row& row : {Row{{0, 1, 0}, 0, 1}, Row{{1, 1}, 1, 1}, Row{{0}, 0, 0}, Row{{}, 1, 0}}) {
    for (const bool is_max : {false, true}) {
      OnnxMaker maker(20);
      const auto count = static_cast<int64_t>(row.x.size());
      maker.input("x", boolean, {2, count});
      maker.constant<int64_t>("axes", OnnxMaker::i64, {1}, {1});
      OnnxMaker::integer(maker.node(is_max ? "ReduceMax" : "ReduceMin", {"x", "axes"}, {"y"}),
                         "keepdims", 0);
      maker.output("y", boolean, {2});
      const FunctionPtr function = maker.function();
      ASSERT_TRUE(function);
      std::vector<uint64_t> twice = row.x;
      twice.insert(twice.end(), row.x.begin(), row.x.end());
      const uint64_t wanted = is_max ? row.largest : row.least;
      EXPECT_EQ(interpreted(*function, {{ElementType::boolean, {2, count}, twice}}).elements,
                (std::vector<uint64_t>{wanted, wanted}))
          << count << " booleans";
    }
  }
}

TEST(OnnxRules, InfinitiesOfNoSign) {
  OnnxMaker maker;
  maker.input("x", OnnxMaker::f32, {4});
  auto& node = maker.node("IsInf", {"x"}, {"y"});
  OnnxMaker::integer(node, "detect_negative", 0);
  OnnxMaker::integer(node, "detect_positive", 0);
  maker.output("y", boolean, {4});
  const FunctionPtr function = maker.function();
  ASSERT_TRUE(function);
  const Patterns x{ElementType::f32, {4}, {0x7f800000, 0xff800000, 0x7fc00000, 0}};
  EXPECT_EQ(interpreted(*function, {x}).elements, (std::vector<uint64_t>{0, 0, 0, 0}));
}

/// What a body defines for itself is not what the graph calls by that name.
TEST(OnnxRules, BodiesHaveNamesOfTheirOwn) {
  OnnxMaker maker;
  maker.input("c", boolean, {});
  maker.input("x", OnnxMaker::f32, {2});
  onnx_file::NodeProto& condition = maker.node("If", {"c"}, {"y"});
  for (const char* name : {"then_branch", "else_branch"}) {
    onnx_file::AttributeProto& attribute = *condition.add_attribute();
    attribute.set_name(name);
    attribute.set_type(5);
    onnx_file::GraphProto& body = *attribute.mutable_g();
    for (const auto& [input, output] : {std::pair("x", "t"), std::pair("t", "y")}) {
      onnx_file::NodeProto& inner = *body.add_node();
      inner.set_op_type("Neg");
      inner.add_input(input);
      inner.add_output(output);
    }
    body.add_output()->set_name("y");
  }
  maker.node("Abs", {"y"}, {"t"});
  maker.output("t", OnnxMaker::f32, {2});
  const onnx::Plan plan = plan_of(maker);
  ASSERT_EQ(plan.read, (std::vector<std::string>{"node If_0 (If)", "node Abs_1 (Abs)"}));
  std::vector<std::string> read;
  for (const onnx::ValueIndex input : plan.graph.nodes[0].inputs) {
    read.push_back(plan.graph.values[input].name);
  }
  EXPECT_EQ(read, (std::vector<std::string>{"c", "x", "x"}));
}

TEST(OnnxRules, AnInputThatCastorLacksIsNoNodesFault) {
  OnnxMaker maker;
  maker.input("u", 8, {2});  // strings
  maker.input("x", OnnxMaker::f32, {2});
  maker.node("Neg", {"x"}, {"y"});
  maker.output("y", OnnxMaker::f32, {2});
  const auto function = whole_function(plan_of(maker));
  ASSERT_FALSE(function);
  EXPECT_TRUE(function.error().message.starts_with("the inputs: the element type of u is unknown"))
      << function.error().message;
}

}  // namespace
}  // namespace castor::test
