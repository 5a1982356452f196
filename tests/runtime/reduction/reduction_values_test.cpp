// SPDX-License-Identifier: Apache-2.0
// What reductions give, by hand: NaNs, zeros, empty tensors, the ends of types, and sums of floats
// by a tree that is written here once more.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <cmath>
#include <limits>

#include "ir/numerics/scalar.hpp"
#include "ir/text/text.hpp"
#include "tests/support/on_every_engine.hpp"
#include "tests/support/sample_bytes.hpp"

namespace castor::test {
namespace {

struct Row {
  const char* type;
  const char* elements;
  const char* op;
  const char* expected;  ///< as a literal
};

constexpr Row rows[] = {
    {"f32", "[1.0, -0.0, 0.0]", "reduce_min", "-0.0"},
    {"f32", "[-1.0, -0.0, 0.0]", "reduce_max", "0.0"},
    {"f32", "[-0.0, -0.0]", "reduce_max", "-0.0"},
    {"f32", "[-0.0, -0.0]", "reduce_max_abs", "0.0"},
    {"f32", "[-0.0, -0.0]", "reduce_sum", "0.0"},
    {"f32", "[-5.0, 3.0]", "reduce_max_abs", "5.0"},
    {"f32", "[-inf, 3.0]", "reduce_min", "-inf"},
    {"f32", "[-inf, 3.0]", "reduce_max_abs", "inf"},
    {"f32", "[-inf, inf]", "reduce_sum", "nan"},
    {"f32", "[1.0, nan, 3.0]", "reduce_min", "nan"},
    {"f32", "[]", "reduce_min", "inf"},
    {"f32", "[]", "reduce_max", "-inf"},
    {"f32", "[]", "reduce_max_abs", "0.0"},
    {"f32", "[]", "reduce_sum", "0.0"},
    {"f64", "[]", "reduce_max", "-inf"},
    {"f16", "[60000.0, 60000.0]", "reduce_sum", "inf"},
    {"f16", "[60000.0, 60000.0, -60000.0]", "reduce_sum", "60000.0"},
    {"bf16", "[256.0, 1.0, 1.0]", "reduce_sum", "258.0"},
    {"f8e4m3", "[]", "reduce_max", "-448.0"},
    {"f8e4m3", "[]", "reduce_min", "448.0"},
    {"f8e4m3", "[300.0, 300.0]", "reduce_sum", "nan"},
    {"f8e5m2", "[]", "reduce_min", "inf"},
    {"f8e4m3fnuz", "[]", "reduce_min", "240.0"},
    {"f4e2m1", "[]", "reduce_max", "-6.0"},
    {"f4e2m1", "[6.0, 6.0]", "reduce_sum", "6.0"},
    {"f6e3m2", "[-28.0, 3.0]", "reduce_max_abs", "28.0"},
    {"i8", "[-128, 5]", "reduce_max_abs", "-128"},
    {"i8", "[-127, 5]", "reduce_max_abs", "127"},
    {"i8", "[100, 100]", "reduce_sum", "-56"},
    {"i8", "[]", "reduce_min", "127"},
    {"i8", "[]", "reduce_max", "-128"},
    {"u8", "[]", "reduce_min", "255"},
    {"u8", "[200, 100]", "reduce_sum", "44"},
    {"u4", "[]", "reduce_min", "15"},
    {"u4", "[9, 3]", "reduce_max", "9"},
    {"i4", "[-8, 7]", "reduce_max_abs", "-8"},
    {"i4", "[7, 7]", "reduce_sum", "-2"},
    {"i64", "[]", "reduce_max", "-9223372036854775808"},
    {"u64", "[18446744073709551615, 3]", "reduce_min", "3"},
    {"u64", "[18446744073709551615, 3]", "reduce_sum", "2"},
};

TEST(ReductionValues, AreAsByHand) {
  for (const Row& row : rows) {
    const std::string_view list = row.elements;
    const auto count = list == "[]" ? 0 : 1 + std::ranges::count(list, ',');
    const auto reduced = parse_function(
        fmt::format("func @f(%x: {0}[{1}]) -> {0}[] {{\n  %y = {2} %x\n  return %y\n}}\n", row.type,
                    count, row.op));
    ASSERT_TRUE(reduced.ok()) << reduced.error().to_string();
    const auto constants = parse_function(
        fmt::format("func @c() -> ({0}[{1}], {0}[]) {{\n  %x = constant {2} : {0}[{1}]\n"
                    "  %y = constant {3} : {0}[]\n  return %x, %y\n}}\n",
                    row.type, count, row.elements, row.expected));
    ASSERT_TRUE(constants.ok()) << constants.error().to_string();
    const auto patterns = [&](size_t constant) {
      const Operation& operation = (*constants)->operations[constant];
      const TensorType& type = (*constants)->type_of(operation.results[0]);
      Patterns found{type.element, {}, {}};
      for (const Dim& dim : type.shape) found.shape.push_back(dim.extent);
      for (int64_t i = 0; i < element_count(found.shape).value(); ++i) {
        found.elements.push_back(
            samples::load_pattern(operation.data->bytes, type.element, static_cast<size_t>(i)));
      }
      return found;
    };
    EXPECT_EQ(mistake_anywhere(*reduced, {patterns(0)}, patterns(1)), "")
        << row.op << " of " << row.type << row.elements;
  }
}

/// The NaN of any NaN is the quiet one of sign 0 without payload.
TEST(ReductionValues, HaveOneNan) {
  struct NanRow {
    ElementType type;
    uint64_t operand;
    uint64_t result;
  };
  const NanRow nans[] = {
      {ElementType::f32, 0xff812345, 0x7fc00000},
      {ElementType::f32, 0x7f800001, 0x7fc00000},
      {ElementType::f64, 0xfff0000000000001, 0x7ff8000000000000},
      {ElementType::f16, 0xfc01, 0x7e00},
      {ElementType::bf16, 0xffff, 0x7fc0},
      {ElementType::f8e4m3, 0xff, 0x7f},
      {ElementType::f8e5m2, 0xfd, 0x7e},
      {ElementType::f8e4m3fnuz, 0x80, 0x80},
  };
  for (const NanRow& row : nans) {
    for (const char* op : {"reduce_min", "reduce_max", "reduce_max_abs", "reduce_sum"}) {
      const auto function = parse_function(
          fmt::format("func @f(%x: {0}[37]) -> {0}[] {{\n  %y = {1} %x\n  return %y\n}}\n",
                      name_of(row.type), op));
      Patterns x{row.type, {37}, std::vector<uint64_t>(37, 0)};
      x.elements[29] = row.operand;
      EXPECT_EQ(mistake_anywhere(*function, {x}, {row.type, {}, {row.result}}), "")
          << op << " of " << name_of(row.type);
    }
  }
}

/// A NaN is found wherever it is: in whole chunks of a row, the one that waits for the next among
/// them, in a row's tail, in short rows that are folded in blocks, along columns, and in later
/// parts of long rows.
TEST(ReductionValues, FindANanAnywhere) {
  struct Shape {
    Dims extents;
    const char* axes;
    size_t step;  ///< between the positions that are tried
  };
  const Shape shapes[] = {{{213}, "[0]", 5},    {{33, 16}, "[1]", 37},     {{5, 37}, "[1]", 19},
                          {{37, 5}, "[0]", 17}, {{3, 7, 9}, "[0, 2]", 31}, {{70003}, "[0]", 29989}};
  for (const auto& [type, nan, result] :
       {std::tuple(ElementType::f32, uint64_t{0xff800001}, uint64_t{0x7fc00000}),
        std::tuple(ElementType::f64, uint64_t{0x7ff0000000000001}, uint64_t{0x7ff8000000000000})}) {
    for (const Shape& shape : shapes) {
      const auto count = static_cast<size_t>(*element_count(shape.extents));
      std::string dims;
      for (const int64_t extent : shape.extents) {
        dims += fmt::format("{}{}", dims.empty() ? "" : ", ", extent);
      }
      const auto function = parse_function(
          fmt::format("func @f(%x: {0}[{1}]) -> {0}[] {{\n"
                      "  %a = reduce_min %x {{axes = {2}}}\n  %b = reduce_max %x {{axes = {2}}}\n"
                      "  %c = add %a, %b\n  %y = reduce_max_abs %c\n  return %y\n}}\n",
                      name_of(type), dims, shape.axes));
      ASSERT_TRUE(function.ok()) << function.error().to_string();
      for (size_t at = 0; at <= count; at += shape.step) {
        Patterns x{type, shape.extents, std::vector<uint64_t>(count, 0)};
        if (at < count) x.elements[at] = nan;
        const uint64_t expected = at < count ? result : 0;
        ASSERT_EQ(mistake_anywhere(*function, {x}, {type, {}, {expected}}), "")
            << name_of(type) << "[" << dims << "], NaN at " << at;
      }
    }
  }
}

/// Operations whose results have no sign bit are folded as they are, but for NaNs, which may have
/// one; those that may be negative are not.
TEST(ReductionValues, OfNumbersWithoutASign) {
  const auto bits_of_number = [](ElementType type, double number) {
    return numerics::convert(std::bit_cast<uint64_t>(number), ElementType::f64, type, {});
  };
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::vector<double>> lists = {
      {},           {-0.0},      {-1, -0.0, 2}, {2, 0.5, 8},  {inf, -inf},
      {-inf, -0.0}, {0.0, -0.0}, {1, nan},      {-nan, 1, 2}, {3, -nan}};
  for (const char* maker :
       {"relu %x", "abs %x", "clamp %x {lo = 0, hi = 4}", "clamp %x {lo = 1.0, hi = 6.0}",
        "clamp %x {lo = -0.0}", "clamp %x {hi = 2.0}", "clamp %x {lo = 1.0, hi = -1.0}"}) {
    for (const ElementType type : {ElementType::f32, ElementType::f64, ElementType::f16,
                                   ElementType::bf16, ElementType::f8e5m2}) {
      for (const std::vector<double>& list : lists) {
        Patterns x{type, {static_cast<int64_t>(list.empty() ? 0 : 71)}, {}};
        for (int64_t i = 0; i < x.shape[0]; ++i) {
          x.elements.push_back(bits_of_number(type, list[static_cast<size_t>(i) % list.size()]));
        }
        for (const char* op : {"reduce_min", "reduce_max"}) {
          const auto function = parse_function(
              fmt::format("func @f(%x: {0}[{1}]) -> {0}[] {{\n  %a = {2}\n  %y = {3} %a\n"
                          "  return %y\n}}\n",
                          name_of(type), x.shape[0], maker, op));
          ASSERT_TRUE(function.ok()) << function.error().to_string();
          EXPECT_EQ(mistake_anywhere(*function, {x}, interpreted(**function, {x})), "")
              << op << " of " << name_of(type) << ", " << maker << " of "
              << fmt::format("{}", fmt::join(list, " "));
        }
      }
    }
  }
}

/// ir/README.md, Reductions, in plain floats.
float block_sum(std::span<const float> elements) {
  std::array<float, 64> partial = {};
  for (size_t i = 0; i < elements.size(); ++i) partial[i % 64] += elements[i];
  for (size_t half = 32; half > 0; half /= 2) {
    for (size_t j = 0; j < half; ++j) partial[j] += partial[j + half];
  }
  return partial[0];
}

float tree_sum(std::vector<float> elements) {
  while (elements.size() > 4096) {
    std::vector<float> sums;
    for (size_t i = 0; i < elements.size(); i += 4096) {
      sums.push_back(
          block_sum(std::span(elements).subspan(i, std::min<size_t>(4096, elements.size() - i))));
    }
    elements = std::move(sums);
  }
  return block_sum(elements);
}

TEST(ReductionValues, SumsAreByTheTree) {
  for (const int64_t count : {1, 2, 63, 64, 65, 1000, 4096, 4097, 8193, 50000}) {
    Patterns x{ElementType::f32, {count}, {}};
    std::vector<float> numbers;
    uint32_t state = 12345;
    for (int64_t i = 0; i < count; ++i) {
      state = state * 1664525 + 1013904223;
      numbers.push_back(static_cast<float>(static_cast<int32_t>(state)) * 0x1p-20F);
      x.elements.push_back(std::bit_cast<uint32_t>(numbers.back()));
    }
    const auto function = parse_function(fmt::format(
        "func @f(%x: f32[{}]) -> f32[] {{\n  %y = reduce_sum %x\n  return %y\n}}\n", count));
    const Patterns expected{ElementType::f32, {}, {std::bit_cast<uint32_t>(tree_sum(numbers))}};
    EXPECT_EQ(mistake_anywhere(*function, {x}, expected), "") << count;
  }
}

/// Groups of neighbouring axes, the last one first.
TEST(ReductionValues, SumsOfSeveralAxesGoGroupByGroup) {
  constexpr int64_t a = 5;
  constexpr int64_t b = 3;
  constexpr int64_t c = 70;
  Patterns x{ElementType::f32, {a, b, c}, {}};
  std::vector<float> sums;
  std::vector<float> numbers;
  for (int64_t i = 0; i < a * b * c; ++i) {
    numbers.push_back(std::ldexp(1.0F + static_cast<float>(i % 97) / 97, static_cast<int>(i % 23)));
    x.elements.push_back(std::bit_cast<uint32_t>(numbers.back()));
  }
  Patterns expected{ElementType::f32, {b}, {}};
  for (int64_t j = 0; j < b; ++j) {
    std::vector<float> outer;
    for (int64_t i = 0; i < a; ++i) {
      const auto begin = numbers.begin() + (i * b + j) * c;
      outer.push_back(tree_sum({begin, begin + c}));
    }
    expected.elements.push_back(std::bit_cast<uint32_t>(tree_sum(outer)));
  }
  const auto function = parse_function(
      "func @f(%x: f32[5, 3, 70]) -> f32[3] {\n  %y = reduce_sum %x {axes = [0, 2]}\n"
      "  return %y\n}\n");
  EXPECT_EQ(mistake_anywhere(*function, {x}, expected), "");
}

}  // namespace
}  // namespace castor::test
