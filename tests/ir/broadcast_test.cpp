// SPDX-License-Identifier: Apache-2.0
// Broadcasting of elementwise ops: the examples of OpenVINO's broadcast-rules document, zero-sized
// and unknown dimensions, and every message. Each row is checked twice: by the types of a function,
// and by extents that are bound to a function whose parameters' extents are all unknown.
#include "ir/shape/broadcast.hpp"

#include "tests/support/shape_rows.hpp"

namespace castor::test {
namespace {

std::string operand_list(size_t count) {
  std::string list;
  for (size_t i = 0; i < count; ++i) list += fmt::format("{}%x{}", i == 0 ? "" : ", ", i);
  return list;
}

/// Operands of one elementwise op and the result's shape, or the message.
struct Row {
  std::vector<Dims> operands;
  std::string attributes;
  std::string result;
};

void expect_row(const std::string& op, const Row& row) {
  const std::string operation =
      fmt::format("%y = {} {}{}", op, operand_list(row.operands.size()), in_braces(row.attributes));
  std::vector<std::string> fixed;
  std::vector<std::string> open;
  std::vector<Shape> open_shapes;
  for (size_t i = 0; i < row.operands.size(); ++i) {
    const std::string element = op == "select" && i == 0 ? "boolean" : "u8";
    open_shapes.push_back(open_shape(row.operands[i]));
    fixed.push_back(element + to_string(row.operands[i]));
    open.push_back(element + to_string(open_shapes[i]));
  }
  EXPECT_EQ(inferred(function_text(fixed, operation)), row.result) << operation;
  expect_bound(function_text(open, operation), row.operands, row.result, open_shapes, row.operands);
}

const std::string numpy_rule =
    "; broadcast = numpy needs right-aligned extents that are equal, or one of them 1";

TEST(Broadcast, NumpyExamplesOfTheDocument) {
  const Row rows[] = {
      {{{}, {}}, "", "[]"},
      {{{2, 3}, {1}}, "", "[2, 3]"},
      {{{3}, {2, 3}}, "", "[2, 3]"},
      {{{2, 3, 5}, {}}, "", "[2, 3, 5]"},
      {{{2, 1, 5}, {1, 4, 5}}, "", "[2, 4, 5]"},
      {{{6, 5}, {2, 1, 5}}, "", "[2, 6, 5]"},
      {{{2, 1, 5}, {4, 1}}, "", "[2, 4, 5]"},
      {{{3, 2, 1, 4}, {5, 4}}, "", "[3, 2, 5, 4]"},
      {{{1, 5, 3}, {5, 2, 1, 3}}, "", "[5, 2, 5, 3]"},
      {{{3}, {2}},
       "",
       "add: operand 0 [3] against operand 1 [2]: axis 0 of the result is 3 against 2" +
           numpy_rule},
      {{{3, 1, 5}, {4, 4, 5}},
       "",
       "add: operand 0 [3, 1, 5] against operand 1 [4, 4, 5]: axis 0 of the result is 3 against 4" +
           numpy_rule},
  };
  for (const Row& row : rows) {
    expect_row("add", row);
    Row written = row;
    written.attributes = "broadcast = numpy";
    expect_row("add", written);
  }
}

TEST(Broadcast, NumpyOfZeroSizedAndOfThreeOperands) {
  const Row pairs[] = {
      {{{1}, {0}}, "", "[0]"},
      {{{0, 3}, {2, 1, 1}}, "", "[2, 0, 3]"},
      {{{0}, {0}}, "", "[0]"},
      {{{0}, {2}},
       "",
       "less: operand 0 [0] against operand 1 [2]: axis 0 of the result is 0 against 2" +
           numpy_rule},
  };
  for (const Row& row : pairs) expect_row("less", row);
  const Row triples[] = {
      {{{2, 1}, {3}, {}}, "", "[2, 3]"},
      {{{}, {2, 1, 1}, {3, 1}}, "", "[2, 3, 1]"},
      {{{1}, {1}, {0}}, "", "[0]"},
      {{{2}, {1}, {3}},
       "",
       "select: operand 0 [2] against operand 2 [3]: axis 0 of the result is 2 against 3" +
           numpy_rule},
      {{{1, 4}, {2, 1}, {5}},
       "",
       "select: operand 0 [1, 4] against operand 2 [5]: axis 1 of the result is 4 against 5" +
           numpy_rule},
      {{{2, 3}, {2, 3}, {2, 3}}, "broadcast = none", "[2, 3]"},
      {{{2, 3}, {2, 3}, {2, 1}},
       "broadcast = none",
       "select: operand 0 [2, 3] against operand 2 [2, 1]: axis 1 of the result is 3 against 1; "
       "broadcast = none needs equal shapes"},
  };
  for (const Row& row : triples) expect_row("select", row);
}

TEST(Broadcast, NoneNeedsEqualShapes) {
  const Row rows[] = {
      {{{}, {}}, "broadcast = none", "[]"},
      {{{2, 0}, {2, 0}}, "broadcast = none", "[2, 0]"},
      {{{2, 3}, {2, 1}},
       "broadcast = none",
       "add: operand 0 [2, 3] against operand 1 [2, 1]: axis 1 of the result is 3 against 1; "
       "broadcast = none needs equal shapes"},
      {{{2, 3}, {3}},
       "broadcast = none",
       "add: operand 0 [2, 3] against operand 1 [3]: ranks are 2 against 1; broadcast = none needs "
       "equal shapes"},
  };
  for (const Row& row : rows) expect_row("add", row);
}

std::string pdpd_rule(int axis) {
  return fmt::format(
      "; broadcast = pdpd, axis = {} needs rank(B) <= rank(A), -1 <= axis, axis + rank(B) <= "
      "rank(A) "
      "without trailing ones of B, and extents of B that are A's or 1",
      axis);
}

TEST(Broadcast, PdpdExamplesOfTheDocument) {
  const Dims a = {2, 3, 4, 5};
  const auto pdpd = [](int axis) { return fmt::format("broadcast = pdpd, axis = {}", axis); };
  const Row rows[] = {
      {{a, {3, 4}}, pdpd(1), "[2, 3, 4, 5]"},
      {{a, {3, 1}}, pdpd(1), "[2, 3, 4, 5]"},
      {{a, {4, 5}}, "broadcast = pdpd", "[2, 3, 4, 5]"},
      {{a, {4, 5}}, pdpd(-1), "[2, 3, 4, 5]"},
      {{a, {4, 5}}, pdpd(2), "[2, 3, 4, 5]"},
      {{a, {1, 3}}, pdpd(0), "[2, 3, 4, 5]"},
      {{a, {}}, "broadcast = pdpd", "[2, 3, 4, 5]"},
      {{a, {5}}, "broadcast = pdpd", "[2, 3, 4, 5]"},
      {{a, {5}}, pdpd(-1), "[2, 3, 4, 5]"},
      {{a, {5}}, pdpd(3), "[2, 3, 4, 5]"},
      {{{8, 1, 6, 1}, {7, 1, 5}},
       pdpd(1),
       "add: operand 0 [8, 1, 6, 1] against operand 1 [7, 1, 5]: axis 1 of the result is 1 against "
       "7" +
           pdpd_rule(1)},
  };
  for (const Row& row : rows) expect_row("add", row);
}

TEST(Broadcast, PdpdTrimsTrailingOnesAndGoesOneWay) {
  const Dims a = {2, 3, 4, 5};
  const auto pdpd = [](int axis) { return fmt::format("broadcast = pdpd, axis = {}", axis); };
  const std::string a_b = "prelu: operand 0 [2, 3, 4, 5] against operand 1 ";
  const Row rows[] = {
      {{a, {3, 4, 1, 1}}, pdpd(1), "[2, 3, 4, 5]"},
      {{a, {5, 1, 1}}, pdpd(3), "[2, 3, 4, 5]"},
      {{a, {1, 1}}, pdpd(4), "[2, 3, 4, 5]"},
      {{a, {}}, pdpd(0), "[2, 3, 4, 5]"},
      {{a, {}}, pdpd(4), "[2, 3, 4, 5]"},
      {{a, a}, pdpd(0), "[2, 3, 4, 5]"},
      {{{}, {}}, pdpd(0), "[]"},
      {{{2, 0}, {0}}, pdpd(1), "[2, 0]"},
      {{{0, 2}, {1, 2}}, pdpd(-1), "[0, 2]"},
      {{{0, 2}, {1, 1}}, pdpd(1), "[0, 2]"},
      // -1 stands for rank(A) - rank(B) of the untrimmed B: 4 is aligned with 4, not with 5.
      {{a, {4, 1}}, pdpd(-1), "[2, 3, 4, 5]"},
      {{a, {5, 1}}, pdpd(-1), a_b + "[5, 1]: axis 2 of the result is 4 against 5" + pdpd_rule(-1)},
      {{a, {3, 4, 1, 5}},
       pdpd(1),
       a_b + "[3, 4, 1, 5]: axis 3 of B is 5, after A's last axis" + pdpd_rule(1)},
      {{a, {3, 4, 5, 0}},
       pdpd(1),
       a_b + "[3, 4, 5, 0]: axis 3 of B is 0, after A's last axis" + pdpd_rule(1)},
      {{a, {2, 3, 4, 5, 1}},
       pdpd(0),
       a_b + "[2, 3, 4, 5, 1]: rank(A) is 4, rank(B) is 5" + pdpd_rule(0)},
      {{a, {5}}, pdpd(-2), a_b + "[5]: axis is -2" + pdpd_rule(-2)},
      {{a, {1}}, pdpd(5), a_b + "[1]: axis is 5, rank(A) is 4" + pdpd_rule(5)},
      {{{1, 3}, {2, 3}},
       pdpd(0),
       "prelu: operand 0 [1, 3] against operand 1 [2, 3]: axis 0 of the result is 1 against 2" +
           pdpd_rule(0)},
      {{{1, 3}, {0, 3}},
       pdpd(0),
       "prelu: operand 0 [1, 3] against operand 1 [0, 3]: axis 0 of the result is 1 against 0" +
           pdpd_rule(0)},
  };
  for (const Row& row : rows) expect_row("prelu", row);
}

TEST(Broadcast, UnknownExtentsOfTypes) {
  const Inference rows[] = {
      {{"u8[3]", "u8[?]"}, "add %x0, %x1", "[3]"},
      {{"u8[?n]", "u8[3]"}, "add %x0, %x1", "[3]"},
      {{"u8[0]", "u8[?n]"}, "add %x0, %x1", "[0]"},
      {{"u8[1]", "u8[?n]"}, "add %x0, %x1", "[?n]"},
      {{"u8[?n]", "u8[1]"}, "add %x0, %x1", "[?n]"},
      {{"u8[?n]", "u8[?n, 1]"}, "add %x0, %x1", "[?n, ?n]"},
      {{"u8[?n]", "u8[?m]"}, "add %x0, %x1", "[?]"},
      {{"u8[?]", "u8[?]"}, "add %x0, %x1", "[?]"},
      {{"u8[?]", "u8[2, ?m]"}, "less %x0, %x1", "[2, ?]"},
      {{"boolean[?n]", "u8[?n]", "u8[]"}, "select %x0, %x1, %x2", "[?n]"},
      {{"boolean[?n]", "u8[?m]", "u8[4]"}, "select %x0, %x1, %x2", "[4]"},
      {{"boolean[?]", "u8[2]", "u8[3]"},
       "select %x0, %x1, %x2 {broadcast = none}",
       "select: operand 1 [2] against operand 2 [3]: axis 0 of the result is 2 against 3; "
       "broadcast "
       "= none needs equal shapes"},
      {{"boolean[?]", "u8[2]", "u8[3]"},
       "select %x0, %x1, %x2",
       "select: operand 1 [2] against operand 2 [3]: axis 0 of the result is 2 against 3" +
           numpy_rule},
      {{"u8[?n, 1, ?]", "u8[?m, ?m, 2]"}, "add %x0, %x1 {broadcast = none}", "[?n, 1, 2]"},
      {{"u8[?n, ?, 3]", "u8[2, ?]"}, "add %x0, %x1 {broadcast = pdpd, axis = 1}", "[?n, 2, 3]"},
      {{"u8[?n, ?, 3]", "u8[1, ?m]"}, "add %x0, %x1 {broadcast = pdpd}", "[?n, ?, 3]"},
      {{"u8[?n]", "u8[?m]"}, "broadcast %x0 : [2, ?m]", "[2, ?m]"},
      {{"u8[?n]", "u8[?m]"}, "broadcast %x0 {mode = bidirectional} : [?m]", "[?]"},
      {{"u8[3]", "u8[?m]"}, "broadcast %x0 {mode = bidirectional} : [?m]", "[3]"},
      {{"u8[?n]"}, "broadcast %x0 {mode = bidirectional} : [2, 1]", "[2, ?n]"},
      {{"u8[3]"},
       "broadcast %x0 : [?, 3]",
       "broadcast: found the target [?, 3], expected numbers and names of unknown extents: nothing "
       "says what ? is"},
      {{"u8[3]"},
       "broadcast %x0 : [?m, 3]",
       "%y = broadcast %x0 : [?m, 3]: unknown extents of a target are named as those of "
       "parameters: "
       "found ?m, which no parameter has"},
  };
  for (const Inference& row : rows) {
    EXPECT_EQ(inferred(function_text(row.types, "%y = " + row.operation)), row.result)
        << row.operation;
  }
}

TEST(Broadcast, UnknownExtentsAreCheckedWhenTheyAreBound) {
  const std::string sum = function_text({"u8[?, ?n]", "u8[?m]"}, "%y = add %x0, %x1");
  EXPECT_EQ(bound(sum, {{2, 3}, {3}}), "[2, 3]");
  EXPECT_EQ(bound(sum, {{2, 3}, {1}}), "[2, 3]");
  EXPECT_EQ(bound(sum, {{2, 1}, {0}}), "[2, 0]");
  EXPECT_EQ(bound(sum, {{2, 3}, {2}}),
            "add: operand 0 [2, 3] against operand 1 [2]: axis 1 of the result is 3 against 2" +
                numpy_rule);
  const std::string chain = function_text(
      {"u8[?n]", "u8[?m]"}, "%a = add %x0, %x1 %y = broadcast %a {mode = bidirectional} : [?m]");
  EXPECT_EQ(bound(chain, {{1}, {4}}), "[4]");
  EXPECT_EQ(bound(chain, {{4}, {1}}), "[4]");
  // A declared result type is checked too.
  const auto declared =
      parse_function("func @f(%x: u8[?], %y: u8[?]) -> (u8[4]) { %z = add %x, %y return %z }");
  ASSERT_TRUE(declared);
  EXPECT_TRUE(bind_shapes(**declared, std::vector<Dims>{{4}, {1}}));
  const auto refused = bind_shapes(**declared, std::vector<Dims>{{3}, {1}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "result 0 (%z), axis 0: found 3, expected 4 as in u8[4]");
}

TEST(Broadcast, MistakesFoundWhenBoundKnowTheirPosition) {
  const auto function = parse_function(
      "func @f(%x: u8[?], %y: u8[?]) -> (u8[?]) {\n  %z = add %x, %y\n  return %z }");
  ASSERT_TRUE(function);
  const auto refused = bind_shapes(**function, std::vector<Dims>{{4}, {3}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().where.line, 2u);
  EXPECT_EQ(refused.error().where.column, 3u);
}

}  // namespace
}  // namespace castor::test
