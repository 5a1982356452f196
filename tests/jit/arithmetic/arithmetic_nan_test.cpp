// SPDX-License-Identifier: Apache-2.0
// NaN, invalid operations and overflow (ir/README.md, Arithmetic), as tables of bits.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/support/op_cases.hpp"

namespace castor {
namespace {

using enum ElementType;
using namespace test;

constexpr OpKind float_binary_ops[] = {
    OpKind::add, OpKind::sub,       OpKind::mul, OpKind::div, OpKind::floor_div,
    OpKind::mod, OpKind::floor_mod, OpKind::min, OpKind::max, OpKind::squared_difference};

TEST(ArithmeticNan, TheFirstNanIsMadeQuiet) {
  for (OpKind op : float_binary_ops) {
    expect_results({
        {op, f32, {0x7f800001, 0xffc00002}, 0x7fc00001},
        {op, f32, {0xffc00002, 0x7f800001}, 0xffc00002},
        {op, f32, {f32_one, 0xff812345}, 0xffc12345},
        {op, f32, {0xffa00000, f32_inf}, 0xffe00000},
        {op, f64, {0x7ff0000000000001, 0}, 0x7ff8000000000001},
        {op, f64, {0, 0xfff4000000000000}, 0xfffc000000000000},
        {op, f16, {0x7c01, 0xfe00}, 0x7e01},
        {op, f16, {0x3c00, 0xfd00}, 0xff00},
        {op, bf16, {0x7f81, 0x3f80}, 0x7fc1},
        {op, bf16, {0x3f80, 0xffa0}, 0xffe0},
        {op, f8e5m2, {0x7d, 0xfe}, 0x7f},
        {op, f8e5m2, {0x3c, 0xfd}, 0xff},
        {op, f8e4m3, {0x7f, 0xff}, 0x7f},
        {op, f8e4m3, {0x38, 0xff}, 0xff},
        {op, f8e4m3fnuz, {0x80, 0x40}, 0x80},
        {op, f8e5m2fnuz, {0x40, 0x80}, 0x80},
    });
  }
  for (OpKind op : {OpKind::sign, OpKind::relu, OpKind::clamp, OpKind::sqrt, OpKind::floor,
                    OpKind::ceil, OpKind::trunc, OpKind::round_even}) {
    expect_results({
        {op, f32, {0x7f800001}, 0x7fc00001},
        {op, f32, {0xffa00000}, 0xffe00000},
        {op, f64, {0xfff0000000000001}, 0xfff8000000000001},
        {op, f16, {0xfc01}, 0xfe01},
        {op, bf16, {0x7f81}, 0x7fc1},
        {op, f8e5m2, {0xfd}, 0xff},
        {op, f8e4m3, {0xff}, 0xff},
        {op, f8e4m3, {0x7f}, 0x7f},
        {op, f8e5m2fnuz, {0x80}, 0x80},
    });
  }
}

/// What an invalid operation gives in each type, by an op of these numbers of f32.
void expect_invalid(OpKind op, const std::vector<uint64_t>& operands) {
  const std::pair<ElementType, uint64_t> invalid[] = {
      {f32, f32_invalid}, {f64, 0xfff8000000000000},
      {f16, 0xfe00},      {bf16, 0xffc0},
      {f8e5m2, 0xfe},     {f8e4m3, 0xff},
      {f8e4m3fnuz, 0x80}, {f8e5m2fnuz, 0x80},
      {f4e2m1, 0xf},      {f6e2m3, 0x3f},
      {f6e3m2, 0x3f},
  };
  for (const auto& [type, expected] : invalid) {
    std::vector<uint64_t> converted;
    bool has_them = true;
    for (uint64_t bits : operands) {
      has_them = has_them && (has_infinities(type) || (bits & ~minus) != f32_inf);
      const auto f = test::interpreted(OpKind::convert, {test::row_of(f32, {bits})}, {},
                                       {.element = type, .shape = {}});
      converted.push_back(f.elements.at(0));
    }
    if (!has_them) continue;
    EXPECT_EQ(result_of(op, type, converted), expected) << name_of(op) << " " << name_of(type);
  }
}

TEST(ArithmeticNan, InvalidOperations) {
  expect_invalid(OpKind::add, {f32_inf, f32_inf | minus});
  expect_invalid(OpKind::sub, {f32_inf, f32_inf});
  expect_invalid(OpKind::mul, {0, f32_inf});
  expect_invalid(OpKind::mul, {f32_inf, 0});
  expect_invalid(OpKind::div, {0, 0});
  expect_invalid(OpKind::div, {f32_inf, f32_inf});
  expect_invalid(OpKind::floor_div, {0, 0});
  expect_invalid(OpKind::mod, {f32_one, 0});
  expect_invalid(OpKind::mod, {f32_inf, f32_one});
  expect_invalid(OpKind::floor_mod, {f32_one, 0});
  expect_invalid(OpKind::floor_mod, {f32_inf, f32_one});
  expect_invalid(OpKind::squared_difference, {f32_inf, f32_inf});
  expect_invalid(OpKind::prelu, {f32_inf | minus, 0});
  expect_invalid(OpKind::sqrt, {f32_one | minus});
  expect_invalid(OpKind::sqrt, {f32_inf | minus});
}

TEST(ArithmeticNan, OverflowIsThatOfConvert) {
  expect_results({
      {OpKind::add, f32, {0x7f7fffff, 0x73000000}, 0x7f800000},  // the tie above the largest
      {OpKind::add, f32, {0x7f7fffff, 0x72ffffff}, 0x7f7fffff},
      {OpKind::mul, f16, {0x7bff, 0xc000}, 0xfc00},
      {OpKind::mul, f8e5m2, {0x7b, 0x40}, 0x7c},
      {OpKind::mul, f8e4m3, {0x7e, 0x40}, 0x7f},
      {OpKind::mul, f8e4m3, {0x7e, 0xc0}, 0xff},
      {OpKind::add, f8e4m3, {0x7e, 0x58}, 0x7e},  // 448 + 16 is a tie with what would be 480
      {OpKind::mul, f8e4m3fnuz, {0x7f, 0x48}, 0x80},
      {OpKind::mul, f8e5m2fnuz, {0x7f, 0xc8}, 0x80},
      {OpKind::mul, f4e2m1, {0x7, 0x7}, 0x7},
      {OpKind::mul, f4e2m1, {0x7, 0xf}, 0xf},
      {OpKind::div, f32, {f32_one, minus}, f32_inf | minus},
      {OpKind::div, f8e4m3, {0x38, 0x80}, 0xff},  // an infinity that the type has not
      {OpKind::div, f8e4m3fnuz, {0x40, 0x00}, 0x80},
      {OpKind::div, f4e2m1, {0x2, 0x8}, 0xf},
      {OpKind::floor_div, f4e2m1, {0x2, 0x0}, 0x7},
      {OpKind::squared_difference, f8e4m3, {0x7e, 0xfe}, 0x7f},  // d is NaN of its sign
      {OpKind::squared_difference, f8e4m3, {0xfe, 0x7e}, 0xff},
  });
}

}  // namespace
}  // namespace castor
