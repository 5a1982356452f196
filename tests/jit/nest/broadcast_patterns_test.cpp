// SPDX-License-Identifier: Apache-2.0
// Every way in which operands repeat elements: machine code against the interpreter, on every tier,
// between guard pages, with sizes on both sides of vectors, chunks, periods and rows.
#include <fmt/format.h>

#include "jit/core/core_tuning.hpp"
#include "jit/emit/chunk_plan.hpp"
#include "tests/support/function_case.hpp"

namespace castor {
namespace {

using test::check_function;
using test::FunctionCase;
using test::Layout;

/// "func @f(%a: f32[?, ?], ...)" of that many operands with unknown extents of those ranks.
std::string function_of(const std::vector<std::pair<ElementType, int>>& parameters,
                        const std::string& result, const std::string& body) {
  std::string text = "func @f(";
  char name = 'a';
  for (const auto& [element, rank] : parameters) {
    std::string shape;
    for (int i = 0; i < rank; ++i) shape += i == 0 ? "?" : ", ?";
    text += fmt::format("{}%{}: {}[{}]", name == 'a' ? "" : ", ", name, name_of(element), shape);
    ++name;
  }
  return text + fmt::format(") -> {} {{\n{}}}\n", result, body);
}

constexpr const char* add_two = "  %y = add %a, %b\n  return %y\n";

struct Pattern {
  const char* name;
  Dims a;
  Dims b;
};

const Pattern patterns[] = {
    {"same shape", {37, 5}, {37, 5}},
    {"scalar", {13, 17}, {}},
    {"scalar first", {}, {13, 17}},
    {"row", {21, 150}, {150}},
    {"column", {21, 150}, {21, 1}},
    {"column, short rows", {40, 9}, {40, 1}},
    {"three to a row", {257, 3}, {3}},
    {"three to a row, few rows", {5, 3}, {3}},
    {"outer product of short rows", {131, 1}, {1, 3}},
    {"outer product", {33, 1}, {1, 67}},
    {"last axis of one", {17, 19, 4}, {17, 19, 1}},
    {"middle axis", {7, 1, 45}, {7, 6, 45}},
    {"middle axis, short", {7, 1, 5}, {7, 60, 5}},
    {"period of two axes", {80, 3, 2}, {3, 1}},
    {"long period", {40, 120}, {120}},
    {"both sides", {1, 30, 1, 7}, {6, 1, 50, 1}},
    {"six axes", {2, 1, 3, 1, 2, 5}, {1, 4, 3, 2, 1, 5}},
    {"nothing", {0, 3}, {3}},
    {"one element", {1, 1}, {1}},
};

const ElementType element_types[] = {
    ElementType::f32,    ElementType::f16,  ElementType::u8,     ElementType::i64,
    ElementType::i4,     ElementType::u1,   ElementType::u3,     ElementType::f8e4m3,
    ElementType::f64,    ElementType::bf16, ElementType::f4e2m1, ElementType::u6_split,
    ElementType::f6e2m3,
};

TEST(BroadcastPatterns, EveryPatternOfEveryWidth) {
  for (const Pattern& pattern : patterns) {
    const int rank = std::max(pattern.a.rank(), pattern.b.rank());
    for (ElementType element : element_types) {
      SCOPED_TRACE(fmt::format("{}, {}", pattern.name, name_of(element)));
      std::string result;
      for (int i = 0; i < rank; ++i) result += i == 0 ? "?" : ", ?";
      check_function({function_of({{element, pattern.a.rank()}, {element, pattern.b.rank()}},
                                  fmt::format("{}[{}]", name_of(element), result), add_two),
                      {Layout{pattern.a}, Layout{pattern.b}}});
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

/// Lanes narrower than the widest: sources of several widths in one program, repeated and periodic.
TEST(BroadcastPatterns, MixedWidths) {
  const Pattern mixed[] = {
      {"three to a row", {257, 3}, {3}},   {"repeated", {131, 1}, {1, 3}},
      {"repeated, wide", {90, 1}, {1, 7}}, {"column", {21, 150}, {21, 1}},
      {"row", {21, 150}, {150}},           {"last axis of one", {17, 19, 4}, {17, 19, 1}},
  };
  const std::pair<ElementType, ElementType> pairs[] = {
      {ElementType::u8, ElementType::f32}, {ElementType::f32, ElementType::u8},
      {ElementType::i8, ElementType::f64}, {ElementType::f16, ElementType::i64},
      {ElementType::u4, ElementType::f16}, {ElementType::f64, ElementType::u2},
      {ElementType::i16, ElementType::i8},
  };
  for (const Pattern& pattern : mixed) {
    for (const auto& [a, b] : pairs) {
      for (ElementType to : {ElementType::f32, ElementType::i8, ElementType::u4}) {
        SCOPED_TRACE(
            fmt::format("{}, {} and {} to {}", pattern.name, name_of(a), name_of(b), name_of(to)));
        const int rank = std::max(pattern.a.rank(), pattern.b.rank());
        const std::string shape = rank == 2 ? "?, ?" : "?, ?, ?";
        const std::string body = fmt::format(
            "  %u = convert %a : f32\n  %v = convert %b : f32\n  %s = sub %u, %v\n"
            "  %y = convert %s {{overflow = saturate}} : {}\n  return %y\n",
            name_of(to));
        check_function({function_of({{a, pattern.a.rank()}, {b, pattern.b.rank()}},
                                    fmt::format("{}[{}]", name_of(to), shape), body),
                        {Layout{pattern.a}, Layout{pattern.b}}});
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

/// Rows around the widths of vectors, chunks and iterations; tails in periods.
TEST(BroadcastPatterns, SizesAroundVectors) {
  const std::string rows =
      function_of({{ElementType::f32, 2}, {ElementType::f32, 1}}, "f32[?, ?]", add_two);
  const std::string columns =
      function_of({{ElementType::f32, 2}, {ElementType::f32, 2}}, "f32[?, ?]", add_two);
  for (int64_t row : {1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 100, 129, 255, 257, 600}) {
    for (int64_t count : {1, 2, 9, 50, 131}) {
      SCOPED_TRACE(fmt::format("{} rows of {}", count, row));
      check_function({rows, {Layout{{count, row}}, Layout{{row}}}});
      check_function({columns, {Layout{{count, row}}, Layout{{count, 1}}}});
      check_function({columns, {Layout{{count, 1}}, Layout{{1, row}}}});
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

/// Views: rows apart, outputs apart, sub-byte operands that begin inside a byte.
TEST(BroadcastPatterns, Views) {
  const auto text = [](ElementType element) {
    return function_of({{element, 2}, {element, 2}}, fmt::format("{}[?, ?]", name_of(element)),
                       add_two);
  };
  for (ElementType element : {ElementType::f32, ElementType::u8, ElementType::u4, ElementType::u1,
                              ElementType::i2, ElementType::u3_split}) {
    SCOPED_TRACE(name_of(element));
    const FunctionCase cases[] = {
        {text(element), {Layout{{50, 3}, {4, 1}}, Layout{{1, 3}}}},
        {text(element), {Layout{{50, 3}}, Layout{{1, 3}, {9, 2}}}},
        {text(element), {Layout{{50, 3}}, Layout{{1, 3}}}, {Layout{{50, 3}, {5, 1}}}},
        {text(element),
         {Layout{{50, 3}, {3, 1}, 3}, Layout{{1, 3}, {3, 1}, 1}},
         {Layout{{50, 3}, {3, 1}, 5}}},
        {text(element), {Layout{{20, 64}, {64, 1}, 2}, Layout{{20, 1}, {3, 1}, 1}}},
        {text(element),
         {Layout{{20, 64}}, Layout{{20, 1}, {7, 1}, 3}},
         {Layout{{20, 64}, {64, 1}, 1}}},
        {text(element), {Layout{{20, 1}, {5, 1}}, Layout{{1, 5}, {1, 3}}}},
    };
    for (const FunctionCase& row : cases) {
      check_function(row);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

/// Rows of codes with parameters of their own: by a table for each row where the target has one.
TEST(BroadcastPatterns, RowTables) {
  const ElementType codes[] = {
      ElementType::u4,           ElementType::i4, ElementType::nf4, ElementType::f4e2m1,
      ElementType::u2,           ElementType::i2, ElementType::u1,  ElementType::u1_lsb_first,
      ElementType::u2_msb_first, ElementType::u3};
  for (ElementType from : codes) {
    for (ElementType to : {ElementType::f16, ElementType::bf16, ElementType::f32, ElementType::i16,
                           ElementType::u8}) {
      SCOPED_TRACE(fmt::format("{} to {}", name_of(from), name_of(to)));
      const std::string body = fmt::format(
          "  %p = convert %a : f32\n  %q = convert %c : f32\n  %r = sub %p, %q\n"
          "  %s = convert %b : f32\n  %t = mul %r, %s\n  %y = convert %t : {}\n  return %y\n",
          name_of(to));
      const std::string text = function_of({{from, 2}, {ElementType::f16, 2}, {from, 2}},
                                           fmt::format("{}[?, ?]", name_of(to)), body);
      for (int64_t row : {1, 8, 16, 31, 64, 72, 200}) {
        check_function({text, {Layout{{9, row}}, Layout{{9, 1}}, Layout{{9, 1}}}});
        check_function({text, {Layout{{9, row}}, Layout{{1, 1}}, Layout{{1, 1}}}});
        if (testing::Test::HasFatalFailure()) return;
      }
      check_function({text,
                      {Layout{{9, 64}, {72, 1}, 3}, Layout{{9, 1}}, Layout{{9, 1}, {1, 1}, 1}},
                      {Layout{{9, 64}, {80, 1}, 1}}});
    }
  }
}

/// Short rows of codes: by a table for each of the blocks that one loop goes through.
TEST(BroadcastPatterns, BlockTables) {
  const ElementType codes[] = {ElementType::u4,          ElementType::i4, ElementType::nf4,
                               ElementType::f4e2m1,      ElementType::u2, ElementType::u1,
                               ElementType::u2_msb_first};
  for (ElementType from : codes) {
    for (ElementType to : {ElementType::f16, ElementType::bf16, ElementType::f32, ElementType::i16,
                           ElementType::i32}) {
      SCOPED_TRACE(fmt::format("{} to {}", name_of(from), name_of(to)));
      const std::string body = fmt::format(
          "  %p = convert %a : f32\n  %q = convert %c : f32\n  %r = sub %p, %q\n"
          "  %s = convert %b : f32\n  %t = mul %r, %s\n  %y = convert %t : {}\n  return %y\n",
          name_of(to));
      const std::string text = function_of({{from, 2}, {ElementType::f16, 2}, {ElementType::i8, 2}},
                                           fmt::format("{}[?, ?]", name_of(to)), body);
      for (int64_t rows : {7, 8, 9, 12, 33}) {
        check_function({text, {Layout{{rows, 32}}, Layout{{rows, 1}}, Layout{{rows, 1}}}});
        check_function({text, {Layout{{rows, 32}}, Layout{{rows, 1}}, Layout{{1, 1}}}});
        if (testing::Test::HasFatalFailure()) return;
      }
      check_function({text, {Layout{{9, 16}}, Layout{{9, 1}}, Layout{{9, 1}}}});
      check_function({text,
                      {Layout{{9, 32}}, Layout{{9, 1}, {2, 1}}, Layout{{9, 1}, {1, 1}, 1}},
                      {Layout{{9, 32}, {40, 1}, 1}}});
    }
  }
}

/// Tiles of which every operand is copied, at the edge of a tensor: narrower than the others.
TEST(BroadcastPatterns, NarrowTilesOfCopies) {
  const std::string text =
      function_of({{ElementType::f32, 2}}, "f16[?, ?]", "  %y = convert %a : f16\n  return %y\n");
  for (int64_t columns : {255, 257, 300, 513}) {
    for (int64_t rows : {5, 63, 64}) {
      SCOPED_TRACE(fmt::format("{} rows of {}", rows, columns));
      check_function({text,
                      {Layout{{rows, columns}, {1, rows}}},
                      {Layout{{rows, columns}, {2 * columns, 2}}}});
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

/// Values in scratch, reshapes of views that no strides can say, several nests.
TEST(BroadcastPatterns, SeveralNests) {
  const FunctionCase cases[] = {
      {"func @f(%r: f32[7]) -> (f32[50, 7], f32[7, 3]) {\n  %a = sqrt %r\n  %b = div %a, %r\n"
       "  %c = sqrt %b\n  %d = div %r, %c\n  %y = broadcast %d : [50, 7]\n"
       "  %z = broadcast %d {mode = explicit, axes = [0]} : [7, 3]\n  return %y, %z\n}\n",
       {Layout{{7}}}},
      {"func @f(%x: f32[4, 6]) -> f32[24] {\n  %a = reshape %x : [24]\n  %y = neg %a\n"
       "  return %y\n}\n",
       {Layout{{4, 6}, {10, 1}}}},
      {"func @f(%x: u4[4, 6]) -> (f32[3, 8], u4[24]) {\n  %a = reshape %x : [3, 8]\n"
       "  %y = convert %a : f32\n  %s = add %x, %x\n  %z = reshape %s : [24]\n"
       "  return %y, %z\n}\n",
       {Layout{{4, 6}, {1, 4}, 1}}},
      {"func @f(%r: f16[6]) -> (f16[50, 6], f16[2, 3]) attributes {excess_precision = allow} {\n"
       "  %a = sqrt %r\n  %b = div %a, %r\n  %c = sqrt %b\n  %d = div %r, %c\n"
       "  %x = broadcast %r : [50, 6]\n  %y = add %x, %d\n  %s = reshape %d : [2, 3]\n"
       "  %z = neg %s\n  return %y, %z\n}\n",
       {Layout{{6}}}},
      {"func @f(%x: f16[4, 6]) -> f16[24] attributes {excess_precision = allow} {\n"
       "  %a = add %x, %x\n  %b = mul %a, %x\n  %r = reshape %b : [24]\n  %y = mul %r, %r\n"
       "  return %y\n}\n",
       {Layout{{4, 6}}}},
      {"func @f(%x: nf4[?a, ?], %y: f8e5m2[?]) -> (f32[?, ?], f8e5m2[?, ?])\n"
       "    attributes {excess_precision = allow} {\n  %a = convert %x : f8e5m2\n"
       "  %b = less %a, %y\n  %c = convert %b : f8e5m2\n  %d = mod %c, %c\n"
       "  %z = prelu %d, %a\n  %w = convert %d : f32\n  return %w, %z\n}\n",
       {Layout{{3, 33}}, Layout{{33}}}},
  };
  for (const FunctionCase& row : cases) check_function(row);
}

/// A new shape with a known pattern compiles nothing. (Tensors of 1 MiB and more have streaming
/// code besides.)
TEST(BroadcastPatterns, FewKernelsForManyShapes) {
  struct Counted {
    const char* signature;
    const char* body;
    int ranks;  // N, C or H, W, C
    std::vector<Dims> (*shapes)(const Dims& extents);
  };
  const Counted counted[] = {
      {"%a: u8[?n, ?c], %b: f32[?c]", "  %f = convert %a : f32\n  %y = sub %f, %b\n", 2,
       [](const Dims& e) -> std::vector<Dims> {
         return {e, {e[1]}};
       }},
      {"%a: f32[?n, ?c], %b: f32[?n, 1]", "  %y = add %a, %b\n", 2,
       [](const Dims& e) -> std::vector<Dims> {
         return {e, {e[0], 1}};
       }},
      {"%a: f32[?n, 1], %b: f32[1, ?c]", "  %y = mul %a, %b\n", 2,
       [](const Dims& e) -> std::vector<Dims> {
         return {{e[0], 1}, {1, e[1]}};
       }},
      {"%a: f32[?h, ?w, ?c], %b: f32[?h, ?w, 1]", "  %y = mul %a, %b\n", 3,
       [](const Dims& e) -> std::vector<Dims> {
         return {e, {e[0], e[1], 1}};
       }},
      {"%a: f32[?n, ?c], %b: f32[]", "  %y = add %a, %b\n", 2,
       [](const Dims& e) -> std::vector<Dims> {
         return {e, {}};
       }},
  };
  uint64_t state = 1;
  const auto draw = [&](int64_t max) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return 2 + static_cast<int64_t>((state >> 33) % static_cast<uint64_t>(max - 1));
  };
  const bool prefetches = jit::choose_target({})->tuning().prefetch.output_bytes > 0;
  for (const Counted& row : counted) {
    const Runtime runtime = *Runtime::create();
    const Kernel kernel = *runtime.compile(
        fmt::format("func @f({}) -> f32[{}] {{\n{}  return %y\n}}\n", row.signature,
                    row.ranks == 2 ? "?n, ?c" : "?h, ?w, ?c", row.body));
    for (int i = 0; i < 1000; ++i) {
      Dims extents;
      for (int axis = 1; axis < row.ranks; ++axis)
        extents.push_back(draw(row.ranks == 2 ? 300 : 20));
      extents.push_back(draw(i % 2 == 0 ? 9 : 300));
      ASSERT_TRUE(kernel.bind(row.shapes(extents)).ok());
    }
    // Among them are periods of 3 and 4, and of one and of two chunks. A core that prefetches
    // has code of its own for tensors beyond L1.
    EXPECT_LE(runtime.statistics().codes, prefetches ? 9u : 6u) << row.signature;
  }
}

}  // namespace
}  // namespace castor
