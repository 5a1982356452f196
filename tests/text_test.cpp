// SPDX-License-Identifier: Apache-2.0
// The text form: round trips, bad texts with their messages, hostile texts.
#include "ir/text.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "ir/builder.hpp"
#include "ir/verify.hpp"

namespace castor {
namespace {

/// Bytes 1, 2, 3 ... as the type takes them; @missing is refused.
Result<std::vector<std::byte>> bind(std::string_view name, const TensorType& type) {
  if (name == "missing") return Error{ErrorCode::io, "no file for @missing"};
  std::vector<std::byte> bytes;
  int64_t count = 1;
  for (const Dim& dim : type.shape) count *= dim.extent;
  for (int64_t i = 0; i < count * bits_of(type.element) / 8; ++i) {
    bytes.push_back(static_cast<std::byte>(i + 1));
  }
  return bytes;
}

const ParseOptions with_bindings = {.bind_constant = bind};

std::string error_of(std::string_view text, const ParseOptions& options = {}) {
  const auto functions = parse(text, options);
  return functions ? "no error" : functions.error().to_string();
}

std::string printed(const std::vector<FunctionPtr>& functions) {
  std::string text;
  for (const FunctionPtr& function : functions) text += print(*function);
  return text;
}

/// Parses, prints and parses again: the same computation and the same text.
void expect_round_trip(std::string_view text) {
  const auto first = parse(text, with_bindings);
  ASSERT_TRUE(first.ok()) << text << first.error().to_string();
  const std::string canonical = printed(*first);
  const auto second = parse(canonical, with_bindings);
  ASSERT_TRUE(second.ok()) << canonical << second.error().to_string();
  ASSERT_EQ(first->size(), second->size());
  for (size_t i = 0; i < first->size(); ++i) {
    EXPECT_TRUE(same_computation(*(*first)[i], *(*second)[i])) << canonical;
    EXPECT_TRUE(verify(*(*second)[i]).ok());
  }
  EXPECT_EQ(printed(*second), canonical);
}

// Texts as the printer writes them.
constexpr std::string_view canonical_texts[] = {
    R"(func @identity(%x: f32[]) -> (f32[]) {
  return %x
}
)",
    R"(func @store(%x: u8[1, 64, ?h, ?w], %s: f32[64, 1, 1]) -> (f16[1, 64, ?h, ?w], f32[64, 1, 1]) {
  %f = convert %x : f32
  %h = convert %f {overflow = saturate} : f16
  return %h, %s
}
)",
    R"(func @options(%x: f32[?]) -> (i8[?], i8[?], u64[?]) attributes {excess_precision = allow} {
  %0 = convert %x {rounding = half_up, overflow = wrap} : i8
  %1 = convert %x {overflow = saturate, rounding = nearest_even} : i8
  %2 = convert %x {rounding = up} : u64
  return %0, %0, %2
}
)",
    R"(func @constants() -> (f32[], i32[3], i32[2, 2], boolean[3], f64[0, 5], i8[2, 3]) {
  %half = constant 0.5 : f32[]
  %list = constant [1, 2, 3] : i32[3]
  %nested = constant [[1, 2], [-3, 4]] : i32[2, 2]
  %flags = constant [true, false, 0x03] : boolean[3]
  %empty = constant [] : f64[0, 5]
  %weights = constant @weights : i8[2, 3]
  return %half, %list, %nested, %flags, %empty, %weights
}
)",
    R"(func @specials() -> (f32[2, 1, 3], f16[2], bf16[1], u64[1]) {
  %a = constant [[[inf, -inf, nan]], [[-0.0, 0x7f800001, 1e-45]]] : f32[2, 1, 3]
  %b = constant [65504.0, 0xfe00] : f16[2]
  %c = constant [0.100097656] : bf16[1]
  %d = constant [18446744073709551615] : u64[1]
  return %a, %b, %c, %d
}
)",
    R"(func @first.one$(%a-b: i64[?n-1, ?]) -> (i64[?n-1, ?]) {
  return %a-b
}
func @second(%_: u16[0]) -> (f64[0]) {
  %y = convert %_ : f64
  return %y
}
)",
};

TEST(Text, CanonicalTextsPrintAsTheyStand) {
  for (std::string_view text : canonical_texts) {
    const auto functions = parse(text, with_bindings);
    ASSERT_TRUE(functions.ok()) << functions.error().to_string();
    EXPECT_EQ(printed(*functions), text);
    expect_round_trip(text);
  }
}

struct Spelling {
  std::string_view text;
  std::string_view canonical;
};

constexpr Spelling spellings[] = {
    {"func@f(%x:f32[2])->f32[2]{return%x}", "func @f(%x: f32[2]) -> (f32[2]) {\n  return %x\n}\n"},
    {"func @f(%x: f32[]) -> f32[] attributes {} { return %x }",
     "func @f(%x: f32[]) -> (f32[]) {\n  return %x\n}\n"},
    {"// one\r\nfunc @f(%x: f32[]) // two\r\n\t-> (f32[]) {\r\n\treturn %x // three\r\n}\r\n// "
     "four",
     "func @f(%x: f32[]) -> (f32[]) {\n  return %x\n}\n"},
    {"func @f(%x: u8[2, ?n]) -> (f32[?, ?]) { %y = convert %x {} : f32[2, ?n] return %y }",
     "func @f(%x: u8[2, ?n]) -> (f32[?, ?]) {\n  %y = convert %x : f32\n  return %y\n}\n"},
    {"func @f(%x: u8[2, ?n]) -> (f32[2, ?n]) { %y = convert %x : f32[?, ?] return %y }",
     "func @f(%x: u8[2, ?n]) -> (f32[2, ?n]) {\n  %y = convert %x : f32\n  return %y\n}\n"},
    {"func @f() -> (i32[2, 2]) { %c = constant [1, 0x2, -0, 4] : i32[2, 2] return %c }",
     "func @f() -> (i32[2, 2]) {\n  %c = constant [[1, 2], [0, 4]] : i32[2, 2]\n  return %c\n}\n"},
    {"func @f() -> (i8[2, 0]) { %c = constant [[], []] : i8[2, 0] return %c }",
     "func @f() -> (i8[2, 0]) {\n  %c = constant [] : i8[2, 0]\n  return %c\n}\n"},
    {"func @f() -> (f64[1, 1]) { %c = constant [1e0] : f64[1, 1] return %c }",
     "func @f() -> (f64[1, 1]) {\n  %c = constant [[1.0]] : f64[1, 1]\n  return %c\n}\n"},
    {"func @f() -> (f32[3]) { %c = constant [10e-1, 0x3f800000, 0.1000000000000000000001] : f32[3] "
     "return %c }",
     "func @f() -> (f32[3]) {\n  %c = constant [1.0, 1.0, 0.1] : f32[3]\n  return %c\n}\n"},
};

TEST(Text, OtherSpellingsPrintCanonically) {
  for (const Spelling& row : spellings) {
    expect_round_trip(row.text);
    const auto functions = parse(row.text);
    ASSERT_TRUE(functions.ok());
    EXPECT_EQ(printed(*functions), row.canonical);
  }
}

TEST(Text, OperationsKnowTheirPlaces) {
  const auto function = parse_function(
      "func @f(%x: f32[2]) -> (i8[2], f32[]) {\n"
      "  %y = convert %x : i8 %c =\n"
      "\t\tconstant 1 : f32[]\n"
      "  return %y, %c\n}");
  ASSERT_TRUE(function.ok());
  const auto& operations = (*function)->operations;
  ASSERT_EQ(operations.size(), 2u);
  EXPECT_EQ(operations[0].where.line, 2u);
  EXPECT_EQ(operations[0].where.column, 3u);
  EXPECT_EQ(operations[1].where.line, 2u);
  EXPECT_EQ(operations[1].where.column, 24u);
  EXPECT_EQ(print(**function, operations[0]), "%y = convert %x : i8");
}

TEST(Text, ConstantsHoldTheirBits) {
  const auto function = parse_function(
      "func @f() -> (u16[2], i8[2, 2]) { %a = constant [258, 65535] : u16[2] "
      "%b = constant @w : i8[2, 2] return %a, %b }",
      "f", with_bindings);
  ASSERT_TRUE(function.ok());
  const auto& operations = (*function)->operations;
  const auto bytes = [](std::initializer_list<int> values) {
    std::vector<std::byte> list;
    for (int value : values) list.push_back(static_cast<std::byte>(value));
    return list;
  };
  EXPECT_EQ(operations[0].data->bytes, bytes({2, 1, 255, 255}));
  EXPECT_EQ(operations[0].data->binding, "");
  EXPECT_EQ(operations[1].data->bytes, bytes({1, 2, 3, 4}));
  EXPECT_EQ(operations[1].data->binding, "w");
}

TEST(Text, BuiltFunctionsReadBack) {
  FunctionBuilder builder("built");
  const ValueId x = builder.parameter("", {ElementType::f64, {"?n", 3, "?"}});
  const ValueId y = builder.convert(
      x, ElementType::i16, {.overflow = Overflow::wrap, .rounding = Rounding::nearest_away});
  const std::array<std::byte, 4> bytes = {std::byte{1}, {}, std::byte{255}, std::byte{127}};
  const ValueId c = builder.constant({ElementType::i16, {2, 1}}, bytes);
  builder.result(y);
  builder.result(c);
  builder.result(y, TensorType{ElementType::i16, {"?n", "?", "?m"}});
  const auto function = builder.finish();
  ASSERT_TRUE(function.ok()) << function.error().to_string();
  const std::string text = print(**function);
  EXPECT_EQ(text,
            "func @built(%0: f64[?n, 3, ?]) -> (i16[?n, 3, ?], i16[2, 1], i16[?n, ?, ?m]) {\n"
            "  %1 = convert %0 {overflow = wrap, rounding = nearest_away} : i16\n"
            "  %2 = constant [[1], [32767]] : i16[2, 1]\n"
            "  return %1, %2, %1\n}\n");
  const auto back = parse_function(text);
  ASSERT_TRUE(back.ok()) << back.error().to_string();
  EXPECT_TRUE(same_computation(**function, **back));
  EXPECT_EQ(print(**back), text);
}

TEST(Text, FunctionsArePickedByName) {
  const std::string_view two =
      "func @a(%x: u8[]) -> u8[] {return %x} func @b(%x: i8[]) -> i8[] {return %x}";
  EXPECT_EQ((*parse_function(two, "b"))->name, "b");
  EXPECT_EQ((*parse_function(two.substr(0, 37)))->name, "a");
  EXPECT_EQ(parse_function(two).error().message,
            "found 2 functions (@a, @b), expected one function");
  EXPECT_EQ(parse_function(two, "c").error().message, "found 2 functions (@a, @b), expected @c");
  EXPECT_EQ(parse_function(two, "c").error().code, ErrorCode::invalid_argument);
}

struct BadText {
  std::string_view text;
  std::string_view error;
};

// Puts what follows on line 2, into the body of a function.
#define IN_F "func @f(%x: f32[2]) -> (f32[2]) {\n"

constexpr BadText bad_texts[] = {
    // Functions.
    {"", "line 1, column 1: found the end of the text, expected 'func'"},
    {" // nothing\n", "line 2, column 1: found the end of the text, expected 'func'"},
    {"function @f", "line 1, column 1: found 'function', expected 'func'"},
    {"func f", "line 1, column 6: found 'f', expected a name such as @f"},
    {"func @1f()", "line 1, column 6: found '@1f', expected an identifier behind '@'"},
    {"func @f{", "line 1, column 8: found '{', expected '('"},
    {"func @f(x: f32[])", "line 1, column 9: found 'x', expected a parameter such as %x"},
    {"func @f(%x f32[])", "line 1, column 12: found 'f32', expected ':'"},
    {"func @f(%x: f32[] %y", "line 1, column 19: found '%y', expected ',' or ')'"},
    {"func @f(%x: f32[], %x: f32[])",
     "line 1, column 20: %x is defined twice, first at line 1, column 9"},
    {"func @f(%1x: f32[])",
     "line 1, column 9: found '%1x', expected a value name: an identifier or digits behind '%'"},
    {"func @f(%x: f32[]) {", "line 1, column 20: found '{', expected '->'"},
    {"func @f(%x: f32[]) -> (f32[] {", "line 1, column 30: found '{', expected ',' or ')'"},
    {"func @f(%x: f32[]) -> f32[] with {", "line 1, column 29: found 'with', expected '{'"},
    {"func @f(%x: f32[]) -> f32[] attributes {precision = 3} {return %x}",
     "line 1, column 6: function @f: the only function attribute is excess_precision = allow: "
     "found "
     "precision = 3"},
    {"func @f(%x: f32[]) -> f32[] { return %x } }",
     "line 1, column 43: found '}', expected 'func' or the end of the text"},
    {"func @f(%x: f32[]) -> f32[] { return %x }\nfunc @f(%x: f32[]) -> f32[] { return %x }",
     "line 2, column 6: @f is defined twice, first at line 1, column 6"},
    {"func @f() -> () { return }",
     "line 1, column 6: function @f: a function has results, of the types declared: found no "
     "result"},
    // Types.
    {"func @f(%x: [2])", "line 1, column 13: found '[', expected an element type such as f32"},
    {"func @f(%x: F32[2])", "line 1, column 13: found 'F32', expected an element type such as f32"},
    {"func @f(%x: f32)", "line 1, column 16: found ')', expected '['"},
    {"func @f(%x: u4[2])",
     "line 1, column 13: %x: element type u4 is known but not implemented yet"},
    {"func @f() -> (nf4[2])",
     "line 1, column 15: result 0: element type nf4 is known but not implemented yet"},
    {"func @f(%x: f32[-1])", "line 1, column 17: found '-1', expected an extent, '?' or '?name'"},
    {"func @f(%x: f32[2.5])", "line 1, column 17: found '2.5', expected an extent, '?' or '?name'"},
    {"func @f(%x: f32[2,])", "line 1, column 19: found ']', expected an extent, '?' or '?name'"},
    {"func @f(%x: f32[?2])",
     "line 1, column 17: found '?2', expected '?' or an identifier behind it"},
    {"func @f(%x: f32[2 3])", "line 1, column 19: found '3', expected ',' or ']'"},
    {"func @f(%x: f32[9223372036854775808])",
     "line 1, column 17: extent 9223372036854775808 is too large, expected at most "
     "9223372036854775807"},
    {"func @f(%x: u8[9223372036854775807, 2])",
     "line 1, column 13: %x: u8[9223372036854775807, 2] has more than 2^63 - 1 elements"},
    {"func @f(%x: f32[9223372036854775807])",
     "line 1, column 13: %x: f32[9223372036854775807] takes more than 2^63 - 1 bytes"},
    {"func @f(%x: f32[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1])",
     "line 1, column 49: found another dimension, expected at most 16"},
    // Operations.
    {IN_F "}",
     "line 2, column 1: found '}', expected an operation such as '%y = ...', or 'return'"},
    {IN_F "y = convert %x : f32",
     "line 2, column 1: found 'y', expected an operation such as '%y = ...', or 'return'"},
    {IN_F "%y convert", "line 2, column 4: found 'convert', expected ',' or '='"},
    {IN_F "%y, = convert", "line 2, column 5: found '=', expected a value to define, such as %y"},
    {IN_F "%y = convrt %x : f16",
     "line 2, column 6: found 'convrt', expected an operation: constant, convert"},
    {IN_F "%y = convert : f16", "line 2, column 14: found ':', expected a value or none"},
    {IN_F "%y = convert %z : f16",
     "line 2, column 14: found '%z', expected a value that is defined above"},
    {IN_F "%y = convert %y : f16",
     "line 2, column 14: found '%y', expected a value that is defined above"},
    {IN_F "%y = convert none : f16",
     "line 2, column 1: convert: operand 0 is none, but it is not optional"},
    {IN_F "%y = convert %x, %x : f16", "line 2, column 1: convert: found 2 operands, expected 1"},
    {IN_F "%y, %z = convert %x : f16",
     "line 2, column 1: convert: found 2 names for results, expected 1"},
    {IN_F "%y = convert %x\n}",
     "line 3, column 1: found '}', expected ':' and the result's element type"},
    {IN_F "%y = convert %x : [2]",
     "line 2, column 19: found '[', expected an element type such as f32"},
    {IN_F "%y = convert %x : u4",
     "line 2, column 19: %y: element type u4 is known but not implemented yet"},
    {IN_F "%y = convert %x : f16[3]",
     "line 2, column 1: convert: %y has type f16[2], but f16[3] is written"},
    {IN_F "%x = convert %x : f16",
     "line 2, column 1: %x is defined twice, first at line 1, column 9"},
    {IN_F "%y, %y = convert %x : f16",
     "line 2, column 5: %y is defined twice, first at line 2, column 1"},
    // Attributes.
    {IN_F "%y = convert %x {speed = 1} : f16",
     "line 2, column 18: found 'speed', expected an attribute of convert: overflow, rounding, nan"},
    {IN_F "%y = constant [1, 2] {a = 1} : f32[2]",
     "line 2, column 23: found 'a', expected '}': constant has no attributes"},
    {IN_F "%y = convert %x {overflow = wrap, overflow = wrap} : i8",
     "line 2, column 35: attribute overflow is given twice"},
    {IN_F "%y = convert %x {overflow wrap} : i8", "line 2, column 27: found 'wrap', expected '='"},
    {IN_F "%y = convert %x {overflow = } : i8",
     "line 2, column 29: found '}', expected a value: a number, true, false, an identifier, a "
     "string "
     "or a list"},
    {IN_F "%y = convert %x {overflow = wrap : i8",
     "line 2, column 34: found ':', expected ',' or '}'"},
    {IN_F "%y = convert %x {overflow = [1, 2} : i8",
     "line 2, column 34: found '}', expected ',' or ']'"},
    {IN_F "%y = convert %x {overflow = \"wrap} : i8\n",
     "line 2, column 29: found '\"wrap} : i8', the string does not end, expected '\"' on the same "
     "line"},
    {IN_F "%y = convert %x {overflow = \"a\\q\"} : i8",
     "line 2, column 31: found '\\', expected \\\", \\\\, \\n, \\t, \\r or \\xHH"},
    {IN_F "%y = convert %x {overflow = \"a\tb\"} : i8",
     "line 2, column 31: found '\\x09', expected control characters in a string as \\xHH"},
    {IN_F "%y = convert %x {overflow = 9223372036854775808} : i8",
     "line 2, column 29: 9223372036854775808 is out of range for i64, expected "
     "-9223372036854775808 "
     "to 9223372036854775807"},
    {IN_F "%y = convert %x {overflow = 1e999} : i8",
     "line 2, column 29: 1e999 is out of range for f64, expected a magnitude up to "
     "1.7976931348623157e+308"},
    {IN_F "%y = convert %x {overflow = 0x10} : i8",
     "line 2, column 29: found '0x10', expected a value: a number, true, false, an identifier, a "
     "string or a list"},
    {IN_F "%y = convert %x {overflow = 1.5} : f32 return %y }",
     "line 2, column 1: %y = convert %x {overflow = 1.5} : f32: attributes have the kind that the "
     "row "
     "says: overflow = 1.5 is a float, expected an identifier"},
    {IN_F "%y = convert %x {overflow = inf} : f32 return %y }",
     "line 2, column 1: %y = convert %x {overflow = inf} : f32: identifiers are among the row's "
     "choices: overflow = inf, expected saturate, wrap, nan"},
    {IN_F "%y = convert %x {overflow = nan} : f32 return %y }",
     "line 2, column 1: %y = convert %x {overflow = nan} : f32: options are in the row of the "
     "conversion table: convert: overflow = nan does not apply to f32 -> f32 (conversion to the "
     "same "
     "type); expected saturate"},
    // Constants.
    {IN_F "%y = constant : f32[]",
     "line 2, column 15: found ':', expected a literal, a list or '@'"},
    {IN_F "%y = constant 1",
     "line 2, column 16: found the end of the text, expected ':' and the full type"},
    {IN_F "%y = constant 1 : f32 return", "line 2, column 23: found 'return', expected '['"},
    {IN_F "%y = constant 1 : f32[2]",
     "line 2, column 15: found '1', expected a list of literals for f32[2]"},
    {IN_F "%y = constant [1] : f32[]", "line 2, column 15: found '[', expected a literal of f32"},
    {IN_F "%y = constant [1, 2, 3] : f32[2]",
     "line 2, column 22: found more than 2 entries in the list of f32[2]"},
    {IN_F "%y = constant [1] : f32[2]",
     "line 2, column 15: found 1 of 2 entries in the list of f32[2]"},
    {IN_F "%y = constant [[1, 2], [3]] : f32[2, 2]",
     "line 2, column 24: found 1 of 2 entries in axis 1 of f32[2, 2]"},
    {IN_F "%y = constant [[1, 2], 3] : f32[2, 2]", "line 2, column 24: found '3', expected '['"},
    {IN_F "%y = constant [1, [2]] : f32[2]",
     "line 2, column 19: found '[', expected a literal of f32"},
    {IN_F "%y = constant [1, , 2] : f32[2]",
     "line 2, column 19: found ',', expected a literal or a list"},
    {IN_F "%y = constant [1 2] : f32[2]", "line 2, column 18: found '2', expected ',' or ']'"},
    {IN_F "%y = constant [1, 2] : f32[?n]",
     "line 2, column 22: found ': f32[?n]', expected fixed extents for a constant"},
    {IN_F "%y = constant [1, 300] : u8[2]",
     "line 2, column 19: 300 is out of range for u8, expected 0 to 255"},
    {IN_F "%y = constant [1, 2.0] : u8[2]",
     "line 2, column 19: found '2.0', expected an integer for u8"},
    {IN_F "%y = constant 0x100 : u8[]",
     "line 2, column 15: 0x100 is wider than u8, expected a bit pattern of 8 bits"},
    {IN_F "%y = constant 1e5 : f16[]",
     "line 2, column 15: 1e5 is out of range for f16, expected a magnitude up to 65504.0"},
    {IN_F "%y = constant 12abc : f16[]",
     "line 2, column 15: found '12abc', expected a number such as 12, -0.5, 1e-3, -inf or 0x7f"},
    {IN_F "%y = constant 1. : f16[]",
     "line 2, column 15: found '1.', expected a number such as 12, -0.5, 1e-3, -inf or 0x7f"},
    {IN_F "%y = constant 1e : f16[]",
     "line 2, column 15: found '1e', expected a number such as 12, -0.5, 1e-3, -inf or 0x7f"},
    {IN_F "%y = constant -nan : f16[]",
     "line 2, column 15: found '-nan', expected a number such as 12, -0.5, 1e-3, -inf or 0x7f"},
    {IN_F "%y = constant -0x1 : f16[]",
     "line 2, column 15: found '-0x1', a bit pattern has no sign, expected 0x and hexadecimal "
     "digits"},
    {IN_F "%y = constant .5 : f16[]",
     "line 2, column 15: found '.', expected a literal, a list or '@'"},
    {IN_F "%y = constant yes : boolean[]",
     "line 2, column 15: found 'yes', expected true, false or a bit pattern for boolean"},
    {IN_F "%y = constant @missing : f32[]", "line 2, column 15: no file for @missing"},
    // Return.
    {IN_F "return }", "line 2, column 1: found 0 values returned, expected 1 as @f declares"},
    {IN_F "return %x, %x }",
     "line 2, column 1: found 2 values returned, expected 1 as @f declares"},
    {IN_F "return %z }", "line 2, column 8: found '%z', expected a value that is defined above"},
    {IN_F "return %x, }", "line 2, column 12: found '}', expected a value to return"},
    {IN_F "return %x\n%y = convert %x : f32 }", "line 3, column 1: found '%y', expected '}'"},
    {IN_F "%y = convert %x : f16\nreturn %y }",
     "line 3, column 8: result 0 (%y): declared f32[2], but its type is f16[2]: element types must "
     "be "
     "equal"},
    // Bytes.
    {"func \x01", "line 1, column 6: found '\\x01', expected a name such as @f"},
    {std::string_view("func @f\0(", 9), "line 1, column 8: found '\\x00', expected '('"},
    {"func @\xc3\xa9", "line 1, column 6: found '@', expected an identifier behind '@'"},
    {"\xef\xbb\xbf"
     "func @f",
     "line 1, column 1: found '\\xef', expected 'func'"},
    {"func @f(%x: f32[2]) -> f32[2] {\r\n\t\treturn \t$\r\n}",
     "line 2, column 3: found 0 values returned, expected 1 as @f declares"},
    {"func @f(\n\t%x;", "line 2, column 4: found ';', expected ':'"},
    {"func @f / /", "line 1, column 9: found '/', expected '('"},
    {"func %",
     "line 1, column 6: found '%', expected a value name: an identifier or digits behind '%'"},
    {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
     "line 1, column 1: found 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...', expected 'func'"},
};

TEST(Text, BadTextsAreRefusedWithPlaceAndMessage) {
  for (const BadText& row : bad_texts) {
    EXPECT_EQ(error_of(row.text, with_bindings), row.error) << row.text;
  }
}

TEST(Text, ErrorsKeepTheirCodes) {
  EXPECT_EQ(parse("func").error().code, ErrorCode::invalid_text);
  EXPECT_EQ(parse("func @f(%x: u4[2])").error().code, ErrorCode::unsupported);
  EXPECT_EQ(parse("func @f() -> () {return}").error().code, ErrorCode::invalid_function);
  EXPECT_EQ(parse(IN_F "%y = constant @missing : f32[]", with_bindings).error().code,
            ErrorCode::io);
}

TEST(Text, ConstantsNeedABinding) {
  EXPECT_EQ(error_of(IN_F "%y = constant @w : f32[]"),
            "line 2, column 15: found '@w', expected literals: no constants are bound");
  const ParseOptions short_of_bytes = {
      .bind_constant = [](std::string_view, const TensorType&) -> Result<std::vector<std::byte>> {
        return std::vector<std::byte>(7);
      }};
  const std::string error = error_of(IN_F "%y = constant @w : f32[2]\nreturn %y }", short_of_bytes);
  EXPECT_NE(error.find("line 2, column 1: "), std::string::npos) << error;
  EXPECT_NE(error.find("found 7 bytes, expected 8 for f32[2]"), std::string::npos) << error;
}

TEST(Text, EveryElementTypeIsKnown) {
  for (const ElementInfo& row : element_table) {
    const std::string text = fmt::format("func @f(%x: {0}[2]) -> {0}[2] {{return %x}}", row.name);
    if (row.implemented) {
      expect_round_trip(text);
    } else {
      EXPECT_EQ(
          error_of(text),
          fmt::format("line 1, column 13: %x: element type {} is known but not implemented yet",
                      row.name));
    }
  }
}

std::string repeated(std::string_view text, size_t count) {
  std::string out;
  out.reserve(text.size() * count);
  for (size_t i = 0; i < count; ++i) out += text;
  return out;
}

TEST(Text, NestingIsBounded) {
  const std::string attribute = IN_F "%y = convert %x {overflow = ";
  const auto nested = [](int depth) {
    return std::string(static_cast<size_t>(depth), '[') +
           std::string(static_cast<size_t>(depth), ']');
  };
  // 32 lists are read, and then refused by the verifier for their kind.
  EXPECT_NE(error_of(attribute + nested(max_nesting) + "} : f32 return %y }").find("is a list"),
            std::string::npos);
  EXPECT_EQ(error_of(attribute + nested(max_nesting + 1)),
            "line 2, column 61: found a list inside 32 lists, expected at most 32");
  EXPECT_EQ(error_of(IN_F "%y = constant " + nested(max_nesting + 1)),
            "line 2, column 47: found a list inside 32 lists, expected at most 32");
  const std::string deepest = "[" + repeated("1, ", 15) + "1]";
  expect_round_trip("func @f() -> i8[" + deepest.substr(1) + "{ %y = constant " +
                    std::string(16, '[') + "7" + std::string(16, ']') + " : i8" + deepest +
                    " return %y }");
}

TEST(Text, TooLongTextsAreRefused) {
  const std::string blanks(max_text_bytes + 1, ' ');
  EXPECT_EQ(error_of(blanks),
            "line 1, column 1: found a text of 16777217 bytes, expected at most 16777216");
  EXPECT_EQ(error_of(std::string_view(blanks).substr(1)),
            "line 1, column 16777217: found the end of the text, expected 'func'");
}

TEST(Text, LongTextsTakeLinearTime) {
  // Each of these takes minutes where anything is quadratic.
  const size_t size = max_text_bytes - 200;
  const std::string head = "func @f(%x: f32[2]) -> (f32[2]) {\n";
  for (std::string_view garbage : {"[", "a", "\"", "/", "%", "\n", "1", "{", "\x80", "-"}) {
    EXPECT_NE(error_of(repeated(garbage, size)), "no error");
    EXPECT_NE(error_of(head + "%y = constant " + repeated(garbage, size)), "no error");
    EXPECT_NE(error_of(head + "%y = convert %x {overflow = " + repeated(garbage, size)),
              "no error");
  }
  EXPECT_NE(error_of(head + "%y = convert " + repeated("%x, ", size / 4)), "no error");
  EXPECT_NE(error_of("func @f(%x: f32[" + repeated("1, ", size / 3)), "no error");
  EXPECT_NE(error_of(head + "return " + repeated("%x, ", size / 4) + "%x }"), "no error");
  const std::string digits = "0." + std::string(size - 2, '7');
  const auto one =
      parse_function("func @f() -> f32[] {%y = constant " + digits + " : f32[] return %y}");
  ASSERT_TRUE(one.ok()) << one.error().to_string();
  EXPECT_NE(print(**one).find("constant 0.7777778 :"), std::string::npos);
  const size_t count = size / 3;
  const auto many = parse_function(
      fmt::format("func @f() -> i8[{0}] {{%y = constant [{1}0] : i8[{0}] return %y}}", count + 1,
                  repeated("1, ", count)));
  ASSERT_TRUE(many.ok()) << many.error().to_string();
  EXPECT_EQ((*many)->operations[0].data->bytes.size(), count + 1);
}

TEST(Text, LongMessagesAreCut) {
  const std::string error = error_of(IN_F "%y = convert %x {overflow = [" +
                                     repeated("abc, ", 1000) + "d]} : f32 return %y }");
  EXPECT_LT(error.size(), 1100u);
  EXPECT_NE(error.find("..."), std::string::npos);
}

TEST(Text, MutatedTextsAreReadOrRefused) {
  std::vector<std::string> good;
  for (std::string_view text : canonical_texts) good.emplace_back(text);
  for (const Spelling& row : spellings) good.emplace_back(row.text);
  const std::string_view pieces = "%@?()[]{},:=->\"\\/ \n\r\t0129xe.+naif_$\x7f\x80\xff";
  std::mt19937_64 random(4);
  int read = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = good[random() % good.size()];
    for (uint64_t n = 1 + random() % 3; n > 0 && !text.empty(); --n) {
      const size_t at = random() % text.size();
      const char piece =
          random() % 4 ? pieces[random() % pieces.size()] : static_cast<char>(random());
      switch (random() % 4) {
        case 0: text[at] = piece; break;
        case 1: text.insert(at, 1, piece); break;
        case 2: text.erase(at, 1 + random() % 8); break;
        default: text.insert(at, text, random() % text.size(), random() % 16);
      }
    }
    const auto functions = parse(text, with_bindings);
    if (functions) {
      ++read;
      expect_round_trip(text);
    } else {
      EXPECT_TRUE(functions.error().where.known()) << text << functions.error().message;
      EXPECT_FALSE(functions.error().message.empty()) << text;
      EXPECT_NE(functions.error().code, ErrorCode::internal) << text;
    }
  }
  EXPECT_GT(read, 500);  // the mutations are small enough to leave some texts good
}

}  // namespace
}  // namespace castor
