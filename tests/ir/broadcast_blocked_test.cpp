// SPDX-License-Identifier: Apache-2.0
// Blocked broadcasting: shapes, messages, attributes, and which element each block reads.
#include "ir/shape/broadcast.hpp"
#include "ir/text/text.hpp"
#include "tests/support/interpreted.hpp"
#include "tests/support/shape_rows.hpp"

namespace castor::test {
namespace {

std::string rule(std::string_view attribute) {
  return fmt::format(
      "; {} = blocked needs rank(B) <= rank(A) < 16, axes of A that B has, ascending, one block of "
      "at least 1 for each, and extents of B that are ceil(A / block) there, elsewhere A's or 1",
      attribute);
}

/// A, B, the lists, and the shape or what is wrong between the two shapes and the rule.
struct Row {
  Dims a;
  Dims b;
  std::string axes;
  std::string block;
  std::string misfit = {};

  std::string attributes(std::string_view mode) const {
    return fmt::format("{} = blocked, axes = {}, block = {}", mode, axes, block);
  }
};

std::vector<Row> rows() {
  return {
      {{8}, {2}, "[0]", "[4]"},
      {{7}, {2}, "[0]", "[4]"},
      {{3}, {1}, "[0]", "[4]"},
      {{0}, {0}, "[0]", "[4]"},
      {{5}, {5}, "[0]", "[1]"},
      {{5}, {1}, "[0]", "[9223372036854775807]"},
      {{4, 6}, {2, 1}, "[0]", "[2]"},
      {{4, 6}, {4, 2}, "[1]", "[3]"},
      {{4, 6}, {2, 2}, "[0, 1]", "[2, 4]"},
      {{2, 4, 6}, {2, 3}, "[1, 2]", "[3, 2]"},
      {{4, 6}, {6}, "[]", "[]"},
      {{8}, {3}, "[0]", "[4]", "axis 0 of the result is 8 in blocks of 4 against 3"},
      {{8}, {1}, "[0]", "[4]", "axis 0 of the result is 8 in blocks of 4 against 1"},
      {{4, 6}, {2, 5}, "[0]", "[2]", "axis 1 of the result is 6 against 5"},
      {{1, 6}, {2, 1}, "[1]", "[6]", "axis 0 of the result is 1 against 2"},
      {{6}, {2, 6}, "[0]", "[2]", "rank(A) is 1, rank(B) is 2"},
      {{4, 6}, {3}, "[0]", "[2]", "axes has 0, rank(A) is 2, rank(B) is 1"},
      {{4, 6}, {4, 3}, "[2]", "[2]", "axes has 2, rank(A) is 2, rank(B) is 2"},
      {{4, 6}, {4, 3}, "[-1]", "[2]", "axes has -1, rank(A) is 2, rank(B) is 2"},
      {{4, 6}, {2, 3}, "[1, 0]", "[2, 2]", "axes has 0 after 1"},
      {{4, 6}, {2, 3}, "[0, 1]", "[2]", "axes has 2 entries, block has 1"},
      {{4}, {2}, "[0]", "[0]", "block has 0"},
      {Dims::filled(16, 1), {1}, "[15]", "[2]", "rank(A) is 16, rank(B) is 1"},
  };
}

TEST(BroadcastBlocked, Shapes) {
  for (const Row& row : rows()) {
    const std::vector<std::string> types = {"nf4" + to_string(row.b), "u8" + to_string(row.a)};
    const std::string attributes = row.attributes("mode");
    const std::string expected =
        row.misfit.empty()
            ? to_string(row.a)
            : fmt::format("broadcast: the target {} against operand 0 {}: {}{}", to_string(row.a),
                          to_string(row.b), row.misfit, rule("mode"));
    const std::string operation =
        fmt::format("%y = broadcast %x0 {{{}}} : {}", attributes, to_string(row.a));
    EXPECT_EQ(inferred(function_text(types, operation)), expected);
    Shape names;
    for (int i = 0; i < row.a.rank(); ++i) names.push_back(Dim::named(fmt::format("n{}", i)));
    const std::vector<std::string> open = {"nf4" + to_string(open_shape(row.b)),
                                           "u8" + to_string(names)};
    const std::string on_open =
        fmt::format("%y = broadcast %x0 {{{}}} : {}", attributes, to_string(names));
    expect_bound(function_text(open, on_open), {row.b, row.a}, expected, {names, open_shape(row.b)},
                 {row.a, row.b});
  }
}

TEST(BroadcastBlocked, ShapesOfOpsOfTwoOperands) {
  for (const Row& row : rows()) {
    const std::string operation =
        fmt::format("%y = mul %x0, %x1 {{{}}}", row.attributes("broadcast"));
    const std::string expected =
        row.misfit.empty()
            ? to_string(row.a)
            : fmt::format("mul: operand 0 {} against operand 1 {}: {}{}", to_string(row.a),
                          to_string(row.b), row.misfit, rule("broadcast"));
    EXPECT_EQ(
        inferred(function_text({"f32" + to_string(row.a), "f32" + to_string(row.b)}, operation)),
        expected);
    const Shape a = open_shape(row.a);
    const Shape b = open_shape(row.b);
    const std::string open = function_text({"f32" + to_string(a), "f32" + to_string(b)}, operation);
    expect_bound(open, {row.a, row.b}, expected, {a, b}, {row.a, row.b});
  }
}

TEST(BroadcastBlocked, UnknownExtentsAreAs) {
  const Inference cases[] = {
      {{"f32[?n, 6]", "f32[?, 2]"},
       "mul %x0, %x1 {broadcast = blocked, axes = [1], block = [3]}",
       "[?n, 6]"},
      {{"f32[?n, ?]", "f32[4, 2]"},
       "mul %x0, %x1 {broadcast = blocked, axes = [1], block = [3]}",
       "[4, ?]"},
      {{"f32[?n, 6]", "f32[?n, ?]"},
       "mul %x0, %x1 {broadcast = blocked, axes = [1], block = [3]}",
       "[?n, 6]"},
  };
  for (const Inference& row : cases) {
    EXPECT_EQ(inferred(function_text(row.types, "%y = " + row.operation)), row.result);
  }
}

TEST(BroadcastBlocked, AttributesGoTogether) {
  const Inference cases[] = {
      {{"f32[4]", "f32[2]"},
       "mul %x0, %x1 {broadcast = blocked, axes = [0]}",
       "mul: found broadcast = blocked without block, expected a list of the elements that blocks "
       "have along axes"},
      {{"f32[4]", "f32[2]"},
       "mul %x0, %x1 {broadcast = blocked, block = [2]}",
       "mul: found broadcast = blocked without axes, expected a list of the axes with blocks"},
      {{"f32[4]", "f32[2]"},
       "mul %x0, %x1 {axes = [0]}",
       "mul: found axes with broadcast = numpy, expected it with broadcast = blocked only"},
      {{"f32[4]", "f32[2]"},
       "mul %x0, %x1 {broadcast = pdpd, block = [2]}",
       "mul: found block with broadcast = pdpd, expected it with broadcast = blocked only"},
      {{"f32[4]", "f32[2]"},
       "mul %x0, %x1 {broadcast = blocked, axes = [0], block = [2], axis = 0}",
       "mul: found axis with broadcast = blocked, expected it with broadcast = pdpd only"},
      {{"f32[4]", "f32[2]"},
       "mul %x0, %x1 {broadcast = blocked, axes = [0], block = [0.5]}",
       "mul: block = [0.5] is a list, expected a list of integers"},
      {{"boolean[4]", "f32[4]", "f32[4]"},
       "select %x0, %x1, %x2 {broadcast = blocked}",
       "select: found broadcast = blocked, expected numpy, none"},
  };
  for (const Inference& row : cases) {
    EXPECT_EQ(inferred(function_text(row.types, "%y = " + row.operation)), row.result);
  }
}

TEST(BroadcastBlocked, PrintsAndParses) {
  const std::string text =
      "func @f(%x: f32[4, 6], %s: f32[2, 2]) -> (f32[4, 6]) {\n"
      "  %b = broadcast %s {mode = blocked, axes = [0, 1], block = [2, 4]} : [4, 6]\n"
      "  %y = mul %x, %b\n"
      "  %z = mul %y, %s {broadcast = blocked, axes = [0, 1], block = [2, 4]}\n"
      "  return %z\n"
      "}\n";
  const auto function = parse_function(text);
  ASSERT_TRUE(function) << function.error().message;
  EXPECT_EQ(print(**function), text);
  for (const Operation& operation : (*function)->operations) {
    const auto back = broadcast_rule(operation);
    ASSERT_TRUE(back) << back.error().message;
    if (back->mode != BroadcastMode::blocked) continue;
    EXPECT_EQ(attributes_of(operation.op, *back), operation.attributes);
    EXPECT_EQ(blocks_along_result(operation, operation.operands.size() - 1, 2, 2), (Dims{2, 4}));
  }
}

/// Element i along an axis reads element i / block.
TEST(BroadcastBlocked, ElementsOfBlocks) {
  for (const auto& [rows, columns] : {std::pair{4, 6}, {5, 7}, {1, 1}, {3, 12}, {4, 8}}) {
    const Dims target = {2, rows, columns};
    const Dims data = {1, (rows + 1) / 2, (columns + 3) / 4};
    const std::string text = fmt::format(
        "func @f(%s: u16{}) -> u16{} {{ %b = broadcast %s {{mode = blocked, axes = [1, 2], block = "
        "[2, 4]}} : {} return %b }}",
        to_string(data), to_string(target), to_string(target));
    const auto function = parse_function(text);
    ASSERT_TRUE(function) << function.error().message;
    Patterns operand{ElementType::u16, data, {}};
    for (int64_t i = 0; i < data[1] * data[2]; ++i) {
      operand.elements.push_back(static_cast<uint64_t>(1000 + i));
    }
    const Patterns result = interpreted(**function, {operand});
    size_t at = 0;
    for (int64_t n = 0; n < 2; ++n) {
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < columns; ++j) {
          EXPECT_EQ(result.elements[at++], static_cast<uint64_t>(1000 + i / 2 * data[2] + j / 4));
        }
      }
    }
  }
}

}  // namespace
}  // namespace castor::test
