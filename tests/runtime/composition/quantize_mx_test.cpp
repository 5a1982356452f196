// SPDX-License-Identifier: Apache-2.0
// quantize_mx: every format and rule on every tier; scales and codes against the formats' own words
// in plain numbers; NaNs, infinities and zeros; what is refused.
#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "ir/composition/mx_formats.hpp"
#include "ir/numerics/scalar.hpp"
#include "ir/support/integer_math.hpp"
#include "tests/support/function_case.hpp"
#include "tests/support/on_every_engine.hpp"
#include "tests/support/texts.hpp"

namespace castor::test {
namespace {

using enum ElementType;

constexpr const char* rules[] = {"ocp_floor", "ceil_power", "even_round"};

std::string text_of(const MxFormat& format, ElementType x, const Dims& shape,
                    std::string_view rule) {
  Dims scales = shape;
  int64_t& blocks = scales[scales.rank() - 1];
  blocks = ceil_div(blocks, format.block);
  const std::string more = format.has_tensor_scale ? "" : fmt::format(", scale_rule = {}", rule);
  const std::string scale = format.has_tensor_scale ? "  %t = nvfp4_tensor_scale %x\n" : "";
  return fmt::format(
      "func @mx(%x: {0}{1}) -> ({2}{1}, {3}{4}) {{\n{5}"
      "  %y, %s = quantize_mx %x{6} {{format = {7}{8}}} : {2}\n  return %y, %s\n}}\n",
      name_of(x), to_string(shape), name_of(format.element), name_of(format.scale),
      to_string(scales), scale, format.has_tensor_scale ? ", %t" : "", format.name, more);
}

TEST(QuantizeMx, HasTheInterpretersBits) {
  uint64_t seed = 1;
  for (const MxFormat& format : mx_formats) {
    for (const ElementType x : {f32, bf16, f16, f64}) {
      const char* rule = rules[++seed % 3];
      for (const Dims& shape :
           {Dims{7, 96}, Dims{3, 2, 64}, Dims{32}, Dims{5, 100}, Dims{2, 3, 47}, Dims{9}}) {
        ASSERT_NO_FATAL_FAILURE(check_function({text_of(format, x, shape, rule), {{shape}}}, seed));
      }
    }
  }
  for (const ElementType x : {f32, bf16, f16, f64}) {
    std::string text = text_of(mx_formats.back(), x, {5, 100}, "");
    const size_t at = text.find("format = nvfp4") + std::string_view("format = nvfp4").size();
    ASSERT_NO_FATAL_FAILURE(
        check_function({text.insert(at, ", scaling = reciprocal"), {{Dims{5, 100}}}}, ++seed));
  }
  check_function(
      {"func @columns(%x: f32[64, ?m]) -> (f8e4m3[64, ?m], f8e8m0[2, ?m]) {\n"
       "  %y, %s = quantize_mx %x {format = mxfp8_e4m3, axis = 0} : f8e4m3\n"
       "  return %y, %s\n}\n",
       {{{64, 9}}}});
  check_function(
      {"func @one_block(%x: f32[7, ?m]) -> (f8e5m2[7, ?m], f8e8m0[1, ?m]) {\n"
       "  %y, %s = quantize_mx %x {format = mxfp8_e5m2, axis = 0, block = 1099511627776} : f8e5m2\n"
       "  return %y, %s\n}\n",
       {{{7, 9}}}});
  check_function(
      {"func @short_columns(%x: bf16[3, 70, ?m]) -> (f4e2m1[3, 70, ?m], f8e8m0[3, 3, ?m]) {\n"
       "  %y, %s = quantize_mx %x {format = mxfp4, axis = 1} : f4e2m1\n"
       "  return %y, %s\n}\n",
       {{{3, 70, 9}}}});
}

/// A format's largest exponent, largest number, and bits after the first of its significands.
struct Range {
  int exponent;
  double largest;
  int mantissa_bits;
};

Range range_of(ElementType element) {
  switch (element) {
    case f8e4m3: return {8, 448, 3};
    case f8e5m2: return {15, 57344, 2};
    case f6e2m3: return {2, 7.5, 3};
    case f6e3m2: return {4, 28, 2};
    case f4e2m1: return {2, 6, 1};
    default: return {0, 127.0 / 64, 6};
  }
}

/// The exponent of a block's scale, from the exponent and the significand of its largest magnitude.
int exponent_of(float magnitude, const Range& range, std::string_view rule) {
  int exponent = 0;
  const double fraction = 2 * std::frexp(static_cast<double>(magnitude), &exponent);  // 1 to 2
  --exponent;
  if (rule == "ocp_floor") return exponent - range.exponent;
  if (rule == "ceil_power") {
    const double most = range.largest / std::ldexp(1, range.exponent);
    return exponent - range.exponent + (fraction > most ? 1 : 0);
  }
  const double rounds_up = 2 - std::ldexp(1, -range.mantissa_bits - 1);
  return exponent - range.exponent + (fraction >= rounds_up ? 1 : 0);
}

/// Blocks of 32 whose first element is the largest.
TEST(QuantizeMx, ScalesAreByTheRules) {
  std::vector<float> magnitudes;
  for (const int exponent : {-149, -130, -127, -126, -120, -9, -1, 0, 1, 7, 100, 127}) {
    for (const float fraction :
         {1.0F, 1.25F, 1.4999999F, 1.5F, 1.5000001F, 1.7499999F, 1.75F, 1.7500001F, 1.8125F, 1.875F,
          1.8750001F, 1.9F, 1.96875F, 1.984375F, 1.9843751F, 1.9999999F}) {
      magnitudes.push_back(std::ldexp(fraction, exponent));
    }
  }
  const auto blocks = static_cast<int64_t>(magnitudes.size());
  for (const MxFormat& format : mx_formats) {
    if (format.has_tensor_scale) continue;
    for (const char* rule : rules) {
      Patterns x{f32, {blocks, 32}, {}};
      Patterns expected{f8e8m0, {blocks, 1}, {}};
      for (size_t b = 0; b < magnitudes.size(); ++b) {
        for (int i = 0; i < 32; ++i) {
          const float element = magnitudes[b] * (i == 0 ? -1.0F : 0.03F * static_cast<float>(i));
          x.elements.push_back(std::bit_cast<uint32_t>(element));
        }
        const int e = exponent_of(magnitudes[b], range_of(format.element), rule);
        expected.elements.push_back(static_cast<uint64_t>(std::clamp(e + 127, 0, 254)));
      }
      const auto function = parse_function(fmt::format(
          "func @f(%x: f32[{0}, 32]) -> f8e8m0[{0}, 1] {{\n"
          "  %y, %s = quantize_mx %x {{format = {1}, scale_rule = {2}}} : {3}\n  return %s\n}}\n",
          blocks, format.name, rule, name_of(format.element)));
      ASSERT_TRUE(function.ok()) << function.error().to_string();
      EXPECT_EQ(mistake_anywhere(*function, {x}, expected), "") << format.name << ' ' << rule;
    }
  }
}

TEST(QuantizeMx, SpecialBlocksHaveSpecialScales) {
  const auto function = parse_function(
      "func @f(%x: f32[4, 32]) -> f8e8m0[4, 1] {\n"
      "  %y, %s = quantize_mx %x {format = mxfp4} : f4e2m1\n  return %s\n}\n");
  Patterns x{f32, {4, 32}, std::vector<uint64_t>(128, 0)};
  x.elements[5] = 0xff800000;        // an infinity
  x.elements[32 + 31] = 0x7fc00001;  // a NaN
  x.elements[64 + 7] = 0x80000000;   // -0 among zeros
  x.elements[96 + 1] = 0x3f800000;
  EXPECT_EQ(mistake_anywhere(*function, {x}, {f8e8m0, {4, 1}, {255, 255, 0, 125}}), "");
}

/// Elements are the nearest codes of x over a power of two, which f64 holds exactly.
TEST(QuantizeMx, ElementsAreTheNearestCodes) {
  for (const MxFormat& format : mx_formats) {
    if (format.has_tensor_scale) continue;
    Patterns x{f32, {64, 32}, {}};
    Patterns expected{format.element, x.shape, {}};
    uint32_t state = 99;
    for (int b = 0; b < 64; ++b) {
      float most = 0;
      std::vector<float> block;
      for (int i = 0; i < 32; ++i) {
        state = state * 1664525 + 1013904223;
        block.push_back(std::ldexp(static_cast<float>(static_cast<int32_t>(state)), b - 60));
        most = std::max(most, std::abs(block.back()));
      }
      const int e = exponent_of(most, range_of(format.element), "ocp_floor");
      for (const float element : block) {
        x.elements.push_back(std::bit_cast<uint32_t>(element));
        double quotient = std::ldexp(static_cast<double>(element), format.fraction_bits - e);
        ConvertOptions options = {.overflow = Overflow::saturate};
        if (is_integer(format.element)) options.rounding = Rounding::nearest_even;
        expected.elements.push_back(
            numerics::convert(std::bit_cast<uint64_t>(quotient), f64, format.element, options));
      }
    }
    const auto function = parse_function(
        fmt::format("func @f(%x: f32[64, 32]) -> {0}[64, 32] {{\n"
                    "  %y, %s = quantize_mx %x {{format = {1}}} : {0}\n  return %y\n}}\n",
                    name_of(format.element), format.name));
    ASSERT_TRUE(function.ok()) << function.error().to_string();
    EXPECT_EQ(mistake_anywhere(*function, {x}, expected), "") << format.name;
  }
}

TEST(QuantizeMx, MistakesAreTyped) {
  const auto error_of = [](std::string_view x, std::string_view operation) {
    return texts::error_of(
        fmt::format("func @f(%x: {}) -> () {{\n  %y, %s = {}\n  return\n}}\n", x, operation));
  };
  struct Row {
    const char* x;
    const char* operation;
    const char* message;
  };
  const Row mistakes[] = {
      {"f32[?n]", "quantize_mx %x {format = mxfp4} : f4e2m1",
       "axis 0 of f32[?n] is unknown, expected a number of elements"},
      {"f32[70, 1, 1, 1, 1, 1, 1]", "quantize_mx %x {format = mxfp4, axis = 0} : f4e2m1",
       "has a short last block of 32, expected whole ones where the rank is 7"},
      {"f32[64]", "quantize_mx %x {format = mxfp4} : f8e4m3",
       "the result is f8e4m3, expected f4e2m1 for mxfp4"},
      {"f32[64]", "quantize_mx %x {format = nvfp4} : f4e2m1", "found no tensor's scale"},
      {"f32[?, ?n, 64]", "quantize_mx %x {format = mxfp4} : f4e2m1",
       "axis 0 of f32[?, ?n, 64] has no name, expected a number or a name, as ?n"},
      {"f32[?, 0, 64]", "quantize_mx %x {format = mxfp4} : f4e2m1",
       "axis 0 of f32[?, 0, 64] has no name, expected a number or a name, as ?n"},
      {"i8[64]", "quantize_mx %x {format = mxfp4} : f4e2m1", "operand 0 is i8"},
      {"f32[64]", "quantize_mx %x {format = mxfp4, scaling = divide} : f4e2m1",
       "found scaling, expected none for mxfp4"},
  };
  for (const Row& row : mistakes) {
    const std::string error = error_of(row.x, row.operation);
    EXPECT_NE(error.find(row.message), std::string::npos) << error;
  }
}

/// x / (s t) or x (1 / (s t)), each step rounded to f32: where these differ, so do some codes.
TEST(QuantizeMx, DividesOrMultipliesByTheReciprocal) {
  constexpr float tensor_scale = 1.1f;
  Patterns x{f32, {4096, 16}, {}};
  for (int row = 0; row < 4096; ++row) {
    // The largest gives its block's scale; others are halves of steps times that scale, or near.
    const float scale = std::ldexp(1 + static_cast<float>(row % 8) / 8, row % 5 - 2) * tensor_scale;
    for (int i = 0; i < 16; ++i) {
      const float tie = i == 0 ? 6 : 0.25f + 0.5f * static_cast<float>(i % 4);
      const float near = std::nextafter(tie * scale, row % 2 == 0 ? 0.f : 1000.f);
      x.elements.push_back(std::bit_cast<uint32_t>(i % 3 == 0 ? tie * scale : near));
    }
  }
  const auto result = [&](bool is_reciprocal, const char* returned, const char* type) {
    const auto function = parse_function(
        fmt::format("func @f(%x: f32[4096, 16], %t: f32[]) -> {}[4096, ?] {{\n"
                    "  %y, %s = quantize_mx %x, %t {{format = nvfp4, scaling = {}}} : f4e2m1\n"
                    "  %w = convert %s : f32\n  return {}\n}}\n",
                    type, is_reciprocal ? "reciprocal" : "divide", returned));
    EXPECT_TRUE(function.ok()) << function.error().to_string();
    const Patterns t{f32, {}, {std::bit_cast<uint32_t>(tensor_scale)}};
    return interpreted(**function, {x, t}).elements;
  };
  std::vector<uint64_t> codes[2];
  for (const bool is_reciprocal : {false, true}) {
    const std::vector<uint64_t> found = result(is_reciprocal, "%y", "f4e2m1");
    const std::vector<uint64_t> scales = result(is_reciprocal, "%w", "f32");
    ASSERT_EQ(found.size(), x.elements.size());
    for (size_t i = 0; i < found.size(); ++i) {
      const auto number = std::bit_cast<float>(static_cast<uint32_t>(x.elements[i]));
      const auto scale = std::bit_cast<float>(static_cast<uint32_t>(scales[i / 16]));
      const float factor = scale * tensor_scale;
      const float quotient = is_reciprocal ? number * (1 / factor) : number / factor;
      const uint64_t code = numerics::convert(std::bit_cast<uint32_t>(quotient), f32, f4e2m1,
                                              {.overflow = Overflow::saturate});
      ASSERT_EQ(found[i], code) << i;
    }
    codes[is_reciprocal ? 1 : 0] = found;
  }
  EXPECT_NE(codes[0], codes[1]);
}

/// Beside known extents one that has no name is what the elements leave.
TEST(QuantizeMx, OneExtentNeedsNoName) {
  for (const char* extent : {"64", "70"}) {
    const auto function = parse_function(
        fmt::format("func @f(%x: f32[?]) -> f4e2m1[?, {0}] {{\n  %m = reshape %x : [?, {0}]\n"
                    "  %y, %s = quantize_mx %m {{format = mxfp4}} : f4e2m1\n  return %y\n}}\n",
                    extent));
    ASSERT_TRUE(function.ok()) << function.error().to_string();
    for (const int64_t rows : {0, 1, 5}) {
      Patterns x{f32, {rows * std::stoll(extent)}, {}};
      for (int64_t i = 0; i < x.shape[0]; ++i) {
        x.elements.push_back(std::bit_cast<uint32_t>(static_cast<float>(i % 97) - 40));
      }
      const Patterns expected = interpreted(**function, {x});
      EXPECT_EQ(mistake_anywhere(*function, {x}, expected), "") << extent << ", " << rows;
    }
  }
}

/// A tensor of zeros comes back, whatever the format: no step divides 0 by 0.
TEST(QuantizeMx, ZerosStayZeros) {
  for (const MxFormat& format : mx_formats) {
    for (const ElementType type : {f32, bf16, f16, f64}) {
      std::string text = text_of(format, type, {2, 64}, "ocp_floor");
      text.replace(text.find("-> "), text.find(" {\n") - text.find("-> "),
                   fmt::format("-> {}[2, 64]", name_of(type)));
      text.replace(text.find("  return"), std::string::npos,
                   fmt::format("  %z = dequantize_mx %y, %s{} {{format = {}}} : {}\n"
                               "  return %z\n}}\n",
                               format.has_tensor_scale ? ", %t" : "", format.name, name_of(type)));
      const Patterns zeros{type, {2, 64}, std::vector<uint64_t>(128, 0)};
      EXPECT_EQ(mistake_anywhere(parse_function(text).value(), {zeros}, zeros), "") << text;
    }
  }
}

/// A block of zeros among others has the scale 0 and not that of a NaN.
TEST(QuantizeMx, BlocksOfZerosHaveTheScaleZero) {
  const std::string text =
      "func @scales(%x: f32[1, 48], %t: f32[]) -> f8e4m3[1, 3] {\n"
      "  %y, %s = quantize_mx %x, %t {format = nvfp4} : f4e2m1\n  return %s\n}\n";
  Patterns x{f32, {1, 48}, std::vector<uint64_t>(48, 0)};
  x.elements[20] = std::bit_cast<uint32_t>(6.0f);
  x.elements[40] = std::bit_cast<uint32_t>(std::nanf(""));
  const uint64_t one = 0x38;
  const uint64_t nan = 0x7f;
  for (const float scale : {1.0f, 0.0f}) {
    const Patterns t{f32, {}, {std::bit_cast<uint32_t>(scale)}};
    const uint64_t largest = 0x7e;  // 1 / 0 saturates
    const Patterns expected{f8e4m3, {1, 3}, {0, scale == 0 ? largest : one, nan}};
    EXPECT_EQ(mistake_anywhere(parse_function(text).value(), {x, t}, expected), "") << scale;
  }
}

/// Rows with zeros after them, as far as whole blocks.
Patterns with_zeros_after(const Patterns& rows, int64_t columns) {
  Patterns more{rows.type, {rows.shape[0], columns}, {}};
  for (int64_t row = 0; row < rows.shape[0]; ++row) {
    const auto first = rows.elements.begin() + row * rows.shape[1];
    more.elements.insert(more.elements.end(), first, first + rows.shape[1]);
    more.elements.resize(static_cast<size_t>((row + 1) * columns), 0);
  }
  return more;
}

/// The same rows cut off.
Patterns cut(const Patterns& rows, int64_t columns) {
  Patterns less{rows.type, {rows.shape[0], columns}, {}};
  for (int64_t row = 0; row < rows.shape[0]; ++row) {
    const auto first = rows.elements.begin() + row * rows.shape[1];
    less.elements.insert(less.elements.end(), first, first + columns);
  }
  return less;
}

/// The last block is short: its codes and scale are those of a block with zeros after them.
TEST(QuantizeMx, ShortBlocksAreAsWithZerosAfterThem) {
  constexpr int64_t columns = 70;
  constexpr int64_t whole = 96;
  Patterns x{f32, {4, columns}, {}};
  for (int64_t i = 0; i < 4 * columns; ++i) {
    const auto number = std::ldexp(static_cast<float>(i % 23) - 11, static_cast<int>(i / 40));
    x.elements.push_back(std::bit_cast<uint32_t>(number));
  }
  x.elements[2 * columns - 1] = 0x7fc00001;  // a NaN
  x.elements[3 * columns - 2] = 0xff800000;  // an infinity
  std::fill_n(x.elements.end() - 6, 6, 0);
  const Patterns one{f32, {}, {std::bit_cast<uint32_t>(0.25f)}};
  for (const MxFormat& format : mx_formats) {
    for (const bool is_scale : {false, true}) {
      const auto function_of = [&](int64_t extent) {
        const int64_t result = is_scale ? ceil_div(extent, format.block) : extent;
        return parse_function(
            fmt::format("func @f(%x: f32[4, {0}]{1}) -> {2}[4, {3}] {{\n"
                        "  %y, %s = quantize_mx %x{4} {{format = {5}}} : {6}\n  return %{7}\n}}\n",
                        extent, format.has_tensor_scale ? ", %t: f32[]" : "",
                        name_of(is_scale ? format.scale : format.element), result,
                        format.has_tensor_scale ? ", %t" : "", format.name, name_of(format.element),
                        is_scale ? "s" : "y"));
      };
      std::vector<Patterns> operands = {with_zeros_after(x, whole)};
      if (format.has_tensor_scale) operands.push_back(one);
      const Patterns all = interpreted(*function_of(whole).value(), operands);
      const Patterns expected = cut(all, is_scale ? ceil_div(columns, format.block) : columns);
      operands[0] = x;
      EXPECT_EQ(mistake_anywhere(function_of(columns).value(), operands, expected), "")
          << format.name;
    }
  }
}

}  // namespace
}  // namespace castor::test
