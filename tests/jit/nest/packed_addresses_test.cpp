// SPDX-License-Identifier: Apache-2.0
// Operands of less than a byte beside each other, of equal and of different widths: one register
// says where an iteration's elements are in all of them, as long as pointers leave one.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "ir/text/text.hpp"
#include "tests/support/on_every_engine.hpp"

namespace castor::test {
namespace {

struct PackedRow {
  const char* name;
  std::vector<ElementType> inputs;
  ElementType output;
};

using enum ElementType;
const PackedRow rows[] = {
    {"threes alone", {u3, u6, f6e3m2, u3}, u6},
    {"threes to a whole byte", {u6, u3}, u8},
    {"threes to pairs of bits", {u6, u3}, u2},
    {"other widths alone", {u1, u2, i4, u4}, i2},
    {"all widths", {u1, u2, u3, i4, u6}, u3},
    {"with wider ones", {i16, u3, f32, u4, u6}, u6},
    {"a pointer less than registers", {u3, u4, u6, u2, i2, u1, u3}, u6},
    {"as many pointers as registers, which are nine", {u3, u4, u6, u2, i2, u1, u3, u8}, u6},
    {"more pointers than registers", {u3, u4, u6, u2, i2, u1, u3, u8, u6, u4, u2}, u3},
};

/// The sum of all inputs, of f32 to hold them; the last one repeats along the inner axis where
/// there are two.
std::string sum_of(const PackedRow& row, const std::string& shape, const std::string& of_last) {
  std::string parameters;
  std::string body;
  for (size_t i = 0; i < row.inputs.size(); ++i) {
    const bool is_last = i + 1 == row.inputs.size();
    parameters += fmt::format("{}%x{}: {}{}", i == 0 ? "" : ", ", i, name_of(row.inputs[i]),
                              is_last ? of_last : shape);
    body += fmt::format("  %f{0} = convert %x{0} : f32\n", i);
    if (i > 0) body += fmt::format("  %s{0} = add %{1}{2}, %f{0}\n", i, i == 1 ? 'f' : 's', i - 1);
  }
  return fmt::format(
      "func @f({}) -> {}{} {{\n{}  %y = convert %s{} {{overflow = wrap}} : {}\n"
      "  return %y\n}}\n",
      parameters, name_of(row.output), shape, body, row.inputs.size() - 1, name_of(row.output));
}

Patterns drawn(ElementType type, const Dims& shape, std::mt19937_64& random) {
  Patterns tensor{type, shape, {}};
  const uint64_t codes = type == f32 ? 1 : uint64_t{1} << std::min(bits_of(type), 15);
  for (int64_t i = 0; i < *element_count(shape); ++i) tensor.elements.push_back(random() % codes);
  return tensor;
}

void expect_the_interpreters(const PackedRow& row, const Dims& shape, const Dims& of_last) {
  const auto text_of = [](const Dims& dims) { return fmt::format("[{}]", fmt::join(dims, ", ")); };
  const std::string text = sum_of(row, text_of(shape), text_of(of_last));
  const auto function = parse_function(text);
  ASSERT_TRUE(function) << function.error().to_string() << text;
  std::mt19937_64 random(7);
  std::vector<Patterns> inputs;
  for (size_t i = 0; i < row.inputs.size(); ++i) {
    const bool is_last = i + 1 == row.inputs.size();
    inputs.push_back(drawn(row.inputs[i], is_last ? of_last : shape, random));
  }
  EXPECT_EQ(mistake_anywhere(*function, inputs, interpreted(**function, inputs)), "")
      << row.name << "\n"
      << text;
}

TEST(PackedAddresses, InOneRow) {
  for (const PackedRow& row : rows) {
    for (const int64_t length : {63, 520, 1003}) expect_the_interpreters(row, {length}, {length});
  }
}

TEST(PackedAddresses, BesidePeriods) {
  for (const PackedRow& row : rows) expect_the_interpreters(row, {90, 8}, {8});
}

TEST(PackedAddresses, BesideAnOperandOfOneElement) {
  for (const PackedRow& row : rows) expect_the_interpreters(row, {40, 24}, {40, 1});
}

}  // namespace
}  // namespace castor::test
