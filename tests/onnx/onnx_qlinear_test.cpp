// SPDX-License-Identifier: Apache-2.0
// ONNX's own tests of QLinearConv and QLinearMatMul, with extents known and unknown: the
// interpreter and a runtime of every tier must give what ONNX expects.
//
// The data is found as onnx_cast_test finds it.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>

#include "tests/support/on_every_engine.hpp"
#include "tests/support/onnx_data.hpp"
#include "tests/support/onnx_node.hpp"

namespace castor::test {
namespace {

namespace fs = std::filesystem;

/// The folders that must be there and run.
const std::set<std::string> shared_folders = {
    "test_qlinearconv",
    "test_qlinearmatmul_2D_int8_float16",
    "test_qlinearmatmul_2D_int8_float32",
    "test_qlinearmatmul_2D_uint8_float16",
    "test_qlinearmatmul_2D_uint8_float32",
    "test_qlinearmatmul_3D_int8_float16",
    "test_qlinearmatmul_3D_int8_float32",
    "test_qlinearmatmul_3D_uint8_float16",
    "test_qlinearmatmul_3D_uint8_float32",
};
const std::set<std::string> debian_folders = {"test_qlinearconv", "test_qlinearmatmul_2D",
                                              "test_qlinearmatmul_3D"};

Patterns patterns_of(const OnnxTensor& tensor) {
  Patterns result{*tensor.element, tensor.shape, {}};
  const auto count = static_cast<size_t>(element_count(tensor.shape).value());
  for (size_t i = 0; i < count; ++i) {
    result.elements.push_back(samples::load_pattern(tensor.bytes, result.type, i));
  }
  return result;
}

/// None of these tests has attributes.
FunctionPtr function_of(const std::string& op_type, const std::vector<Patterns>& operands,
                        bool is_open) {
  FunctionBuilder builder("node");
  std::vector<ValueId> ids;
  for (const Patterns& operand : operands) {
    const auto rank = static_cast<size_t>(operand.shape.rank());
    const Shape shape = is_open ? Shape(rank, Dim::any()) : to_shape(operand.shape);
    ids.push_back(builder.parameter("", {operand.type, shape}));
  }
  const FunctionBuilder::Quantized first = {ids[0], ids[1], ids[2]};
  const FunctionBuilder::Quantized second = {ids[3], ids[4], ids[5]};
  builder.result(op_type == "QLinearConv" ? builder.qlinear_conv(first, second, ids[6], ids[7])
                                          : builder.qlinear_matmul(first, second, ids[6], ids[7]));
  const Result<FunctionPtr> function = builder.finish();
  EXPECT_TRUE(function) << function.error().to_string();
  return function ? *function : nullptr;
}

void check_test(const OnnxNodeTest& test) {
  EXPECT_TRUE(test.attributes.empty());
  for (const OnnxDataSet& set : test.data_sets) {
    std::vector<Patterns> operands;
    for (const std::optional<OnnxTensor>& input : set.inputs) {
      ASSERT_TRUE(input);
      operands.push_back(patterns_of(*input));
    }
    ASSERT_EQ(operands.size(), 8u);
    for (const bool is_open : {false, true}) {
      const FunctionPtr function = function_of(test.op_type, operands, is_open);
      ASSERT_TRUE(function);
      EXPECT_EQ(mistake_anywhere(function, operands, patterns_of(set.outputs[0])), "");
    }
  }
}

/// The names of the folders that ran.
std::set<std::string> check_folders(const fs::path& data) {
  std::set<std::string> ran;
  for (const auto& entry : fs::directory_iterator(data)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("test_qlinear")) continue;
    SCOPED_TRACE(name);
    const Result<OnnxNodeTest> test = read_onnx_node_test(entry.path());
    EXPECT_TRUE(test) << test.error().message;
    if (!test) continue;
    check_test(*test);
    ran.insert(name);
  }
  return ran;
}

TEST(OnnxQlinear, NamedOrSharedData) {
  const auto data = named_or_shared_onnx_data();
  if (!data) GTEST_SKIP() << no_shared_onnx_data;
  const std::set<std::string> ran = check_folders(data->folder);
  EXPECT_TRUE(data->named || ran == shared_folders);
}

TEST(OnnxQlinear, DataOfDebian) {
  if (!fs::is_directory(debian_onnx_data)) GTEST_SKIP() << no_debian_onnx_data;
  EXPECT_EQ(check_folders(debian_onnx_data), debian_folders);
}

}  // namespace
}  // namespace castor::test
