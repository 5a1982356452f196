// SPDX-License-Identifier: Apache-2.0
// Quotients by columns: which nests have loops over rows within those over columns, and of how many
// rows.
#include <gtest/gtest.h>

#include <optional>

#include "ir/rewrite/canonicalize.hpp"
#include "ir/text/text.hpp"
#include "jit/plan/access_pattern.hpp"

namespace castor::jit {
namespace {

constexpr std::string_view by_columns =
    "func @f(%x: f32[?n, ?c], %s: f32[?c]) -> i8[?n, ?c] {\n"
    "  %y = quantize_linear %x, %s : i8\n  return %y\n}\n";
constexpr std::string_view by_rows =
    "func @f(%x: f32[?n, ?c], %s: f32[?n]) -> i8[?n, ?c] {\n"
    "  %y = quantize_linear %x, %s {axis = 0} : i8\n  return %y\n}\n";
constexpr std::string_view encoded =
    "func @f(%x: f32[?n, ?c], %s: f32[?c]) -> f8e4m3[?n, ?c] {\n"
    "  %q = div %x, %s\n  %y = convert %q : f8e4m3\n  return %y\n}\n";
constexpr std::string_view whole_quotient =
    "func @f(%x: f32[?n, ?c], %s: f32[?c]) -> f32[?n, ?c] {\n"
    "  %y = div %x, %s\n  return %y\n}\n";

Nest nest_of(std::string_view text, const Target& target) {
  const FunctionPtr function = canonicalize(parse_function(std::string(text)).value());
  return plan_nests(*function, target).front();
}

struct Row {
  const char* what;
  std::string_view text;
  Dims extents;
  std::optional<Dims> split;  ///< innermost first; nothing: rows are done one by one
};

const Row rows[] = {
    {"as many rows as are near", by_columns, {64, 256}, Dims{256, 64}},
    {"a divisor of the rows", by_columns, {150, 256}, Dims{256, 50, 3}},
    {"what is small is encoded too", encoded, {32, 80}, Dims{80, 32}},
    {"tensors beyond L2", by_columns, {4096, 1024}, Dims{1024, 8, 512}},
    {"tensors beyond all caches", by_columns, {1 << 17, 1024}, std::nullopt},
    {"few rows", by_columns, {7, 256}, std::nullopt},
    {"a prime number of rows", by_columns, {67, 256}, std::nullopt},
    {"few columns", by_columns, {64, 63}, std::nullopt},
    {"divisors of rows", by_rows, {64, 256}, std::nullopt},
    {"quotients that are not rounded", whole_quotient, {64, 256}, std::nullopt},
};

TEST(Columns, AreFirstForQuotientsThatAreRounded) {
  const Target target{Tier::avx512};
  for (const Row& row : rows) {
    const Nest nest = nest_of(row.text, target);
    const bool is_of_rows = row.text == by_rows;
    const Dims strides = dense_strides(row.extents);
    const IterationSpace space = nest_space(
        nest, row.extents,
        std::vector<Dims>{strides, is_of_rows ? Dims{1, 0} : Dims{0, 1}, strides}, target);
    EXPECT_EQ(space.form.has(Access::column), row.split.has_value()) << row.what;
    EXPECT_EQ(space.extents, row.split.value_or(space.extents)) << row.what;
  }
}

TEST(Columns, AreNotFirstWithoutMasks) {
  const Target target{Tier::avx2};
  const IterationSpace space = nest_space(nest_of(by_columns, target), {64, 256},
                                          std::vector<Dims>{{256, 1}, {0, 1}, {256, 1}}, target);
  EXPECT_FALSE(space.form.has(Access::column));
}

}  // namespace
}  // namespace castor::jit
