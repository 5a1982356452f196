// SPDX-License-Identifier: Apache-2.0
// Model files that contradict themselves, or want more than they may: each ends in an error that
// says where and what.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "runtime/onnx/plan.hpp"
#include "tests/support/onnx_maker.hpp"
#include "tools/onnx/inline_functions.hpp"

namespace castor {
namespace {

namespace fs = std::filesystem;
using test::OnnxMaker;

/// y = Relu(x), which each case spoils.
OnnxMaker relu() {
  OnnxMaker maker;
  maker.input("x", OnnxMaker::f32, {2, 3});
  maker.node("Relu", {"x"}, {"y"});
  maker.output("y", OnnxMaker::f32, {2, 3});
  return maker;
}

onnx_file::TensorProto& constant(OnnxMaker& maker) {
  return maker.constant<float>("w", OnnxMaker::f32, {2}, {1, 2});
}

void add_entry(onnx_file::TensorProto& tensor, const std::string& key, const std::string& value) {
  auto* entry = tensor.add_external_data();
  entry->set_key(key);
  entry->set_value(value);
}

/// The constant w, two floats of the file that `location` names.
onnx_file::TensorProto& external(OnnxMaker& maker, const std::string& location) {
  onnx_file::TensorProto& tensor = constant(maker);
  tensor.clear_raw_data();
  tensor.set_data_location(1);
  add_entry(tensor, "location", location);
  return tensor;
}

struct Case {
  std::string name;
  std::function<void(OnnxMaker&)> spoil;
  std::string says;
};

const Case cases[] = {
    {"cycle",
     [](OnnxMaker& maker) {
       maker.node("Add", {"x", "b"}, {"a"});
       maker.node("Neg", {"a"}, {"b"});
     },
     "node Add_1 (Add) depends on itself"},
    {"missing input", [](OnnxMaker& maker) { maker.node("Neg", {"nowhere"}, {"z"}); },
     "node Neg_1 (Neg): its input nowhere is defined by no node, input or initializer"},
    {"missing output", [](OnnxMaker& maker) { maker.output("z", OnnxMaker::f32, {2}); },
     "the graph's output z is defined by no node, input or initializer"},
    {"defined twice", [](OnnxMaker& maker) { maker.node("Neg", {"x"}, {"y"}); },
     "node Neg_1 (Neg): its output y is defined twice"},
    {"input overwritten", [](OnnxMaker& maker) { maker.node("Neg", {"y"}, {"x"}); },
     "its output x is defined twice"},
    {"two inputs of a name",
     [](OnnxMaker& maker) {
       maker.input("x", OnnxMaker::f32, {2, 3});
     },
     "the input x is there twice"},
    {"two constants of a name",
     [](OnnxMaker& maker) {
       constant(maker);
       constant(maker);
     },
     "the initializer 'w' is there twice"},
    {"wrong type",
     [](OnnxMaker& maker) {
       maker.graph().mutable_output(0)->mutable_type()->mutable_tensor_type()->set_elem_type(7);
     },
     "node Relu_0 (Relu): its output y is f32[2, 3], declared as i64[2, 3]"},
    {"wrong shape",
     [](OnnxMaker& maker) {
       maker.graph()
           .mutable_output(0)
           ->mutable_type()
           ->mutable_tensor_type()
           ->mutable_shape()
           ->mutable_dim(1)
           ->set_dim_value(4);
     },
     "node Relu_0 (Relu): its output y is f32[2, 3], declared as f32[2, 4]"},
    {"negative extent", [](OnnxMaker& maker) { maker.input("z", OnnxMaker::f32, {-2}); },
     "z has an extent of -2"},
    {"negative extent of a constant", [](OnnxMaker& maker) { constant(maker).set_dims(0, -2); },
     "the initializer w: an extent of -2"},
    {"extents that overflow",
     [](OnnxMaker& maker) {
       auto& tensor = constant(maker);
       tensor.set_dims(0, int64_t{1} << 40);
       tensor.add_dims(int64_t{1} << 40);
     },
     "the initializer w: the extents [1099511627776, 1099511627776] overflow"},
    {"too few bytes", [](OnnxMaker& maker) { constant(maker).set_dims(0, 3); },
     "the initializer w: 8 bytes for f32[3], expected 12"},
    {"many dimensions",
     [](OnnxMaker& maker) {
       auto& tensor = constant(maker);
       for (int i = 0; i < 20; ++i) tensor.add_dims(1);
     },
     "the initializer w: a tensor of 21 dimensions, expected at most 16"},
    {"old opset", [](OnnxMaker& maker) { maker.model().mutable_opset_import(0)->set_version(6); },
     "the model has opset 6, expected 7 to 25"},
    {"new opset", [](OnnxMaker& maker) { maker.model().mutable_opset_import(0)->set_version(99); },
     "the model has opset 99, expected 7 to 25"},
    {"domain that is not imported",
     [](OnnxMaker& maker) { maker.node("QLinearAdd", {"x"}, {"z"}).set_domain("com.microsoft"); },
     "node QLinearAdd_1 (QLinearAdd): no operator set of 'com.microsoft' is imported"},
    {"absolute path", [](OnnxMaker& maker) { external(maker, "/etc/passwd"); },
     "the initializer w: external data '/etc/passwd' is outside the model's folder"},
    {"path to the folder above", [](OnnxMaker& maker) { external(maker, "../outside.bin"); },
     "external data '../outside.bin' is outside the model's folder"},
    {"path through the folder", [](OnnxMaker& maker) { external(maker, "a/../../outside.bin"); },
     "external data 'a/../../outside.bin' is outside the model's folder"},
    {"link to the outside", [](OnnxMaker& maker) { external(maker, "link.bin"); },
     "external data 'link.bin' is outside the model's folder"},
    {"no such file", [](OnnxMaker& maker) { external(maker, "absent.bin"); },
     "external data 'absent.bin' is no file"},
    {"folder instead of a file", [](OnnxMaker& maker) { external(maker, "."); },
     "external data '.' is no file"},
    {"no location", [](OnnxMaker& maker) { external(maker, ""); },
     "external data without a location"},
    {"truncated file", [](OnnxMaker& maker) { external(maker, "short.bin"); },
     "external data 'short.bin' has 4 bytes, expected 8 from offset 0 on"},
    {"offset after the end",
     [](OnnxMaker& maker) {
       add_entry(external(maker, "long.bin"), "offset", "18446744073709551615");
     },
     "expected 8 from offset 18446744073709551615 on"},
    {"offset that is no number",
     [](OnnxMaker& maker) { add_entry(external(maker, "long.bin"), "offset", "12x"); },
     "external data has the offset '12x', expected a number"},
    {"wrong length",
     [](OnnxMaker& maker) { add_entry(external(maker, "long.bin"), "length", "4"); },
     "external data of 4 bytes, expected 8"},
};

/// A folder with files for external data, and one beside it.
class Folder {
 public:
  Folder() : root_(fs::path(::testing::TempDir()) / "castor_onnx_hostile") {
    fs::remove_all(root_);
    fs::create_directories(root_ / "model");
    write(root_ / "outside.bin", 64);
    write(root_ / "model" / "short.bin", 4);
    write(root_ / "model" / "long.bin", 64);
    fs::create_symlink(root_ / "outside.bin", root_ / "model" / "link.bin");
  }
  ~Folder() { fs::remove_all(root_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  fs::path path() const { return root_ / "model"; }

 private:
  static void write(const fs::path& file, size_t bytes) {
    std::ofstream(file, std::ios::binary) << std::string(bytes, '\1');
  }
  fs::path root_;
};

Result<onnx::Plan> plan_of(const OnnxMaker& maker, const fs::path& folder) {
  Result<onnx::Graph> graph = maker.read(folder);
  if (!graph) return graph.error();
  return make_plan(std::move(*graph));
}

TEST(OnnxHostile, WhatIsNotSpoiledIsRead) {
  const Folder folder;
  OnnxMaker maker = relu();
  add_entry(external(maker, "long.bin"), "offset", "56");
  const auto plan = plan_of(maker, folder.path());
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_TRUE(plan->is_complete());
}

TEST(OnnxHostile, ErrorsSayWhereAndWhat) {
  const Folder folder;
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    OnnxMaker maker = relu();
    one.spoil(maker);
    const auto plan = plan_of(maker, folder.path());
    ASSERT_FALSE(plan);
    EXPECT_NE(plan.error().message.find(one.says), std::string::npos) << plan.error().message;
    EXPECT_NE(plan.error().code, ErrorCode::internal);
  }
}

TEST(OnnxHostile, NoModelAtAll) {
  for (const std::string& bytes : {std::string("\xff\xff\xff"), std::string(1000, 'x')}) {
    const auto graph = onnx_file::parse_model(bytes, ".");
    ASSERT_FALSE(graph);
    EXPECT_EQ(graph.error().message, "it is no model of ONNX");
  }
}

/// f(a) = Neg(a), called once.
onnx_file::FunctionProto& add_function(OnnxMaker& maker) {
  maker.import("mine", 1);
  auto& function = *maker.model().add_functions();
  function.set_name("F");
  function.set_domain("mine");
  function.add_input("a");
  function.add_output("b");
  function.add_opset_import()->set_version(21);
  auto& import = *function.add_opset_import();
  import.set_domain("mine");
  import.set_version(1);
  return function;
}

onnx_file::NodeProto& add_node(onnx_file::FunctionProto& function, const std::string& op_type) {
  auto& node = *function.add_node();
  node.set_op_type(op_type);
  node.add_input("a");
  node.add_output("b");
  return node;
}

TEST(OnnxHostile, FunctionsThatCallThemselves) {
  OnnxMaker maker = relu();
  add_node(add_function(maker), "F").set_domain("mine");
  maker.node("F", {"y"}, {"z"}).set_domain("mine");
  const auto graph = maker.read();
  ASSERT_FALSE(graph);
  EXPECT_NE(graph.error().message.find("calls itself"), std::string::npos) << graph.error().message;
}

/// Each function calls the next one eight times: 8^31 nodes, or calls of one that has none.
class OnnxMultiplying : public testing::TestWithParam<bool> {};

TEST_P(OnnxMultiplying, FunctionsAreRefused) {
  const bool ends_in_nodes = GetParam();
  OnnxMaker maker = relu();
  maker.import("mine", 1);
  for (int depth = 0; depth < 31; ++depth) {
    auto& function = *maker.model().add_functions();
    function.set_name("F" + std::to_string(depth));
    function.set_domain("mine");
    function.add_input("a");
    function.add_output("b");
    function.add_opset_import()->set_version(21);
    auto& import = *function.add_opset_import();
    import.set_domain("mine");
    import.set_version(1);
    for (int call = 0; call < (depth == 30 && !ends_in_nodes ? 0 : 8); ++call) {
      auto& node = *function.add_node();
      node.set_op_type(depth == 30 ? "Neg" : "F" + std::to_string(depth + 1));
      node.set_domain(depth == 30 ? "" : "mine");
      node.add_input("a");
      node.add_output("c" + std::to_string(call));
    }
  }
  maker.node("F0", {"y"}, {"z"}).set_domain("mine");
  const auto graph = maker.read();
  ASSERT_FALSE(graph);
  EXPECT_EQ(graph.error().code, ErrorCode::limit_exceeded) << graph.error().message;
}

INSTANTIATE_TEST_SUITE_P(OnnxHostile, OnnxMultiplying, testing::Bool());

/// A function of a megabyte that is called a thousand times would be a gigabyte.
TEST(OnnxHostile, LargeFunctionsThatMultiply) {
  OnnxMaker maker = relu();
  OnnxMaker::text(add_node(add_function(maker), "Neg"), "note", std::string(1 << 20, 'n'));
  for (int call = 0; call < 1000; ++call) {
    maker.node("F", {"y"}, {"z" + std::to_string(call)}).set_domain("mine");
  }
  const auto graph = maker.read();
  ASSERT_FALSE(graph);
  EXPECT_EQ(graph.error().code, ErrorCode::limit_exceeded) << graph.error().message;
  EXPECT_NE(graph.error().message.find("268435456 bytes"), std::string::npos)
      << graph.error().message;
}

TEST(OnnxHostile, FunctionsOfMoreInputsThanTheyHave) {
  OnnxMaker maker = relu();
  add_node(add_function(maker), "Neg");
  maker.node("F", {"y", "x"}, {"z"}).set_domain("mine");
  const auto graph = maker.read();
  ASSERT_FALSE(graph);
  EXPECT_NE(graph.error().message.find("more inputs than its function"), std::string::npos);
}

}  // namespace
}  // namespace castor
