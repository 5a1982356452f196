// SPDX-License-Identifier: Apache-2.0
// What the text form of quantized types and of requantize refuses, and in which words.
#include "tests/support/texts.hpp"

namespace castor::test {
namespace {

struct Wrong {
  std::string text;
  std::string error;
};

void expect_errors(const std::vector<Wrong>& rows) {
  for (const Wrong& row : rows) EXPECT_EQ(texts::error_of(row.text), row.error) << row.text;
}

TEST(QuantizedTypes, MistakesInTheirText) {
  const auto around = [](const std::string& type) {
    return "func @f(%x: " + type + ") -> (i8[]) { return %x }";
  };
  expect_errors({
      {around("fx8[4]"), "line 1, column 16: found '[', expected '<'"},
      {around("fx8<>[4]"),
       "line 1, column 16: found fx8 without frac, expected frac = number, list or ?"},
      {around("sa8<frac = 3>[4]"),
       "line 1, column 16: found sa8 without scale, expected scale = number, list or ?"},
      {around("sa8<scale = 3>[4]"),
       "line 1, column 16: found sa8 without frac, expected frac = number, list or ?"},
      {around("fx8<frac = 3, scale = 1>[4]"), "line 1, column 27: found 'scale', expected frac"},
      {around("fx8<axis = 0, frac = 3>[4]"), "line 1, column 17: found 'axis', expected frac"},
      {around("fx16<frac = 3, zero_point = 1>[4]"),
       "line 1, column 28: found 'zero_point', expected frac"},
      {around("sa8<scale = 3, frac = 3, offset = 4>[4]"),
       "line 1, column 38: found 'offset', expected axis, scale, frac or zero_point"},
      {around("sa8<scale = 3, frac = 3, scale = 4>[4]"), "line 1, column 38: scale is given twice"},
      {around("sa8<axis = 0, axis = 0, scale = 3, frac = 3>[4]"),
       "line 1, column 27: axis is given twice"},
      {around("sa8<scale = 0, frac = 3>[4]"),
       "line 1, column 13: %x: scale of sa8 is 0, expected 1 to 32767"},
      {around("sa8<scale = 40000, frac = 3>[4]"),
       "line 1, column 13: %x: scale of sa8 is 40000, expected 1 to 32767"},
      {around("sa32<scale = -1, frac = 3>[4]"),
       "line 1, column 13: %x: scale of sa32 is -1, expected 1 to 32767"},
      {around("sa8<axis = 0, scale = [1, 0], frac = [3, 3]>[2]"),
       "line 1, column 13: %x: scale of sa8 is 0, expected 1 to 32767"},
      {around("sa8<scale = 1, frac = 3, zero_point = 70000>[4]"),
       "line 1, column 13: %x: zero_point of sa8 is 70000, expected -32768 to 32767"},
      {around("sa8<scale = 1, frac = 3, zero_point = -32769>[4]"),
       "line 1, column 13: %x: zero_point of sa8 is -32769, expected -32768 to 32767"},
      {around("fx8<frac = 200>[4]"),
       "line 1, column 13: %x: frac of fx8 is 200, expected -128 to 127"},
      {around("fx8<frac = -129>[4]"),
       "line 1, column 13: %x: frac of fx8 is -129, expected -128 to 127"},
      {around("fx8<frac = 99999999999>[4]"),
       "line 1, column 24: found 99999999999, expected an integer of at most 32 bits"},
      {around("fx8<frac = 1.5>[4]"),
       "line 1, column 24: found '1.5', expected an integer, a list of integers or '?'"},
      {around("fx8<frac = ?n>[4]"),
       "line 1, column 24: found '?n', expected an integer, a list of integers or '?'"},
      {around("fx8<frac = x>[4]"),
       "line 1, column 24: found 'x', expected an integer, a list of integers or '?'"},
      {around("fx8<frac 3>[4]"), "line 1, column 22: found '3', expected '='"},
      {around("fx8<frac = 3 4>[4]"), "line 1, column 26: found '4', expected ',' or '>'"},
      {around("fx8<frac = [3 4]>[4]"), "line 1, column 27: found '4', expected ',' or ']'"},
      {around("fx8<frac = [3, ]>[4]"), "line 1, column 28: found ']', expected an integer"},
      {around("fx8<frac = 3"), "line 1, column 25: found ')', expected ',' or '>'"},
      {around("sa8<axis = -1, scale = 3, frac = 3>[4]"),
       "line 1, column 24: found a negative axis, expected 0 or more"},
      {around("sa8<axis = ?, scale = 3, frac = 3>[4]"),
       "line 1, column 24: found '?', expected an integer"},
      {around("sa8<axis = 1, scale = [3], frac = [3]>[4]"),
       "line 1, column 13: %x: axis = 1 of sa8, expected 0 to 0: one of the 1 axes"},
      {around("sa8<axis = 0, scale = ?, frac = ?, zero_point = ?>[]"),
       "line 1, column 13: %x: axis = 0 of sa8, expected none: a scalar has no axes"},
      {around("sa8<axis = 0, scale = [3, 4, 5], frac = [3, 4]>[2]"),
       "line 1, column 13: %x: scale of sa8 has 3 entries, expected 2: one for each index of the "
       "axis"},
      {around("sa8<axis = 0, scale = [3, 4], frac = [3]>[2]"),
       "line 1, column 13: %x: frac of sa8 has 1 entries, expected 2: one for each index of the "
       "axis"},
      {around("sa8<axis = 0, scale = ?, frac = [3, 3], zero_point = [1]>[2]"),
       "line 1, column 13: %x: zero_point of sa8 has 1 entries, expected 2: one for each index of "
       "the axis"},
      {around("sa8<axis = 0, scale = 3, frac = 3>[2]"),
       "line 1, column 13: %x: scale of sa8 has 1 entries, expected 2: one for each index of the "
       "axis"},
      {around("sa8<scale = [3, 4], frac = 3>[2]"),
       "line 1, column 13: %x: scale of sa8 has 2 entries, expected 1: one for each tensor"},
      {around("fx8<frac = [3, 4]>[2]"),
       "line 1, column 13: %x: frac of fx8 has 2 entries, expected 1: one for each tensor"},
      {around("fx8<frac = []>[2]"),
       "line 1, column 13: %x: frac of fx8 has 0 entries, expected 1: one for each tensor"},
      {around("sa8<axis = 0, scale = [3, 4], frac = ?>[?]"),
       "line 1, column 13: %x: scale of sa8 lists entries along axis 0 of unknown extent, expected "
       "a fixed extent, or scale = ? to give them at run time"},
      {around("sa8<axis = 0, scale = ?, frac = [3, 4], zero_point = ?>[?n]"),
       "line 1, column 13: %x: frac of sa8 lists entries along axis 0 of unknown extent, expected "
       "a fixed extent, or frac = ? to give them at run time"},
      {around("sa8<axis = 0, scale = ?, frac = ?>[?n]"),
       "line 1, column 13: %x: zero_point of sa8 lists entries along axis 0 of unknown extent, "
       "expected a fixed extent, or zero_point = ? to give them at run time"},
  });
}

std::string function(const std::string& parameters, const std::string& operation,
                     const std::string& result = "f32[2, 3]") {
  return "func @f(" + parameters + ") -> (" + result + ") {\n  " + operation + "\n  return %y\n}\n";
}

TEST(Requantize, MistakesInItsText) {
  const std::string fx = "%x: fx8<frac = 7>[2, 3]";
  const std::string sa =
      "%x: sa8<axis = 1, scale = ?, frac = [1, 2, 3], zero_point = [0, 0, 0]>[2, 3]";
  const std::string plain = "%x: sa8<scale = ?, frac = 3>[2, 3]";
  const std::string to_sa = "sa8<axis = 0, scale = [1, 2], frac = [3, 4]>";
  expect_errors({
      {function(fx, "%y = requantize %x"),
       "line 3, column 3: found 'return', expected ':' and the result's element type"},
      {function(fx, "%y = requantize %x : [2, 3]"),
       "line 2, column 24: found '[', expected an element type such as f32"},
      {function(fx, "%y = requantize : f32"),
       "line 2, column 19: found ':', expected a value or none"},
      {function(fx, "%y = requantize none : f32"),
       "line 2, column 3: requantize: operand 0 is none, but it is not optional"},
      {function(fx, "%y = requantize %x : f16"),
       "line 2, column 3: requantize: the destination is f16, expected fx8, fx16, sa8, sa32 or "
       "f32"},
      {function(fx, "%y = requantize %x : i8"),
       "line 2, column 3: requantize: the destination is i8, expected fx8, fx16, sa8, sa32 or f32"},
      {function("%x: i8[2, 3]", "%y = requantize %x : f32"),
       "line 2, column 3: requantize: the source is i8, expected fx8, fx16, sa8, sa32 or f32"},
      {function("%x: f64[2, 3]", "%y = requantize %x : fx8<frac = 3>"),
       "line 2, column 3: requantize: the source is f64, expected fx8, fx16, sa8, sa32 or f32"},
      {function(fx, "%y = requantize %x : f32[2, 4]"),
       "line 2, column 3: requantize: %y has type f32[2, 3], but f32[2, 4] is written"},
      {function(fx, "%y = requantize %x : fx8<frac = 200>"),
       "line 2, column 3: %y: frac of fx8 is 200, expected -128 to 127"},
      {function(fx, "%y = requantize %x : sa8<axis = 2, scale = ?, frac = ?, zero_point = ?>"),
       "line 2, column 3: requantize: scale of the destination is ? in sa8<axis = 2, scale = ?, "
       "frac = ?, zero_point = ?>, expected an operand for it"},
      {function(fx, "%y = requantize %x : sa8<axis = 1, scale = [1, 2], frac = [3, 4]>"),
       "line 2, column 3: %y: scale of sa8 has 2 entries, expected 3: one for each index of the "
       "axis"},
      {function("%x: f32[2, ?]",
                "%y = requantize %x : sa8<axis = 1, scale = [1, 2], frac = [3, 4]>"),
       "line 2, column 3: %y: scale of sa8 lists entries along axis 1 of unknown extent, expected "
       "a fixed extent, or scale = ? to give them at run time"},
      {function("%x: sa8<axis = 1, scale = [1, 2, 3], frac = [3, 4, 5]>[2, 3]",
                "%y = requantize %x : " + to_sa),
       "line 2, column 3: requantize: the source is quantized along axis 1, the destination along "
       "axis 0, expected the same: the axis of quantization cannot be changed"},
      {function(fx, "%y = requantize %x {arithmetic = fast} : f32"),
       "line 2, column 3: %y = requantize %x {arithmetic = fast} : f32: identifiers are among the "
       "row's choices: arithmetic = fast, expected exact, embarc"},
      {function(fx, "%y = requantize %x {rounding = up} : f32"),
       "line 2, column 3: %y = requantize %x {rounding = up} : f32: identifiers are among the "
       "row's choices: rounding = up, expected half_up, nearest_even"},
      {function(fx, "%y = requantize %x {rounding = 3} : f32"),
       "line 2, column 3: %y = requantize %x {rounding = 3} : f32: attributes have the kind that "
       "the row says: rounding = 3 is an integer, expected an identifier"},
      {function(fx, "%y = requantize %x {overflow = wrap} : f32"),
       "line 2, column 23: found 'overflow', expected an attribute of requantize: arithmetic, "
       "rounding"},
      {function(fx, "%y = requantize %x {rounding = half_up, rounding = half_up} : f32"),
       "line 2, column 43: attribute rounding is given twice"},
      // Operands for parameters.
      {function(fx + ", %n: i8[]", "%y = requantize %x, none, %n : f32"),
       "line 2, column 3: requantize: found an operand for frac of the source, expected none: its "
       "type is fx8<frac = 7>"},
      {function(fx + ", %s: i16[]", "%y = requantize %x, %s : f32"),
       "line 2, column 3: requantize: found an operand for scale of the source, expected none: its "
       "type is fx8<frac = 7>"},
      {function(fx + ", %s: i16[]", "%y = requantize %x, none, none, none, %s : f32"),
       "line 2, column 3: requantize: found an operand for scale of the destination, expected "
       "none: its type is f32"},
      {function(plain, "%y = requantize %x : f32"),
       "line 2, column 3: requantize: scale of the source is ? in sa8<scale = ?, frac = 3, "
       "zero_point = 0>, expected an operand for it"},
      {function(fx, "%y = requantize %x : fx16<frac = ?>", "fx16<frac = ?>[2, 3]"),
       "line 2, column 3: requantize: frac of the destination is ? in fx16<frac = ?>, expected an "
       "operand for it"},
      {function(plain + ", %s: i8[]", "%y = requantize %x, %s : f32"),
       "line 2, column 3: requantize: scale of the source is i8[], expected i16"},
      {function(plain + ", %s: fx16<frac = 0>[]", "%y = requantize %x, %s : f32"),
       "line 2, column 3: requantize: scale of the source is fx16<frac = 0>[], expected i16"},
      {function(plain + ", %s: i16[2]", "%y = requantize %x, %s : f32"),
       "line 2, column 3: requantize: scale of the source has 2 entries, expected 1"},
      {function(plain + ", %s: i16[1, 1]", "%y = requantize %x, %s : f32"),
       "line 2, column 3: requantize: scale of the source is i16[1, 1], expected a scalar"},
      {function(sa + ", %s: i16[]", "%y = requantize %x, %s : f32"),
       "line 2, column 3: requantize: scale of the source is i16[], expected one axis: an entry "
       "for each index of the quantization's"},
      {function(sa + ", %s: i16[2]", "%y = requantize %x, %s : f32"),
       "line 2, column 3: requantize: scale of the source has 2 entries, expected 3: the extent of "
       "axis 1"},
      {function(sa + ", %s: i16[3, 1]", "%y = requantize %x, %s : f32"),
       "line 2, column 3: requantize: scale of the source is i16[3, 1], expected one axis: an "
       "entry for each index of the quantization's"},
      {function(sa + ", %s: i32[3]", "%s2 = convert %s : i16\n  %y = requantize %x, %s2 : f32"),
       "line 3, column 3: %y = requantize %x, %s2 : f32: scale, frac and zero point of requantize "
       "are parameters of the function, or constants: %s2 is computed"},
      {function(sa + ", %s: i16[3]",
                "%y = requantize %x, %s, none, none, none, none, none, none : f32"),
       "line 2, column 3: requantize: found 8 operands, expected 1 to 7"},
      // Other ops and quantized tensors.
      {function(fx, "%y = add %x, %x"),
       "line 2, column 3: add: operand 0 is fx8<frac = 7>[2, 3], expected a type that is not "
       "quantized: only requantize takes quantized tensors"},
      {function(fx, "%y = convert %x : f32"),
       "line 2, column 3: convert: operand 0 is fx8<frac = 7>[2, 3], expected a type that is not "
       "quantized: only requantize takes quantized tensors"},
      {function("%x: i8[2, 3]", "%y = convert %x : fx8<frac = 7>"),
       "line 2, column 3: convert: found fx8<frac = 7>, expected a type that is not quantized: "
       "requantize gives quantized tensors"},
      {function(fx, "%y = reshape %x : [3, 2]"),
       "line 2, column 3: reshape: operand 0 is fx8<frac = 7>[2, 3], expected a type that is not "
       "quantized: only requantize takes quantized tensors"},
      {function(fx, "%y = broadcast %x : [2, 2, 3]"),
       "line 2, column 3: broadcast: operand 0 is fx8<frac = 7>[2, 3], expected a type that is not "
       "quantized: only requantize takes quantized tensors"},
      {function("%x: fx8<frac = 7>[1, 2, 3], %w: i8[1, 2, 1]", "%y = conv_integer %x, %w"),
       "line 2, column 3: conv_integer: operand 0 is fx8<frac = 7>[1, 2, 3], expected a type that "
       "is not quantized: only requantize takes quantized tensors"},
      {function("%x: i8[1, 2, 3], %w: fx8<frac = 7>[1, 2, 1]", "%y = conv_integer %x, %w"),
       "line 2, column 3: conv_integer: operand 1 is fx8<frac = 7>[1, 2, 1], expected a type that "
       "is not quantized: only requantize takes quantized tensors"},
      {function("%c: boolean[2, 3], " + fx, "%y = select %c, %x, %x"),
       "line 2, column 3: select: operand 1 is fx8<frac = 7>[2, 3], expected a type that is not "
       "quantized: only requantize takes quantized tensors"},
      {function("%x: f32[2, 3]", "%y = requantize %x : fx8<frac = 7>", "fx8<frac = 6>[2, 3]"),
       "line 3, column 10: result 0 (%y): declared fx8<frac = 6>[2, 3], but its type is fx8<frac = "
       "7>[2, 3]: quantizations must be equal"},
      {function("%x: f32[2, 3]", "%y = requantize %x : fx8<frac = 7>", "i8[2, 3]"),
       "line 3, column 10: result 0 (%y): declared i8[2, 3], but its type is fx8<frac = 7>[2, 3]: "
       "quantizations must be equal"},
      {function("%x: f32[2, 3]", "%y = constant [1, 2, 300] : fx8<frac = 7>[3]",
                "fx8<frac = 7>[3]"),
       "line 2, column 24: 300 is out of range for i8, expected -128 to 127"},
      {function("%x: f32[2, 3]", "%y = constant [1, 2, 3] : sa8<axis = 0, scale = ?, frac = ?>[?]",
                "f32[3]"),
       "line 2, column 29: %y: zero_point of sa8 lists entries along axis 0 of unknown extent, "
       "expected a fixed extent, or zero_point = ? to give them at run time"},
  });
}

}  // namespace
}  // namespace castor::test
