// SPDX-License-Identifier: Apache-2.0
// Quantization by the range of a tensor or of its rows: the interpreter's bits on every tier, NaNs,
// infinities, ranges of 0 and empty tensors among the data.
#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "ir/numerics/scalar.hpp"
#include "tests/support/function_case.hpp"
#include "tests/support/on_every_engine.hpp"
#include "tests/support/texts.hpp"

namespace castor::test {
namespace {

std::string linear(std::string_view x, std::string_view attributes, std::string_view to,
                   std::string_view scale) {
  return fmt::format(
      "func @linear(%x: {0}[?n, ?m]) -> ({2}[?n, ?m], {0}{3}, {2}{3}) {{\n"
      "  %y, %s, %z = dynamic_quantize_linear %x{1} : {2}\n  return %y, %s, %z\n}}\n",
      x, attributes, to, scale);
}

std::string symmetric(std::string_view x, std::string_view attributes, std::string_view to,
                      std::string_view scale) {
  return fmt::format(
      "func @symmetric(%x: {0}[?n, ?m]) -> ({2}[?n, ?m], {0}{3}) {{\n"
      "  %y, %s = dynamic_quantize_symmetric %x{1} : {2}\n  return %y, %s\n}}\n",
      x, attributes, to, scale);
}

/// The function on numbers alone: most random tensors have a NaN.
std::string without_nans(const std::string& text, std::string_view x) {
  const size_t body = text.find("{\n") + 2;
  std::string changed = text;
  changed.replace(changed.find("%x", body), 2, "%c");
  changed.insert(body, fmt::format("  %nan = is_nan %x\n  %half = constant 0.5 : {}[]\n"
                                   "  %b = select %nan, %half, %x\n"
                                   "  %c = clamp %b {{lo = -250.0, hi = 1000.0}}\n",
                                   x));
  return changed;
}

TEST(DynamicQuantize, HasTheInterpretersBits) {
  const Layout layouts[] = {{{5, 133}}, {{3, 40}, {1, 3}}, {{1, 1}}, {{0, 3}}, {{70, 16}}};
  uint64_t seed = 1;
  for (const char* x : {"f32", "bf16", "f16", "f64"}) {
    for (const Layout& layout : layouts) {
      for (const std::string& text :
           {linear(x, "", "u8", "[]"), linear(x, " {axes = [-1]}", "u8", "[?, ?]"),
            linear(x, " {axes = [0]}", "u4", "[?, ?]"), linear(x, "", "i4", "[]"),
            linear(x, " {axes = [-1], scaling = reciprocal}", "i8", "[?, ?]"),
            symmetric(x, "", "i8", "[]"), symmetric(x, " {axes = [1]}", "i8", "[?, ?]"),
            symmetric(x, " {axes = [1], scaling = reciprocal}", "i8", "[?, ?]"),
            symmetric(x, " {axes = [1]}", "f8e4m3", "[?, ?]"),
            symmetric(x, " {axes = [1]}", "f4e2m1", "[?, ?]")}) {
        ASSERT_NO_FATAL_FAILURE(check_function({text, {layout}}, ++seed));
        ASSERT_NO_FATAL_FAILURE(check_function({without_nans(text, x), {layout}}, ++seed));
      }
    }
  }
}

/// A whole layer, quantized by its input's range: the product takes the zero point at run time.
TEST(DynamicQuantize, FeedsProducts) {
  check_function(
      {"func @layer(%x: f32[1, 16, 9, 9], %w: i8[24, 16, 3, 3], %ws: f32[24, 1, 1], "
       "%b: f32[24, 1, 1]) -> f32[1, 24, 7, 7] {\n"
       "  %q, %s, %z = dynamic_quantize_linear %x : u8\n  %y = conv_integer %q, %w, %z\n"
       "  %f = convert %y : f32\n  %t = mul %s, %ws\n  %g = mul %f, %t\n  %h = add %g, %b\n"
       "  %r = relu %h\n  return %r\n}\n",
       {{{1, 16, 9, 9}}, {{24, 16, 3, 3}}, {{24, 1, 1}}, {{24, 1, 1}}}});
  check_function(
      {"func @tokens(%x: f32[?n, 96], %w: i8[96, 40], %ws: f32[40]) -> f32[?n, 40] {\n"
       "  %q, %s = dynamic_quantize_symmetric %x {axes = [1]} : i8\n"
       "  %y = matmul_integer %q, %w\n  %f = convert %y : f32\n  %g = mul %f, %s\n"
       "  %h = mul %g, %ws\n  return %h\n}\n",
       {{{7, 96}}, {{96, 40}}, {{40}}}});
}

/// Rows of 40 with one number that is not 0, or none.
Patterns tokens(ElementType type, const std::vector<float>& numbers) {
  Patterns x{type, {static_cast<int64_t>(numbers.size()), 40}, {}};
  for (const float number : numbers) {
    const uint64_t bits = std::bit_cast<uint32_t>(number);
    x.elements.push_back(numerics::convert(bits, ElementType::f32, type, {}));
    x.elements.resize(x.elements.size() + 39);
  }
  return x;
}

/// Tokens of zeros, as padding has them, come back as zeros. So do zeros beside any number, however
/// small that is, and the number comes back about as it was.
TEST(DynamicQuantize, ZerosStayZeros) {
  const std::vector<float> numbers = {0, 8, 0.5f, 1e-3f, 1e-5f, 0, -3};
  for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
    for (const char* to : {"i8", "i4", "f8e4m3", "f8e5m2", "f8e4m3fnuz", "f4e2m1"}) {
      for (const char* attributes : {"axes = [1]", "axes = [1], scaling = reciprocal"}) {
        const std::string text = fmt::format(
            "func @tokens(%x: {}[7, 40]) -> f32[7, 40] {{\n"
            "  %y, %s = dynamic_quantize_symmetric %x {{{}}} : {}\n  %f = convert %y : f32\n"
            "  %t = convert %s : f32\n  %z = mul %f, %t\n  return %z\n}}\n",
            name_of(type), attributes, to);
        const Patterns x = tokens(type, numbers);
        const FunctionPtr function = parse_function(text).value();
        const Patterns found = interpreted(*function, {x});
        for (size_t i = 0; i < found.elements.size(); ++i) {
          const auto bits = static_cast<uint32_t>(found.elements[i]);
          const float wanted = i % 40 == 0 ? numbers[i / 40] : 0;
          // Small numbers have scales of few bits in f16, or 0.
          const bool is_coarse = type == ElementType::f16 && std::abs(wanted) < 0.1f;
          const float tolerance = is_coarse ? 1 : 0.1f;
          EXPECT_NEAR(std::bit_cast<float>(bits), wanted, tolerance * std::abs(wanted))
              << text << "element " << i;
        }
        EXPECT_EQ(mistake_anywhere(function, {x}, found), "") << text;
      }
    }
  }
}

TEST(DynamicQuantize, MistakesAreTyped) {
  const auto error_of = [](std::string_view x, std::string_view operation) {
    return texts::error_of(
        fmt::format("func @f(%x: {}) -> () {{\n  {}\n  return\n}}\n", x, operation));
  };
  EXPECT_NE(
      error_of("f32[3]", "%y, %s, %z = dynamic_quantize_linear %x : i32")
          .find("dynamic_quantize_linear: the result is i32, expected an integer of at most 16 "
                "bits"),
      std::string::npos);
  EXPECT_NE(error_of("f16[3]", "%y, %s = dynamic_quantize_symmetric %x : i16")
                .find("the result is i16, expected at most 8 bits for f16"),
            std::string::npos);
  EXPECT_NE(error_of("f8e4m3[3]", "%y, %s = dynamic_quantize_symmetric %x : i8")
                .find("dynamic_quantize_symmetric: operand 0 is f8e4m3, expected f16, bf16, f32 or "
                      "f64"),
            std::string::npos);
  EXPECT_NE(error_of("f32[3]", "%y, %s = dynamic_quantize_symmetric %x {axes = [1]} : i8")
                .find("found axis 1, expected -1 to 0 for an operand of rank 1"),
            std::string::npos);
}

}  // namespace
}  // namespace castor::test
