// SPDX-License-Identifier: Apache-2.0
// The clauses of the conversion table (ir/README.md, Convert): float to integer.
#include "tests/support/convert_rows.hpp"

namespace castor {
namespace {

using enum ElementType;

constexpr ConvertOptions none{};
constexpr ConvertOptions saturate{.overflow = Overflow::saturate};
constexpr ConvertOptions wrap{.overflow = Overflow::wrap};
constexpr ConvertOptions rounded(Rounding rounding, Overflow overflow = Overflow::by_type) {
  return {.overflow = overflow, .rounding = rounding};
}

TEST(Convert, FloatToIntegerTruncatesAndSaturates) {
  expect_rows({
      {f32, i32, none, 0x4048f5c3, 3},           // 3.14
      {f32, i32, none, 0xc048f5c3, 0xfffffffd},  // -3.14 -> -3
      {f32, u8, none, 0xbf7fffff, 0},            // just above -1
      {f32, u8, none, 0x437fffff, 255},          // just below 256
      {f32, u8, none, 0x43800000, 255},
      {f32, i8, none, 0xc3010000, 0x80},         // -129
      {f32, i32, none, 0x4effffff, 0x7fffff80},  // the last below 2^31
      {f32, i32, none, 0x4f000000, 0x7fffffff},  // 2^31
      {f32, i32, none, 0xcf000000, 0x80000000},  // -2^31 is in range
      {f32, u32, none, 0x4f800000, 0xffffffff},  // 2^32
      {f64, i64, none, 0x43dfffffffffffff, 0x7ffffffffffffc00},
      {f64, i64, none, 0x43e0000000000000, 0x7fffffffffffffff},  // 2^63
      {f64, i64, none, 0xc3e0000000000000, 0x8000000000000000},
      {f64, u64, none, 0x43e0000000000000, 0x8000000000000000},
      {f64, u64, none, 0x43f0000000000000, 0xffffffffffffffff},  // 2^64
      {f64, i64, none, 0x7fefffffffffffff, 0x7fffffffffffffff},
      {f16, i16, none, 0x7bff, 0x7fff},  // 65504
      {bf16, u64, none, 0x7f7f, 0xffffffffffffffff},
      {f32, i32, none, 0x7f800000, 0x7fffffff},
      {f32, i32, none, 0xff800000, 0x80000000},
      {f32, u16, none, 0xff800000, 0},
      {f32, i32, none, 0x80000000, 0},  // -0
      {f32, i32, none, 0x00000001, 0},
      {f32, i8, saturate, 0x43000000, 127},
      {f64, i4, none, 0xc059000000000000, 0x8},  // -100
  });
  for (uint64_t nan : {0x7fc00000u, 0xffc00000u, 0x7f800001u, 0xffffffffu}) {
    for (ElementType to : {u8, i8, u16, i16, u32, i32, u64, i64}) {
      expect_rows({{f32, to, none, nan, 0}, {f32, to, saturate, nan, 0}, {f32, to, wrap, nan, 0}});
    }
  }
}

TEST(Convert, FloatToIntegerRoundings) {
  struct Row {
    uint64_t input;   // f32
    int expected[6];  // toward_zero, nearest_even, nearest_away, down, up, half_up
  };
  const Row rows[] = {
      {0x3effffff, {0, 0, 0, 0, 1, 0}},        // below 1/2: adding 1/2 in f32 would give 1
      {0x3f000000, {0, 0, 1, 0, 1, 1}},        // 1/2
      {0x3f000001, {0, 1, 1, 0, 1, 1}},        //
      {0x3fc00000, {1, 2, 2, 1, 2, 2}},        // 3/2
      {0x40200000, {2, 2, 3, 2, 3, 3}},        // 5/2
      {0x40400000, {3, 3, 3, 3, 3, 3}},        // 3
      {0xbeffffff, {0, 0, 0, -1, 0, 0}},       //
      {0xbf000000, {0, 0, -1, -1, 0, 0}},      // -1/2
      {0xbf000001, {0, -1, -1, -1, 0, -1}},    //
      {0xbfc00000, {-1, -2, -2, -2, -1, -1}},  // -3/2
      {0xc0200000, {-2, -2, -3, -3, -2, -2}},  // -5/2
      {0x00000001, {0, 0, 0, 0, 1, 0}},        // the smallest subnormal
      {0x80000001, {0, 0, 0, -1, 0, 0}},       //
      {0x80000000, {0, 0, 0, 0, 0, 0}},        // -0
      {0x4b000001, {8388609, 8388609, 8388609, 8388609, 8388609, 8388609}},
  };
  for (const Row& row : rows) {
    for (int mode = 0; mode < 6; ++mode) {
      const ConvertOptions options = rounded(static_cast<Rounding>(mode + 1));
      const auto expected = static_cast<uint32_t>(row.expected[mode]);
      expect_rows({{f32, i32, options, row.input, expected}});
    }
  }
}

TEST(Convert, FloatToIntegerRoundsBeforeItSaturates) {
  expect_rows({
      {f32, u8, rounded(Rounding::nearest_even), 0x437f8000, 255},  // 255.5
      {f32, u8, rounded(Rounding::down), 0xb4000000, 0},            // floor -> -1 -> 0
      {f32, i8, rounded(Rounding::down), 0xc3004000, 0x80},         // -128.25
      {f64, u64, rounded(Rounding::up), 0x43efffffffffffff, 0xfffffffffffff800},
  });
}

TEST(Convert, FloatToIntegerWraps) {
  const ConvertOptions wrap_even = rounded(Rounding::nearest_even, Overflow::wrap);
  const ConvertOptions wrap_down = rounded(Rounding::down, Overflow::wrap);
  expect_rows({
      {f32, i8, wrap, 0x43480000, 0xc8},                         // 200 -> -56
      {f32, u8, wrap, 0xbf800000, 0xff},                         // -1
      {f32, u8, wrap, 0x43804000, 0},                            // 256.5 -> 256 -> 0
      {f32, i32, wrap, 0x4f800000, 0},                           // 2^32
      {f32, u32, wrap, 0xcf000000, 0x80000000},                  // -2^31
      {f64, i32, wrap, 0x43dfffffffffffff, 0xfffffc00},          // the last below 2^63
      {f64, i32, wrap, 0x43e0000000000001, 0},                   // above: no low bits
      {f64, u32, wrap, 0x43e0000000000000, 0},                   //
      {f64, u64, wrap, 0x43e0000000000001, 0x8000000000000800},  // fits u64
      {f64, i64, wrap, 0x43e0000000000001, 0},                   // fits u64 only
      {f64, u64, wrap, 0x43f0000000000000, 0},                   // 2^64
      {f64, u64, wrap, 0xbff0000000000000, 0xffffffffffffffff},  // -1 fits i64
      {f64, u64, wrap, 0xc3e0000000000000, 0x8000000000000000},  // -2^63
      {f64, u64, wrap, 0xc3e0000000000001, 0},                   // below -2^63
      {f64, u8, wrap, 0xc3e0000000000000, 0},                    //
      {f32, u8, wrap, 0x7f800000, 0},                            // inf
      {f32, i64, wrap, 0xff800000, 0},                           //
      {f32, u8, wrap_even, 0x437f8000, 0},                       // 255.5 -> 256 -> 0
      {f32, u8, wrap_down, 0x80000001, 0xff},                    // -1
      {f16, i8, wrap, 0x7bff, 0xe0},                             // 65504 = 0xffe0
  });
}

}  // namespace
}  // namespace castor
