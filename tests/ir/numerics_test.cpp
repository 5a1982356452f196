// SPDX-License-Identifier: Apache-2.0
// The clauses of the conversion table (ir/README.md, Convert) but float to integer.
#include "tests/support/convert_rows.hpp"

namespace castor {
namespace {

using enum ElementType;

constexpr ConvertOptions none{};
constexpr ConvertOptions saturate{.overflow = Overflow::saturate};
constexpr ConvertOptions nan_zero{.nan = NanMode::zero};

TEST(Convert, SameTypeCopiesBits) {
  expect_rows({
      {u8, u8, none, 0xff, 0xff},
      {i64, i64, saturate, 0x8000000000000000, 0x8000000000000000},
      {f16, f16, none, 0x7c01, 0x7c01},  // a signalling NaN stays one
      {bf16, bf16, none, 0xff81, 0xff81},
      {f32, f32, none, 0x7f800001, 0x7f800001},
      {f32, f32, saturate, 0xff800001, 0xff800001},  // under saturate, too
      {f64, f64, none, 0xfff0000000000001, 0xfff0000000000001},
      {f64, f64, none, 0x8000000000000000, 0x8000000000000000},
      {f32, f32, none, 0x00000001, 0x00000001},  // subnormals are kept
      {f32, f32, none, 0x7f800000, 0x7f800000},
      {boolean, boolean, none, 0, 0},  // normalised
      {boolean, boolean, none, 1, 1},
      {boolean, boolean, saturate, 2, 1},
      {boolean, boolean, none, 0xff, 1},
  });
}

TEST(Convert, SameTypeSaturateClampsInfinities) {
  expect_rows({
      {f16, f16, saturate, 0x7c00, 0x7bff},
      {f16, f16, saturate, 0xfc00, 0xfbff},
      {bf16, bf16, saturate, 0x7f80, 0x7f7f},
      {f32, f32, saturate, 0xff800000, 0xff7fffff},
      {f64, f64, saturate, 0x7ff0000000000000, 0x7fefffffffffffff},
      {f32, f32, saturate, 0x7f7fffff, 0x7f7fffff},
  });
}

TEST(Convert, IntegerToIntegerIsModulo) {
  expect_rows({
      {i32, u8, none, 200, 200},
      {u8, i8, none, 200, 200},                   // -56
      {i32, u32, none, 0xffffffff, 0xffffffff},   // -1 -> 2^32 - 1
      {i8, u64, none, 0xff, 0xffffffffffffffff},  // sign extends first
      {u8, i64, none, 0xff, 0xff},                // zero extends
      {i64, i32, none, 0x8000000000000001, 1},    // low bits
      {u64, i64, none, 0xffffffffffffffff, 0xffffffffffffffff},
      {i64, i8, none, 0x8000000000000000, 0},
      {i16, i4, none, 0x17, 0x7},
      {i4, i16, none, 0x8, 0xfff8},
      {u64, u1, none, 3, 1},
      {i2, i8, none, 2, 0xfe},
  });
}

TEST(Convert, IntegerToIntegerSaturates) {
  expect_rows({
      {i32, u8, saturate, 256, 255},
      {i32, u8, saturate, 0xffffffff, 0},
      {u8, i8, saturate, 128, 127},
      {i16, i8, saturate, 0xff7f, 0x80},  // -129 -> -128
      {i16, i8, saturate, 0xff80, 0x80},  // -128 stays
      {u64, i64, saturate, 0x8000000000000000, 0x7fffffffffffffff},
      {i64, u64, saturate, 0x8000000000000000, 0},
      {u64, i32, saturate, 0xffffffffffffffff, 0x7fffffff},
      {i64, i32, saturate, 0x8000000000000000, 0x80000000},
      {i32, i4, saturate, 100, 7},
      {u64, u3, saturate, 8, 7},
  });
}

TEST(Convert, IntegerToFloatRoundsOnce) {
  expect_rows({
      {u8, f16, none, 255, 0x5bf8},
      {i8, f32, none, 0x80, 0xc3000000},
      {i32, f32, none, 0x01000001, 0x4b800000},  // 2^24 + 1: a tie, to even
      {i32, f32, none, 0x01000003, 0x4b800002},
      {i64, f64, none, 0x7fffffffffffffff, 0x43e0000000000000},
      {u64, f32, none, 0xffffffffffffffff, 0x5f800000},
      {u64, f64, none, 0xfffffffffffffbff, 0x43efffffffffffff},  // below the tie
      {u64, f64, none, 0xfffffffffffffc00, 0x43f0000000000000},  // the tie
      {i64, bf16, none, 0x0101000000000001, 0x5b81},  // above a tie by what f32 would lose
      {i64, bf16, none, 0x0101000000000000, 0x5b80},
      {i32, f16, none, 65519, 0x7bff},
      {i32, f16, none, 65520, 0x7c00},  // the tie above 65504
      {i32, f16, none, 0xffff0010, 0xfc00},
      {i32, f16, saturate, 65520, 0x7bff},
      {i64, f16, saturate, 0x8000000000000000, 0xfbff},
      {u64, bf16, none, 0xffffffffffffffff, 0x5f80},
      {i32, f8e4m3, none, 1000, 0x7f},       // no infinity: NaN
      {i32, f8e4m3fnuz, none, 1000, 0x80},   //
      {i32, f4e2m1, none, 0xffffff00, 0xf},  // neither: largest
      {i32, f6e2m3, none, 0xffffff00, 0x3f},
      {i32, f6e3m2, none, 30, 0x1f},
      {i8, f64, none, 0, 0},
  });
}

TEST(Convert, FloatToFloatRoundsOnce) {
  expect_rows({
      {f32, f16, none, 0x3f801000, 0x3c00},          // ties to even
      {f32, f16, none, 0x3f803000, 0x3c02},          //
      {f32, f16, none, 0x3f801001, 0x3c01},          // above a tie
      {f64, f16, none, 0x3ff0020000000001, 0x3c01},  // above a tie by what f32 would lose
      {f64, bf16, none, 0x3ff0100000000001, 0x3f81},
      {f64, f32, none, 0x3ff0000010000000, 0x3f800000},
      {f32, bf16, none, 0x3f80ffff, 0x3f81},
      {f64, f8e4m3, none, 0x3ff1000000000001, 0x39},
      {f32, f16, none, 0x33000000, 0x0000},  // half of the smallest subnormal: a tie
      {f32, f16, none, 0x33000001, 0x0001},
      {f32, f16, none, 0xb3000000, 0x8000},  // keeps its sign
      {f32, f16, none, 0x387fffff, 0x0400},  // rounds up into the normal numbers
      {f32, f16, none, 0x387fc000, 0x03ff},
      {f64, f32, none, 0x36a0000000000000, 0x00000001},
      {f64, f32, none, 0x3690000000000000, 0},
      {f64, f32, none, 0x0000000000000001, 0},
      {bf16, f16, none, 0x0001, 0},
      {f16, f32, none, 0x0001, 0x33800000},  // subnormal, normal in f32
      {f32, f64, none, 0x00000001, 0x36a0000000000000},
      {f32, bf16, none, 0x00010000, 0x0001},
      {f32, f16, none, 0x80000000, 0x8000},
      {f32, f8e4m3fnuz, none, 0x80000000, 0x00},  // fnuz has no -0
      {f32, f8e4m3fnuz, none, 0x80000001, 0x00},
  });
}

TEST(Convert, FloatToFloatOverflow) {
  expect_rows({
      {f32, f16, none, 0x477fefff, 0x7bff},  // below 65520
      {f32, f16, none, 0x477ff000, 0x7c00},  // 65520
      {f32, f16, none, 0xc77ff000, 0xfc00},
      {f32, f16, saturate, 0x477ff000, 0x7bff},
      {f32, f16, saturate, 0xff800000, 0xfbff},  // infinities, too
      {f32, bf16, none, 0x7f7fffff, 0x7f80},
      {f32, bf16, saturate, 0x7f7fffff, 0x7f7f},
      {f64, f32, none, 0x47efffffe0000000, 0x7f7fffff},
      {f64, f32, none, 0x47effffff0000000, 0x7f800000},
      {f64, f32, saturate, 0x7ff0000000000000, 0x7f7fffff},
      {f16, f64, none, 0xfc00, 0xfff0000000000000},
      {f16, f64, saturate, 0xfc00, 0xffefffffffffffff},
      {f32, f8e5m2, none, 0x47700000, 0x7c},  // 61440
      {f32, f8e4m3, none, 0x43e80000, 0x7e},  // 464, a tie: 448
      {f32, f8e4m3, none, 0xc3e80001, 0xff},  // no infinity: NaN of that sign
      {f32, f8e4m3, none, 0x7f800000, 0x7f},
      {f32, f8e4m3, saturate, 0x7f800000, 0x7e},
      {f32, f8e4m3fnuz, none, 0xc3780000, 0x80},  // 248
      {f32, f8e4m3fnuz, saturate, 0xff800000, 0xff},
      {f32, f4e2m1, none, 0x7f800000, 0x7},
      {f32, f6e2m3, none, 0xff800000, 0x3f},
      {f32, f6e2m3, none, 0x40f80001, 0x1f},  // above 7.75, where overflow would begin
      {f32, f6e3m2, none, 0x7f800000, 0x1f},
  });
}

TEST(Convert, NanToFloatIsQuietWithItsTopPayload) {
  expect_rows({
      {f32, f64, none, 0x7f800001, 0x7ff8000020000000},
      {f64, f32, none, 0xfff0000000000001, 0xffc00000},  // the payload's low bits are lost
      {f64, f32, none, 0x7ff4000020000000, 0x7fe00001},
      {f32, f16, none, 0x7fa02000, 0x7f01},
      {f32, f16, none, 0xffc01fff, 0xfe00},
      {f16, f32, none, 0xfd55, 0xffeaa000},
      {bf16, f16, none, 0x7f81, 0x7e08},
      {f16, bf16, none, 0x7c08, 0x7fc1},
      {f32, bf16, none, 0x7f80ffff, 0x7fc0},  // never an infinity
      {f32, bf16, saturate, 0x7fffffff, 0x7fff},
      {f8e5m2, f16, none, 0x7d, 0x7f00},
      {f8e4m3, f32, none, 0x7f, 0x7fc00000},
      {f8e4m3, f32, none, 0xff, 0xffc00000},
      {f8e4m3fnuz, f32, none, 0x80, 0xffc00000},
      {f32, f8e4m3, none, 0xffc12345, 0xff},
      {f32, f8e5m2fnuz, none, 0x7fc00000, 0x80},
      {f32, f4e2m1, none, 0x7fc00000, 0x7},
      {f32, f4e2m1, none, 0xffc00000, 0xf},
      {f32, f6e2m3, none, 0x7fc00000, 0x1f},
      {f32, f6e2m3, nan_zero, 0x7fc00000, 0x20},
      {f32, f6e2m3, nan_zero, 0xffc00000, 0x00},
      {f32, f6e3m2, none, 0xffc00000, 0x3f},
      {f32, f6e3m2, nan_zero, 0x7fc00000, 0x20},
      {f32, f4e2m1, nan_zero, 0x7fc00000, 0x8},
      {f32, f4e2m1, nan_zero, 0xffc00000, 0x0},
  });
}

TEST(Convert, ToBoolean) {
  expect_rows({
      {u8, boolean, none, 0, 0},
      {u8, boolean, none, 2, 1},
      {i64, boolean, none, 0x8000000000000000, 1},
      {f32, boolean, none, 0x00000000, 0},
      {f32, boolean, none, 0x80000000, 0},  // -0 is zero
      {f32, boolean, none, 0x00000001, 1},  // a subnormal is not
      {f32, boolean, saturate, 0x7fc00000, 1},
      {f16, boolean, none, 0xfc00, 1},
      {bf16, boolean, none, 0x8000, 0},
      {f64, boolean, none, 0x8000000000000001, 1},
  });
}

TEST(Convert, FromBoolean) {
  for (uint64_t byte : {1u, 2u, 0x80u, 0xffu}) {
    expect_rows({
        {boolean, u8, none, byte, 1},
        {boolean, i64, saturate, byte, 1},
        {boolean, i2, saturate, byte, 1},
        {boolean, f16, none, byte, 0x3c00},
        {boolean, bf16, none, byte, 0x3f80},
        {boolean, f32, none, byte, 0x3f800000},
        {boolean, f64, none, byte, 0x3ff0000000000000},
    });
  }
  expect_rows({{boolean, i32, none, 0, 0}, {boolean, f64, none, 0, 0}});
}

}  // namespace
}  // namespace castor
