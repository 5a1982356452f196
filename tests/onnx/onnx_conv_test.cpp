// SPDX-License-Identifier: Apache-2.0
// ONNX's own tests of convolutions: those of ConvInteger as they are, and those of Conv whose data
// are small integers, in every combination of 8-bit types, without zero points and with some. The
// interpreter and a runtime of every tier must give what ONNX expects.
//
// The data is found as onnx_cast_test finds it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <filesystem>
#include <set>
#include <string>

#include "ir/text/text.hpp"
#include "tests/support/on_every_engine.hpp"
#include "tests/support/onnx_data.hpp"
#include "tests/support/onnx_node.hpp"

namespace castor::test {
namespace {

namespace fs = std::filesystem;
using enum ElementType;

/// The folders that must be there and run; Debian's older data has one more.
const std::set<std::string> expected_folders = {
    "test_basic_conv_with_padding",      "test_basic_conv_without_padding",
    "test_conv_with_autopad_same",       "test_conv_with_strides_and_asymmetric_padding",
    "test_conv_with_strides_no_padding", "test_conv_with_strides_padding",
    "test_convinteger_with_padding",     "test_convinteger_without_padding",
};
constexpr const char* only_in_debian = "test_basic_convinteger";

AutoPad auto_pad_of(const OnnxNodeTest& test) {
  const std::string name = test.text("auto_pad", "NOTSET");
  const std::vector<std::string> names = {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"};
  const auto at = std::ranges::find(names, name);
  EXPECT_NE(at, names.end()) << name;
  return static_cast<AutoPad>(at - names.begin());
}

ConvolutionOptions options_of(const OnnxNodeTest& test) {
  return {.auto_pad = auto_pad_of(test),
          .group = test.integer("group", 1),
          .layout = ConvolutionLayout::nchw,
          .dilations = test.integers("dilations"),
          .kernel_shape = test.integers("kernel_shape"),
          .pads = test.integers("pads"),
          .strides = test.integers("strides")};
}

/// The operands of one data set, absent ones as nothing, and the result.
struct Example {
  std::vector<std::optional<Patterns>> operands;
  Patterns result;
};

Patterns patterns_of(const OnnxTensor& tensor) {
  Patterns result{*tensor.element, tensor.shape, {}};
  const auto count = static_cast<size_t>(element_count(tensor.shape).value());
  for (size_t i = 0; i < count; ++i) {
    result.elements.push_back(samples::load_pattern(tensor.bytes, result.type, i));
  }
  return result;
}

Example example_of(const OnnxDataSet& data) {
  Example example{{}, patterns_of(data.outputs[0])};
  for (const std::optional<OnnxTensor>& input : data.inputs) {
    example.operands.push_back(input ? std::optional(patterns_of(*input)) : std::nullopt);
  }
  example.operands.resize(4);
  return example;
}

/// Floats, all integral, as another type, with `added` to each.
Patterns as_integers(const Patterns& floats, ElementType type, int32_t added) {
  Patterns result{type, floats.shape, {}};
  for (uint64_t bits : floats.elements) {
    const auto value = std::bit_cast<float>(static_cast<uint32_t>(bits));
    const auto number = static_cast<int32_t>(value);
    EXPECT_EQ(static_cast<float>(number), value);
    const int64_t sum = int64_t{number} + added;
    if (type != i32) {
      EXPECT_GE(sum, type == i8 ? -128 : 0);
      EXPECT_LE(sum, type == i8 ? 127 : 255);
    }
    result.elements.push_back(static_cast<uint64_t>(sum) & (type == i32 ? 0xffffffff : 0xff));
  }
  return result;
}

/// A float example in 8 bits; with zero points that the operands are moved by.
Example in_bytes(const Example& floats, ElementType x, ElementType w, bool zero_points) {
  const int32_t x_zero = zero_points ? 41 : 0;
  const int32_t w_zero = zero_points ? 19 : 0;
  Example example{{as_integers(*floats.operands[0], x, x_zero),
                   as_integers(*floats.operands[1], w, w_zero), std::nullopt, std::nullopt},
                  as_integers(floats.result, i32, 0)};
  if (!zero_points) return example;
  const auto channels = static_cast<size_t>(floats.operands[1]->shape[0]);
  example.operands[2] = Patterns{x, {}, std::vector<uint64_t>(1, 41)};
  example.operands[3] =
      Patterns{w, {static_cast<int64_t>(channels)}, std::vector<uint64_t>(channels, 19)};
  return example;
}

FunctionPtr function_of(const ConvolutionOptions& options, const Example& example, bool open) {
  FunctionBuilder builder("node");
  std::vector<ValueId> ids;
  for (const std::optional<Patterns>& operand : example.operands) {
    if (!operand) {
      ids.push_back(no_value);
      continue;
    }
    const auto rank = static_cast<size_t>(operand->shape.rank());
    const Shape shape = open ? Shape(rank, Dim::any()) : to_shape(operand->shape);
    ids.push_back(builder.parameter("", {operand->type, shape}));
  }
  builder.result(builder.conv_integer(ids[0], ids[1], options, ids[2], ids[3]));
  const Result<FunctionPtr> function = builder.finish();
  EXPECT_TRUE(function) << function.error().to_string();
  return function ? *function : nullptr;
}

void check_example(const ConvolutionOptions& options, const Example& example) {
  std::vector<Patterns> operands;
  for (const std::optional<Patterns>& operand : example.operands) {
    if (operand) operands.push_back(*operand);
  }
  for (const bool open : {false, true}) {
    const FunctionPtr function = function_of(options, example, open);
    ASSERT_TRUE(function);
    EXPECT_EQ(mistake_anywhere(function, operands, example.result), "") << print(*function);
  }
}

void check_test(const OnnxNodeTest& test) {
  const ConvolutionOptions options = options_of(test);
  for (const OnnxDataSet& data : test.data_sets) {
    const Example example = example_of(data);
    if (test.op_type == "ConvInteger") {
      check_example(options, example);
      continue;
    }
    ASSERT_FALSE(example.operands[2]) << "a bias";
    for (const ElementType x : {u8, i8}) {
      for (const ElementType w : {u8, i8}) {
        for (const bool zeros : {false, true}) {
          check_example(options, in_bytes(example, x, w, zeros));
        }
      }
    }
  }
}

/// The names of the folders that ran.
std::set<std::string> check_folders(const fs::path& data) {
  std::set<std::string> ran;
  for (const auto& entry : fs::directory_iterator(data)) {
    const std::string name = entry.path().filename().string();
    if (name.find("conv") == std::string::npos || name.ends_with("_expanded")) continue;
    const Result<OnnxNodeTest> test = read_onnx_node_test(entry.path());
    if (!test || (test->op_type != "Conv" && test->op_type != "ConvInteger")) continue;
    SCOPED_TRACE(name);
    check_test(*test);
    ran.insert(name);
  }
  fmt::print("{} folders run\n", ran.size());
  return ran;
}

TEST(OnnxConv, NamedOrSharedData) {
  const auto data = named_or_shared_onnx_data();
  if (!data) GTEST_SKIP() << no_shared_onnx_data;
  const std::set<std::string> ran = check_folders(data->folder);
  if (!data->named) {
    EXPECT_EQ(ran, expected_folders);
  } else {
    EXPECT_FALSE(ran.empty());
  }
}

TEST(OnnxConv, DataOfDebian) {
  if (!fs::is_directory(debian_onnx_data)) GTEST_SKIP() << no_debian_onnx_data;
  std::set<std::string> expected = expected_folders;
  expected.insert(only_in_debian);
  EXPECT_EQ(check_folders(debian_onnx_data), expected);
}

}  // namespace
}  // namespace castor::test
