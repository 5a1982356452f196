// SPDX-License-Identifier: Apache-2.0
// requantize and quantized types in the IR: their text, the builder, constants, canonical form.
#include <fmt/format.h>

#include <set>

#include "ir/rewrite/canonicalize.hpp"
#include "ir/verify/requantize.hpp"
#include "tests/support/interpreted.hpp"
#include "tests/support/texts.hpp"

namespace castor::test {
namespace {

std::string around(const std::string& operation, const std::string& parameters,
                   const std::string& result) {
  return "func @f(" + parameters + ") -> (" + result + ") {\n  " + operation + "\n  return %y\n}\n";
}

FunctionPtr parsed(const std::string& text) {
  const auto function = parse_function(text);
  EXPECT_TRUE(function) << text << (function ? "" : function.error().to_string());
  return function ? *function : nullptr;
}

/// Each kind of format: of one scale, of one for each index, with parameters at run time.
const std::string formats[] = {
    "f32",
    "fx8<frac = 7>",
    "fx8<frac = -128>",
    "fx8<frac = ?>",
    "fx16<frac = 127>",
    "fx16<frac = ?>",
    "sa8<scale = 1, frac = -128, zero_point = -32768>",
    "sa8<scale = 32767, frac = 127, zero_point = 32767>",
    "sa8<scale = ?, frac = 3, zero_point = 0>",
    "sa8<scale = 3, frac = ?, zero_point = 0>",
    "sa8<scale = 3, frac = 3, zero_point = ?>",
    "sa8<axis = 1, scale = [1, 2, 3], frac = [-1, 0, 1], zero_point = [5, -5, 0]>",
    "sa8<axis = 0, scale = [1, 2], frac = [4, 5], zero_point = [0, 0]>",
    "sa8<axis = 2, scale = [7], frac = [4], zero_point = [0]>",
    "sa8<axis = 1, scale = ?, frac = [1, 2, 3], zero_point = ?>",
    "sa32<scale = 1234, frac = 16, zero_point = -3>",
    "sa32<scale = ?, frac = ?, zero_point = ?>",
    "sa32<axis = 3, scale = [], frac = [], zero_point = []>",
    "sa32<axis = 1, scale = ?, frac = ?, zero_point = ?>",
};
const std::string shape = "[2, 3, 1, 0]";

TEST(QuantizedTypes, PrintAsTheyStand) {
  for (const std::string& format : formats) {
    const std::string type = format + shape;
    const std::string text = "func @f(%x: " + type + ") -> (" + type + ") {\n  return %x\n}\n";
    const FunctionPtr function = parsed(text);
    ASSERT_TRUE(function);
    EXPECT_EQ(print(*function), text);
    texts::expect_round_trip(text);
    const TensorType& found = function->type_of(function->parameters[0]);
    EXPECT_EQ(to_string(found), type);
    if (!found.quantization) continue;
    EXPECT_EQ(found.element, info(found.quantization->format).container);
    EXPECT_EQ(to_string(*found.quantization), format);
  }
}

TEST(QuantizedTypes, EntriesStandInAnyOrderAndZeroPointMayBeLeftOut) {
  const std::pair<std::string, std::string> spellings[] = {
      {"sa8<zero_point = 4, frac = 2, scale = 3>", "sa8<scale = 3, frac = 2, zero_point = 4>"},
      {"sa8<frac=2,scale=3>", "sa8<scale = 3, frac = 2, zero_point = 0>"},
      {"sa8<scale = [3], frac = [2]>", "sa8<scale = 3, frac = 2, zero_point = 0>"},
      {"sa8<frac = [2, 2, 2], axis = 1, scale = [1, 2, 3]>",
       "sa8<axis = 1, scale = [1, 2, 3], frac = [2, 2, 2], zero_point = [0, 0, 0]>"},
      {"sa8<axis = 2, scale = 9, frac = 2>",
       "sa8<axis = 2, scale = [9], frac = [2], zero_point = [0]>"},
      {"fx8<frac = [7]>", "fx8<frac = 7>"},
      {"sa32<axis = 3, scale = [], frac = []>",
       "sa32<axis = 3, scale = [], frac = [], zero_point = []>"},
  };
  for (const auto& [text, canonical] : spellings) {
    const FunctionPtr function =
        parsed("func @f(%x: " + text + shape + ") -> (" + text + shape + ") { return %x }");
    ASSERT_TRUE(function) << text;
    EXPECT_EQ(to_string(function->type_of(0)), canonical + shape);
  }
}

/// A parameter for each that a format leaves open.
std::string operands_for(const std::string& format, const std::string& side,
                         std::string& parameters) {
  std::string operands;
  for (const QuantizationRule& rule : quantization_rules) {
    if (format.find(fmt::format("{} = ?", rule.name)) == std::string::npos) {
      operands += ", none";
      continue;
    }
    const std::string name = fmt::format("%{}_{}", side, rule.name);
    const char* const extents = format.find("axis") == std::string::npos ? "[]" : "[3]";
    parameters += fmt::format(", {}: {}{}", name, name_of(rule.element), extents);
    operands += ", " + name;
  }
  return operands;
}

std::string without_absent_end(std::string operands) {
  while (operands.ends_with(", none")) operands.resize(operands.size() - 6);
  return operands;
}

/// The text is the same for every pair of formats whose axes go together, with and without
/// attributes.
TEST(RequantizeText, PrintsAsItStands) {
  const std::string attributes[] = {"", " {arithmetic = embarc}", " {rounding = nearest_even}",
                                    " {arithmetic = embarc, rounding = nearest_even}"};
  std::set<uint64_t> hashes;
  size_t texts = 0, refused = 0;
  for (const std::string& from : formats) {
    for (const std::string& to : formats) {
      std::string parameters = "%x: " + from + shape;
      std::string operands = "%x" + operands_for(from, "source", parameters);
      operands = without_absent_end(operands + operands_for(to, "destination", parameters));
      for (const std::string& options : attributes) {
        const std::string text =
            around("%y = requantize " + operands + options + " : " + to, parameters, to + shape);
        const auto function = parse_function(text);
        if (!function) {
          EXPECT_NE(function.error().message.find("the axis of quantization cannot be changed"),
                    std::string::npos)
              << text << function.error().message;
          ++refused;
          continue;
        }
        ASSERT_EQ(print(**function), text);
        const auto again = parse_function(print(**function));
        ASSERT_TRUE(again);
        EXPECT_TRUE(same_computation(**function, **again));
        EXPECT_EQ((*function)->hash, (*again)->hash);
        EXPECT_TRUE(verify(**function));
        EXPECT_EQ((*function)->operations[0].operands.size(), requantize_operands);
        hashes.insert((*function)->hash);
        ++texts;
      }
    }
  }
  EXPECT_EQ(hashes.size(), texts);
  EXPECT_EQ(refused,
            4u * 24);  // six have an axis: three take 1, the others 0, 2 and 3
}

TEST(RequantizeText, SpellingsOfOneThing) {
  const std::string parameters = "%x: f32[2, 3]";
  const std::string result = "sa8<axis = 1, scale = [4, 5, 6], frac = [7, 8, 9]>[2, 3]";
  const std::string type =
      "sa8<axis = 1, scale = [4, 5, 6], frac = [7, 8, 9], zero_point = [0, 0, 0]>";
  const FunctionPtr plain = parsed(around("%y = requantize %x : " + type, parameters, result));
  ASSERT_TRUE(plain);
  for (const char* operation :
       {"%y = requantize %x, none, none, none, none, none, none : ", "%y = requantize %x {} : ",
        "%y = requantize %x {rounding = half_up} : ",
        "%y = requantize %x {rounding = half_up, arithmetic = exact} : "}) {
    const FunctionPtr other = parsed(around(operation + type, parameters, result));
    ASSERT_TRUE(other);
    EXPECT_EQ(requantize_options(other->operations[0]), RequantizeOptions{});
    EXPECT_EQ(other->operations[0].operands, plain->operations[0].operands);
    EXPECT_EQ(other->type_of(1), plain->type_of(1));
  }
  for (const char* written : {"[2, 3]", "[?, 3]"}) {
    const FunctionPtr other =
        parsed(around("%y = requantize %x : " + type + written, parameters, result));
    ASSERT_TRUE(other);
    EXPECT_TRUE(same_computation(*other, *plain));
  }
}

TEST(RequantizeBuilder, SaysWhatTheTextSays) {
  FunctionBuilder builder("f");
  const Quantization from{.format = QuantizedFormat::sa8, .axis = 1, .frac = std::nullopt};
  const ValueId x = builder.parameter("x", quantized_type(from, {"?n", "?c"}));
  std::array<ValueId, 6> parameters = FunctionBuilder::no_parameters;
  parameters[0] = builder.parameter("s", {ElementType::i16, {"?c"}});
  parameters[1] = builder.parameter("n", {ElementType::i8, {"?c"}});
  parameters[2] = builder.parameter("z", {ElementType::i16, {"?c"}});
  const RequantizeOptions options{RequantizeArithmetic::embarc, RequantizeRounding::nearest_even};
  const ValueId y = builder.requantize(
      x, Quantization{.format = QuantizedFormat::fx16, .frac = {{-3}}}, options, parameters);
  builder.result(builder.requantize(y, std::nullopt));
  const auto function = builder.finish();
  ASSERT_TRUE(function) << function.error().to_string();
  EXPECT_EQ(print(**function),
            "func @f(%x: sa8<axis = 1, scale = ?, frac = ?, zero_point = ?>[?n, ?c], %s: i16[?c], "
            "%n: i8[?c], %z: i16[?c]) -> (f32[?n, ?c]) {\n"
            "  %0 = requantize %x, %s, %n, %z {arithmetic = embarc, rounding = nearest_even} : "
            "fx16<frac = -3>\n"
            "  %1 = requantize %0 : f32\n"
            "  return %1\n}\n");
  EXPECT_EQ(requantize_options((*function)->operations[0]), options);
}

/// Entries of lists are data of types: functions that differ in one are different.
TEST(QuantizedTypes, EveryEntryCounts) {
  const std::string texts[] = {
      "sa8<axis = 0, scale = [3, 4], frac = [5, 6], zero_point = [7, 8]>[2, 2]",
      "sa8<axis = 1, scale = [3, 4], frac = [5, 6], zero_point = [7, 8]>[2, 2]",
      "sa8<axis = 0, scale = [3, 5], frac = [5, 6], zero_point = [7, 8]>[2, 2]",
      "sa8<axis = 0, scale = [3, 4], frac = [5, 7], zero_point = [7, 8]>[2, 2]",
      "sa8<axis = 0, scale = [3, 4], frac = [5, 6], zero_point = [7, 9]>[2, 2]",
      "sa8<axis = 0, scale = ?, frac = [5, 6], zero_point = [7, 8]>[2, 2]",
      "sa8<scale = 3, frac = 5, zero_point = 7>[2, 2]",
      "sa32<scale = 3, frac = 5, zero_point = 7>[2, 2]",
      "fx8<frac = 5>[2, 2]",
      "i8[2, 2]",
  };
  std::vector<FunctionPtr> functions;
  for (const std::string& type : texts) {
    functions.push_back(parsed("func @f(%x: " + type + ") -> (" + type + ") { return %x }"));
    ASSERT_TRUE(functions.back());
  }
  for (size_t i = 0; i < functions.size(); ++i) {
    for (size_t k = 0; k < functions.size(); ++k) {
      EXPECT_EQ(functions[i]->hash == functions[k]->hash, i == k) << texts[i] << " " << texts[k];
      EXPECT_EQ(same_computation(*functions[i], *functions[k]), i == k);
    }
  }
}

TEST(RequantizeConstants, QuantizedConstantsAreTheirContainersElements) {
  const std::string text =
      "func @f() -> (f32[2, 2]) {\n"
      "  %c = constant [[1, -2], [127, -128]] : sa8<axis = 0, scale = [2, 3], frac = [1, 0], "
      "zero_point = [1, -1]>[2, 2]\n"
      "  %y = requantize %c : f32\n"
      "  return %y\n}\n";
  const FunctionPtr function = parsed(text);
  ASSERT_TRUE(function);
  EXPECT_EQ(print(*function), text);
  texts::expect_round_trip(text);
  const auto f32 = [](float value) { return uint64_t{std::bit_cast<uint32_t>(value)}; };
  EXPECT_EQ(interpreted(*function, {}).elements,
            (std::vector{f32(0), f32(-3), f32(384), f32(-381)}));
}

TEST(RequantizeConstants, MayBeParameters) {
  const FunctionPtr function = parsed(
      "func @f(%x: sa8<axis = 0, scale = ?, frac = ?, zero_point = ?>[2]) -> (f32[2]) {\n"
      "  %s = constant [4, 2] : i16[2]\n"
      "  %n = constant [1, -1] : i8[2]\n"
      "  %z = constant [-1, 10] : i16[2]\n"
      "  %y = requantize %x, %s, %n, %z : f32\n"
      "  return %y\n}\n");
  ASSERT_TRUE(function);
  const auto f32 = [](float value) { return uint64_t{std::bit_cast<uint32_t>(value)}; };
  EXPECT_EQ(interpreted(*function, {row_of(ElementType::i8, {5, 0xff})}).elements,
            (std::vector{f32(12), f32(-44)}));
}

/// Conversions around it go, it stays; of two that nobody reads, none is left.
TEST(RequantizeCanonical, OnlyWhatNothingNeedsGoes) {
  const FunctionPtr function = parsed(
      "func @f(%x: f32[4]) -> (f32[4]) {\n"
      "  %unused = requantize %x : fx8<frac = 3>\n"
      "  %same = convert %x : f32\n"
      "  %q = requantize %same : fx16<frac = 3>\n"
      "  %y = requantize %q : f32\n"
      "  return %y\n}\n");
  ASSERT_TRUE(function);
  EXPECT_EQ(print(*canonicalize(function)),
            "func @f(%x: f32[4]) -> (f32[4]) {\n"
            "  %q = requantize %x : fx16<frac = 3>\n"
            "  %y = requantize %q : f32\n"
            "  return %y\n}\n");
}

}  // namespace
}  // namespace castor::test
