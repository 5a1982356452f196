// SPDX-License-Identifier: Apache-2.0
// ONNX Runtime's own operators against their definitions in plain loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "ir/interpreter/interpreter.hpp"
#include "runtime/onnx/plan.hpp"
#include "tests/support/onnx_maker.hpp"

namespace castor {
namespace {

using test::OnnxMaker;

/// All codes of u8, in 16 rows.
std::vector<uint8_t> all_codes() {
  std::vector<uint8_t> codes(256);
  for (int code = 0; code < 256; ++code) codes[static_cast<size_t>(code)] = uint8_t(code);
  return codes;
}

uint8_t rounded(double value) {
  return static_cast<uint8_t>(std::clamp(std::nearbyint(value), 0.0, 255.0));
}

OnnxMaker maker_of(std::initializer_list<int64_t> shape) {
  OnnxMaker maker;
  maker.import("com.microsoft", 1);
  maker.input("a", OnnxMaker::u8, shape);
  maker.constant<float>("as", OnnxMaker::f32, {}, {0.03125f});
  maker.constant<uint8_t>("az", OnnxMaker::u8, {}, {100});
  maker.constant<float>("bs", OnnxMaker::f32, {}, {0.0625f});
  maker.constant<uint8_t>("bz", OnnxMaker::u8, {}, {7});
  maker.constant<float>("ys", OnnxMaker::f32, {}, {0.25f});
  maker.constant<uint8_t>("yz", OnnxMaker::u8, {}, {20});
  return maker;
}

/// What the model gives for the codes, as input a and any other.
std::vector<uint8_t> run(const OnnxMaker& maker, const Dims& shape, size_t outputs,
                         const std::vector<uint8_t>& codes = all_codes()) {
  const FunctionPtr function = maker.function();
  if (!function) return {};
  std::vector<uint8_t> y(outputs);
  const std::vector<ConstView> in(function->parameters.size(),
                                  ConstView(codes.data(), ElementType::u8, shape, codes.size()));
  Dims result;
  for (const Dim& dim : function->type_of(function->results[0]).shape) {
    result.push_back(dim.extent);
  }
  const View out(y.data(), ElementType::u8, result, y.size());
  const Status status = interpret(*function, in, {&out, 1});
  EXPECT_TRUE(status) << status.error().message;
  return y;
}

struct Unary {
  std::string op_type;
  std::function<double(double)> real;  ///< takes the real number that a code stands for
};

TEST(OnnxMicrosoft, OperatorsOfOneTensor) {
  const Unary rows[] = {
      {"QLinearLeakyRelu", [](double x) { return x < 0 ? x * double{0.125f} : x; }},
      {"QLinearSigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
  };
  for (const Unary& row : rows) {
    SCOPED_TRACE(row.op_type);
    OnnxMaker maker = maker_of({16, 16});
    auto& node = maker.node(row.op_type, {"a", "as", "az", "ys", "yz"}, {"y"});
    node.set_domain("com.microsoft");
    if (row.op_type == "QLinearLeakyRelu") OnnxMaker::number(node, "alpha", 0.125f);
    maker.output("y", OnnxMaker::u8, {16, 16});
    const std::vector<uint8_t> y = run(maker, {16, 16}, 256);
    for (int code = 0; code < 256; ++code) {
      const double real = row.real((code - 100) * 0.03125);
      EXPECT_EQ(y[static_cast<size_t>(code)], rounded(std::nearbyint(real / 0.25) + 20)) << code;
    }
  }
}

TEST(OnnxMicrosoft, OperatorsOfTwoTensors) {
  for (const bool is_product : {false, true}) {
    OnnxMaker maker = maker_of({256, 1});
    maker.constant("b", OnnxMaker::u8, {256}, all_codes());
    auto& node = maker.node(is_product ? "QLinearMul" : "QLinearAdd",
                            {"a", "as", "az", "b", "bs", "bz", "ys", "yz"}, {"y"});
    node.set_domain("com.microsoft");
    maker.output("y", OnnxMaker::u8, {256, 256});
    const std::vector<uint8_t> y = run(maker, {256, 1}, 65536);
    for (int a = 0; a < 256; ++a) {
      for (int b = 0; b < 256; ++b) {  // all numbers are exact in f32 here
        const double x = (a - 100) * 0.03125;
        const double z = (b - 7) * 0.0625;
        const double real = is_product ? x * z : x + z;
        ASSERT_EQ(y[static_cast<size_t>(a * 256 + b)], rounded(std::nearbyint(real / 0.25) + 20))
            << is_product << " " << a << " " << b;
      }
    }
  }
}

TEST(OnnxMicrosoft, GlobalAveragePool) {
  OnnxMaker maker = maker_of({1, 16, 4, 4});
  maker.node("QLinearGlobalAveragePool", {"a", "as", "az", "ys", "yz"}, {"y"})
      .set_domain("com.microsoft");
  maker.output("y", OnnxMaker::u8, {1, 16, 1, 1});
  const std::vector<uint8_t> y = run(maker, {1, 16, 4, 4}, 16);
  for (int channel = 0; channel < 16; ++channel) {
    const double mean = channel * 16 + 7.5 - 100;
    EXPECT_EQ(y[static_cast<size_t>(channel)], rounded(std::nearbyint(mean * 0.03125 / 0.25) + 20));
  }
}

TEST(OnnxMicrosoft, GlobalAveragePoolOfChannelsThatAreLast) {
  OnnxMaker maker = maker_of({1, 4, 4, 16});
  auto& node = maker.node("QLinearGlobalAveragePool", {"a", "as", "az", "ys", "yz"}, {"y"});
  node.set_domain("com.microsoft");
  OnnxMaker::integer(node, "channels_last", 1);
  maker.output("y", OnnxMaker::u8, {1, 1, 1, 16});
  const std::vector<uint8_t> y = run(maker, {1, 4, 4, 16}, 16);
  for (int channel = 0; channel < 16; ++channel) {
    const double mean = 7.5 * 16 + channel - 100;
    EXPECT_EQ(y[static_cast<size_t>(channel)], rounded(std::nearbyint(mean * 0.03125 / 0.25) + 20));
  }
}

TEST(OnnxMicrosoft, GlobalAveragePoolWithoutChannelsIsLeft) {
  OnnxMaker maker = maker_of({4});
  maker.node("QLinearGlobalAveragePool", {"a", "as", "az", "ys", "yz"}, {"y"})
      .set_domain("com.microsoft");
  maker.output("y", OnnxMaker::u8, {4});
  Result<onnx::Graph> graph = maker.read();
  ASSERT_TRUE(graph);
  const auto plan = onnx::make_plan(std::move(*graph));
  ASSERT_TRUE(plan);
  const auto function = onnx::whole_function(*plan);
  ASSERT_FALSE(function);
  EXPECT_NE(function.error().message.find("there are no channels"), std::string::npos)
      << function.error().message;
}

TEST(OnnxMicrosoft, GemmWithBiasAndAlpha) {
  OnnxMaker maker = maker_of({2, 3});
  maker.constant<int8_t>("b", OnnxMaker::i8, {3, 2}, {1, -2, 3, -4, 5, -6});
  maker.constant<int8_t>("z", OnnxMaker::i8, {}, {1});
  maker.constant<int32_t>("c", OnnxMaker::i32, {2}, {1000, -1000});
  auto& node = maker.node("QGemm", {"a", "as", "az", "b", "bs", "z", "c", "ys", "yz"}, {"y"});
  node.set_domain("com.microsoft");
  OnnxMaker::number(node, "alpha", 2);
  maker.output("y", OnnxMaker::u8, {2, 2});
  const std::vector<uint8_t> a = {110, 90, 200, 0, 255, 100};
  const int b[3][2] = {{0, -3}, {2, -5}, {4, -7}};
  const std::vector<uint8_t> y = run(maker, {2, 3}, 4, a);
  for (size_t row = 0; row < 2; ++row) {
    for (size_t column = 0; column < 2; ++column) {
      int sum = column == 0 ? 1000 : -1000;
      for (size_t k = 0; k < 3; ++k) sum += (a[row * 3 + k] - 100) * b[k][column];
      const double real = sum * (2 * 0.03125 * 0.0625) / 0.25;
      EXPECT_EQ(y[row * 2 + column], rounded(std::nearbyint(real) + 20)) << row << column;
    }
  }
}

}  // namespace
}  // namespace castor
