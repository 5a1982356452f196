// SPDX-License-Identifier: Apache-2.0
// Clip's bounds: attributes before opset 11, inputs since; what is left out is the largest number.
#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <vector>

#include "ir/interpreter/interpreter.hpp"
#include "tests/support/onnx_maker.hpp"

namespace castor {
namespace {

using test::OnnxMaker;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float largest = std::numeric_limits<float>::max();
const std::vector<float> xs = {-infinity, -largest, -2, -0.5f, 0, 0.5f, 2, largest, infinity};

enum class Given : uint8_t { attributes, constants, parameters };

/// y = Clip(x, lo, hi), each bound there or left out.
OnnxMaker clip(std::optional<float> lo, std::optional<float> hi, Given given) {
  OnnxMaker maker(given == Given::attributes ? 6 + 1 : 13);
  maker.input("x", OnnxMaker::f32, {static_cast<int64_t>(xs.size())});
  auto& node = maker.node("Clip", {"x"}, {"y"});
  maker.output("y", OnnxMaker::f32, {static_cast<int64_t>(xs.size())});
  const auto add = [&](const char* name, std::optional<float> bound) {
    if (given == Given::attributes) {
      if (bound) OnnxMaker::number(node, name, *bound);
      return;
    }
    node.add_input(bound ? name : "");
    if (!bound) return;
    if (given == Given::constants) {
      maker.constant<float>(name, OnnxMaker::f32, {}, {*bound});
    } else {
      maker.input(name, OnnxMaker::f32, {});
    }
  };
  add("min", lo);
  add("max", hi);
  return maker;
}

TEST(OnnxClip, BoundsThatAreLeftOutAreTheLargestNumbers) {
  const std::optional<float> none;
  const std::vector<std::pair<std::optional<float>, std::optional<float>>> bounds = {
      {none, none}, {-1.0f, none}, {none, 1.0f}, {-1.0f, 1.0f}, {1.0f, -1.0f}};
  for (const Given given : {Given::attributes, Given::constants, Given::parameters}) {
    for (const auto& [lo, hi] : bounds) {
      SCOPED_TRACE(testing::Message() << static_cast<int>(given) << ", " << lo.value_or(-largest)
                                      << " to " << hi.value_or(largest));
      const FunctionPtr function = clip(lo, hi, given).function();
      ASSERT_TRUE(function);
      std::vector<ConstView> in = {{xs.data(),
                                    ElementType::f32,
                                    {static_cast<int64_t>(xs.size())},
                                    xs.size() * sizeof(float)}};
      std::vector<float> given_bounds;
      if (lo) given_bounds.push_back(*lo);
      if (hi) given_bounds.push_back(*hi);
      for (const float& bound : given_bounds) {
        if (given == Given::parameters) in.push_back({&bound, ElementType::f32, {}, sizeof bound});
      }
      std::vector<float> y(xs.size());
      const View out(y.data(), ElementType::f32, {static_cast<int64_t>(xs.size())},
                     y.size() * sizeof(float));
      ASSERT_TRUE(interpret(*function, in, {&out, 1}));
      for (size_t i = 0; i < xs.size(); ++i) {
        const float above = std::max(xs[i], lo.value_or(-largest));
        EXPECT_EQ(y[i], std::min(above, hi.value_or(largest))) << xs[i];
      }
    }
  }
}

}  // namespace
}  // namespace castor
