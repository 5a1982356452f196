// SPDX-License-Identifier: Apache-2.0
// Bad texts: each is refused with its position and message.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/text/text.hpp"
#include "tests/support/texts.hpp"

namespace castor {
namespace {

using texts::error_of;
using texts::with_bindings;

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
    {"func @1f()", "line 1, column 6: found '@1f', expected an identifier after '@'"},
    {"func @f{", "line 1, column 8: found '{', expected '('"},
    {"func @f(x: f32[])", "line 1, column 9: found 'x', expected a parameter such as %x"},
    {"func @f(%x f32[])", "line 1, column 12: found 'f32', expected ':'"},
    {"func @f(%x: f32[] %y", "line 1, column 19: found '%y', expected ',' or ')'"},
    {"func @f(%x: f32[], %x: f32[])",
     "line 1, column 20: %x is defined twice, first at line 1, column 9"},
    {"func @f(%1x: f32[])",
     "line 1, column 9: found '%1x', expected a value name: an identifier or digits after '%'"},
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
    {"func @f(%x: u4.split[2])",
     "line 1, column 13: found 'u4.split', expected an element type such as f32"},
    {"func @f() -> (f8[2])", "line 1, column 15: found 'f8', expected an element type such as f32"},
    {"func @f(%x: f32[-1])", "line 1, column 17: found '-1', expected an extent, '?' or '?name'"},
    {"func @f(%x: f32[2.5])", "line 1, column 17: found '2.5', expected an extent, '?' or '?name'"},
    {"func @f(%x: f32[2,])", "line 1, column 19: found ']', expected an extent, '?' or '?name'"},
    {"func @f(%x: f32[?2])",
     "line 1, column 17: found '?2', expected '?' or an identifier after it"},
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
     "line 2, column 6: found 'convrt', expected an operation such as convert"},
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
    {IN_F "%y = convert %x : u5",
     "line 2, column 19: found 'u5', expected an element type such as f32"},
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
     "choices: overflow = inf, expected saturate, wrap, nan, saturate_finite"},
    {IN_F "%y = convert %x {overflow = nan} : f32 return %y }",
     "line 2, column 1: %y = convert %x {overflow = nan} : f32: options are in the row of the "
     "conversion table: convert: overflow = nan does not apply to f32 -> f32 (conversion to the "
     "same "
     "type); expected saturate or saturate_finite"},
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
    {"func @\xc3\xa9", "line 1, column 6: found '@', expected an identifier after '@'"},
    {"\xef\xbb\xbf"
     "func @f",
     "line 1, column 1: found '\\xef', expected 'func'"},
    {"func @f(%x: f32[2]) -> f32[2] {\r\n\t\treturn \t$\r\n}",
     "line 2, column 3: found 0 values returned, expected 1 as @f declares"},
    {"func @f(\n\t%x;", "line 2, column 4: found ';', expected ':'"},
    {"func @f / /", "line 1, column 9: found '/', expected '('"},
    {"func %",
     "line 1, column 6: found '%', expected a value name: an identifier or digits after '%'"},
    {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
     "line 1, column 1: found 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...', expected 'func'"},
};

TEST(TextErrors, BadTextsAreRefusedWithPositionAndMessage) {
  for (const BadText& row : bad_texts) {
    EXPECT_EQ(error_of(row.text, with_bindings), row.error) << row.text;
  }
}

TEST(TextErrors, ErrorsKeepTheirCodes) {
  EXPECT_EQ(parse("func").error().code, ErrorCode::invalid_text);
  EXPECT_EQ(parse("func @f() -> () {return}").error().code, ErrorCode::invalid_function);
  EXPECT_EQ(parse(IN_F "%y = constant @missing : f32[]", with_bindings).error().code,
            ErrorCode::io);
}

TEST(TextErrors, ConstantsNeedABinding) {
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

TEST(TextErrors, EveryElementTypeIsKnown) {
  for (const ElementInfo& row : element_table) {
    texts::expect_round_trip(fmt::format("func @f(%x: {0}[2]) -> {0}[2] {{return %x}}", row.name));
  }
}
}  // namespace
}  // namespace castor
