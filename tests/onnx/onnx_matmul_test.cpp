// SPDX-License-Identifier: Apache-2.0
// ONNX's own tests of MatMulInteger as they are, with extents known and unknown: the interpreter
// and a runtime of every tier must give what ONNX expects.
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

Patterns patterns_of(const OnnxTensor& tensor) {
  Patterns result{*tensor.element, tensor.shape, {}};
  const auto count = static_cast<size_t>(element_count(tensor.shape).value());
  for (size_t i = 0; i < count; ++i) {
    result.elements.push_back(samples::load_pattern(tensor.bytes, result.type, i));
  }
  return result;
}

FunctionPtr function_of(const std::vector<std::optional<Patterns>>& operands, bool is_open) {
  FunctionBuilder builder("node");
  std::vector<ValueId> ids;
  for (const std::optional<Patterns>& operand : operands) {
    if (!operand) {
      ids.push_back(no_value);
      continue;
    }
    const auto rank = static_cast<size_t>(operand->shape.rank());
    const Shape shape = is_open ? Shape(rank, Dim::any()) : to_shape(operand->shape);
    ids.push_back(builder.parameter("", {operand->type, shape}));
  }
  builder.result(builder.matmul_integer(ids[0], ids[1], ids[2], ids[3]));
  const Result<FunctionPtr> function = builder.finish();
  EXPECT_TRUE(function) << function.error().to_string();
  return function ? *function : nullptr;
}

/// The names of the folders that ran.
std::set<std::string> check_folders(const fs::path& data) {
  std::set<std::string> ran;
  for (const auto& entry : fs::directory_iterator(data)) {
    const std::string name = entry.path().filename().string();
    if (name.find("matmulinteger") == std::string::npos) continue;
    const Result<OnnxNodeTest> test = read_onnx_node_test(entry.path());
    if (!test || test->op_type != "MatMulInteger") continue;
    SCOPED_TRACE(name);
    for (const OnnxDataSet& set : test->data_sets) {
      std::vector<std::optional<Patterns>> operands;
      std::vector<Patterns> present;
      for (const std::optional<OnnxTensor>& input : set.inputs) {
        operands.push_back(input ? std::optional(patterns_of(*input)) : std::nullopt);
        if (input) present.push_back(*operands.back());
      }
      operands.resize(4);
      for (const bool is_open : {false, true}) {
        const FunctionPtr function = function_of(operands, is_open);
        EXPECT_EQ(mistake_anywhere(function, present, patterns_of(set.outputs[0])), "");
      }
    }
    ran.insert(name);
  }
  return ran;
}

const std::set<std::string> expected_folders = {"test_matmulinteger"};

TEST(OnnxMatmul, NamedOrSharedData) {
  const auto data = named_or_shared_onnx_data();
  if (!data) GTEST_SKIP() << no_shared_onnx_data;
  const std::set<std::string> ran = check_folders(data->folder);
  EXPECT_TRUE(data->named || ran == expected_folders);
}

TEST(OnnxMatmul, DataOfDebian) {
  if (!fs::is_directory(debian_onnx_data)) GTEST_SKIP() << no_debian_onnx_data;
  EXPECT_EQ(check_folders(debian_onnx_data), expected_folders);
}

}  // namespace
}  // namespace castor::test
