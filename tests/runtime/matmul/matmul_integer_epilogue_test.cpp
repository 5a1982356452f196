// SPDX-License-Identifier: Apache-2.0
// Elementwise chains after matrix products: their bits are those of the interpreter, on every tier,
// and they are epilogues where scales are by row, by column, or of the result's shape.
#include <fmt/format.h>

#include "tests/support/epilogue_cases.hpp"

namespace castor::test {
namespace {

/// One product; shapes are as text.
struct Product {
  const char* name;
  Dims a;
  Dims b;
  Dims a_zero_point;
  Dims b_zero_point;
  Dims y;
};

const Product products[] = {
    {"rows", {21, 70}, {70, 50}, {21}, {}, {21, 50}},
    {"columns", {21, 70}, {70, 50}, {}, {50}, {21, 50}},
    {"both", {21, 70}, {70, 50}, {21, 1}, {1, 50}, {21, 50}},
    {"one_row", {1, 70}, {70, 130}, {}, {}, {1, 130}},
    {"one_column", {40, 70}, {70, 1}, {40, 1}, {}, {40, 1}},
    {"batches_of_a", {3, 9, 33}, {33, 40}, {3, 9, 1}, {}, {3, 9, 40}},
    {"batches_of_b", {9, 33}, {3, 33, 40}, {9}, {}, {3, 9, 40}},
    {"batches", {3, 9, 33}, {3, 33, 40}, {}, {40}, {3, 9, 40}},
    {"batches_with_own_zero_points", {3, 9, 33}, {3, 33, 40}, {}, {3, 1, 40}, {3, 9, 40}},
    {"few_products", {5, 3}, {3, 16}, {5}, {}, {5, 16}},
};

/// What follows %y. Operands: r by row, c by column, f of y's shape, s one for all.
struct Chain {
  const char* name;
  const char* operands;
  const char* body;
  const char* result;
};

constexpr Chain chains[] = {
    {"scaled", "rc", "%f = convert %y : f32\n  %g = mul %f, %r\n  %q = mul %g, %c", "f32"},
    {"requantized", "rcs",
     "%f = convert %y : f32\n  %g = mul %f, %r\n  %h = add %g, %c\n  %i = mul %h, %s\n"
     "  %q = convert %i {overflow = saturate, rounding = nearest_even} : u8",
     "u8"},
    {"residual", "cf",
     "%f = convert %y : f32\n  %g = mul %f, %c\n  %h = add %g, %f0\n  %i = relu %h\n"
     "  %q = convert %i : f16",
     "f16"},
    {"wide", "rf", "%f = convert %y : f64\n  %g = convert %r : f64\n  %q = mul %f, %g", "f64"},
};

struct Build {
  bool is_open = false;
  bool constant_b = false;
};

std::string shape_text(const Dims& shape, bool is_open) {
  std::string text;
  for (const int64_t extent : shape) {
    text += (text.empty() ? "" : ", ") + (is_open ? std::string("?") : std::to_string(extent));
  }
  return "[" + text + "]";
}

std::string constant_text(const Dims& shape) {
  std::string text;
  for (int64_t i = 0; i < element_count(shape).value(); ++i) {
    text += fmt::format("{}{}", i > 0 ? ", " : "", i * 37 % 256 - 128);
  }
  return fmt::format("  %b = constant [{}] : i8{}\n", text, to_string(shape));
}

Dims operand_shape(char kind, const Dims& y) {
  const int rank = y.rank();
  switch (kind) {
    case 'r': return {y[rank - 2], 1};
    case 'c': return {y[rank - 1]};
    case 'f': return y;
    default: return {};
  }
}

FunctionCase case_of(const Product& product, const Chain& chain, const Build& build) {
  FunctionCase made;
  std::string parameters;
  const auto add = [&](const std::string& name, const char* type, const Dims& shape) {
    parameters += fmt::format("{}%{}: {}{}", parameters.empty() ? "" : ", ", name, type,
                              shape_text(shape, build.is_open));
    made.inputs.push_back({shape});
  };
  add("a", "u8", product.a);
  if (!build.constant_b) add("b", "i8", product.b);
  add("z", "u8", product.a_zero_point);
  add("w", "i8", product.b_zero_point);
  for (const char* kind = chain.operands; *kind != '\0'; ++kind) {
    add(*kind == 'f' ? "f0" : std::string(1, *kind), "f32", operand_shape(*kind, product.y));
  }
  made.text = fmt::format(
      "func @f({}) -> ({}{}) {{\n{}  %y = matmul_integer %a, %b, %z, %w\n  {}\n  return %q\n}}\n",
      parameters, chain.result, shape_text(product.y, build.is_open),
      build.constant_b ? constant_text(product.b) : "", chain.body);
  return made;
}

class MatmulEpilogues : public testing::TestWithParam<Product> {};

TEST_P(MatmulEpilogues, AgreeWithTheInterpreter) {
  uint64_t seed = 1;
  for (const Chain& chain : chains) {
    for (const Build build : {Build{}, {.is_open = true}, {.constant_b = true}, {true, true}}) {
      check_function(case_of(GetParam(), chain, build), ++seed);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

/// Where batches of a are groups or rows, what repeats along them is no operand by row or column:
/// scales by row that all batches share, corrections by each batch's own zero points of b.
bool is_taken(const Product& product, const Chain& chain) {
  if (product.a.rank() < 3) return true;
  const bool has_row_scales = std::string_view(chain.operands).find('r') != std::string_view::npos;
  return !has_row_scales && product.b_zero_point.rank() < 3;
}

TEST_P(MatmulEpilogues, AreFused) {
  for (const Chain& chain : chains) {
    for (const Build build : {Build{}, {.constant_b = true}}) {
      const FunctionCase row = case_of(GetParam(), chain, build);
      const Result<FunctionPtr> function = parse_function(row.text);
      ASSERT_TRUE(function) << function.error().to_string();
      std::vector<Dims> shapes;
      for (const Layout& input : row.inputs) shapes.push_back(input.shape);
      const auto bound = tier_runtimes().front().second.compile(*function)->bind(shapes);
      ASSERT_TRUE(bound) << bound.error().to_string();
      EXPECT_EQ(is_fused(*bound), is_taken(GetParam(), chain)) << GetParam().name << chain.name;
    }
  }
}

void PrintTo(const Product& product, std::ostream* out) { *out << product.name; }

INSTANTIATE_TEST_SUITE_P(Products, MatmulEpilogues, testing::ValuesIn(products),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace castor::test
