// SPDX-License-Identifier: Apache-2.0
// The op `broadcast`, and the attributes of all ops that broadcast. Rows are checked by types and
// by bound extents, as in broadcast_test.
#include "ir/shape/broadcast.hpp"

#include "tests/support/shape_rows.hpp"

namespace castor::test {
namespace {

std::string pdpd_rule(int axis) {
  return fmt::format(
      "; mode = pdpd, axis = {} needs rank(B) <= rank(A), -1 <= axis, axis + rank(B) <= rank(A) "
      "without trailing ones of B, and extents of B that are A's or 1",
      axis);
}

/// Data, attributes and target of `broadcast`.
struct Target {
  Dims data;
  std::string attributes;
  Dims target;
  std::string result;
};

void expect_target(const Target& row) {
  const std::string operation =
      fmt::format("%y = broadcast %x0{} : {}", in_braces(row.attributes), to_string(row.target));
  EXPECT_EQ(inferred(function_text({"nf4" + to_string(row.data)}, operation)), row.result);
  // Bound: every extent of the data and of the target is a name of a parameter's.
  Shape names;
  for (int i = 0; i < row.target.rank(); ++i) names.push_back(Dim::named(fmt::format("n{}", i)));
  const std::string open =
      fmt::format("%y = broadcast %x0{} : {}", in_braces(row.attributes), to_string(names));
  const std::vector<std::string> types = {"nf4" + to_string(open_shape(row.data)),
                                          "u8" + to_string(names)};
  const std::vector<Dims> fixed = {row.data, row.target};
  const std::vector<Shape> opened = {open_shape(row.data), names};
  expect_bound(function_text(types, open), fixed, row.result, opened, fixed);
}

TEST(BroadcastTarget, BidirectionalExamplesOfTheDocument) {
  const std::string mode = "mode = bidirectional";
  const Target rows[] = {
      {{5}, mode, {1}, "[5]"},
      {{2, 3}, mode, {3}, "[2, 3]"},
      {{3, 1}, mode, {3, 4}, "[3, 4]"},
      {{3, 4}, mode, {}, "[3, 4]"},
      {{3, 1}, mode, {2, 1, 6}, "[2, 3, 6]"},
      {{1, 0}, mode, {2, 1}, "[2, 0]"},
      {{}, mode, {2, 1}, "[2, 1]"},
      {{3},
       mode,
       {2, 4},
       "broadcast: operand 0 [3] against the target [2, 4]: axis 1 of the result is 3 against 4; "
       "mode = bidirectional needs right-aligned extents that are equal, or one of them 1"},
  };
  for (const Target& row : rows) expect_target(row);
}

TEST(BroadcastTarget, NumpyAndPdpdToATarget) {
  const std::string one_way =
      "; mode = numpy needs right-aligned extents of the data that are the target's or 1";
  const Target rows[] = {
      {{}, "", {}, "[]"},
      {{}, "", {2, 0}, "[2, 0]"},
      {{3, 1}, "", {2, 3, 4}, "[2, 3, 4]"},
      {{1}, "mode = numpy", {0}, "[0]"},
      {{3},
       "",
       {1},
       "broadcast: operand 0 [3] against the target [1]: axis 0 of the result is 3 against 1" +
           one_way},
      {{0},
       "",
       {1},
       "broadcast: operand 0 [0] against the target [1]: axis 0 of the result is 0 against 1" +
           one_way},
      {{1, 3},
       "",
       {3},
       "broadcast: operand 0 [1, 3] against the target [3]: ranks are 2 against 1; mode = numpy "
       "needs a target of the data's rank or more"},
      {{3, 1}, "mode = pdpd, axis = 1", {2, 3, 4, 5}, "[2, 3, 4, 5]"},
      {{4, 5}, "mode = pdpd", {2, 3, 4, 5}, "[2, 3, 4, 5]"},
      {{3, 4, 1, 1}, "mode = pdpd, axis = 1", {2, 3, 4, 5}, "[2, 3, 4, 5]"},
      {{3},
       "mode = pdpd, axis = 0",
       {1, 3},
       "broadcast: the target [1, 3] against operand 0 [3]: axis 0 of the result is 1 against 3" +
           pdpd_rule(0)},
  };
  for (const Target& row : rows) expect_target(row);
}

TEST(BroadcastTarget, ExplicitAxes) {
  const std::string list =
      "; mode = explicit needs one axis of the target for each axis of the data, ascending, from 0 "
      "on and below the target's rank";
  const auto axes = [](const char* text) { return std::string("mode = explicit, axes = ") + text; };
  const std::string x_y = "broadcast: operand 0 [2, 3] against the target [2, 4, 3]: ";
  const Target rows[] = {
      {{16}, axes("[1]"), {1, 16, 50, 50}, "[1, 16, 50, 50]"},
      {{50, 50}, axes("[2, 3]"), {1, 50, 50, 16}, {}},
      {{2, 3}, axes("[0, 2]"), {2, 4, 3}, "[2, 4, 3]"},
      {{1, 3}, axes("[0, 2]"), {2, 4, 3}, "[2, 4, 3]"},
      {{1}, axes("[1]"), {2, 0}, "[2, 0]"},
      {{}, axes("[]"), {2, 3}, "[2, 3]"},
      {{2, 3}, axes("[0]"), {2, 4, 3}, x_y + "axes has 1 entries for data of rank 2" + list},
      {{2, 3}, axes("[0, 3]"), {2, 4, 3}, x_y + "axes has 3 for a target of rank 3" + list},
      {{2, 3}, axes("[-1, 2]"), {2, 4, 3}, x_y + "axes has -1 for a target of rank 3" + list},
      {{2, 3}, axes("[2, 0]"), {2, 4, 3}, x_y + "axes has 0 after 2" + list},
      {{2, 3}, axes("[2, 2]"), {2, 4, 3}, x_y + "axes has 2 after 2" + list},
      {{2, 3},
       axes("[0, 1]"),
       {2, 4, 3},
       x_y + "axis 1 of the result is 3 against 4; mode = explicit needs extents of the data that "
             "are 1 or the target's at their axes"},
  };
  for (Target row : rows) {
    if (row.result.empty()) {
      row.result =
          "broadcast: operand 0 [50, 50] against the target [1, 50, 50, 16]: axis 3 of the result "
          "is 50 against 16; mode = explicit needs extents of the data that are 1 or the target's "
          "at their axes";
    }
    expect_target(row);
  }
}

TEST(BroadcastAttributes, GoTogether) {
  const Inference rows[] = {
      {{"u8[3]", "u8[3]"},
       "add %x0, %x1 {axis = 0}",
       "add: found axis with broadcast = numpy, expected it with broadcast = pdpd only"},
      {{"u8[3]", "u8[3]"},
       "add %x0, %x1 {axis = 0, broadcast = none}",
       "add: found axis with broadcast = none, expected it with broadcast = pdpd only"},
      {{"u8[3]", "u8[3]"},
       "add %x0, %x1 {axis = 0.5, broadcast = pdpd}",
       "add: axis = 0.5 is a float, expected an integer"},
      {{"u8[3]", "u8[3]"},
       "add %x0, %x1 {broadcast = 3}",
       "add: broadcast = 3 is an integer, expected an identifier"},
      {{"u8[3]", "u8[3]"},
       "add %x0, %x1 {broadcast = bidirectional}",
       "add: found broadcast = bidirectional, expected numpy, none, pdpd, blocked"},
      {{"boolean[3]", "u8[3]", "u8[3]"},
       "select %x0, %x1, %x2 {broadcast = pdpd}",
       "select: found broadcast = pdpd, expected numpy, none"},
      {{"u8[3]"},
       "broadcast %x0 {mode = none} : [3]",
       "broadcast: found mode = none, expected numpy, pdpd, bidirectional, explicit, blocked"},
      {{"u8[3]"},
       "broadcast %x0 {mode = bidirectional, axis = 0} : [3]",
       "broadcast: found axis with mode = bidirectional, expected it with mode = pdpd only"},
      {{"u8[3]"},
       "broadcast %x0 {axes = [0]} : [3]",
       "broadcast: found axes with mode = numpy, expected it with mode = explicit or blocked only"},
      {{"u8[3]"},
       "broadcast %x0 {mode = explicit} : [3]",
       "broadcast: found mode = explicit without axes, expected a list of the target's axes"},
      {{"u8[3]"},
       "broadcast %x0 {mode = explicit, axes = [0.5]} : [3]",
       "broadcast: axes = [0.5] is a list, expected a list of integers"},
  };
  for (const Inference& row : rows) {
    EXPECT_EQ(inferred(function_text(row.types, "%y = " + row.operation)), row.result);
  }
}

TEST(BroadcastAttributes, SayTheRule) {
  using enum BroadcastMode;
  const std::pair<OpKind, BroadcastRule> rules[] = {
      {OpKind::add, {}},
      {OpKind::add, {.mode = none}},
      {OpKind::sub, {.mode = pdpd}},
      {OpKind::sub, {.mode = pdpd, .axis = 2}},
      {OpKind::broadcast, {.mode = bidirectional}},
      {OpKind::broadcast, {.mode = explicitly, .axes = {0, 3}}},
      {OpKind::broadcast, {.mode = explicitly}},
  };
  for (const auto& [op, rule] : rules) {
    Operation operation{.op = op};
    operation.attributes = attributes_of(op, rule);
    const auto back = broadcast_rule(operation);
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(back->mode, rule.mode);
    EXPECT_EQ(back->axis, rule.axis);
    EXPECT_EQ(back->axes, rule.axes);
  }
}

/// Which axis of the result each axis of an operand is aligned with.
TEST(BroadcastAttributes, PairAxes) {
  using enum BroadcastMode;
  const auto axes = [](OpKind op, const BroadcastRule& rule, size_t operand, int rank, int result) {
    Operation operation{.op = op};
    operation.attributes = attributes_of(op, rule);
    return axes_along_result(operation, operand, rank, result);
  };
  EXPECT_EQ(axes(OpKind::add, {}, 0, 2, 4), (Dims{2, 3}));
  EXPECT_EQ(axes(OpKind::add, {}, 1, 0, 4), Dims{});
  EXPECT_EQ(axes(OpKind::sqrt, {}, 0, 3, 3), (Dims{0, 1, 2}));
  EXPECT_EQ(axes(OpKind::select, {}, 2, 1, 3), (Dims{2}));
  EXPECT_EQ(axes(OpKind::add, {.mode = none}, 1, 2, 2), (Dims{0, 1}));
  EXPECT_EQ(axes(OpKind::add, {.mode = pdpd, .axis = 1}, 0, 4, 4), (Dims{0, 1, 2, 3}));
  EXPECT_EQ(axes(OpKind::add, {.mode = pdpd, .axis = 1}, 1, 2, 4), (Dims{1, 2}));
  EXPECT_EQ(axes(OpKind::add, {.mode = pdpd, .axis = 2}, 1, 4, 4), (Dims{2, 3, -1, -1}));
  EXPECT_EQ(axes(OpKind::add, {.mode = pdpd}, 1, 2, 4), (Dims{2, 3}));
  EXPECT_EQ(axes(OpKind::broadcast, {}, 0, 2, 4), (Dims{2, 3}));
  EXPECT_EQ(axes(OpKind::broadcast, {.mode = pdpd, .axis = 1}, 0, 2, 4), (Dims{1, 2}));
  EXPECT_EQ(axes(OpKind::broadcast, {.mode = bidirectional}, 0, 2, 3), (Dims{1, 2}));
  EXPECT_EQ(axes(OpKind::broadcast, {.mode = explicitly, .axes = {0, 3}}, 0, 2, 4), (Dims{0, 3}));
}

}  // namespace
}  // namespace castor::test
