// SPDX-License-Identifier: Apache-2.0
// The rules of ir/README.md, Arithmetic, one by one, as tables of bits.
#include <gtest/gtest.h>

#include "tests/support/op_cases.hpp"

namespace castor {
namespace {

using enum ElementType;
using namespace test;

TEST(ArithmeticRules, DivisionOfIntegers) {
  expect_results({
      {OpKind::div, i8, {0xf9, 2}, 0xfd},  // -7 / 2 = -3
      {OpKind::div, i8, {0x80, 0xff}, 0x80},
      {OpKind::div, i8, {5, 0}, 0},
      {OpKind::div, u8, {0xf9, 2}, 124},
      {OpKind::div, i64, {uint64_t{1} << 63, ~uint64_t{0}}, uint64_t{1} << 63},
      {OpKind::div, i4, {0x8, 0xf}, 0x8},
      {OpKind::div, i2, {0x2, 0x3}, 0x2},
      {OpKind::div, u1, {1, 0}, 0},
      {OpKind::mod, i8, {0xf9, 3}, 0xff},  // -7 mod 3 = -1
      {OpKind::mod, i8, {7, 0xfd}, 1},
      {OpKind::mod, i8, {7, 0}, 0},
      {OpKind::mod, i32, {minus, 0xffffffff}, 0},
      {OpKind::floor_mod, i8, {0xf9, 3}, 2},
      {OpKind::floor_mod, i8, {7, 0xfd}, 0xfe},  // 7 floor_mod -3 = -2
      {OpKind::floor_mod, i8, {7, 0}, 0},
      {OpKind::floor_mod, i64, {uint64_t{1} << 63, ~uint64_t{0}}, 0},
      {OpKind::floor_div, i8, {0xf9, 2}, 0xfc},  // -7 floor_div 2 = -4
      {OpKind::floor_div, i8, {7, 0xfe}, 0xfc},
      {OpKind::floor_div, i8, {7, 0}, 0},
      {OpKind::floor_div, i8, {0x80, 0xff}, 0x80},
      {OpKind::floor_div, u64, {~uint64_t{0}, 2}, ~uint64_t{0} >> 1},
  });
}

TEST(ArithmeticRules, RemaindersOfFloats) {
  expect_results({
      {OpKind::mod, f32, {f32_one, f32_inf}, f32_one},
      {OpKind::mod, f32, {f32_one | minus, f32_inf}, f32_one | minus},
      {OpKind::mod, f32, {minus, f32_one}, minus},
      {OpKind::mod, f32, {0xc0c00000, 0x40400000}, minus},       // -6 mod 3 = -0
      {OpKind::mod, f32, {0xc0e00000, 0x40400000}, 0xbf800000},  // -7 mod 3 = -1
      {OpKind::mod, f32, {0x7f7fffff, 1}, 0},
      {OpKind::mod, f64, {0x7fefffffffffffff, 0x0000000000000003}, 0x0000000000000002},
      {OpKind::floor_mod, f32, {0xc0e00000, 0x40400000}, f32_two},
      {OpKind::floor_mod, f32, {0x40e00000, 0xc0400000}, f32_two | minus},
      {OpKind::floor_mod, f32, {0xc0c00000, 0x40400000}, 0},
      {OpKind::floor_mod, f32, {0x40c00000, 0xc0400000}, minus},
      {OpKind::floor_mod, f32, {minus, f32_one}, 0},
      {OpKind::floor_mod, f32, {0, f32_inf | minus}, minus},
      {OpKind::floor_mod, f32, {f32_one, f32_inf | minus}, f32_inf | minus},
      {OpKind::floor_mod, f32, {f32_one, f32_inf}, f32_one},
      {OpKind::floor_mod, f32, {0x80000001, f32_one}, f32_one},     // the sum is rounded
      {OpKind::mod, f8e4m3fnuz, {0xc0, 0x40}, 0},                   // -1 mod 1: no -0 there
      {OpKind::floor_div, f32, {0xc0e00000, f32_two}, 0xc0800000},  // floor(-3.5) = -4
      {OpKind::floor_div, f32, {minus, f32_one}, minus},
      {OpKind::floor_div, f32, {1, f32_inf | minus}, minus},
      {OpKind::floor_div, f32, {f32_one, 0}, f32_inf},
      // 1 / 0.1 rounds to 10 before the floor
      {OpKind::floor_div, f32, {f32_one, 0x3dcccccd}, 0x41200000},
  });
}

TEST(ArithmeticRules, MinAndMaxOrderZeros) {
  expect_results({
      {OpKind::min, f32, {0, minus}, minus},
      {OpKind::min, f32, {minus, 0}, minus},
      {OpKind::max, f32, {0, minus}, 0},
      {OpKind::max, f32, {minus, 0}, 0},
      {OpKind::min, f32, {f32_inf | minus, f32_one}, f32_inf | minus},
      {OpKind::max, f16, {0x8000, 0x0000}, 0},
      {OpKind::min, f4e2m1, {0x0, 0x8}, 0x8},
      {OpKind::min, i8, {0x80, 0x7f}, 0x80},
      {OpKind::min, u8, {0x80, 0x7f}, 0x7f},
      {OpKind::max, i2, {0x2, 0x1}, 0x1},
      {OpKind::relu, f32, {minus}, 0},
      {OpKind::relu, f32, {f32_one | minus}, 0},
      {OpKind::relu, f32, {f32_inf}, f32_inf},
      {OpKind::relu, f4e2m1, {0x8}, 0},
      {OpKind::relu, f6e2m3, {0x20}, 0},
      {OpKind::min, f6e2m3, {0x00, 0x20}, 0x20},
      {OpKind::relu, i8, {0x80}, 0},
      {OpKind::relu, u8, {0x80}, 0x80},
  });
}

TEST(ArithmeticRules, RoundedTwice) {
  expect_results({
      // 1 - (-2^-24) rounds to 1; (1 + 2^-23)^2 rounds to 1 + 2^-22
      {OpKind::squared_difference, f32, {f32_one, 0xb3800000}, f32_one},
      {OpKind::squared_difference, f32, {0x3f800001, 0}, 0x3f800002},
      {OpKind::squared_difference, f32, {f32_one, f32_one}, 0},
      {OpKind::squared_difference, u8, {1, 3}, 4},
      {OpKind::squared_difference, i8, {0x80, 0x7f}, 1},  // -255 wraps to 1
      {OpKind::squared_difference, u2, {0, 3}, 1},
  });
}

TEST(ArithmeticRules, PreluAndSign) {
  expect_results({
      {OpKind::prelu, f32, {f32_one | minus, f32_two}, f32_two | minus},
      {OpKind::prelu, f32, {minus, f32_two}, minus},
      {OpKind::prelu, f32, {f32_one, 0x7f800001}, f32_one},  // the slope is not read
      {OpKind::prelu, f32, {f32_one | minus, 0x7f800001}, 0x7fc00001},
      {OpKind::prelu, f32, {0xff800001, 0x7fc00002}, 0xffc00001},
      {OpKind::prelu, i8, {0x80, 0xff}, 0x80},
      {OpKind::prelu, i8, {0xff, 3}, 0xfd},
      {OpKind::prelu, u8, {0xff, 3}, 0xff},
      {OpKind::sign, f32, {minus}, 0},
      {OpKind::sign, f32, {1}, f32_one},
      {OpKind::sign, f32, {f32_inf | minus}, f32_one | minus},
      {OpKind::sign, f4e2m1, {0x9}, 0xa},
      {OpKind::sign, i2, {2}, 3},
      {OpKind::sign, u64, {~uint64_t{0}}, 1},
  });
}

TEST(ArithmeticRules, NegAndAbsChangeTheSignOnly) {
  expect_results({
      {OpKind::neg, f32, {0x7f800001}, 0xff800001},
      {OpKind::abs, f32, {0xff800001}, 0x7f800001},
      {OpKind::neg, f32, {0}, minus},
      {OpKind::abs, f32, {minus}, 0},
      {OpKind::neg, f8e4m3, {0x7f}, 0xff},
      {OpKind::abs, f8e4m3, {0xff}, 0x7f},
      {OpKind::neg, f8e5m2, {0x7d}, 0xfd},
      {OpKind::neg, f8e4m3fnuz, {0}, 0},
      {OpKind::neg, f8e4m3fnuz, {0x80}, 0x80},
      {OpKind::abs, f8e4m3fnuz, {0x80}, 0x80},
      {OpKind::abs, f8e5m2fnuz, {0x80}, 0x80},
      {OpKind::neg, f8e5m2fnuz, {0x81}, 0x01},
      {OpKind::abs, f8e5m2fnuz, {0x81}, 0x01},
      {OpKind::neg, f4e2m1, {0}, 8},
      {OpKind::neg, f6e2m3, {0x1f}, 0x3f},
      {OpKind::abs, f6e2m3, {0x3f}, 0x1f},
      {OpKind::neg, i8, {0x80}, 0x80},
      {OpKind::abs, i8, {0x80}, 0x80},
      {OpKind::abs, i4, {0x9}, 0x7},
      {OpKind::neg, u8, {1}, 0xff},
      {OpKind::neg, u1, {1}, 1},
      {OpKind::abs, u8, {0xff}, 0xff},
  });
}

TEST(ArithmeticRules, Shifts) {
  expect_results({
      {OpKind::shift_left, u8, {1, 7}, 0x80},
      {OpKind::shift_left, u8, {1, 8}, 0},
      {OpKind::shift_left, i8, {1, 0xff}, 0},  // by 255
      {OpKind::shift_right, i8, {0x80, 0x80}, 0xff},
      {OpKind::shift_right, i8, {0x7f, 0x80}, 0},
      {OpKind::shift_right, i8, {0x80, 7}, 0xff},
      {OpKind::shift_right, u8, {0x80, 7}, 1},
      {OpKind::shift_right, u8, {0x80, 8}, 0},
      {OpKind::shift_right, i4, {0x8, 0xf}, 0xf},
      {OpKind::shift_right, i4, {0x8, 2}, 0xe},
      {OpKind::shift_left, u3, {1, 3}, 0},
      {OpKind::shift_left, u1, {1, 1}, 0},
      {OpKind::shift_left, u1, {1, 0}, 1},
      {OpKind::shift_left, u64, {1, 63}, uint64_t{1} << 63},
      {OpKind::shift_left, u64, {1, 64}, 0},
      {OpKind::shift_right, i64, {uint64_t{1} << 63, ~uint64_t{0}}, ~uint64_t{0}},
      {OpKind::shift_right, i32, {minus, 31}, 0xffffffff},
      {OpKind::shift_right, u32, {minus, 32}, 0},
  });
}

TEST(ArithmeticRules, ComparisonsAreQuiet) {
  for (OpKind op : {OpKind::equal, OpKind::not_equal, OpKind::less, OpKind::less_equal,
                    OpKind::greater, OpKind::greater_equal}) {
    const uint64_t unordered = op == OpKind::not_equal;
    const uint64_t equal =
        op == OpKind::equal || op == OpKind::less_equal || op == OpKind::greater_equal;
    const uint64_t less = op == OpKind::not_equal || op == OpKind::less || op == OpKind::less_equal;
    expect_results({
        {op, f32, {0x7fc00000, 0x7fc00000}, unordered},
        {op, f32, {0x7f800001, f32_one}, unordered},
        {op, f32, {f32_inf, 0xffc00000}, unordered},
        {op, f8e4m3, {0x7f, 0x7f}, unordered},
        {op, f8e5m2fnuz, {0x80, 0}, unordered},
        {op, f8e8m0, {0xff, 0xff}, unordered},
        {op, f8e8m0, {0x00, 0xff}, unordered},
        {op, f8e8m0, {0x00, 0x01}, less},
        {op, f32, {0, minus}, equal},
        {op, f4e2m1, {0x8, 0x0}, equal},
        {op, f32, {f32_inf | minus, f32_inf}, less},
        {op, f16, {0xfc00, 0xfbff}, less},
        {op, nf4, {0x0, 0x1}, less},
        {op, nf4, {0x6, 0x7}, less},
        {op, boolean, {2, 255}, equal},
        {op, boolean, {0, 128}, less},
        {op, i4, {0x8, 0x7}, less},
        {op, u4, {0x7, 0x8}, less},
        {op, i64, {uint64_t{1} << 63, 0}, less},
        {op, u64, {0, uint64_t{1} << 63}, less},
        {op, f64, {0x8000000000000001, 0}, less},
    });
  }
}

TEST(ArithmeticRules, TruthValuesAreNormalised) {
  expect_results({
      {OpKind::logical_and, boolean, {2, 4}, 1},  {OpKind::logical_or, boolean, {0, 255}, 1},
      {OpKind::logical_xor, boolean, {2, 4}, 0},  {OpKind::logical_not, boolean, {2}, 0},
      {OpKind::logical_not, boolean, {0}, 1},     {OpKind::bitwise_and, boolean, {2, 4}, 1},
      {OpKind::bitwise_or, boolean, {0, 255}, 1}, {OpKind::bitwise_xor, boolean, {2, 4}, 0},
      {OpKind::bitwise_not, boolean, {2}, 0},     {OpKind::bitwise_not, boolean, {0}, 1},
      {OpKind::bitwise_not, u3, {5}, 2},          {OpKind::bitwise_not, u64, {5}, ~uint64_t{5}},
      {OpKind::bitwise_xor, i2, {3, 1}, 2},       {OpKind::is_nan, f32, {0x7f800001}, 1},
      {OpKind::is_nan, f32, {f32_inf}, 0},        {OpKind::is_nan, f8e4m3, {0xff}, 1},
      {OpKind::is_nan, f8e5m2fnuz, {0x80}, 1},    {OpKind::is_nan, f4e2m1, {0xf}, 0},
      {OpKind::is_nan, f6e2m3, {0x3f}, 0},
  });
}

TEST(ArithmeticRules, RootsAndRounding) {
  expect_results({
      {OpKind::sqrt, f32, {minus}, minus},
      {OpKind::sqrt, f32, {f32_inf}, f32_inf},
      {OpKind::sqrt, f32, {f32_two}, 0x3fb504f3},
      {OpKind::sqrt, f32, {1}, 0x1a3504f3},  // the square root of the least number, 2^-149
      {OpKind::sqrt, f64, {1}, 0x1e60000000000000},
      {OpKind::floor, f32, {0xbf000000}, 0xbf800000},
      {OpKind::ceil, f32, {0xbf000000}, minus},
      {OpKind::trunc, f32, {0xbf000000}, minus},
      {OpKind::round_even, f32, {0xbf000000}, minus},
      {OpKind::round_even, f32, {0x3fc00000}, f32_two},
      {OpKind::round_even, f32, {0x40200000}, f32_two},
      {OpKind::ceil, f32, {1}, f32_one},
      {OpKind::floor, f32, {minus}, minus},
      {OpKind::floor, f32, {f32_inf | minus}, f32_inf | minus},
      {OpKind::ceil, f8e4m3fnuz, {0xb0}, 0},  // -0.25: no -0 there
      {OpKind::floor, i8, {0x81}, 0x81},
      {OpKind::round_even, u64, {~uint64_t{0}}, ~uint64_t{0}},
      {OpKind::add, f32, {minus, minus}, minus},
      {OpKind::add, f32, {f32_one, f32_one | minus}, 0},
      {OpKind::sub, f32, {minus, 0}, minus},
      {OpKind::mul, f32, {minus, f32_one}, minus},
      {OpKind::mul, f32, {0x80000001, 0x3f000000}, minus},  // a tie, rounded to zero
      {OpKind::add, f32, {1, 1}, 2},                        // subnormals stay
      {OpKind::mul, bf16, {0x2000, 0x1f80}, 0x0040},        // 2^-63 * 2^-64 = 2^-127
  });
}

}  // namespace
}  // namespace castor
