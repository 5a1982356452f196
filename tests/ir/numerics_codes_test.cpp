// SPDX-License-Identifier: Apache-2.0
// Conversions to and from f8e8m0 and nf4, whose codes are no sign, exponent and mantissa.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "tests/support/convert_rows.hpp"

namespace castor {
namespace {

using enum ElementType;

constexpr ConvertOptions none = {};
constexpr ConvertOptions saturate = {.overflow = Overflow::saturate};

constexpr ConvertOptions rounded(Rounding rounding, Overflow overflow = Overflow::by_type) {
  return {.overflow = overflow, .rounding = rounding};
}

constexpr uint64_t bits(float value) { return std::bit_cast<uint32_t>(value); }
constexpr uint64_t bits(double value) { return std::bit_cast<uint64_t>(value); }

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();

TEST(ToF8e8m0, NearestAtTheArithmeticMidpointTiesToTheEvenCode) {
  expect_rows({
      {f32, f8e8m0, none, bits(1.0f), 127},
      {f32, f8e8m0, none, bits(0x1.7ffffep0f), 127},  // below 1.5
      {f32, f8e8m0, none, bits(1.5f), 128},
      {f32, f8e8m0, none, bits(3.0f), 128},
      {f32, f8e8m0, none, bits(0x1.800002p1f), 129},
      {f32, f8e8m0, none, bits(6.0f), 130},
      {f32, f8e8m0, none, bits(12.0f), 130},
      {f32, f8e8m0, none, bits(24.0f), 132},
      {f64, f8e8m0, none, bits(0x1.8000000000001p1), 129},
      {f64, f8e8m0, none, bits(0x1.8p1), 128},
      {i32, f8e8m0, none, 3, 128},
      {u64, f8e8m0, none, 0xC000000000000001, 191},  // just above the tie of 63 + 127 and 191
      {u64, f8e8m0, none, 0xC000000000000000, 190},
      {boolean, f8e8m0, none, 1, 127},
      {f8e8m0, f8e8m0, none, 0xff, 0xff},
  });
}

TEST(ToF8e8m0, TheEndsOfTheRange) {
  for (const ConvertOptions& options :
       {none, saturate, rounded(Rounding::nearest_even, Overflow::saturate)}) {
    expect_rows({
        {f32, f8e8m0, options, bits(0x1p-127f), 0},
        {f32, f8e8m0, options, bits(0x1.8p-127f), 0},  // a tie: code 0 is even
        {f32, f8e8m0, options, bits(0x1.800004p-127f), 1},
        {f32, f8e8m0, options, bits(0x1p-149f), 0},
        {f32, f8e8m0, options, bits(0.0f), 0},
        {f32, f8e8m0, options, bits(-0.0f), 0},
        {f32, f8e8m0, options, bits(-3.0f), 0},
        {f32, f8e8m0, options, bits(-infinity), 0},
        {f32, f8e8m0, options, bits(0x1p127f), 254},
        {f32, f8e8m0, options, bits(0x1.fffffep127f), 254},
        {f32, f8e8m0, options, bits(infinity), 254},
        {f64, f8e8m0, options, bits(0x1p1000), 254},
        {f64, f8e8m0, options, bits(0x1p-1074), 0},
        {f32, f8e8m0, options, bits(nan_value), 255},
        {f32, f8e8m0, options, bits(-nan_value), 255},
        {i8, f8e8m0, options, 0x80, 0},
    });
  }
}

TEST(ToF8e8m0, RoundingsOfOnnx) {
  const ConvertOptions up = rounded(Rounding::up);
  const ConvertOptions down = rounded(Rounding::down);
  const ConvertOptions half_up = rounded(Rounding::half_up);
  expect_rows({
      {f32, f8e8m0, up, bits(0x1.000002p0f), 128},
      {f32, f8e8m0, up, bits(1.0f), 127},
      {f32, f8e8m0, up, bits(0x1.000004p-127f), 1},
      {f32, f8e8m0, up, bits(0x1p-149f), 0},
      {f32, f8e8m0, up, bits(0x1.000002p127f), 254},
      {f32, f8e8m0, down, bits(0x1.fffffep0f), 127},
      {f32, f8e8m0, down, bits(0x1.fffffcp-127f), 0},
      {f32, f8e8m0, half_up, bits(1.5f), 128},
      {f32, f8e8m0, half_up, bits(3.0f), 129},
      {f32, f8e8m0, half_up, bits(0x1.8p-127f), 1},
      {f32, f8e8m0, half_up, bits(0x1.7ffffep1f), 128},
  });
}

TEST(ToF8e8m0, OverflowIsNanWhereAskedFor) {
  for (Rounding rounding : {Rounding::by_type, Rounding::nearest_even, Rounding::up, Rounding::down,
                            Rounding::half_up}) {
    const ConvertOptions options = rounded(rounding, Overflow::nan);
    expect_rows({
        {f32, f8e8m0, options, bits(0.0f), 255},
        {f32, f8e8m0, options, bits(-0.0f), 255},
        {f32, f8e8m0, options, bits(-1.0f), 255},
        {f32, f8e8m0, options, bits(infinity), 255},
        {f32, f8e8m0, options, bits(-infinity), 255},
        {f32, f8e8m0, options, bits(nan_value), 255},
        {f32, f8e8m0, options, bits(0x1.fffff8p-128f), 255},  // before rounding
        {f32, f8e8m0, options, bits(0x1.000002p127f), 255},
        {f32, f8e8m0, options, bits(0x1p-127f), 0},
        {f32, f8e8m0, options, bits(0x1p127f), 254},
        {u8, f8e8m0, options, 0, 255},
        {i64, f8e8m0, options, ~uint64_t{0}, 255},
        {nf4, f8e8m0, options, 7, 255},
        {nf4, f8e8m0, options, 15, 127},
    });
  }
}

TEST(FromF8e8m0, PowersOfTwoAndOneNan) {
  expect_rows({
      {f8e8m0, f32, none, 0, 0x00400000},
      {f8e8m0, f32, none, 127, 0x3f800000},
      {f8e8m0, f32, none, 254, 0x7f000000},
      {f8e8m0, f32, none, 255, 0x7fc00000},
      {f8e8m0, bf16, none, 0, 0x0040},
      {f8e8m0, f16, none, 254, 0x7c00},
      {f8e8m0, f16, saturate, 254, 0x7bff},
      {f8e8m0, f16, none, 103, 0x0001},
      {f8e8m0, f16, none, 102, 0x0000},  // a tie
      {f8e8m0, i32, none, 158, 0x7fffffff},
      {f8e8m0, i32, none, 126, 0},
      {f8e8m0, i32, rounded(Rounding::up), 0, 1},
      {f8e8m0, u64, {.overflow = Overflow::wrap}, 190, uint64_t{1} << 63},
      {f8e8m0, u8, none, 255, 0},
      {f8e8m0, boolean, none, 0, 1},
      {f8e8m0, nf4, none, 255, 0},
      {f8e8m0, f4e2m1, none, 255, 0x7},
  });
}

/// OpenVINO's table: the value of each code, and the threshold above which a number takes it.
struct Nf4Row {
  float value;
  float threshold;
};
constexpr Nf4Row nf4_table[16] = {
    {-1.0f, -infinity},
    {-0.6961928009986877f, -0.8480964004993439f},
    {-0.5250730514526367f, -0.6106329262256622f},
    {-0.39491748809814453f, -0.4599952697753906f},
    {-0.28444138169288635f, -0.33967943489551544f},
    {-0.18477343022823334f, -0.23460740596055984f},
    {-0.09105003625154495f, -0.13791173323988914f},
    {0.0f, -0.045525018125772476f},
    {0.07958029955625534f, 0.03979014977812767f},
    {0.16093020141124725f, 0.1202552504837513f},
    {0.24611230194568634f, 0.2035212516784668f},
    {0.33791524171829224f, 0.2920137718319893f},
    {0.44070982933044434f, 0.3893125355243683f},
    {0.5626170039176941f, 0.5016634166240692f},
    {0.7229568362236023f, 0.6427869200706482f},
    {1.0f, 0.8614784181118011f},
};

TEST(Nf4, ThresholdsOfOpenVino) {
  for (uint64_t code = 0; code < 16; ++code) {
    const auto [value, threshold] = nf4_table[code];
    expect_rows({{nf4, f32, none, code, bits(value)}, {f32, nf4, none, bits(value), code}});
    if (code == 0) continue;
    const double wide = threshold;
    expect_rows({
        {f32, nf4, none, bits(threshold), code - 1},
        {f32, nf4, none, bits(std::nextafter(threshold, 2.0f)), code},
        {f32, nf4, none, bits(std::nextafter(threshold, -2.0f)), code - 1},
        {f64, nf4, none, bits(wide), code - 1},
        {f64, nf4, none, bits(std::nextafter(wide, 2.0)), code},  // no rounding to f32 before
    });
  }
}

TEST(Nf4, EverythingElseByValue) {
  expect_rows({
      {f32, nf4, none, bits(nan_value), 0},
      {f32, nf4, none, bits(-nan_value), 0},
      {f32, nf4, none, bits(infinity), 15},
      {f32, nf4, saturate, bits(-infinity), 0},
      {f32, nf4, none, bits(-0.0f), 7},
      {f64, nf4, none, bits(-0x1p-1074), 7},
      {i8, nf4, none, 0, 7},
      {i8, nf4, none, 1, 15},
      {i8, nf4, none, 0xff, 0},
      {u64, nf4, none, ~uint64_t{0}, 15},
      {boolean, nf4, none, 2, 15},
      {nf4, i8, none, 15, 1},
      {nf4, i8, none, 0, 0xff},
      {nf4, u8, none, 0, 0},
      {nf4, i8, none, 1, 0},
      {nf4, i8, rounded(Rounding::nearest_even), 1, 0xff},
      {nf4, boolean, none, 7, 0},
      {nf4, boolean, none, 6, 1},
      {nf4, f4e2m1, none, 1, 0x9},
      {nf4, nf4, none, 9, 9},
  });
}

TEST(ConvertOptions, SpellingsOfTheSmallTypesThatMeanTheSame) {
  const auto same = [](ElementType from, ElementType to, const ConvertOptions& options) {
    EXPECT_EQ(canonical_options(from, to, options), none)
        << name_of(from) << " -> " << name_of(to) << " {" << to_string(options) << "}";
  };
  const auto differ = [](ElementType from, ElementType to, const ConvertOptions& options) {
    EXPECT_EQ(canonical_options(from, to, options), options)
        << name_of(from) << " -> " << name_of(to) << " {" << to_string(options) << "}";
  };
  const ConvertOptions zero = {.nan = NanMode::zero};
  for (ElementType type :
       {f8e4m3, f8e4m3fnuz, f8e5m2fnuz, f4e2m1, f6e2m3, f8e8m0, nf4, u3, u3_split}) {
    same(type, type, saturate);  // no infinity to clamp
  }
  differ(f8e5m2, f8e5m2, saturate);
  same(f32, f4e2m1, saturate);
  same(f32, f6e2m3, saturate);
  same(f32, nf4, saturate);
  same(f32, f8e8m0, saturate);
  same(f32, f8e8m0, rounded(Rounding::nearest_even, Overflow::saturate));
  differ(f32, f8e8m0, rounded(Rounding::half_up, Overflow::nan));
  differ(f32, f8e4m3, saturate);
  differ(f32, f4e2m1, zero);
  differ(f32, f6e2m3, zero);
  same(f6e2m3, f4e2m1, zero);
  same(i32, f4e2m1, zero);  // no NaN to map
  same(nf4, f4e2m1, zero);
  differ(f8e8m0, f4e2m1, zero);
  same(nf4, u8, rounded(Rounding::toward_zero, Overflow::saturate));
}

}  // namespace
}  // namespace castor
