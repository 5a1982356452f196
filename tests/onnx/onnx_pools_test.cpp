// SPDX-License-Identifier: Apache-2.0
// Pools over whole planes, in models of opsets that ONNX's own node tests do not have, and over
// windows: ceil_mode, and what is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "ir/interpreter/interpreter.hpp"
#include "ir/verify/infer.hpp"
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

/// One spatial axis of a MaxPool with ceil_mode = 1.
struct Axis {
  int64_t input, kernel, dilation, stride, pad_begin, pad_end;
  int64_t window() const { return (kernel - 1) * dilation + 1; }
};

std::string to_string(const Axis& axis) {
  return "input " + std::to_string(axis.input) + ", kernel " + std::to_string(axis.kernel) +
         ", dilation " + std::to_string(axis.dilation) + ", stride " + std::to_string(axis.stride) +
         ", pads " + std::to_string(axis.pad_begin) + " and " + std::to_string(axis.pad_end);
}

/// x[1, 1, ?] pooled; -1 as the extent leaves it open.
OnnxMaker rounded_up(const Axis& axis, int64_t extent) {
  OnnxMaker maker = pool("MaxPool", {1, 1, extent});
  onnx_file::NodeProto& node = *maker.graph().mutable_node(0);
  OnnxMaker::integer(node, "ceil_mode", 1);
  OnnxMaker::integers(node, "kernel_shape", {axis.kernel});
  OnnxMaker::integers(node, "dilations", {axis.dilation});
  OnnxMaker::integers(node, "strides", {axis.stride});
  OnnxMaker::integers(node, "pads", {axis.pad_begin, axis.pad_end});
  return maker;
}

/// The maxima as ONNX defines them: a last window that only padding at the end fills up counts, one
/// that begins there does not.
std::vector<float> maxima(const std::vector<float>& x, const Axis& axis) {
  const int64_t padded = axis.pad_begin + axis.input + axis.pad_end;
  std::vector<float> y;
  for (int64_t begin = 0; begin < axis.pad_begin + axis.input; begin += axis.stride) {
    // Rounded up, there is one window that ends after the padding or exactly with it.
    if (begin > 0 && begin - axis.stride + axis.window() >= padded) break;
    float largest = -std::numeric_limits<float>::infinity();
    for (int64_t k = 0; k < axis.kernel; ++k) {
      const int64_t at = begin + k * axis.dilation - axis.pad_begin;
      if (at >= 0 && at < axis.input) largest = std::max(largest, x[static_cast<size_t>(at)]);
    }
    y.push_back(largest);
  }
  return y;
}

void expect_maxima(const FunctionPtr& function, const Axis& axis) {
  std::vector<float> x;
  for (int64_t i = 0; i < axis.input; ++i) x.push_back(static_cast<float>((i * 5) % 7) - 3);
  const std::vector<float> wanted = maxima(x, axis);
  std::vector<float> y(wanted.size());
  const auto outputs = static_cast<int64_t>(y.size());
  const Dims extents = {1, 1, axis.input};
  const auto bound = bind_shapes(*function, {&extents, 1});
  ASSERT_TRUE(bound) << bound.error().message;
  ASSERT_EQ(bound->values[function->results[0]], (Dims{1, 1, outputs}));
  const ConstView in(x.data(), ElementType::f32, extents, x.size() * sizeof(float));
  const View out(y.data(), ElementType::f32, {1, 1, outputs}, y.size() * sizeof(float));
  const Status status = interpret(*function, {&in, 1}, {&out, 1});
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(y, wanted);
}

/// Calls `check` for many axes.
void for_axes(const std::function<void(const Axis&)>& check) {
  for (int64_t input = 1; input <= 7; ++input) {
    for (int64_t kernel = 1; kernel <= 3; ++kernel) {
      for (int64_t dilation = 1; dilation <= 2; ++dilation) {
        for (int64_t stride = 1; stride <= 4; ++stride) {
          for (int64_t pads = 0; pads < kernel * 3; ++pads) {
            check({input, kernel, dilation, stride, pads % kernel, pads / kernel});
          }
        }
      }
    }
  }
}

/// Windows that exceed the input and its padding by a stride or more have no output. ONNX's text
/// and its shape inference differ where more padding is at the end than a window takes.
bool is_defined(const Axis& axis) {
  return axis.window() - axis.stride < axis.pad_begin + axis.input + axis.pad_end &&
         axis.pad_end <= axis.window();
}

TEST(OnnxPools, RoundedUp) {
  for_axes([](const Axis& axis) {
    if (!is_defined(axis)) return;
    SCOPED_TRACE(to_string(axis));
    const FunctionPtr function = rounded_up(axis, axis.input).function();
    ASSERT_TRUE(function);
    expect_maxima(function, axis);
  });
}

/// The only node is left for that reason; nothing: it is taken.
std::optional<std::string> reason_of(const OnnxMaker& maker) {
  Result<onnx::Graph> graph = maker.read();
  EXPECT_TRUE(graph) << graph.error().message;
  const auto plan = make_plan(std::move(*graph));
  EXPECT_TRUE(plan) << plan.error().message;
  if (plan->is_complete()) return std::nullopt;
  return plan->verdicts[0].reason;
}

TEST(OnnxPools, RoundedUpOfUnknownExtents) {
  for_axes([](const Axis& axis) {
    if (!is_defined(axis)) return;
    SCOPED_TRACE(to_string(axis));
    const OnnxMaker maker = rounded_up(axis, -1);
    if (axis.stride + axis.pad_end <= axis.window()) {
      const FunctionPtr function = maker.function();
      ASSERT_TRUE(function);
      expect_maxima(function, axis);
    } else {
      EXPECT_EQ(reason_of(maker),
                "ceil_mode is 1, and the number of windows depends on an extent that is unknown");
    }
  });
}

/// With auto_pad, ceil_mode concerns VALID alone.
TEST(OnnxPools, RoundedUpWithoutPadding) {
  constexpr int64_t extents[] = {2, 3, 2};
  const char* const names[] = {"VALID", "SAME_UPPER", "NOTSET"};
  for (const bool is_up : {true, false}) {
    for (size_t i = 0; i < 3; ++i) {
      OnnxMaker maker = pool("MaxPool", {1, 1, 5});
      onnx_file::NodeProto& node = *maker.graph().mutable_node(0);
      OnnxMaker::text(node, "auto_pad", names[i]);
      OnnxMaker::integer(node, "ceil_mode", is_up ? 1 : 0);
      OnnxMaker::integers(node, "kernel_shape", {2});
      OnnxMaker::integers(node, "strides", {2});
      const FunctionPtr function = maker.function();
      ASSERT_TRUE(function);
      const int64_t wanted = is_up ? 3 : extents[i];
      EXPECT_EQ(function->type_of(function->results[0]).shape[2], Dim(wanted)) << names[i];
    }
  }
}

struct Refused {
  const char* reason;  ///< null: it is taken
  std::function<void(OnnxMaker&, onnx_file::NodeProto&)> change;
};

const Refused refused[] = {
    {nullptr, [](OnnxMaker&, onnx_file::NodeProto&) {}},
    {nullptr,  // an output that nobody reads; the order of indices alone
     [](OnnxMaker&, onnx_file::NodeProto& node) {
       node.add_output("indices");
       OnnxMaker::integer(node, "storage_order", 1);
     }},
    {"its indices are read, castor gives the maxima alone",
     [](OnnxMaker& maker, onnx_file::NodeProto& node) {
       node.add_output("indices");
       maker.output("indices", OnnxMaker::i64, {1, 1, 3, 3});
     }},
    {"auto_pad is SAME, expected NOTSET, SAME_UPPER, SAME_LOWER or VALID",
     [](OnnxMaker&, onnx_file::NodeProto& node) { OnnxMaker::text(node, "auto_pad", "SAME"); }},
    {"ceil_mode is 1 beside a number that is negative or above 2^30",
     [](OnnxMaker&, onnx_file::NodeProto& node) {
       OnnxMaker::integer(node, "ceil_mode", 1);
       OnnxMaker::integers(node, "dilations", {1, std::numeric_limits<int64_t>::max()});
     }},
    {"max_pool: strides has 1 entries, expected 2: one for each spatial axis",
     [](OnnxMaker&, onnx_file::NodeProto& node) {
       OnnxMaker::integer(node, "ceil_mode", 1);
       OnnxMaker::integers(node, "strides", {2});
     }},
    {"max_pool: pads[3] = -1, expected 0 or more",
     [](OnnxMaker&, onnx_file::NodeProto& node) {
       OnnxMaker::integers(node, "pads", {0, 0, 0, -1});
     }},
};

TEST(OnnxPools, WhatIsRefused) {
  for (const Refused& one : refused) {
    SCOPED_TRACE(one.reason == nullptr ? "taken" : one.reason);
    OnnxMaker maker = pool("MaxPool", {1, 1, 4, 4});
    onnx_file::NodeProto& node = *maker.graph().mutable_node(0);
    OnnxMaker::integers(node, "kernel_shape", {2, 2});
    one.change(maker, node);
    const auto reason = reason_of(maker);
    EXPECT_EQ(reason.has_value(), one.reason != nullptr);
    if (reason && one.reason != nullptr) {
      EXPECT_TRUE(reason->ends_with(one.reason)) << *reason;
    }
  }
}

}  // namespace
}  // namespace castor
