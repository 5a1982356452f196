// SPDX-License-Identifier: Apache-2.0
// Types of results, and binding unknown extents.
#include "ir/verify/infer.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "ir/text/text.hpp"

namespace castor {
namespace {

FunctionPtr parsed(std::string_view text) {
  const auto function = parse_function(text);
  EXPECT_TRUE(function) << (function ? "" : function.error().to_string());
  return function ? *function : nullptr;
}

struct GoodBinding {
  const char* text;
  std::vector<Dims> parameters;
  std::vector<Dims> values;
};

TEST(BindShapes, GivesEveryValueItsExtents) {
  const std::vector<GoodBinding> cases = {
      {"func @f(%x: u8[2, 3]) -> (f16[2, 3]) { %y = convert %x : f16 return %y }",
       {{2, 3}},
       {{2, 3}, {2, 3}}},
      {"func @f(%x: u8[?, ?n, 3]) -> (f16[?, ?n, ?]) { %y = convert %x : f16 return %y }",
       {{4, 5, 3}},
       {{4, 5, 3}, {4, 5, 3}}},
      {"func @f(%x: u8[?n], %y: u8[?n, ?m]) -> (u8[?m, ?m]) { return %y }",
       {{7}, {7, 7}},
       {{7}, {7, 7}}},
      {"func @f(%x: u8[?], %y: u8[?]) -> (u8[?k], u8[?k]) { return %x, %y }",
       {{7}, {7}},
       {{7}, {7}}},
      {"func @f(%x: u8[]) -> (i16[2]) { %c = constant [1, 2] : i16[2] return %c }",
       {{}},
       {{}, {2}}},
      {"func @f(%x: u64[?, ?]) -> (u64[?, 0]) { return %x }", {{INT64_MAX, 0}}, {{INT64_MAX, 0}}},
      {"func @f(%x: u8[?]) -> (u8[?]) { return %x }", {{INT64_MAX}}, {{INT64_MAX}}},
  };
  for (const GoodBinding& good : cases) {
    const FunctionPtr function = parsed(good.text);
    ASSERT_TRUE(function);
    const auto bound = bind_shapes(*function, good.parameters);
    ASSERT_TRUE(bound) << good.text << "\n" << bound.error().message;
    EXPECT_EQ(bound->values, good.values) << good.text;
  }
}

struct BadBinding {
  const char* text;
  std::vector<Dims> parameters;
  const char* message;
};

TEST(BindShapes, SaysWhatDoesNotFit) {
  const char* const two = "func @f(%x: u8[?n, 3], %y: u8[?, ?n]) -> (u8[?n, 3]) { return %x }";
  const char* const open = "func @f(%x: f64[?, ?]) -> (f64[?, ?]) { return %x }";
  const std::vector<BadBinding> cases = {
      {two, {{2, 3}}, "@f has 2 parameters, but 1 shapes are given"},
      {two,
       {{2}, {2, 2}},
       "parameter 0 (%x): found [2] of rank 1, expected rank 2 as in u8[?n, 3]"},
      {two, {{2, 4}, {2, 2}}, "parameter 0 (%x), axis 1: found 4, expected 3 as in u8[?n, 3]"},
      {two,
       {{2, 3}, {9, 4}},
       "parameter 1 (%y), axis 1: found 4, expected 2, the extent of ?n in parameter 0 (%x), axis "
       "0"},
      {two,
       {{-1, 3}, {9, 4}},
       "parameter 0 (%x), axis 0: found -1, expected an extent that is not negative"},
      {open,
       {{INT64_MAX, 2}},
       "%x: f64[9223372036854775807, 2] is too large: its elements must not exceed 2^63 - 1"},
      {open,
       {{INT64_MAX, 1}},
       "%x: f64[9223372036854775807, 1] is too large: its bytes must not exceed 2^63 - 1"},
      {"func @f(%x: u8[?]) -> (f64[?]) { %y = convert %x : f64 return %y }",
       {{int64_t{1} << 60}},
       "%y: f64[1152921504606846976] is too large: its bytes must not exceed 2^63 - 1"},
      {"func @f(%x: u8[?]) -> (u8[3]) { return %x }",
       {{4}},
       "result 0 (%x), axis 0: found 4, expected 3 as in u8[3]"},
      {"func @f(%x: u8[?n, ?]) -> (u8[?, ?n]) { return %x }",
       {{4, 5}},
       "result 0 (%x), axis 1: found 5, expected 4, the extent of ?n in parameter 0 (%x), axis 0"},
      {"func @f(%x: u8[?], %y: u8[?]) -> (u8[?k], u8[?k]) { return %x, %y }",
       {{4}, {5}},
       "result 1 (%y), axis 0: found 5, expected 4, the extent of ?k in result 0 (%x), axis 0"},
  };
  for (const BadBinding& bad : cases) {
    const FunctionPtr function = parsed(bad.text);
    ASSERT_TRUE(function);
    const auto bound = bind_shapes(*function, bad.parameters);
    ASSERT_FALSE(bound) << bad.text;
    EXPECT_EQ(bound.error().message, bad.message);
    EXPECT_EQ(bound.error().code, ErrorCode::invalid_argument);
  }
}

/// Every type against every op's class (look_up: look_up_ir_test.cpp; max_pool:
/// tests/runtime/pooling/pooling_ir_test.cpp; conv_integer:
/// tests/runtime/conv/conv_integer_ir_test.cpp; matmul_integer:
/// tests/runtime/matmul/matmul_integer_errors_test.cpp; requantize:
/// tests/runtime/requantize/requantize_ir_test.cpp; compositions: composition_test).
TEST(InferTypes, OperandsAreOfTheRowsClass) {
  for (const OpInfo& row : op_table()) {
    const bool is_elsewhere = row.family == OpFamily::composition || row.op == OpKind::look_up ||
                              row.op == OpKind::max_pool;
    if (stands_alone(row.op) || is_elsewhere) continue;
    const Shape result = row.infer == InferRule::reduced ? Shape{} : Shape{2};
    for (const ElementInfo& element : element_table) {
      const TensorType type = {element.type, {2}};
      const TensorType condition = {ElementType::boolean, {2}};
      std::vector<const TensorType*> operands(static_cast<size_t>(row.operands), &type);
      if (row.infer == InferRule::selection) operands[0] = &condition;
      const auto types =
          infer_types({.op = row.op}, operands, {.element = element.type, .shape = Shape{2}});
      ASSERT_EQ(types.ok(), admits(row.types, element.type)) << row.name << ' ' << element.name;
      if (types) {
        ASSERT_EQ(types->size(), static_cast<size_t>(row.results));
        EXPECT_EQ(types->front().element,
                  row.infer == InferRule::comparison ? ElementType::boolean : element.type);
        EXPECT_EQ(types->back().shape, result);
        continue;
      }
      EXPECT_EQ(types.error().message, std::string(row.name) + ": operand 0 is " +
                                           std::string(element.name) + ", expected " +
                                           std::string(name_of(row.types)));
    }
  }
}

/// Integers of a quantized type are numbers to requantize alone.
TEST(InferTypes, OnlyRequantizeTakesQuantizedTensors) {
  for (const OpInfo& row : op_table()) {
    if (row.operands == 0) continue;
    for (const QuantizedInfo& format : quantized_table) {
      Quantization quantization{.format = format.format, .frac = {{7}}};
      if (format.is_asymmetric) quantization.scale = quantization.zero_point = {{5}};
      const TensorType type = quantized_type(quantization, {2});
      const TensorType condition = {ElementType::boolean, {2}};
      std::vector<const TensorType*> operands(static_cast<size_t>(row.operands), &type);
      if (row.infer == InferRule::selection) operands[0] = &condition;
      if (row.op == OpKind::requantize) {
        std::fill(operands.begin() + 1, operands.end(), nullptr);
      }
      const auto types =
          infer_types({.op = row.op}, operands, {.element = ElementType::f32, .shape = Shape{2}});
      ASSERT_EQ(types.ok(), row.op == OpKind::requantize) << row.name << ' ' << format.name;
      if (types) {
        EXPECT_EQ(types->front(), (TensorType{ElementType::f32, {2}}));
        continue;
      }
      const int first = row.infer == InferRule::selection ? 1 : 0;
      EXPECT_EQ(types.error().message,
                fmt::format("{}: operand {} is {}, expected a type that is not quantized: only "
                            "requantize takes quantized tensors",
                            row.name, first, to_string(type)));
    }
  }
}

struct BadTypes {
  OpKind op;
  std::vector<TensorType> operands;
  const char* message;
};

TEST(InferTypes, MistakesSayWhatWasFoundAndExpected) {
  using enum ElementType;
  const BadTypes cases[] = {
      {OpKind::add,
       {{f32, {2}}, {f16, {2}}},
       "add: operand 1 is f16, expected f32 as operand 0 is (convert and convert_promote_types "
       "make "
       "types equal)"},
      {OpKind::equal,
       {{u1, {2}}, {u1_lsb_first, {2}}},
       "equal: operand 1 is u1.lsb_first, expected u1 as operand 0 is (convert and "
       "convert_promote_types make types equal)"},
      {OpKind::shift_left,
       {{u8, {2}}, {boolean, {2}}},
       "shift_left: operand 1 is boolean, expected an integer"},
      {OpKind::select,
       {{u8, {2}}, {u8, {2}}, {u8, {2}}},
       "select: operand 0 is u8, expected boolean"},
      {OpKind::select,
       {{boolean, {2}}, {u8, {2}}, {i8, {2}}},
       "select: operand 2 is i8, expected u8 as operand 1 is (convert and convert_promote_types "
       "make types equal)"},
      {OpKind::select, {{boolean, {2}}}, "select: found 1 operands, expected 3"},
      {OpKind::broadcast,
       {{u8, {2}}},
       "broadcast: the target shape must be written, such as `: [2, 3]`"},
      {OpKind::reshape,
       {{u8, {2}}},
       "reshape: the target shape must be written, such as `: [2, 3]`"},
  };
  for (const BadTypes& bad : cases) {
    std::vector<const TensorType*> operands;
    for (const TensorType& type : bad.operands) operands.push_back(&type);
    const auto types = infer_types({.op = bad.op}, operands, {});
    ASSERT_FALSE(types) << bad.message;
    EXPECT_EQ(types.error().message, bad.message);
    EXPECT_EQ(types.error().code, ErrorCode::invalid_function);
  }
}

/// Many names stay cheap: a quadratic search would take minutes.
TEST(BindShapes, TakesAsManyNamesAsAFunctionCanHave) {
  FunctionBuilder builder("f");
  std::vector<Dims> extents;
  for (int i = 0; i < 60000; ++i) {
    Shape shape;
    for (int axis = 0; axis < 4; ++axis) {
      shape.push_back(Dim::named("n" + std::to_string(4 * i + axis)));
    }
    builder.parameter("", {ElementType::u8, shape});
    extents.push_back({1, 2, 3, i});
  }
  builder.result(0);
  const auto function = builder.finish();
  ASSERT_TRUE(function) << function.error().message;
  EXPECT_TRUE(bind_shapes(**function, extents));
}

}  // namespace
}  // namespace castor
