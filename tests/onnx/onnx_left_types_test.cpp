// SPDX-License-Identifier: Apache-2.0
// Types after nodes that castor leaves: the rules of ONNX's shape inference, and numbers so large
// that they say nothing.
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "runtime/onnx/left_types.hpp"
#include "tests/support/onnx_maker.hpp"

namespace castor {
namespace {

using test::OnnxMaker;

constexpr int64_t largest = std::numeric_limits<int64_t>::max();
constexpr int64_t least = std::numeric_limits<int64_t>::min();

using Numbers = std::initializer_list<int64_t>;

struct Window {
  const char* what;
  Numbers kernel, strides, dilations, pads;
  Numbers extents;  ///< -1 where nothing is known
};

constexpr int64_t open = -1;

/// The extents of y = op(x), x being f32[1, 3, 28, 30].
std::vector<int64_t> extents_of(const std::function<void(OnnxMaker&)>& fill) {
  OnnxMaker maker;
  maker.input("x", OnnxMaker::f32, {1, 3, 28, 30});
  fill(maker);
  maker.output("z", OnnxMaker::f32, {});
  maker.graph().mutable_output(0)->clear_type();
  auto graph = onnx_file::parse_model(maker.model().SerializeAsString(), "no such folder");
  EXPECT_TRUE(graph) << graph.error().to_string();
  if (!graph) return {};
  onnx::infer_left_types(*graph, 0);
  const onnx::Value& value = graph->values[graph->nodes[0].outputs[0]];
  if (!value.shape) return {};
  EXPECT_EQ(value.element, ElementType::f32);
  std::vector<int64_t> extents;
  for (const Dim& dim : *value.shape) extents.push_back(dim.is_fixed() ? dim.extent : open);
  return extents;
}

TEST(LeftTypes, Windows) {
  const Window rows[] = {
      {"plain", {3, 3}, {}, {}, {}, {1, 3, 26, 28}},
      {"padded", {3, 3}, {}, {}, {1, 0, 1, 2}, {1, 3, 28, 30}},
      {"strides", {2, 3}, {2, 3}, {}, {}, {1, 3, 14, 10}},
      {"dilated", {3, 3}, {1, 1}, {4, 2}, {}, {1, 3, 20, 26}},
      {"window larger than the input", {29, 1}, {}, {}, {}, {1, 3, open, 30}},
      {"kernel beyond any", {largest, least}, {}, {}, {}, {1, 3, open, open}},
      {"dilation beyond any", {3, 3}, {}, {largest, 1}, {}, {1, 3, open, 28}},
      {"pads beyond any", {3, 3}, {}, {}, {largest, least, 1, 1}, {1, 3, open, open}},
      {"stride of 0", {3, 3}, {0, 1}, {}, {}, {1, 3, open, 28}},
  };
  for (const Window& row : rows) {
    const auto found = extents_of([&](OnnxMaker& maker) {
      auto& node = maker.node("LpPool", {"x"}, {"z"});
      OnnxMaker::integers(node, "kernel_shape", row.kernel);
      if (row.strides.size() > 0) OnnxMaker::integers(node, "strides", row.strides);
      if (row.dilations.size() > 0) OnnxMaker::integers(node, "dilations", row.dilations);
      if (row.pads.size() > 0) OnnxMaker::integers(node, "pads", row.pads);
    });
    EXPECT_EQ(found, std::vector<int64_t>(row.extents)) << row.what;
  }
}

TEST(LeftTypes, Concatenations) {
  struct Row {
    int64_t axis;
    int64_t other;  ///< the second operand's extent of axis 1
    std::vector<int64_t> extents;
  };
  const Row rows[] = {{1, 5, {1, 8, 28, 30}},
                      {-3, 5, {1, 8, 28, 30}},
                      {1, largest, {1, open, 28, 30}},
                      {4, 5, {}},
                      {least, 5, {}}};
  for (const Row& row : rows) {
    const auto found = extents_of([&](OnnxMaker& maker) {
      maker.input("y", OnnxMaker::f32, {1, row.other, 28, 30});
      OnnxMaker::integer(maker.node("Concat", {"x", "y"}, {"z"}), "axis", row.axis);
    });
    EXPECT_EQ(found, row.extents) << row.axis << ", " << row.other;
  }
}

}  // namespace
}  // namespace castor
