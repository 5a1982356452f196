// SPDX-License-Identifier: Apache-2.0
// The shape that `reshape` gives, by types and by bound extents.
#include "ir/shape/reshape.hpp"

#include "tests/support/shape_rows.hpp"

namespace castor::test {
namespace {

TEST(Reshape, ShapesOfTypes) {
  const Inference rows[] = {
      {{"u3[2, 3]"}, "reshape %x0 : [6]", "[6]"},
      {{"u3[2, 3]"}, "reshape %x0 : [3, 1, 2]", "[3, 1, 2]"},
      {{"u3[]"}, "reshape %x0 : [1, 1]", "[1, 1]"},
      {{"u3[1]"}, "reshape %x0 : []", "[]"},
      {{"u3[2, 3]"}, "reshape %x0 : [3, ?]", "[3, 2]"},
      {{"u3[2, 3]"}, "reshape %x0 : [6, ?]", "[6, 1]"},
      {{"u3[0, 3]"}, "reshape %x0 : [?, 5]", "[0, 5]"},
      {{"u3[0, 3]"}, "reshape %x0 : [7, 0]", "[7, 0]"},
      {{"u3[?n, 3]"}, "reshape %x0 : [3, ?n]", "[3, ?n]"},
      {{"u3[?n, 3]"}, "reshape %x0 : [?n, ?]", "[?n, ?]"},
      {{"u3[?, 3]"}, "reshape %x0 : [6]", "[6]"},
      {{"u3[6]", "u8[?n]"}, "reshape %x0 : [?n, ?]", "[?n, ?]"},
      {{"u3[2, 3]"},
       "reshape %x0 : [4, 2]",
       "reshape: operand 0 [2, 3] against the target [4, 2]: 6 elements against 8; reshape needs "
       "equal counts"},
      {{"u3[2, 3]"},
       "reshape %x0 : [4, ?]",
       "reshape: operand 0 [2, 3] against the target [4, ?]: axis 1 is to make 6 of 4; the extent "
       "for ? is the count divided by the other extents, without remainder"},
      {{"u3[0]"},
       "reshape %x0 : [0, ?]",
       "reshape: operand 0 [0] against the target [0, ?]: axis 1 is to make 0 of 0; the extent for "
       "? is the count divided by the other extents, without remainder"},
      {{"u3[2, 3]"},
       "reshape %x0 : [?, ?]",
       "reshape: operand 0 [2, 3] against the target [?, ?]: more than one extent is ?; one alone "
       "can follow from the count"},
      {{"u3[2, 3]"},
       "reshape %x0 : [?k, 3]",
       "%y = reshape %x0 : [?k, 3]: unknown extents of a target are named as those of parameters: "
       "found ?k, which no parameter has"},
      {{"u3[2, 3]"}, "reshape %x0 : [-1]", "found '-1', expected an extent, '?' or '?name'"},
  };
  for (const Inference& row : rows) {
    EXPECT_EQ(inferred(function_text(row.types, "%y = " + row.operation)), row.result);
  }
}

/// An operation on %x0: u3[?, ?] and %x1: u8[?n, ?m], and extents of both.
struct Binding {
  const char* operation;
  std::vector<Dims> extents;
  std::string result;
};

TEST(Reshape, BoundExtents) {
  const std::string ending =
      "; the extent for ? is the count divided by the other extents, without remainder";
  const Binding rows[] = {
      {"reshape %x0 : [?m, ?n]", {{2, 3}, {3, 2}}, "[2, 3]"},
      {"reshape %x0 : [?n, ?]", {{2, 3}, {3, 2}}, "[3, 2]"},
      {"reshape %x0 : [?]", {{2, 3}, {0, 0}}, "[6]"},
      {"reshape %x0 : [?, 4]", {{0, 3}, {0, 0}}, "[0, 4]"},
      {"reshape %x0 : [?n, 0]", {{0, 3}, {9, 0}}, "[9, 0]"},
      {"reshape %x0 : [6]", {{3, 2}, {0, 0}}, "[6]"},
      {"reshape %x0 : [6]",
       {{3, 3}, {0, 0}},
       "reshape: operand 0 [3, 3] against the target [6]: 9 elements against 6; reshape needs "
       "equal "
       "counts"},
      {"reshape %x0 : [?n, ?]",
       {{3, 3}, {2, 0}},
       "reshape: operand 0 [3, 3] against the target [2, ?]: axis 1 is to make 9 of 2" + ending},
      {"reshape %x0 : [?n, ?]",
       {{0, 3}, {0, 0}},
       "reshape: operand 0 [0, 3] against the target [0, ?]: axis 1 is to make 0 of 0" + ending},
      {"reshape %x0 : [?n, ?m]",
       {{3, 3}, {int64_t{1} << 40, int64_t{1} << 40}},
       "reshape: operand 0 [3, 3] against the target [1099511627776, 1099511627776]: one has more "
       "than 2^63 - 1 elements; reshape needs equal counts"},
  };
  for (const Binding& row : rows) {
    const std::string text =
        function_text({"u3[?, ?]", "u8[?n, ?m]"}, std::string("%y = ") + row.operation);
    EXPECT_EQ(bound(text, row.extents), row.result) << row.operation;
  }
}

}  // namespace
}  // namespace castor::test
