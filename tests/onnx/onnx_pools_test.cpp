// SPDX-License-Identifier: Apache-2.0
// Pools over whole planes, in models of opsets that ONNX's own node tests do not have.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "ir/interpreter/interpreter.hpp"
#include "runtime/onnx/plan.hpp"
#include "tests/support/onnx_maker.hpp"

namespace castor {
namespace {

using test::OnnxMaker;

OnnxMaker pool(const char* op_type, std::initializer_list<int64_t> extents) {
  OnnxMaker maker;
  maker.input("x", OnnxMaker::f32, extents);
  maker.node(op_type, {"x"}, {"y"});
  maker.output("y", OnnxMaker::f32, {});
  maker.graph().mutable_output(0)->clear_type();
  return maker;
}

TEST(OnnxPools, OverPlanes) {
  constexpr size_t planes = 6, elements = 20;
  std::vector<float> x(planes * elements);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>((i * 37) % 64) / 4 - 7;
  for (const bool is_mean : {true, false}) {
    const FunctionPtr function =
        pool(is_mean ? "GlobalAveragePool" : "GlobalMaxPool", {2, 3, 4, 5}).function();
    ASSERT_TRUE(function);
    std::vector<float> y(planes);
    const ConstView in(x.data(), ElementType::f32, {2, 3, 4, 5}, x.size() * sizeof(float));
    const View out(y.data(), ElementType::f32, {2, 3, 1, 1}, y.size() * sizeof(float));
    ASSERT_TRUE(interpret(*function, {&in, 1}, {&out, 1}).ok());
    for (size_t plane = 0; plane < planes; ++plane) {
      const auto begin = x.begin() + static_cast<ptrdiff_t>(plane * elements);
      const auto end = begin + elements;
      const float mean = std::accumulate(begin, end, 0.0f) / elements;  // quarters: exact sums
      EXPECT_EQ(y[plane], is_mean ? mean : *std::max_element(begin, end)) << plane;
    }
  }
}

TEST(OnnxPools, WithoutChannels) {
  Result<onnx::Graph> graph = pool("GlobalAveragePool", {7}).read();
  ASSERT_TRUE(graph) << graph.error().message;
  const auto plan = make_plan(std::move(*graph));
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->verdicts[0].kind, onnx::Verdict::Kind::left);
  EXPECT_EQ(plan->verdicts[0].reason, "the operand has no channels");
}

}  // namespace
}  // namespace castor
