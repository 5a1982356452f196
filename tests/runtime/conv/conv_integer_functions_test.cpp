// SPDX-License-Identifier: Apache-2.0
// conv_integer among other operations, on every tier against the interpreter.
#include <random>

#include "ir/text/text.hpp"
#include "tests/support/on_every_engine.hpp"
#include "tests/support/placed_tensors.hpp"

namespace castor::test {
namespace {

using enum ElementType;

/// A function, and extents of its parameters.
struct FunctionRow {
  const char* name;
  std::string text;
  std::vector<Dims> shapes;
};

const std::vector<FunctionRow>& functions() {
  static const std::vector<FunctionRow> rows = {
      {"dequantized",
       "func @f(%x: u8[?, 5, ?, ?], %w: i8[6, 5, 3, 3], %z: u8[], %s: f32[6, 1, 1]) -> (f32[?, 6, "
       "?, ?]) {\n  %y = conv_integer %x, %w, %z {pads = [1, 1, 1, 1]}\n"
       "  %f = convert %y : f32\n  %r = mul %f, %s\n  %c = clamp %r {lo = 0}\n  return %c\n}\n",
       {{2, 5, 6, 7}, {6, 5, 3, 3}, {}, {6, 1, 1}}},
      {"returned_twice",
       "func @f(%x: u8[1, 3, 9], %w: u8[4, 3, 2]) -> (i32[1, 4, 8], i32[1, 4, 8]) {\n"
       "  %y = conv_integer %x, %w\n  return %y, %y\n}\n",
       {{1, 3, 9}, {4, 3, 2}}},
      {"returned_and_read",
       "func @f(%x: i8[1, 3, 9], %w: u8[4, 3, 2], %b: i32[4, 1]) -> (i32[1, 4, 8], i32[1, 4, 8], "
       "f64[1, 4, 8]) {\n  %y = conv_integer %x, %w\n  %z = add %y, %b\n"
       "  %d = convert %y : f64\n  return %z, %y, %d\n}\n",
       {{1, 3, 9}, {4, 3, 2}, {4, 1}}},
      {"chain",
       "func @f(%x: u8[?, ?, ?, ?], %a: i8[?, ?, ?, ?], %b: u8[?, ?, ?, ?], %bz: u8[?]) -> (i32[?, "
       "?, ?, ?]) {\n  %y = conv_integer %x, %a {pads = [1, 1, 1, 1]}\n"
       "  %q = convert %y {overflow = saturate} : i8\n"
       "  %z = conv_integer %q, %b, none, %bz {strides = [2, 1]}\n  return %z\n}\n",
       {{2, 3, 8, 9}, {7, 3, 3, 3}, {5, 7, 2, 3}, {5}}},
      {"residual",
       "func @f(%x: u8[1, 4, 7, 7], %a: i8[4, 4, 3, 3], %b: i8[4, 4, 1, 1]) -> (i32[1, 4, 7, 7]) "
       "{\n"
       "  %y = conv_integer %x, %a {auto_pad = same_upper}\n  %z = conv_integer %x, %b\n"
       "  %s = add %y, %z\n  %t = sub %s, %y\n  %u = max %t, %s\n  return %u\n}\n",
       {{1, 4, 7, 7}, {4, 4, 3, 3}, {4, 4, 1, 1}}},
      {"quantized_first",
       "func @f(%x: f32[1, ?, 6], %w: f16[3, ?, 3], %z: i64[]) -> (i32[1, 3, ?]) {\n"
       "  %q = convert %x {overflow = saturate, rounding = nearest_even} : u8\n"
       "  %v = convert %w {overflow = saturate} : i8\n  %u = convert %z : u8\n"
       "  %y = conv_integer %q, %v, %u {pads = [2, 0]}\n  return %y\n}\n",
       {{1, 5, 6}, {3, 5, 3}, {}}},
      {"one_value_everywhere",
       "func @f(%x: u8[2, 3, 4], %z: u8[1]) -> (i32[2, 2, 1]) {\n"
       "  %y = conv_integer %x, %x, %z, %z\n  return %y\n}\n",
       {{2, 3, 4}, {1}}},
      {"reshaped",
       "func @f(%x: u8[6, 20], %w: i8[8, 9]) -> (i32[8, 16]) {\n"
       "  %a = reshape %x : [2, 3, 4, 5]\n  %b = reshape %w : [4, 3, 2, 3]\n"
       "  %y = conv_integer %a, %b {pads = [0, 1, 1, 0]}\n  %r = reshape %y : [8, 16]\n"
       "  %t = add %r, %r\n  %s = reshape %t : [8, 16]\n  return %s\n}\n",
       {{6, 20}, {8, 9}}},
      {"no_channels",
       "func @f(%x: u8[0, 6], %w: i8[2, 0]) -> (i32[1, 2, 6]) {\n"
       "  %a = reshape %x : [1, 0, 6]\n  %b = reshape %w : [2, 0, 1]\n"
       "  %y = conv_integer %a, %b\n  return %y\n}\n",
       {{0, 6}, {2, 0}}},
      {"broadcast_first",
       "func @f(%x: u8[1, 3, 1], %w: i8[2, 1, 2]) -> (i32[2, 2, 4]) {\n"
       "  %a = broadcast %x : [2, 3, 5]\n  %b = broadcast %w : [2, 3, 2]\n"
       "  %y = conv_integer %a, %b\n  return %y\n}\n",
       {{1, 3, 1}, {2, 1, 2}}},
      {"all_constant",
       "func @f(%b: i32[1, 2, 2]) -> (i32[1, 2, 2], i32[1, 2, 2]) {\n"
       "  %x = constant [1, 2, 3, 4, 5, 255] : u8[1, 2, 3]\n"
       "  %w = constant [1, -2, 3, -4, 5, -6, 7, -128] : i8[2, 2, 2]\n"
       "  %z = constant 7 : u8[]\n  %v = constant [1, -128] : i8[2]\n"
       "  %y = conv_integer %x, %w, %z, %v\n  %s = add %y, %b\n  return %s, %y\n}\n",
       {{1, 2, 2}}},
      {"nobody_reads_it",
       "func @f(%x: u8[1, 2, 3], %w: u8[1, 2, 3]) -> (u8[1, 2, 3]) {\n"
       "  %y = conv_integer %x, %w\n  %r = add %x, %w\n  return %r\n}\n",
       {{1, 2, 3}, {1, 2, 3}}},
      {"channels_last",
       "func @f(%x: u8[?, ?, ?, ?], %w: i8[?, ?, ?, ?], %s: f32[?]) -> (u8[?, ?, ?, ?], i32[?, ?, "
       "?, ?]) {\n  %y = conv_integer %x, %w {layout = nhwc, group = 2, pads = [1, 0, 1, 2]}\n"
       "  %f = convert %y : f32\n  %r = mul %f, %s\n"
       "  %q = convert %r {overflow = saturate, rounding = nearest_even} : u8\n"
       "  return %q, %y\n}\n",
       {{2, 5, 6, 8}, {6, 4, 3, 3}, {6}}},
      {"same_weights_twice",
       "func @f(%x: u8[1, 2, 6], %y: u8[1, 2, 9]) -> (i32[1, 3, 4], i32[1, 3, 7]) {\n"
       "  %w = constant [1, -2, 3, -4, 5, -6, 7, -8, 9, -1, 2, -3, 4, -5, 6, -7, 8, -9] : i8[3, 2, "
       "3]\n  %a = conv_integer %x, %w\n  %b = conv_integer %y, %w\n  return %a, %b\n}\n",
       {{1, 2, 6}, {1, 2, 9}}},
  };
  return rows;
}

class ConvFunctions : public testing::TestWithParam<FunctionRow> {
 protected:
  Placing draw_placing() { return static_cast<Placing>(random_() % placings); }

  /// Floats are those that bytes are made of, now and then any.
  Patterns draw(ElementType type, const Dims& shape) {
    const auto count = static_cast<size_t>(element_count(shape).value());
    if (random_() % 4 == 0) return {type, shape, samples::random_patterns(type, count, random_())};
    Patterns tensor{type, shape, {}};
    for (size_t i = 0; i < count; ++i) {
      const uint64_t byte = random_() & 0xff;
      tensor.elements.push_back(numerics::convert(byte, u8, type, {}));
    }
    return tensor;
  }

  std::mt19937_64 random_{5};
};

TEST_P(ConvFunctions, AgreesWithTheInterpreter) {
  const auto function = parse_function(GetParam().text);
  ASSERT_TRUE(function) << function.error().to_string();
  for (int round = 0; round < 20; ++round) {
    std::vector<Placed> operands;
    std::vector<Patterns> tensors;
    for (size_t i = 0; i < GetParam().shapes.size(); ++i) {
      const ElementType type = (*function)->type_of((*function)->parameters[i]).element;
      tensors.push_back(draw(type, GetParam().shapes[i]));
      operands.push_back({tensors.back(), draw_placing()});
    }
    std::vector<Placed> expected;
    for (Patterns& result : interpreted_results(**function, tensors)) {
      expected.push_back({std::move(result), draw_placing()});
    }
    ASSERT_EQ(mistake_on_tiers(*function, operands, expected), "") << round;
  }
}

INSTANTIATE_TEST_SUITE_P(Functions, ConvFunctions, testing::ValuesIn(functions()),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace castor::test
