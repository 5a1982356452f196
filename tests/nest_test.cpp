// SPDX-License-Identifier: Apache-2.0
// Iteration spaces: which axes merge, in which order the rest are walked, and what the argument
// block says.
#include <gtest/gtest.h>

#include "ir/text.hpp"
#include "jit/nest.hpp"

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
    {"the output's walk decides", {3, 4}, {{4, 1}, {1, 3}}, {3, 4}, {strided, contiguous}},
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
/// else elements are reached one by one.
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
       {contiguous, bitwise}},
      {"rows begin inside bytes", ElementType::u4, {3, 4}, {{5, 1}, {8, 1}}, {bitwise, contiguous}},
      {"two bits: four to a byte",
       ElementType::u2,
       {3, 4},
       {{6, 1}, {8, 1}},
       {bitwise, contiguous}},
      {"three bits: eight to three bytes",
       ElementType::u3,
       {3, 8},
       {{12, 1}, {16, 1}},
       {bitwise, contiguous}},
      {"split groups of four",
       ElementType::u6_split,
       {3, 4},
       {{6, 1}, {8, 1}},
       {bitwise, contiguous}},
      {"every second element", ElementType::i2, {4}, {{2}, {1}}, {bitwise, contiguous}},
  };
  for (const SubByteRow& row : sub_byte_rows) {
    const IterationSpace space = iteration_space(row.extents, row.strides, storage_of(row.element));
    EXPECT_EQ(space.form.access, row.expected_access) << row.name;
    const NestForm any_start = bitwise_form(space.form, storage_of(row.element));
    EXPECT_EQ(any_start.access, (std::vector<Access>{bitwise, bitwise})) << row.name;
  }
}

TEST(Plan, ConnectedValuesShareANest) {
  const FunctionPtr function =
      std::move(parse_function("func @f(%x: f32[4], %y: u8[7]) -> (i8[4], f16[7], f64[4]) {\n"
                               "  %a = convert %x : i8\n  %b = convert %y : f16\n"
                               "  %c = convert %x : f64\n  return %a, %b, %c\n}\n"))
          .value();
  const std::vector<Nest> nests = plan_nests(*function, Target{Tier::avx512});
  ASSERT_EQ(nests.size(), 2u);
  EXPECT_EQ(nests[0].outputs, (std::vector<uint32_t>{0, 2}));
  EXPECT_EQ(nests[0].inputs.size(), 1u);
  EXPECT_EQ(nests[1].outputs, (std::vector<uint32_t>{1}));
}

TEST(Arguments, OuterAxesStepFromTheEndOfTheRow) {
  Nest nest;
  nest.inputs = {0};
  nest.outputs = {0};
  nest.program.sources = {{ElementType::u8}};
  nest.program.sinks = {{ElementType::f32}};
  const Dims strides[] = {{100, 10, 1}, {12, 4, 1}};
  const IterationSpace space = iteration_space({2, 3, 4}, strides, storage_of(ElementType::u8));
  ASSERT_EQ(space.form.rank, 3);
  const ArgumentLayout layout(2, 3);
  const std::vector<int64_t> words = pack_arguments(nest, space);
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
  Nest nest;
  nest.inputs = {0};
  nest.outputs = {0};
  nest.program.sources = {{ElementType::u3}};
  nest.program.sinks = {{ElementType::u4}};
  const Dims strides[] = {{100, 10, 1}, {48, 16, 1}};
  const OperandStorage storage[] = {nest.storage(0), nest.storage(1)};
  const IterationSpace space = iteration_space({2, 3, 4}, strides, storage);
  const ArgumentLayout layout(2, 3);
  const std::vector<int64_t> words = pack_arguments(nest, space);
  EXPECT_EQ(words[layout.step(0, 0)], 1);
  EXPECT_EQ(words[layout.step(0, 1)], 10);
  EXPECT_EQ(words[layout.step(0, 2)], 100 - 3 * 10);
  EXPECT_EQ(words[layout.step(1, 1)], 8) << "sixteen elements of four bits";
  EXPECT_EQ(layout.base(1), layout.words() - 1);
}

}  // namespace
}  // namespace castor::jit
