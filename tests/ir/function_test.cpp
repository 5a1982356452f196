// SPDX-License-Identifier: Apache-2.0
// Building functions in C++: names, first mistakes, written and declared types.
#include "ir/builder.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "ir/text/text.hpp"
#include "ir/verify/verify.hpp"

namespace castor {
namespace {

using enum ElementType;
using Build = std::function<void(FunctionBuilder&)>;

Result<FunctionPtr> built(const Build& build) {
  FunctionBuilder builder("f");
  build(builder);
  return builder.finish();
}

std::vector<std::byte> bytes(std::initializer_list<int> values) {
  std::vector<std::byte> result;
  for (int value : values) result.push_back(static_cast<std::byte>(value));
  return result;
}

Operation convert_of(ValueId operand) {
  return {.op = OpKind::convert, .operands = {operand}, .where = {7, 3}};
}

TEST(Builder, BuildsWhatItIsTold) {
  FunctionBuilder builder("scale");
  const ValueId x = builder.parameter("x", {u8, {1, "?h", "?"}});
  const ValueId w = builder.constant({i16, {2}}, bytes({1, 0, 255, 255}));
  const ValueId y = builder.convert(x, f16, {.overflow = Overflow::saturate});
  builder.result(y, TensorType{f16, {1, "?n", "?"}});
  builder.result(w);
  builder.result(x);
  const auto result = builder.finish();
  ASSERT_TRUE(result) << result.error().message;
  const Function& function = **result;

  EXPECT_EQ(function.name, "scale");
  EXPECT_EQ(function.parameters, std::vector<ValueId>{x});
  EXPECT_EQ(function.results, (std::vector<ValueId>{y, w, x}));
  EXPECT_EQ(function.type_of(y), (TensorType{f16, {1, "?h", "?"}}));
  EXPECT_EQ(function.result_types[0], (TensorType{f16, {1, "?n", "?"}}));
  EXPECT_EQ(function.result_types[1], (TensorType{i16, {2}}));
  ASSERT_EQ(function.operations.size(), 2u);
  EXPECT_EQ(function.operations[0].data->bytes, bytes({1, 0, 255, 255}));
  EXPECT_EQ(convert_options(function.operations[1]),
            ConvertOptions{.overflow = Overflow::saturate});
  EXPECT_NE(function.hash, 0u);
}

TEST(Builder, FreshNamesNeverMeetGivenOnes) {
  const auto result = built([](FunctionBuilder& builder) {
    const ValueId a = builder.parameter("", {u8, {}});
    const ValueId b = builder.parameter("1", {u8, {}});
    builder.result(builder.convert(a, f32));
    builder.parameter("0", {u8, {}});
    builder.result(builder.convert(b, f32));
  });
  ASSERT_TRUE(result) << result.error().message;
  std::vector<std::string> names;
  for (const Value& value : (*result)->values) names.push_back(value.name);
  EXPECT_EQ(names, (std::vector<std::string>{"2", "1", "3", "0", "4"}));
}

TEST(Builder, IsEmptyAfterFinish) {
  FunctionBuilder builder("f");
  builder.parameter("x", {u4, {-2}});
  ASSERT_NE(builder.error(), nullptr);
  EXPECT_FALSE(builder.finish());
  EXPECT_EQ(builder.error(), nullptr);
  EXPECT_EQ(builder.parameter("x", {u8, {}}), 0u);
}

struct BadBuild {
  std::string message;
  Build build;
};

TEST(Builder, KeepsTheFirstMistake) {
  const std::vector<BadBuild> cases = {
      {"%x: axis 0 has extent -2, expected 0 or more",
       [](FunctionBuilder& b) {
         b.result(b.convert(b.parameter("x", {u4, {-2}}), nf4));
         b.parameter("no name", {u8, {}});
       }},
      {"%x is defined twice",
       [](FunctionBuilder& b) {
         b.parameter("x", {u8, {}});
         b.parameter("x", {u8, {}});
       }},
      {"\"a b\" cannot name a value; expected letters, digits, _ . $ -, beginning with a letter or "
       "_, or digits only",
       [](FunctionBuilder& b) {
         b.parameter("a b", {u8, {}});
       }},
      {"unnamed value 0: found rank 17, expected at most 16",
       [](FunctionBuilder& b) {
         b.parameter("", {u8, Shape(17, 1)});
       }},
      {"convert: operand 0 is value 7, but only 1 values are defined so far",
       [](FunctionBuilder& b) {
         b.parameter("x", {u8, {}});
         b.convert(7, f16);
       }},
      {"convert: operand 0 is none, but it is not optional",
       [](FunctionBuilder& b) { b.convert(no_value, f16); }},
      {"convert: found 2 operands, expected 1",
       [](FunctionBuilder& b) {
         const ValueId x = b.parameter("x", {u8, {}});
         b.append({.op = OpKind::convert, .operands = {x, x}}, {.element = f16, .shape = {}});
       }},
      {"convert: the destination's element type must be written, such as `: f16`",
       [](FunctionBuilder& b) {
         b.append(convert_of(b.parameter("x", {u8, {}})), {});
       }},
      {"constant: the full type must be written, such as `: f32[2, 3]`",
       [](FunctionBuilder& b) {
         b.append({.op = OpKind::constant}, {.element = f16, .shape = {}});
       }},
      {"convert: %y has type f16[2, ?n], but f16[2, 3] is written",
       [](FunctionBuilder& b) {
         const std::string name = "y";
         b.append(convert_of(b.parameter("x", {u8, {2, "?n"}})),
                  {.element = f16, .shape = Shape{2, 3}}, std::span(&name, 1));
       }},
      {"convert: found 2 names for results, expected 1",
       [](FunctionBuilder& b) {
         const std::string names[] = {"y", "z"};
         b.append(convert_of(b.parameter("x", {u8, {}})), {.element = f16, .shape = {}}, names);
       }},
      {"op 200 is not in the op table, expected 0 to " + std::to_string(op_count - 1),
       [](FunctionBuilder& b) { b.append({.op = static_cast<OpKind>(200)}, {}); }},
      {"result 0 is value 0, but only 0 values are defined so far",
       [](FunctionBuilder& b) { b.result(0); }},
      {"result 0 (%x): declared u8[3], but its type is u8[2]: axis 0 is 3 against 2, fixed extents "
       "must be equal",
       [](FunctionBuilder& b) {
         b.result(b.parameter("x", {u8, {2}}), TensorType{u8, {3}});
       }},
      {"result 0 (%x): declared u8[?, ?], but its type is u8[2]: ranks must be equal",
       [](FunctionBuilder& b) {
         b.result(b.parameter("x", {u8, {2}}), TensorType{u8, {"?", "?"}});
       }},
      {"result 0 (%x): declared i8[2], but its type is u8[2]: element types must be equal",
       [](FunctionBuilder& b) {
         b.result(b.parameter("x", {u8, {2}}), TensorType{i8, {2}});
       }},
  };
  for (const BadBuild& bad : cases) {
    const auto result = built(bad.build);
    ASSERT_FALSE(result) << bad.message;
    EXPECT_EQ(result.error().message, bad.message);
  }
}

TEST(Builder, HasAShortFormForEveryKindOfOp) {
  FunctionBuilder b("f");
  const ValueId x = b.parameter("x", {u8, {"?n", 3}});
  const ValueId y = b.parameter("y", {i8, {3}});
  const auto [p, q] = b.promote(x, y, {.promote_unsafe = true});
  const ValueId sum = b.binary(OpKind::add, p, q);
  const ValueId scaled = b.binary(OpKind::mul, sum, q, {.mode = BroadcastMode::pdpd, .axis = 1});
  const ValueId limited = b.clamp(b.unary(OpKind::abs, scaled), -0.5, std::nullopt);
  const ValueId chosen =
      b.select(b.binary(OpKind::less, limited, p), limited, p, BroadcastMode::none);
  const ValueId flat = b.reshape(chosen, {"?"});
  const ValueId wide = b.broadcast(y, {"?n", 3});
  const ValueId wider = b.broadcast(y, {3, 2}, {.mode = BroadcastMode::explicitly, .axes = {0}});
  for (ValueId id : {flat, wide, wider}) b.result(id);
  const auto function = b.finish();
  ASSERT_TRUE(function) << function.error().message;
  EXPECT_EQ(print(**function),
            "func @f(%x: u8[?n, 3], %y: i8[3]) -> (i16[?], i8[?n, 3], i8[3, 2]) {\n"
            "  %0, %1 = convert_promote_types %x, %y {promote_unsafe = true}\n"
            "  %2 = add %0, %1\n"
            "  %3 = mul %2, %1 {broadcast = pdpd, axis = 1}\n"
            "  %4 = abs %3\n"
            "  %5 = clamp %4 {lo = -0.5}\n"
            "  %6 = less %5, %0\n"
            "  %7 = select %6, %5, %0 {broadcast = none}\n"
            "  %8 = reshape %7 : [?]\n"
            "  %9 = broadcast %y : [?n, 3]\n"
            "  %10 = broadcast %y {mode = explicit, axes = [0]} : [3, 2]\n"
            "  return %8, %9, %10\n"
            "}\n");
}

TEST(Builder, ShortFormsKeepTheFirstMistake) {
  const std::vector<BadBuild> cases = {
      {"add: operand 1 is f16, expected u8 as operand 0 is (convert and convert_promote_types make "
       "types equal)",
       [](FunctionBuilder& b) {
         const ValueId x = b.parameter("x", {u8, {2}});
         b.binary(OpKind::add, x, b.parameter("y", {f16, {2}}));
       }},
      {"sqrt: operand 0 is u8, expected a float (not f8e8m0, nf4)",
       [](FunctionBuilder& b) {
         b.unary(OpKind::sqrt, b.parameter("x", {u8, {2}}));
       }},
      {"abs: found 2 operands, expected 1",
       [](FunctionBuilder& b) {
         const ValueId x = b.parameter("x", {u8, {2}});
         b.binary(OpKind::abs, x, x);
       }},
      {"add: found 1 operands, expected 2",
       [](FunctionBuilder& b) {
         b.unary(OpKind::add, b.parameter("x", {u8, {2}}));
       }},
      {"%0 = clamp %x {hi = nan}: numbers are not NaN: hi = nan, expected a number, inf or -inf",
       [](FunctionBuilder& b) {
         const double nan = std::numeric_limits<double>::quiet_NaN();
         b.result(b.clamp(b.parameter("x", {u8, {2}}), std::nullopt, nan));
       }},
      {"convert_promote_types: Integer input cannot be safely promoted to floating-point. Found "
       "u64 "
       "and f32, expected a floating-point type of at least twice the integer's bits, or "
       "promote_unsafe = true",
       [](FunctionBuilder& b) {
         const ValueId x = b.parameter("x", {u64, {2}});
         const auto [p, q] = b.promote(x, b.parameter("y", {f32, {2}}));
         EXPECT_EQ(p, no_value);
         EXPECT_EQ(q, no_value);
       }},
  };
  for (const BadBuild& bad : cases) {
    const auto result = built(bad.build);
    ASSERT_FALSE(result) << bad.message;
    EXPECT_EQ(result.error().message, bad.message);
  }
}

TEST(Builder, MistakesOfOperationsCarryTheirPosition) {
  FunctionBuilder builder("f");
  builder.append(convert_of(0), {.element = f16, .shape = {}});
  ASSERT_NE(builder.error(), nullptr);
  EXPECT_EQ(builder.error()->where.line, 7u);
  EXPECT_EQ(builder.error()->where.column, 3u);

  FunctionBuilder named("f");
  const std::string name = "x";
  named.append(convert_of(named.parameter("x", {u8, {}})), {.element = f16, .shape = {}},
               std::span(&name, 1));
  ASSERT_NE(named.error(), nullptr);
  EXPECT_EQ(named.error()->to_string(), "line 7, column 3: %x is defined twice");
}

TEST(Builder, WrittenTypesMayLeaveExtentsOpen) {
  const auto result = built([](FunctionBuilder& b) {
    b.result(b.append(convert_of(b.parameter("x", {u8, {2, "?n"}})),
                      {.element = f16, .shape = Shape{"?", "?n"}}));
  });
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ((*result)->result_types[0], (TensorType{f16, {2, "?n"}}));
}

TEST(Builder, RefusesMoreValuesThanAFunctionMayHave) {
  FunctionBuilder builder("f");
  for (size_t i = 0; i <= max_values; ++i) builder.parameter("", {u8, {}});
  ASSERT_NE(builder.error(), nullptr);
  EXPECT_EQ(builder.error()->message, "a function has at most 65536 values");
}

}  // namespace
}  // namespace castor
