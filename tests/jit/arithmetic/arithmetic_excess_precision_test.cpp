// SPDX-License-Identifier: Apache-2.0
// Function attribute excess_precision = allow: f16, bf16 and f8 results count as f32 until they
// leave the function or enter an op that is not elementwise.
#include <gtest/gtest.h>

#include "ir/types/excess_precision.hpp"
#include "tests/support/interpreted.hpp"

namespace castor {
namespace {

using enum ElementType;
using test::Patterns;
using test::row_of;

/// Builds one function twice: each op rounding, and excess precision allowed.
class Builder {
 public:
  explicit Builder(bool allow) : builder_("f") {
    if (allow) builder_.attribute({"excess_precision", {Identifier{"allow"}}});
  }

  ValueId parameter(const TensorType& type) { return builder_.parameter("", type); }
  ValueId append(OpKind op, std::vector<ValueId> operands, const WrittenType& written = {}) {
    return builder_.append({.op = op, .operands = std::move(operands)}, written);
  }
  FunctionPtr returning(ValueId result) {
    builder_.result(result);
    const Result<FunctionPtr> function = builder_.finish();
    EXPECT_TRUE(function) << function.error().to_string();
    return function ? *function : nullptr;
  }

 private:
  FunctionBuilder builder_;
};

/// What a function gives for one element of each parameter.
uint64_t result_of(const FunctionPtr& function, const std::vector<uint64_t>& elements) {
  if (!function) return ~uint64_t{0};
  std::vector<Patterns> operands;
  for (size_t i = 0; i < elements.size(); ++i) {
    operands.push_back(row_of(function->type_of(function->parameters[i]).element, {elements[i]}));
  }
  const Patterns result = test::interpreted(*function, operands);
  return result.elements.empty() ? ~uint64_t{0} : result.elements[0];
}

/// x + y - x
FunctionPtr there_and_back(ElementType type, bool allow) {
  Builder builder(allow);
  const ValueId x = builder.parameter({type, {1}});
  const ValueId y = builder.parameter({type, {1}});
  const ValueId sum = builder.append(OpKind::add, {x, y});
  return builder.returning(builder.append(OpKind::sub, {sum, x}));
}

struct Row {
  ElementType type;
  uint64_t x;
  uint64_t y;
  uint64_t rounding;
  uint64_t allowed;
};

TEST(ExcessPrecision, IsKeptBetweenOps) {
  const Row rows[] = {
      {f16, 0x6800, 0x3800, 0, 0x3800},       // 2048 + 0.5
      {f16, 0x7bff, 0x7bff, 0x7c00, 0x7bff},  // no overflow on the way
      {bf16, 0x4380, 0x3f00, 0, 0x3f00},      // 256 + 0.5
      {f8e4m3, 0x58, 0x30, 0, 0x30},          // 16 + 0.5
      {f8e4m3, 0x7e, 0x7e, 0x7f, 0x7e},
      {f8e5m2, 0x4c, 0x38, 0, 0x38},  // 16 + 0.5
      {f8e4m3fnuz, 0x60, 0x38, 0, 0x38},
      {f8e5m2fnuz, 0x50, 0x3c, 0, 0x3c},
      {f4e2m1, 0x6, 0x1, 0, 0},             // 4 + 0.5: not of a format without NaN
      {f6e2m3, 0x18, 0x02, 0, 0},           // 4 + 0.25
      {f32, 0x4b800000, 0x3f000000, 0, 0},  // nor of f32 itself
  };
  for (const Row& row : rows) {
    EXPECT_EQ(result_of(there_and_back(row.type, false), {row.x, row.y}), row.rounding)
        << name_of(row.type);
    EXPECT_EQ(result_of(there_and_back(row.type, true), {row.x, row.y}), row.allowed)
        << name_of(row.type);
  }
}

/// (x + y), through another op, - x; what is handed on is 2048.5 where that op keeps it.
FunctionPtr with_between(OpKind op, const WrittenType& written) {
  Builder builder(true);
  const ValueId x = builder.parameter({f16, {1}});
  const ValueId y = builder.parameter({f16, {1}});
  const ValueId sum = builder.append(OpKind::add, {x, y});
  const ValueId between = builder.append(op, {sum}, written);
  return builder.returning(builder.append(OpKind::sub, {between, x}));
}

TEST(ExcessPrecision, EndsAtOpsThatAreNotElementwise) {
  const std::vector<uint64_t> operands = {0x6800, 0x3800};
  const WrittenType shape = {.element = {}, .shape = Shape{1}};
  EXPECT_EQ(result_of(with_between(OpKind::abs, {}), operands), 0x3800u);
  EXPECT_EQ(result_of(with_between(OpKind::reshape, shape), operands), 0u);
  EXPECT_EQ(result_of(with_between(OpKind::broadcast, shape), operands), 0u);
  // A conversion to its own type says what it rounds to.
  const WrittenType to_f16 = {.element = f16, .shape = {}};
  EXPECT_EQ(result_of(with_between(OpKind::convert, to_f16), operands), 0u);
}

TEST(ExcessPrecision, ConvertTakesAnF32) {
  Builder builder(true);
  const ValueId x = builder.parameter({f16, {1}});
  const ValueId sum = builder.append(OpKind::add, {x, builder.parameter({f16, {1}})});
  const FunctionPtr function =
      builder.returning(builder.append(OpKind::convert, {sum}, {.element = f32, .shape = {}}));
  EXPECT_EQ(result_of(function, {0x6800, 0x3800}), 0x45000800u);  // 2048.5
}

TEST(ExcessPrecision, ComparisonsAndSelectionSeeIt) {
  Builder builder(true);
  const ValueId x = builder.parameter({f16, {1}});
  const ValueId sum = builder.append(OpKind::add, {x, builder.parameter({f16, {1}})});
  const FunctionPtr greater = builder.returning(builder.append(OpKind::greater, {sum, x}));
  EXPECT_EQ(result_of(greater, {0x6800, 0x3800}), 1u);

  Builder other(true);
  const ValueId a = other.parameter({f16, {1}});
  const ValueId total = other.append(OpKind::add, {a, other.parameter({f16, {1}})});
  const ValueId condition = other.parameter({boolean, {1}});
  const ValueId chosen = other.append(OpKind::select, {condition, total, a});
  const FunctionPtr selection = other.returning(other.append(OpKind::sub, {chosen, a}));
  EXPECT_EQ(result_of(selection, {0x6800, 0x3800, 3}), 0x3800u);
  EXPECT_EQ(result_of(selection, {0x6800, 0x3800, 0}), 0u);
}

// A result that is also an operand, and returned twice, is rounded where it leaves only.
TEST(ExcessPrecision, ResultsAreRoundedOnceWhenAllOpsAreDone) {
  FunctionBuilder builder("f");
  builder.attribute({"excess_precision", {Identifier{"allow"}}});
  const ValueId x = builder.parameter("x", {f16, {1}});
  const ValueId y = builder.parameter("y", {f16, {1}});
  const ValueId sum = builder.append({.op = OpKind::add, .operands = {x, y}}, {});
  const ValueId back = builder.append({.op = OpKind::sub, .operands = {sum, x}}, {});
  for (ValueId id : {sum, back, sum, x}) builder.result(id);
  const Result<FunctionPtr> function = builder.finish();
  ASSERT_TRUE(function) << function.error().to_string();
  const std::vector<uint16_t> data = {0x6800, 0x3800};
  std::vector<uint16_t> results(4);
  const std::vector<ConstView> inputs = {{&data[0], f16, {1}, 2}, {&data[1], f16, {1}, 2}};
  std::vector<View> outputs;
  for (uint16_t& result : results) outputs.push_back({&result, f16, {1}, 2});
  ASSERT_TRUE(interpret(**function, inputs, outputs));
  EXPECT_EQ(results, (std::vector<uint16_t>{0x6800, 0x3800, 0x6800, 0x6800}));
}

TEST(ExcessPrecision, CarriedTypes) {
  const FunctionPtr strict = there_and_back(bf16, false);
  const FunctionPtr allowed = there_and_back(bf16, true);
  ASSERT_TRUE(strict && allowed);
  EXPECT_FALSE(allows_excess_precision(*strict));
  EXPECT_TRUE(allows_excess_precision(*allowed));
  EXPECT_EQ(carried_types(*strict), (std::vector{bf16, bf16, bf16, bf16}));
  EXPECT_EQ(carried_types(*allowed), (std::vector{bf16, bf16, f32, f32}));
}

}  // namespace
}  // namespace castor
