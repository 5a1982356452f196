// SPDX-License-Identifier: Apache-2.0
// Every rule of the verifier, broken by hand, with its message.
#include "ir/verify/verify.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "ir/text/text.hpp"

namespace castor {
namespace {

using enum ElementType;

/// func @f(%x: f32[2, ?n]) -> (f16[2, ?n]), with a constant that nothing uses.
Function sound() {
  Function function;
  function.name = "f";
  function.values = {{"x", {f32, {2, "?n"}}}, {"c", {u8, {3}}}, {"y", {f16, {2, "?n"}}}};
  function.parameters = {0};
  Operation constant{.op = OpKind::constant, .results = {1}, .where = {2, 3}};
  constant.data = std::make_shared<const ConstantData>(ConstantData{{}, std::vector<std::byte>(3)});
  function.operations = {constant,
                         {.op = OpKind::convert, .operands = {0}, .results = {2}, .where = {3, 3}}};
  function.results = {2};
  function.result_types = {{f16, {2, "?n"}}};
  return function;
}

Attribute named(const char* name, const char* identifier) {
  return {name, {Identifier{identifier}}};
}

TEST(Verify, AcceptsASoundFunction) {
  const Status status = verify(sound());
  EXPECT_TRUE(status) << status.error().message;
}

struct Broken {
  std::string message;
  uint32_t line;  ///< 0: no position
  std::function<void(Function&)> change;
  ErrorCode code = ErrorCode::invalid_function;
};

void expect_messages(const std::vector<Broken>& cases) {
  for (const Broken& broken : cases) {
    Function function = sound();
    broken.change(function);
    const Status status = verify(function);
    ASSERT_FALSE(status) << broken.message;
    EXPECT_EQ(status.error().message, broken.message);
    EXPECT_EQ(status.error().where.line, broken.line) << broken.message;
    EXPECT_EQ(status.error().code, broken.code) << broken.message;
  }
}

TEST(Verify, RulesOfFunctions) {
  const std::string names =
      "function @f: names are letters, digits, _ . $ -, beginning with a letter or _ (values: or "
      "digits only): ";
  const std::string ids =
      "function @f: operands, results and parameters are values of the function: ";
  expect_messages({
      {"function @f: ops are those of the op table: found op number 99, expected 0 to " +
           std::to_string(op_count - 1),
       0, [](Function& f) { f.operations[0].op = static_cast<OpKind>(99); }},
      {ids + "a parameter is none of them", 0, [](Function& f) { f.parameters = {3}; }},
      {ids + "a result is none of them", 0, [](Function& f) { f.results = {no_value}; }},
      {ids + "an operand or result of operation 1 (convert) is none of them", 0,
       [](Function& f) { f.operations[1].operands = {17}; }},
      {ids + "an operand or result of operation 0 (constant) is none of them", 0,
       [](Function& f) { f.operations[0].results = {no_value}; }},
      {"function @1f: names are letters, digits, _ . $ -, beginning with a letter or _ (values: or "
       "digits only): the function's name is \"1f\"",
       0, [](Function& f) { f.name = "1f"; }},
      {names + "found \"%\"", 0, [](Function& f) { f.values[0].name = ""; }},
      {names + "found \"%1a\"", 0, [](Function& f) { f.values[0].name = "1a"; }},
      {names + "found \"@a b\"", 0,
       [](Function& f) {
         f.operations[0].data =
             std::make_shared<const ConstantData>(ConstantData{"a b", std::vector<std::byte>(3)});
       }},
      {"function @f: names of values are unique: %x is repeated", 0,
       [](Function& f) { f.values[2].name = "x"; }},
      {"%y = convert %y : f16: every value is defined once, before it is used: %y is not defined "
       "before it is used",
       3, [](Function& f) { f.operations[1].operands = {2}; }},
      {"%x = convert %x : f32: every value is defined once, before it is used: %x is defined twice",
       3, [](Function& f) { f.operations[1].results = {0}; }},
      {"function @f: every value is defined once, before it is used: %x is defined twice", 0,
       [](Function& f) {
         f.parameters = {0, 0};
       }},
      {"function @f: every value is defined once, before it is used: %z is never defined", 0,
       [](Function& f) {
         f.values.push_back({"z", {f32, {}}});
       }},
      {"function @f: a function has results, of the types declared: found no result", 0,
       [](Function& f) {
         f.results.clear();
         f.result_types.clear();
       }},
      {"function @f: a function has results, of the types declared: found 1 results and 0 declared "
       "types",
       0, [](Function& f) { f.result_types.clear(); }},
      {"function @f: a function has results, of the types declared: result 0 (%y): declared f16[3, "
       "?n], but its type is f16[2, ?n]: axis 0 is 3 against 2, fixed extents must be equal",
       0, [](Function& f) { f.result_types[0].shape[0] = 3; }},
      {"function @f: the only function attribute is excess_precision = allow: found speed = 3", 0,
       [](Function& f) {
         f.attributes = {{"speed", {int64_t{3}}}};
       }},
      {"function @f: the only function attribute is excess_precision = allow: found "
       "excess_precision = deny",
       0, [](Function& f) { f.attributes = {named("excess_precision", "deny")}; }},
  });
}

TEST(Verify, RulesOfTypes) {
  const std::string rule = "function @f: types are valid: %x: ";
  const auto shape = [](Shape dims) { return [=](Function& f) { f.values[0].type.shape = dims; }; };
  const int64_t huge = int64_t{1} << 40;
  expect_messages({
      {rule + "element type 77 is not in the table of element types, expected 0 to 32", 0,
       [](Function& f) { f.values[0].type.element = static_cast<ElementType>(77); }},
      {rule + "found rank 17, expected at most 16", 0, shape(Shape(17, 1))},
      {rule + "axis 1 has extent -2, expected 0 or more", 0, shape({1, -2})},
      {rule + "f32[1099511627776, 1099511627776] has more than 2^63 - 1 elements", 0,
       shape({huge, huge})},
      {rule + "f32[1099511627776, 4194304] takes more than 2^63 - 1 bytes", 0,
       shape({huge, int64_t{1} << 22})},
      {rule + "axis 0 has the name \"a b\", expected an identifier", 0, shape({Dim::named("a b")})},
      {rule + "axis 0 has extent 3 and the name ?n, expected one of them", 0,
       [](Function& f) {
         f.values[0].type.shape[0] = Dim::named("n");
         f.values[0].type.shape[0].extent = 3;
       }},
  });
}

TEST(Verify, RulesOfOperations) {
  expect_messages({
      {"%y = convert %x, %x: an op has the operands and results of its row: found 2 operands and 1 "
       "results, expected 1 and 1",
       3,
       [](Function& f) {
         f.operations[1].operands = {0, 0};
       }},
      {"%c = constant: a constant, and nothing else, has data of its fixed type's size: found no "
       "data",
       2, [](Function& f) { f.operations[0].data = nullptr; }},
      {"%y = convert %x: a constant, and nothing else, has data of its fixed type's size: found "
       "data on an op without",
       3, [](Function& f) { f.operations[1].data = f.operations[0].data; }},
      {"%c = constant: a constant, and nothing else, has data of its fixed type's size: found 3 "
       "bytes, expected 6 for u16[3]",
       2, [](Function& f) { f.values[1].type.element = u16; }},
      {"%c = constant: a constant, and nothing else, has data of its fixed type's size: found "
       "u8[?]",
       2, [](Function& f) { f.values[1].type.shape = {"?"}; }},
      {"%y = convert %x : f16: results have the types that follow from the operands: %y is f16[2, "
       "?], expected f16[2, ?n]",
       3, [](Function& f) { f.values[2].type.shape[1] = "?"; }},
      {"%y = convert none : f16: results have the types that follow from the operands: convert: "
       "operand 0 is none, but it is not optional",
       3, [](Function& f) { f.operations[1].operands = {no_value}; }},
  });
}

/// The sound function with `clamp`, or `reshape`, of the f32 parameter in place of its conversion.
std::function<void(Function&)> with(OpKind op, const std::function<void(Operation&)>& change) {
  return [=](Function& f) {
    f.operations[1].op = op;
    f.values[2].type.element = f32;
    f.result_types[0].element = f32;
    change(f.operations[1]);
  };
}

TEST(Verify, RulesOfTargets) {
  const std::string there = "broadcast and reshape, and nothing else, have a target shape: ";
  expect_messages({
      {"%y = reshape %x : [2, ?n]: " + there + "found no target", 3,
       with(OpKind::reshape, [](Operation&) {})},
      {"%y = convert %x : f16: " + there + "found a target on an op without", 3,
       [](Function& f) {
         f.operations[1].target = Shape{2, "?n"};
       }},
      {"%y = reshape %x : [-2, ?n]: " + there +
           "the target: axis 0 has extent -2, expected 0 or more",
       3,
       with(OpKind::reshape,
            [](Operation& o) {
              o.target = Shape{-2, "?n"};
            })},
      {"%y = broadcast %x : [2, ?m]: unknown extents of a target are named as those of parameters: "
       "found ?m, which no parameter has",
       3,
       with(OpKind::broadcast,
            [](Operation& o) {
              o.target = Shape{2, "?m"};
            })},
      {"%y = reshape %x : [?n, 2]: results have the types that follow from the operands: %y is "
       "f32[2, ?n], expected f32[?n, 2]",
       3,
       with(OpKind::reshape,
            [](Operation& o) {
              o.target = Shape{"?n", 2};
            })},
  });
  Function function = sound();
  with(OpKind::broadcast, [](Operation& o) { o.target = Shape{2, "?n"}; })(function);
  EXPECT_TRUE(verify(function));
}

TEST(Verify, RulesOfNumbers) {
  const auto clamp = [](AttributeValue lo) {
    return with(OpKind::clamp, [=](Operation& o) { o.attributes = {{"lo", lo}}; });
  };
  const std::string kind = "attributes have the kind that the row says: lo = ";
  expect_messages({
      {"%y = clamp %x {lo = nan}: numbers are not NaN: lo = nan, expected a number, inf or -inf", 3,
       clamp({std::numeric_limits<double>::quiet_NaN()})},
      {"%y = clamp %x {lo = low}: " + kind + "low is an identifier, expected a number", 3,
       clamp({Identifier{"low"}})},
      {"%y = clamp %x {lo = [1]}: " + kind + "[1] is a list, expected a number", 3,
       clamp({AttributeValue::List{{int64_t{1}}}})},
  });
  const double infinity = std::numeric_limits<double>::infinity();
  for (const AttributeValue& lo :
       {AttributeValue{int64_t{-3}}, AttributeValue{0.5}, AttributeValue{-infinity}}) {
    Function function = sound();
    clamp(lo)(function);
    const Status status = verify(function);
    EXPECT_TRUE(status) << status.error().message;
  }
}

TEST(Verify, RulesOfAttributes) {
  const auto attributes = [](Attributes given) {
    return [=](Function& f) { f.operations[1].attributes = given; };
  };
  expect_messages({
      {"%y = convert %x {speed = 3} : f16: attributes are those of the op's row: found speed, "
       "expected overflow, rounding, nan",
       3, attributes({{"speed", {int64_t{3}}}})},
      {"%c = constant: attributes are those of the op's row: found axis, expected none", 2,
       [](Function& f) {
         f.operations[0].attributes = {{"axis", {int64_t{3}}}};
       }},
      {"%y = convert %x {overflow = saturate, overflow = saturate} : f16: attributes are given "
       "once: overflow is given twice",
       3, attributes({named("overflow", "saturate"), named("overflow", "saturate")})},
      {"%y = convert %x {overflow = \"wrap\"} : f16: attributes have the kind that the row says: "
       "overflow = \"wrap\" is a string, expected an identifier",
       3, attributes({{"overflow", {std::string("wrap")}}})},
      {"%y = convert %x {rounding = sideways} : f16: identifiers are among the row's choices: "
       "rounding = sideways, expected toward_zero, nearest_even, nearest_away, down, up, half_up",
       3, attributes({named("rounding", "sideways")})},
      {"%y = convert %x {overflow = wrap} : f16: options are in the row of the conversion table: "
       "convert: overflow = wrap does not apply to f32 -> f16 (conversion to float); expected "
       "saturate or saturate_finite",
       3, attributes({named("overflow", "wrap")})},
  });
}

TEST(Verify, RefusesMoreOperationsAndUsesThanTheLimits) {
  const std::string rule =
      "function @f: a function has at most 65536 operations and 65536 values: ";
  expect_messages({
      {rule + "found 65537 operations", 0,
       [](Function& f) { f.operations.resize(max_operations + 1); }},
      {rule + "found 65537 values, 1 parameters and 1 results", 0,
       [](Function& f) { f.values.resize(max_values + 1); }},
      {rule + "found 3 values, 1 parameters and 65537 results", 0,
       [](Function& f) { f.results.resize(max_values + 1); }},
  });
}

TEST(Verify, TakesFunctionsAsLargeAsTheLimit) {
  Function function = sound();
  while (function.values.size() < max_values) {
    const auto id = static_cast<ValueId>(function.values.size());
    function.values.push_back({std::to_string(id), {f16, {2, "?n"}}});
    function.operations.push_back({.op = OpKind::convert, .operands = {id - 1}, .results = {id}});
  }
  const Status status = verify(function);
  EXPECT_TRUE(status) << status.error().message;
}

TEST(Verify, Names) {
  for (const char* name : {"x", "_", "x.1", "a-b", "A$", "_0"}) EXPECT_TRUE(is_identifier(name));
  for (const char* name : {"", "0", ".x", "-x", "$", "a b", "a%", "\xC3\xA4"}) {
    EXPECT_FALSE(is_identifier(name)) << name;
  }
  for (const char* name : {"0", "007", "x"}) EXPECT_TRUE(is_value_name(name));
  for (const char* name : {"", "0x", "-1"}) EXPECT_FALSE(is_value_name(name));
}

}  // namespace
}  // namespace castor
