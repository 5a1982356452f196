// SPDX-License-Identifier: Apache-2.0
// Decoding to exact numbers, and encoding numbers that carry an inexact flag.
#include <gtest/gtest.h>

#include "ir/numerics/unpacked.hpp"

namespace castor::numerics {
namespace {

using enum ElementType;
using enum NumberClass;

constexpr uint64_t top_bit = uint64_t{1} << 63;

struct DecodeRow {
  ElementType type;
  uint64_t bits;
  NumberClass kind;
  bool negative;
  uint64_t significand;
  int exponent;
};

constexpr DecodeRow decode_rows[] = {
    {boolean, 0, zero, false, 0, 0},
    {boolean, 0x80, finite, false, top_bit, 0},
    {u1, 1, finite, false, top_bit, 0},
    {i2, 2, finite, true, top_bit, 1},                        // -2
    {i4, 0xf, finite, true, top_bit, 0},                      // -1
    {u8, 0xff, finite, false, 0xff00000000000000, 7},         //
    {i8, 0x80, finite, true, top_bit, 7},                     // -128
    {u64, ~uint64_t{0}, finite, false, ~uint64_t{0}, 63},     //
    {i64, top_bit, finite, true, top_bit, 63},                // -2^63
    {i64, ~uint64_t{0}, finite, true, top_bit, 0},            // -1
    {f32, 0x80000000, zero, true, 0, 0},                      // -0
    {f32, 0x3fc00000, finite, false, 0xc000000000000000, 0},  // 1.5
    {f32, 0x00000001, finite, false, top_bit, -149},          // smallest subnormal
    {f32, 0x007fffff, finite, false, 0xfffffe0000000000, -127},
    {f32, 0xff800000, infinity, true, 0, 0},
    {f32, 0x7f800001, nan, false, uint64_t{1} << 40, 0},  // payload aligned to bit 62
    {f32, 0xffc00000, nan, true, uint64_t{1} << 62, 0},   // the quiet bit
    {f64, 1, finite, false, top_bit, -1074},
    {f64, 0x7fefffffffffffff, finite, false, 0xfffffffffffff800, 1023},
    {f64, 0x7ff0000000000001, nan, false, uint64_t{1} << 11, 0},
    {f16, 0x0001, finite, false, top_bit, -24},
    {f16, 0x7bff, finite, false, 0xffe0000000000000, 15},
    {bf16, 0x0001, finite, false, top_bit, -133},
    {bf16, 0xff80, infinity, true, 0, 0},
    {f8e4m3, 0x7e, finite, false, 0xe000000000000000, 8},  // 448
    {f8e4m3, 0xff, nan, true, 0, 0},
    {f8e4m3fnuz, 0x80, nan, true, 0, 0},
    {f8e4m3fnuz, 0x7f, finite, false, 0xf000000000000000, 7},  // 240
    {f8e5m2, 0x7c, infinity, false, 0, 0},
    {f8e5m2, 0x7d, nan, false, uint64_t{1} << 61, 0},
    {f8e5m2fnuz, 0x01, finite, false, top_bit, -17},
    {f4e2m1, 0x7, finite, false, 0xc000000000000000, 2},  // 6
    {f4e2m1, 0x8, zero, true, 0, 0},
    {f4e2m1, 0x9, finite, true, top_bit, -1},              // -0.5
    {f6e2m3, 0x1f, finite, false, 0xf000000000000000, 2},  // 7.5
    {f6e2m3, 0x20, zero, true, 0, 0},
    {f6e2m3, 0x21, finite, true, top_bit, -3},             // -0.125
    {f6e2m3, 0x08, finite, false, top_bit, 0},             // 1, the least normal number
    {f6e3m2, 0x1f, finite, false, 0xe000000000000000, 4},  // 28
    {f6e3m2, 0x21, finite, true, top_bit, -4},             // -0.0625
};

TEST(Decode, GivesTheExactNumber) {
  for (const DecodeRow& row : decode_rows) {
    SCOPED_TRACE(testing::Message() << name_of(row.type) << std::hex << " 0x" << row.bits);
    const Unpacked number = decode(row.bits, row.type);
    EXPECT_EQ(number.kind, row.kind);
    EXPECT_EQ(number.negative, row.negative);
    EXPECT_EQ(number.significand, row.significand);
    EXPECT_EQ(number.exponent, row.exponent);
    EXPECT_FALSE(number.inexact);
  }
}

TEST(Decode, IgnoresBitsAboveTheType) {
  EXPECT_EQ(decode(0xf1, u4).significand, top_bit);
  EXPECT_EQ(decode(0x17f, i8).exponent, 6);
  EXPECT_EQ(decode(0x13c00, f16).exponent, 0);
  EXPECT_EQ(decode(0x100, boolean).kind, zero);
}

// Every code of every type up to 16 bits comes back, but for signalling NaNs, which become quiet.
TEST(Encode, UndoesDecode) {
  for (const ElementInfo& row : element_table) {
    if (row.bits > 16 || !(is_integer(row.type) || is_float(row.type))) continue;
    for (uint64_t bits = 0; bits < uint64_t{1} << row.bits; ++bits) {
      const Unpacked number = decode(bits, row.type);
      uint64_t expected = bits;
      if (number.kind == nan && row.format.specials == FloatSpecials::ieee) {
        expected |= uint64_t{1} << (row.format.mantissa_bits - 1);
      }
      ASSERT_EQ(encode(number, row.type, row.type, {}), expected) << row.name << " " << bits;
    }
  }
}

struct InexactRow {
  ElementType to;
  Rounding rounding;
  uint64_t significand;
  int exponent;
  uint64_t exact;    ///< code of the number itself
  uint64_t inexact;  ///< code of the number with something more cut off below
};

constexpr InexactRow inexact_rows[] = {
    {f16, Rounding::by_type, 0x8010000000000000, 0, 0x3c00, 0x3c01},  // a tie, or above it
    {f16, Rounding::by_type, 0x8000000000000000, 0, 0x3c00, 0x3c00},  // nothing, or less than half
    {f16, Rounding::by_type, 0x8000000000000000, -25, 0, 1},          // half of the least number
    {f16, Rounding::by_type, 0x8000000000000000, -26, 0, 0},          // a quarter
    {f64, Rounding::by_type, 0x8000000000000400, 0, 0x3ff0000000000000, 0x3ff0000000000001},
    {f32, Rounding::by_type, 0xffffff8000000000, 127, 0x7f800000, 0x7f800000},
    {i32, Rounding::nearest_even, 0xa000000000000000, 1, 2, 3},  // 2.5
    {i32, Rounding::up, 0x8000000000000000, 1, 2, 3},            // 2
    {i32, Rounding::down, 0x8000000000000000, 1, 2, 2},
};

TEST(Encode, InexactBreaksTies) {
  for (const InexactRow& row : inexact_rows) {
    SCOPED_TRACE(testing::Message() << name_of(row.to) << std::hex << " " << row.significand);
    Unpacked number{.kind = finite, .significand = row.significand, .exponent = row.exponent};
    const ConvertOptions options{.rounding = row.rounding};
    EXPECT_EQ(encode(number, f64, row.to, options), row.exact);
    number.inexact = true;
    EXPECT_EQ(encode(number, f64, row.to, options), row.inexact);
  }
}

TEST(Encode, TheSourceTypeSelectsTheRow) {
  const Unpacked number = decode(300, i32);
  EXPECT_EQ(encode(number, i32, u8, {}), 44u);   // integers wrap
  EXPECT_EQ(encode(number, f32, u8, {}), 255u);  // floats saturate
  const Unpacked large{.kind = finite, .significand = top_bit, .exponent = 64};
  EXPECT_EQ(encode(large, f64, u64, {.overflow = Overflow::wrap}), 0u);
}

}  // namespace
}  // namespace castor::numerics
