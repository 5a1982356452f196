// SPDX-License-Identifier: Apache-2.0
// Iteration spaces: which axes merge, in which order loops run over the others, where vectors span
// rows, and what the argument block says.
#include <gtest/gtest.h>

#include "jit/plan/access_pattern.hpp"

namespace castor::jit {
namespace {

struct Row {
  const char* name;
  Dims extents;
  std::vector<Dims> strides;
  Dims expected_extents;  // innermost first
  std::vector<Access> expected_access;
};

constexpr Access contiguous = Access::contiguous;
constexpr Access strided = Access::strided;

const Row rows[] = {
    {"scalar", {}, {{}, {}}, {1}, {contiguous, contiguous}},
    {"dense axes merge", {2, 3, 4}, {{12, 4, 1}, {12, 4, 1}}, {24}, {contiguous, contiguous}},
    {"axes of one element vanish",
     {1, 3, 1, 4},
     {{99, 4, 7, 1}, {12, 4, 4, 1}},
     {12},
     {contiguous, contiguous}},
    {"a gap between rows stays",
     {2, 3, 4},
     {{12, 4, 1}, {100, 4, 1}},
     {12, 2},
     {contiguous, contiguous}},
    {"both transposed alike merge", {3, 4}, {{1, 3}, {1, 3}}, {12}, {contiguous, contiguous}},
    {"a transposed input is strided", {3, 4}, {{1, 3}, {4, 1}}, {4, 3}, {strided, contiguous}},
    {"the output's strides decide", {3, 4}, {{4, 1}, {1, 3}}, {3, 4}, {strided, contiguous}},
    {"every second element", {5}, {{2}, {1}}, {5}, {strided, contiguous}},
};

/// One input and one output of one element type.
std::vector<OperandStorage> storage_of(ElementType element) {
  return {{element, false}, {element, true}};
}

TEST(IterationSpace, Merges) {
  for (const Row& row : rows) {
    const IterationSpace space =
        iteration_space(row.extents, row.strides, storage_of(ElementType::u8));
    EXPECT_EQ(space.extents, row.expected_extents) << row.name;
    EXPECT_EQ(space.form.rank, row.expected_extents.rank()) << row.name;
    EXPECT_EQ(space.form.access, row.expected_access) << row.name;
  }
}

/// Rows of sub-byte elements have to begin at bytes, and, where they are written, to end at bytes;
/// else all operands are unpacked tile by tile.
TEST(IterationSpace, SubByteRowsAreBytes) {
  struct SubByteRow {
    const char* name;
    ElementType element;
    Dims extents;
    std::vector<Dims> strides;
    std::vector<Access> expected_access;
  };
  constexpr Access bitwise = Access::bitwise;
  const SubByteRow sub_byte_rows[] = {
      {"dense, an odd count", ElementType::u4, {3, 5}, {{5, 1}, {5, 1}}, {contiguous, contiguous}},
      {"rows of whole bytes", ElementType::u4, {3, 4}, {{6, 1}, {8, 1}}, {contiguous, contiguous}},
      {"an output's rows end inside bytes",
       ElementType::u4,
       {3, 5},
       {{6, 1}, {8, 1}},
       {bitwise, bitwise}},
      {"rows begin inside bytes", ElementType::u4, {3, 4}, {{5, 1}, {8, 1}}, {bitwise, bitwise}},
      {"two bits: four to a byte", ElementType::u2, {3, 4}, {{6, 1}, {8, 1}}, {bitwise, bitwise}},
      {"three bits: eight to three bytes",
       ElementType::u3,
       {3, 8},
       {{12, 1}, {16, 1}},
       {bitwise, bitwise}},
      {"split groups of four", ElementType::u6_split, {3, 4}, {{6, 1}, {8, 1}}, {bitwise, bitwise}},
      {"every second element", ElementType::i2, {4}, {{2}, {1}}, {bitwise, bitwise}},
  };
  for (const SubByteRow& row : sub_byte_rows) {
    const IterationSpace space = iteration_space(row.extents, row.strides, storage_of(row.element));
    EXPECT_EQ(space.form.access, row.expected_access) << row.name;
    const NestForm any_start = bitwise_form(space.form, storage_of(row.element));
    EXPECT_EQ(any_start.access, (std::vector<Access>{bitwise, bitwise})) << row.name;
  }
}

constexpr Access uniform = Access::uniform;
constexpr Access periodic = Access::periodic;
constexpr Access repeated = Access::repeated;

/// Short innermost axes become periods where every operand lets them.
TEST(Periods, ShortRowsMerge) {
  struct PeriodRow {
    const char* name;
    Dims extents;
    std::vector<Dims> strides;  // strides of two inputs and the output
    int64_t period;             // 0: rows stay
    Dims expected_extents;      // innermost first
    std::vector<Access> expected_access;
  };
  const PeriodRow period_rows[] = {
      {"[N, 3] with [3]",
       {1000, 3},
       {{3, 1}, {0, 1}, {3, 1}},
       3,
       {3000},
       {contiguous, periodic, contiguous}},
      {"[N, 1] with [1, 3]",
       {1000, 3},
       {{1, 0}, {0, 1}, {3, 1}},
       3,
       {3000},
       {repeated, periodic, contiguous}},
      {"[H, W, 4] with [H, W, 1]",
       {20, 30, 4},
       {{120, 4, 1}, {30, 1, 0}, {120, 4, 1}},
       4,
       {2400},
       {contiguous, repeated, contiguous}},
      {"a scalar goes along",
       {1000, 3},
       {{0, 0}, {0, 1}, {3, 1}},
       3,
       {3000},
       {uniform, periodic, contiguous}},
      {"two axes in a period",
       {500, 2, 3},
       {{6, 3, 1}, {0, 1, 0}, {6, 3, 1}},
       6,
       {3000},
       {contiguous, periodic, contiguous}},
      {"gaps between rows",
       {1000, 3},
       {{4, 1}, {0, 1}, {3, 1}},
       0,
       {3, 1000},
       {contiguous, contiguous, contiguous}},
      {"long rows",
       {1000, 600},
       {{600, 1}, {0, 1}, {600, 1}},
       0,
       {600, 1000},
       {contiguous, contiguous, contiguous}},
      {"long rows of one element",
       {1000, 64},
       {{64, 1}, {1, 0}, {64, 1}},
       0,
       {64, 1000},
       {contiguous, uniform, contiguous}},
      {"few rows",
       {4, 3},
       {{3, 1}, {0, 1}, {3, 1}},
       0,
       {3, 4},
       {contiguous, contiguous, contiguous}},
      {"a period that changes further out",
       {5, 1000, 3},
       {{3000, 3, 1}, {3, 0, 1}, {3000, 3, 1}},
       0,
       {3, 1000, 5},
       {contiguous, contiguous, contiguous}},
  };
  const std::vector<OperandStorage> storage = {
      {ElementType::f32, false}, {ElementType::f32, false}, {ElementType::f32, true}};
  for (const PeriodRow& row : period_rows) {
    IterationSpace space = iteration_space(row.extents, row.strides, storage);
    merge_periods(space, storage, 16, Target{Tier::avx512_vbmi});
    EXPECT_EQ(space.period, row.period) << row.name;
    EXPECT_EQ(space.extents, row.expected_extents) << row.name;
    EXPECT_EQ(space.form.access, row.expected_access) << row.name;
  }
}

TEST(Reshape, StridesOfViews) {
  struct ReshapeRow {
    Dims extents;
    Dims strides;
    Dims target;
    std::optional<Dims> expected;
  };
  const ReshapeRow reshape_rows[] = {
      {{2, 3, 4}, {12, 4, 1}, {6, 4}, Dims{4, 1}},
      {{6, 4}, {4, 1}, {2, 3, 2, 2}, Dims{12, 4, 2, 1}},
      {{6, 4}, {10, 1}, {2, 3, 4}, Dims{30, 10, 1}},
      {{6, 4}, {10, 1}, {24}, std::nullopt},
      {{4, 6}, {1, 4}, {4, 2, 3}, Dims{1, 12, 4}},
      {{4, 6}, {1, 4}, {2, 12}, std::nullopt},
      {{4, 6}, {6, 1}, {3, 8}, Dims{8, 1}},
      {{5}, {3}, {1, 5, 1}, Dims{0, 3, 0}},
      {{}, {}, {1, 1}, Dims{0, 0}},
  };
  for (const ReshapeRow& row : reshape_rows) {
    EXPECT_EQ(reshaped_strides(row.extents, row.strides, row.target), row.expected)
        << to_string(row.extents) << " by " << to_string(row.strides) << " as "
        << to_string(row.target);
  }
}

TEST(Arguments, OuterAxesStepFromTheEndOfTheRow) {
  const OperandStorage storage[] = {{ElementType::u8, false}, {ElementType::f32, true}};
  const Dims strides[] = {{100, 10, 1}, {12, 4, 1}};
  const IterationSpace space = iteration_space({2, 3, 4}, strides, storage);
  ASSERT_EQ(space.form.rank, 3);
  const ArgumentLayout layout(2, 3);
  const std::vector<int64_t> words = pack_arguments(storage, space);
  ASSERT_EQ(words.size(), layout.words());
  EXPECT_EQ(words[layout.extent(0)], 4);
  EXPECT_EQ(words[layout.extent(2)], 2);
  EXPECT_EQ(words[layout.step(0, 0)], 1);
  EXPECT_EQ(words[layout.step(0, 1)], 10);
  EXPECT_EQ(words[layout.step(0, 2)], 100 - 3 * 10);
  EXPECT_EQ(words[layout.step(1, 2)], (12 - 3 * 4) * 4);
}

/// Bitwise access counts elements; the pointer and the base are filled in by each call.
TEST(Arguments, BitwiseStepsCountElements) {
  const OperandStorage storage[] = {{ElementType::u3, false}, {ElementType::u4, true}};
  const Dims strides[] = {{100, 10, 1}, {48, 16, 1}};
  const IterationSpace space = iteration_space({2, 3, 4}, strides, storage);
  const ArgumentLayout layout(2, 3);
  const std::vector<int64_t> words = pack_arguments(storage, space);
  EXPECT_EQ(words[layout.step(0, 0)], 1);
  EXPECT_EQ(words[layout.step(0, 1)], 10);
  EXPECT_EQ(words[layout.step(0, 2)], 100 - 3 * 10);
  EXPECT_EQ(words[layout.step(1, 1)], 16) << "beside one that is bitwise";
  EXPECT_EQ(layout.base(1), layout.period() - 1);
}

TEST(Arguments, ContiguousStepsCountBytes) {
  const OperandStorage storage[] = {{ElementType::u4, false}, {ElementType::u4, true}};
  const Dims strides[] = {{100, 32, 1}, {48, 16, 1}};
  const IterationSpace space = iteration_space({2, 3, 4}, strides, storage);
  const ArgumentLayout layout(2, 3);
  const std::vector<int64_t> words = pack_arguments(storage, space);
  EXPECT_EQ(words[layout.step(0, 1)], 16);
  EXPECT_EQ(words[layout.step(1, 1)], 8) << "sixteen elements of four bits";
}

}  // namespace
}  // namespace castor::jit
