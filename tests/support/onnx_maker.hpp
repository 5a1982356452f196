// SPDX-License-Identifier: Apache-2.0
// Models of ONNX made in a test.
#pragma once

#include <gtest/gtest.h>
#include <onnx.pb.h>

#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <vector>

#include "runtime/onnx/plan.hpp"
#include "tools/onnx/model.hpp"

namespace castor::test {

/// Collects a model; what it says may be wrong.
class OnnxMaker {
 public:
  static constexpr int32_t f32 = 1, u8 = 2, i8 = 3, i32 = 6, i64 = 7;  // TensorProto.DataType

  explicit OnnxMaker(int64_t opset = 21) { import("", opset); }

  onnx_file::ModelProto& model() { return model_; }
  onnx_file::GraphProto& graph() { return *model_.mutable_graph(); }

  void import(const std::string& domain, int64_t version) {
    auto* opset = model_.add_opset_import();
    opset->set_domain(domain);
    opset->set_version(version);
  }

  void input(const std::string& name, int32_t type, std::initializer_list<int64_t> extents) {
    declare(*graph().add_input(), name, type, extents);
  }
  void output(const std::string& name, int32_t type, std::initializer_list<int64_t> extents) {
    declare(*graph().add_output(), name, type, extents);
  }

  template <class Element>
  onnx_file::TensorProto& constant(const std::string& name, int32_t type,
                                   std::initializer_list<int64_t> extents,
                                   const std::vector<Element>& elements) {
    onnx_file::TensorProto& tensor = *graph().add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(type);
    for (const int64_t extent : extents) tensor.add_dims(extent);
    tensor.set_raw_data(elements.data(), elements.size() * sizeof(Element));
    return tensor;
  }

  onnx_file::NodeProto& node(const std::string& op_type, std::initializer_list<std::string> inputs,
                             std::initializer_list<std::string> outputs) {
    onnx_file::NodeProto& made = *graph().add_node();
    made.set_name(op_type + "_" + std::to_string(graph().node_size() - 1));
    made.set_op_type(op_type);
    for (const std::string& name : inputs) made.add_input(name);
    for (const std::string& name : outputs) made.add_output(name);
    return made;
  }

  static void integer(onnx_file::NodeProto& node, const std::string& name, int64_t value) {
    onnx_file::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(2);
    attribute.set_i(value);
  }
  static void number(onnx_file::NodeProto& node, const std::string& name, float value) {
    onnx_file::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(1);
    attribute.set_f(value);
  }
  static void text(onnx_file::NodeProto& node, const std::string& name, const std::string& value) {
    onnx_file::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(3);
    attribute.set_s(value);
  }
  static void integers(onnx_file::NodeProto& node, const std::string& name,
                       std::initializer_list<int64_t> values) {
    onnx_file::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(7);
    for (const int64_t value : values) attribute.add_ints(value);
  }

  Result<onnx::Graph> read(const std::filesystem::path& folder = ".") const {
    return onnx_file::parse_model(model_.SerializeAsString(), folder);
  }

  /// The whole model as a function; null where it is refused, which is a failure.
  FunctionPtr function() const {
    Result<onnx::Graph> graph = read();
    EXPECT_TRUE(graph) << graph.error().message;
    if (!graph) return nullptr;
    const auto plan = make_plan(std::move(*graph));
    EXPECT_TRUE(plan) << plan.error().message;
    if (!plan) return nullptr;
    const auto made = whole_function(*plan);
    EXPECT_TRUE(made) << made.error().message;
    return made ? *made : nullptr;
  }

 private:
  static void declare(onnx_file::ValueInfoProto& info, const std::string& name, int32_t type,
                      std::initializer_list<int64_t> extents) {
    info.set_name(name);
    auto* tensor = info.mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(type);
    auto* shape = tensor->mutable_shape();
    for (const int64_t extent : extents) {
      auto* dim = shape->add_dim();
      if (extent != -1) dim->set_dim_value(extent);
    }
  }

  onnx_file::ModelProto model_;
};

}  // namespace castor::test
