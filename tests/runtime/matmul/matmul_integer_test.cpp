// SPDX-License-Identifier: Apache-2.0
// matmul_integer by the interpreter and by machine code on every tier, against the formula: every
// form of operands and zero points, batches, sums that wrap around, offsets and strides in memory.
#include "tests/support/convolution_cases.hpp"
#include "tests/support/long_form.hpp"
#include "tests/support/matmul_cases.hpp"
#include "tests/support/on_every_engine.hpp"
#include "tests/support/placed_tensors.hpp"

namespace castor::test {
namespace {

using enum ElementType;

constexpr std::array byte_types = {u8, i8};

class Matmul : public testing::Test {
 protected:
  Placing draw_placing() { return static_cast<Placing>(random_() % placings); }
  bool draw_bit() { return random_() % 2 == 0; }
  MatmulForm draw_form() { return {draw_bit(), draw_bit(), draw_bit()}; }

  /// Compares the interpreter, and machine code on every tier with tensors anywhere, but b where
  /// that is said.
  std::string mistake_of(const MatmulCase& row, const MatmulForm& form,
                         std::optional<Placing> of_b = {}) {
    const FunctionPtr function = function_of(row, form);
    if (!function) return "no function";
    const std::vector<Patterns> parameters = parameters_of(row, form);
    const Patterns expected = direct_matmul(row);
    std::string mistake = first_difference(expected, interpreted(*function, parameters));
    if (!mistake.empty()) return "interpreter: " + mistake + "\n" + print(*function);
    std::vector<Placed> operands;
    for (const Patterns& tensor : parameters) operands.push_back({tensor, draw_placing()});
    if (of_b) operands[1].placing = *of_b;
    mistake = mistake_on_tiers(function, operands, {{expected, draw_placing()}});
    if (mistake.empty()) return mistake;
    for (const Placed& operand : operands) mistake += " " + to_string(operand.tensor.shape);
    return mistake + "\n" + print(*function);
  }

  MatmulCase drawn(const Dims& a, const Dims& b) {
    const ElementType a_type = byte_types[draw_bit()];
    const ElementType b_type = byte_types[draw_bit()];
    return {.a = random_bytes(random_, a_type, a), .b = random_bytes(random_, b_type, b)};
  }

  /// The product with every pair of signs, in every form.
  void check_all_forms(const Dims& a, const Dims& b, const std::optional<Dims>& a_zero,
                       const std::optional<Dims>& b_zero) {
    for (int bits = 0; bits < 32; ++bits) {
      MatmulCase row = {.a = random_bytes(random_, byte_types[bits & 1], a),
                        .b = random_bytes(random_, byte_types[bits >> 1 & 1], b)};
      if (a_zero) row.a_zero_point = random_bytes(random_, row.a.type, *a_zero);
      if (b_zero) row.b_zero_point = random_bytes(random_, row.b.type, *b_zero);
      const MatmulForm form = {(bits & 4) != 0, (bits & 8) != 0, (bits & 16) != 0};
      ASSERT_EQ(mistake_of(row, form), "");
    }
  }

  std::mt19937_64 random_{7};
};

TEST_F(Matmul, RandomProducts) {
  const int count = long_form() ? 5000 : 500;
  for (int i = 0; i < count; ++i) {
    ASSERT_EQ(mistake_of(random_matmul(random_), draw_form()), "") << i;
  }
}

/// Every pair of forms of zero points, where b is one matrix and where it has batches.
TEST_F(Matmul, ZeroPointsOfEveryForm) {
  const std::vector<std::optional<Dims>> of_a = {
      std::nullopt, Dims{}, Dims{1}, Dims{5}, Dims{2, 5, 1}, Dims{1, 5, 1}, Dims{2, 1, 1}};
  const std::vector<std::optional<Dims>> of_b = {std::nullopt, Dims{}, Dims{1}, Dims{18}};
  for (const Dims& b : {Dims{9, 18}, Dims{1, 9, 18}, Dims{2, 9, 18}}) {
    std::vector<std::optional<Dims>> all = of_b;
    if (b.rank() == 3) all.insert(all.end(), {Dims{b[0], 1, 18}, Dims{1, 1, 18}, Dims{b[0], 1, 1}});
    for (const std::optional<Dims>& a_zero : of_a) {
      for (const std::optional<Dims>& b_zero : all) {
        MatmulCase row = drawn({2, 5, 9}, b);
        if (a_zero) row.a_zero_point = random_bytes(random_, row.a.type, *a_zero);
        if (b_zero) row.b_zero_point = random_bytes(random_, row.b.type, *b_zero);
        ASSERT_EQ(mistake_of(row, draw_form()), "");
      }
    }
  }
}

/// Batches of a alone, of b alone and of both, in every order along three axes.
TEST_F(Matmul, BatchesInEveryOrder) {
  for (int order = 0; order < 64; ++order) {
    Dims a;
    Dims b;
    for (int axis = 0; axis < 3; ++axis) {
      const int kind = order >> 2 * axis & 3;
      a.push_back(kind & 1 ? axis + 2 : 1);
      b.push_back(kind & 2 ? axis + 2 : 1);
    }
    Dims row_zeros = a;
    for (const int64_t extent : {3, 1}) row_zeros.push_back(extent);
    for (const int64_t extent : {3, 10}) a.push_back(extent);
    for (const int64_t extent : {10, 7}) b.push_back(extent);
    MatmulCase row = drawn(a, b);
    if (draw_bit()) row.a_zero_point = random_bytes(random_, row.a.type, row_zeros);
    ASSERT_EQ(mistake_of(row, draw_form()), "") << order;
  }
}

/// Few rows and columns at each remainder of a vector, with every pair of signs.
TEST_F(Matmul, FewRowsAndColumns) {
  for (const int64_t rows : {1, 2, 3, 8, 17}) {
    for (const int64_t columns : {1, 2, 15, 16, 31, 33, 65, 130}) {
      for (const int64_t depth : {1, 3, 4, 5, 64, 67}) {
        MatmulCase row = drawn({rows, depth}, {depth, columns});
        if (draw_bit()) row.a_zero_point = random_bytes(random_, row.a.type, {});
        if (draw_bit()) row.b_zero_point = random_bytes(random_, row.b.type, {columns});
        ASSERT_EQ(mistake_of(row, draw_form()), "") << rows << ' ' << columns << ' ' << depth;
      }
    }
  }
}

/// By a b that is stored as [N, K], which no kernel transposes: tails of K, of rows and of columns.
TEST_F(Matmul, RowsByATransposedB) {
  for (const int64_t rows : {1, 2, 3, 5, 8, 34}) {
    for (const int64_t columns : {3, 4, 5, 8, 23}) {
      for (const int64_t depth : {15, 16, 33, 63, 64, 67, 128, 200}) {
        MatmulCase row = drawn({rows, depth}, {depth, columns});
        if (draw_bit()) row.a_zero_point = random_bytes(random_, row.a.type, {});
        if (draw_bit()) {
          const Dims extents = draw_bit() ? Dims{} : Dims{columns};
          row.b_zero_point = random_bytes(random_, row.b.type, extents);
        }
        ASSERT_EQ(mistake_of(row, {.unknown_extents = draw_bit()}, Placing::exchanged), "")
            << rows << ' ' << columns << ' ' << depth;
      }
    }
  }
}

/// Each matrix of a batch by a b of its own that is stored as [N, K]: batches of both, of one
/// alone, and with a zero point of each matrix, which copies b.
TEST_F(Matmul, BatchesByATransposedB) {
  const std::pair<Dims, Dims> batches[] = {{{3}, {3}},    {{2, 3}, {2, 3}}, {{2, 3}, {3}},
                                           {{3}, {2, 3}}, {{1}, {4}},       {{}, {4}},
                                           {{4}, {1}}};
  for (const auto& [of_a, of_b] : batches) {
    for (const auto& [rows, depth, columns] :
         {std::array<int64_t, 3>{1, 64, 9}, {4, 67, 4}, {7, 130, 33}, {2, 9, 5}, {3, 64, 3}}) {
      Dims a = of_a;
      Dims b = of_b;
      for (const int64_t extent : {rows, depth}) a.push_back(extent);
      for (const int64_t extent : {depth, columns}) b.push_back(extent);
      MatmulCase row = drawn(a, b);
      if (draw_bit()) row.a_zero_point = random_bytes(random_, row.a.type, {});
      if (draw_bit()) {
        const bool by_matrix = of_b.rank() == 1 && draw_bit();
        const Dims extents = by_matrix ? Dims{of_b[0], 1, 1} : Dims{};
        row.b_zero_point = random_bytes(random_, row.b.type, extents);
      }
      ASSERT_EQ(mistake_of(row, {.unknown_extents = draw_bit()}, Placing::exchanged), "");
    }
  }
  ASSERT_EQ(mistake_of(drawn({64}, {4, 64, 18}), {}, Placing::exchanged), "") << "a vector";
  ASSERT_EQ(mistake_of(drawn({2, 255, 64}, {2, 64, 5}), {}, Placing::exchanged), "");
}

/// Few rows by a constant that L2 does not hold, which some kernels take as it is.
TEST_F(Matmul, FewRowsByALargeConstant) {
  constexpr MatmulForm form = {.constant_b = true};
  for (const int64_t rows : {1, 2, 7, 33}) {
    for (const ElementType b_type : byte_types) {
      MatmulCase row = drawn({rows, 771}, {771, 1030});
      row.b = random_bytes(random_, b_type, {771, 1030});
      if (draw_bit()) row.a_zero_point = random_bytes(random_, row.a.type, {});
      if (draw_bit()) row.b_zero_point = random_bytes(random_, row.b.type, {1030});
      ASSERT_EQ(mistake_of(row, form), "") << rows << " rows, b " << name_of(b_type);
    }
  }
}

/// Without rows, columns or depth, and with one of each.
TEST_F(Matmul, EmptyAndSingle) {
  for (const int64_t rows : {0, 1, 3}) {
    for (const int64_t columns : {0, 1, 3}) {
      for (const int64_t depth : {0, 1, 3}) {
        const Dims a = {rows, depth};
        const Dims b = {depth, columns};
        check_all_forms(a, b, std::nullopt, std::nullopt);
        check_all_forms(a, b, Dims{rows}, Dims{});
        check_all_forms(a, b, Dims{rows, 1}, Dims{1, columns});
        if (HasFatalFailure()) return;
      }
    }
  }
  check_all_forms({0, 3, 5}, {5, 4}, Dims{0, 3, 1}, Dims{4});
  check_all_forms({3, 5}, {0, 5, 4}, Dims{3}, Dims{0, 1, 4});
  check_all_forms({2, 1, 3, 0}, {1, 2, 0, 4}, Dims{2, 1, 3, 1}, Dims{1, 2, 1, 4});
}

struct VectorRow {
  Dims a;
  Dims b;
  std::optional<Dims> a_zero_point;
  std::optional<Dims> b_zero_point;
};

TEST_F(Matmul, Vectors) {
  const VectorRow rows[] = {
      {{9}, {9}, std::nullopt, std::nullopt},
      {{9}, {9}, Dims{}, Dims{1}},
      {{0}, {0}, Dims{1}, Dims{}},
      {{1}, {1}, Dims{1}, Dims{1}},
      {{9}, {9, 18}, Dims{1}, Dims{18}},
      {{9}, {9, 18}, Dims{}, Dims{1, 18}},
      {{9}, {4, 9, 18}, Dims{}, Dims{4, 1, 18}},
      {{9}, {2, 4, 9, 18}, std::nullopt, Dims{18}},
      {{5, 9}, {9}, Dims{5}, Dims{1}},
      {{5, 9}, {9}, Dims{5, 1}, std::nullopt},
      {{4, 5, 9}, {9}, Dims{4, 5, 1}, Dims{}},
      {{2, 4, 5, 9}, {9}, Dims{5}, Dims{1}},
  };
  for (const VectorRow& row : rows) {
    check_all_forms(row.a, row.b, row.a_zero_point, row.b_zero_point);
    if (HasFatalFailure()) return;
  }
}

struct Extremes {
  ElementType type;
  uint64_t value;
  uint64_t zero_point;
};

/// Differences of -255 to 255, along a K whose sums exceed 32 bits.
TEST_F(Matmul, SumsWrapAround) {
  constexpr Extremes extremes[] = {
      {u8, 255, 0}, {u8, 0, 255}, {i8, 0x7f, 0x80}, {i8, 0x80, 0x7f}, {i8, 0x80, 0}};
  const auto filled = [](const Extremes& row, const Dims& shape) {
    const auto count = static_cast<size_t>(element_count(shape).value());
    return Patterns{row.type, shape, std::vector<uint64_t>(count, row.value)};
  };
  for (const int64_t depth : {64, 33'025, 70'001}) {
    for (const Extremes& of_a : extremes) {
      for (const Extremes& of_b : extremes) {
        const MatmulCase row = {.a = filled(of_a, {2, depth}),
                                .b = filled(of_b, {depth, 3}),
                                .a_zero_point = Patterns{of_a.type, {}, {of_a.zero_point}},
                                .b_zero_point = Patterns{of_b.type, {}, {of_b.zero_point}}};
        const MatmulForm form = {.constant_b = depth < 70'000};
        ASSERT_EQ(mistake_of(row, form), "") << depth;
      }
    }
  }
}

/// Rows of a are added up where no shape says how long they are.
TEST_F(Matmul, DepthsWithoutAName) {
  struct Row {
    const char* text;
    Dims a;
    Dims b;
    Dims a_zero_point;
    Dims b_zero_point;
  };
  const Row rows[] = {
      {"func @f(%p: u8[?, ?], %q: i8[?, ?], %z: u8[?, 1], %w: i8[?]) -> (i32[?, ?]) {\n"
       "  %a = reshape %p : [4, ?]\n  %b = reshape %q : [?, 5]\n",
       {4, 7},
       {7, 5},
       {4, 1},
       {5}},
      {"func @f(%p: u8[?, ?], %q: i8[?, ?], %z: u8[?], %w: i8[?]) -> (i32[?, ?]) {\n"
       "  %a = reshape %p : [33, ?]\n  %b = reshape %q : [?, 17]\n",
       {33, 130},
       {130, 17},
       {33},
       {17}},
      {"func @f(%p: u8[?], %q: i8[?, ?, ?], %z: u8[], %w: i8[?, 1, 6]) -> (i32[?, ?]) {\n"
       "  %a = reshape %p : [?]\n  %b = reshape %q : [3, ?, 6]\n",
       {9},
       {3, 9, 6},
       {},
       {3, 1, 6}},
      {"func @f(%p: u8[?], %q: i8[?, ?, ?], %z: u8[1], %w: i8[?, 1, 6]) -> (i32[?, ?]) {\n"
       "  %a = reshape %p : [?]\n  %b = reshape %q : [3, ?, 6]\n",
       {9},
       {3, 9, 6},
       {1},
       {3, 1, 6}},
  };
  for (const Row& row : rows) {
    const auto function = parse_function(std::string(row.text) +
                                         "  %y = matmul_integer %a, %b, %z, %w\n  return %y\n}\n");
    ASSERT_TRUE(function) << function.error().to_string();
    MatmulCase product = {.a = random_bytes(random_, u8, row.a),
                          .b = random_bytes(random_, i8, row.b)};
    product.a_zero_point = random_bytes(random_, u8, row.a_zero_point);
    product.b_zero_point = random_bytes(random_, i8, row.b_zero_point);
    const Patterns expected = direct_matmul(product);
    const std::vector<Patterns> parameters = parameters_of(product);
    EXPECT_EQ(first_difference(expected, interpreted(**function, parameters)), "");
    std::vector<Placed> operands;
    for (const Patterns& tensor : parameters) operands.push_back({tensor, draw_placing()});
    EXPECT_EQ(mistake_on_tiers(*function, operands, {{expected, draw_placing()}}), "") << row.text;
    const Result<Kernel> kernel = tier_runtimes().front().second.compile(*function);
    ASSERT_TRUE(kernel) << kernel.error().to_string();
    EXPECT_EQ(kernel->engine(), Engine::jit) << kernel->engine_reason();
  }
}

}  // namespace
}  // namespace castor::test
