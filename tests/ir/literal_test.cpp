// SPDX-License-Identifier: Apache-2.0
// Literals: exact rounding of decimals, ranges, bit patterns, and printing that reads back.
#include "ir/text/literal.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "ir/text/decimal.hpp"

namespace castor::text {
namespace {

using enum ElementType;

Token token_of(std::string_view text) { return Lexer(text).next(); }

/// The bits, or the error's message.
std::string read(std::string_view text, ElementType type) {
  const Result<uint64_t> bits = read_literal(token_of(text), type);
  return bits ? fmt::format("{:#x}", *bits) : bits.error().message;
}

/// What strtof and strtod make of it: correctly rounded in the C library, whatever the length.
std::string read_by_libc(const std::string& text, ElementType type) {
  const uint64_t bits = type == f32 ? std::bit_cast<uint32_t>(std::strtof(text.c_str(), nullptr))
                                    : std::bit_cast<uint64_t>(std::strtod(text.c_str(), nullptr));
  return fmt::format("{:#x}", bits);
}

bool overflows(const std::string& text, ElementType type) {
  return std::isinf(type == f32 ? std::strtof(text.c_str(), nullptr)
                                : std::strtod(text.c_str(), nullptr));
}

void expect_as_libc(const std::string& text) {
  for (ElementType type : {f32, f64}) {
    if (overflows(text, type)) {
      EXPECT_NE(read(text, type).find("is out of range for"), std::string::npos) << text;
    } else {
      ASSERT_EQ(read(text, type), read_by_libc(text, type)) << text << " as " << name_of(type);
    }
  }
}

std::string random_digits(std::mt19937_64& random, size_t count) {
  std::string digits;
  for (size_t i = 0; i < count; ++i) digits += static_cast<char>('0' + random() % 10);
  return digits;
}

TEST(Decimal, RandomTextsRoundAsInTheCLibrary) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    const std::string sign = random() % 2 ? "-" : "";
    const std::string whole = random_digits(random, 1 + random() % 20);
    const std::string fraction = random_digits(random, 1 + random() % (i % 100 == 0 ? 1000 : 20));
    const int exponent = static_cast<int>(random() % 700) - 360;
    expect_as_libc(fmt::format("{}{}.{}e{}", sign, whole, fraction, exponent));
    expect_as_libc(fmt::format("{}{}.{}e{}", sign, whole, fraction, exponent % 40));
    expect_as_libc(fmt::format("{}{}.{}", sign, whole, fraction));
  }
}

/// The exact digits of a number; all of them, since glibc prints exactly.
std::string exact_text(long double value) {
  char buffer[1400];
  const int size = std::snprintf(buffer, sizeof buffer, "%.1250Le", value);
  return {buffer, static_cast<size_t>(size)};
}

/// The midpoint's text and the texts just above and below it.
void expect_midpoint_as_libc(long double midpoint) {
  const std::string text = exact_text(midpoint);
  const size_t mark = text.find('e');
  std::string digits = text.substr(0, mark);
  const std::string exponent = text.substr(mark);
  expect_as_libc(text);
  expect_as_libc(digits + "1" + exponent);
  digits.erase(digits.find_last_not_of('0') + 1);
  --digits.back();
  expect_as_libc(digits + std::string(400, '9') + exponent);
}

TEST(Decimal, MidpointsOfNeighboursRoundAsInTheCLibrary) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 2000; ++i) {
    // Random exponents, subnormal ones included: the bits are uniform.
    const auto low32 = std::bit_cast<float>(static_cast<uint32_t>(random() % 0x7f7f'ffff));
    const float high32 = std::nextafter(low32, INFINITY);
    expect_midpoint_as_libc((static_cast<long double>(low32) + high32) / 2);
    const auto low64 = std::bit_cast<double>(random() % 0x7fef'ffff'ffff'ffff);
    const double high64 = std::nextafter(low64, double{INFINITY});
    expect_midpoint_as_libc((static_cast<long double>(low64) + high64) / 2);
  }
}

TEST(Decimal, EdgesOfTheRangeRoundAsInTheCLibrary) {
  const std::string zeros(5000, '0');
  const std::string texts[] = {"0",
                               "-0",
                               "0.0",
                               "-0e99",
                               "1",
                               "00012.5",
                               "9007199254740993",
                               "18446744073709551617",
                               "5e-324",
                               "2.4703282292062327208e-324",
                               "2.4703282292062328e-324",
                               "1e-325",
                               "1e-400",
                               "1e-99999999999999999999",
                               "-1e-1000000",
                               "2.2250738585072011e-308",
                               "1.7976931348623157e308",
                               "1.7976931348623158e308",
                               "1.7976931348623159e308",
                               "1e309",
                               "1e99999999999999999999",
                               "3.4028235677973366e38",
                               "3.4028235677973367e38",
                               "7e-46",
                               "7.0064923216240853e-46",
                               "7.0064923216240854e-46",
                               "0." + zeros + "1e5001",
                               "1" + zeros + "e-5000",
                               "1" + zeros + "1e-5001",
                               "0." + zeros + "7",
                               "9" + zeros,
                               "1.00000005960464477539062500000000000000000000000" + zeros + "1"};
  for (const std::string& text : texts) expect_as_libc(text);
}

TEST(Decimal, WhatIsCutOffIsTold) {
  const auto exact = exact_decimal("0.5");
  EXPECT_EQ(exact.significand, uint64_t{1} << 63);
  EXPECT_EQ(exact.exponent, -1);
  EXPECT_FALSE(exact.inexact);
  EXPECT_FALSE(exact_decimal("18446744073709551615").inexact);
  EXPECT_TRUE(exact_decimal("36893488147419103231").inexact);
  EXPECT_TRUE(exact_decimal("0.1").inexact);
  const std::string long_text = "1" + std::string(2000, '0');
  EXPECT_FALSE(exact_decimal(long_text + "e-2000").inexact);
  EXPECT_TRUE(exact_decimal(long_text + "1e-2001").inexact);
}

struct LiteralCase {
  ElementType type;
  std::string_view text;
  std::string_view expected;  ///< bits or message
};

constexpr LiteralCase literal_cases[] = {
    // f16: ulp(1) = 2^-10, smallest subnormal 2^-24, largest 65504, overflow from 65520.
    {f16, "1.00048828125", "0x3c00"},
    {f16, "1.00048828125000000000000000000000000001", "0x3c01"},
    {f16, "1.00048828124999999999999999999999999999", "0x3c00"},
    {f16, "1.00146484375", "0x3c02"},
    {f16, "2.98023223876953125e-8", "0x0"},
    {f16, "2.98023223876953125000000000000000001e-8", "0x1"},
    {f16, "-2.98023223876953125e-8", "0x8000"},
    {f16, "8.94069671630859375e-8", "0x2"},
    {f16, "6.10053539276123046875e-5", "0x400"},
    {f16, "6.10053539276123046874e-5", "0x3ff"},
    {f16, "65504", "0x7bff"},
    {f16, "65519.99999999999999999999", "0x7bff"},
    {f16, "65520", "65520 is out of range for f16, expected a magnitude up to 65504.0"},
    {f16, "-1e9", "-1e9 is out of range for f16, expected a magnitude up to 65504.0"},
    {f16, "inf", "0x7c00"},
    {f16, "-inf", "0xfc00"},
    {f16, "nan", "0x7e00"},
    {f16, "0xfc01", "0xfc01"},
    {f16, "0x10000", "0x10000 is wider than f16, expected a bit pattern of 16 bits"},
    // bf16: ulp(1) = 2^-7, smallest subnormal 2^-133.
    {bf16, "1.00390625", "0x3f80"},
    {bf16, "1.003906250000000000000000000001", "0x3f81"},
    {bf16, "1.01171875", "0x3f82"},
    {bf16, "4.5917748078995605e-41", "0x0"},
    {bf16, "4.5917748078995606e-41", "0x1"},
    {bf16, "1.3775324423698682e-40", "0x2"},
    {bf16, "3.3895313892515354759047080037148786688e38", "0x7f7f"},
    {bf16, "339617752923046005526922703901628039167.9", "0x7f7f"},
    {bf16, "339617752923046005526922703901628039168",
     "339617752923046005526922703901628039168 is out of range for bf16, expected a magnitude up to "
     "3.3895314e+38"},
    {bf16, "nan", "0x7fc0"},
    // f32, f64
    {f32, "1", "0x3f800000"},
    {f32, "16777217", "0x4b800000"},
    {f32, "1e39", "1e39 is out of range for f32, expected a magnitude up to 3.4028235e+38"},
    {f32, "true", "found 'true', expected a number, inf, -inf, nan or a bit pattern for f32"},
    {f32, "0x00000000000000001", "0x1"},
    {f64, "-1e309",
     "-1e309 is out of range for f64, expected a magnitude up to 1.7976931348623157e+308"},
    {f64, "0x1ffffffffffffffff",
     "0x1ffffffffffffffff is wider than f64, expected a bit pattern of 64 bits"},
    {f64, "nan", "0x7ff8000000000000"},
    // Integers.
    {u8, "255", "0xff"},
    {u8, "256", "256 is out of range for u8, expected 0 to 255"},
    {u8, "-1", "-1 is out of range for u8, expected 0 to 255"},
    {u8, "-0", "0x0"},
    {u8, "0x100", "0x100 is wider than u8, expected a bit pattern of 8 bits"},
    {u16, "65535", "0xffff"},
    {u16, "65536", "65536 is out of range for u16, expected 0 to 65535"},
    {u32, "4294967295", "0xffffffff"},
    {u32, "4294967296", "4294967296 is out of range for u32, expected 0 to 4294967295"},
    {u64, "18446744073709551615", "0xffffffffffffffff"},
    {u64, "18446744073709551616",
     "18446744073709551616 is out of range for u64, expected 0 to 18446744073709551615"},
    {i8, "-128", "0x80"},
    {i8, "127", "0x7f"},
    {i8, "128", "128 is out of range for i8, expected -128 to 127"},
    {i8, "-129", "-129 is out of range for i8, expected -128 to 127"},
    {i8, "0xff", "0xff"},
    {i16, "-32768", "0x8000"},
    {i16, "32768", "32768 is out of range for i16, expected -32768 to 32767"},
    {i32, "-2147483648", "0x80000000"},
    {i32, "2147483648", "2147483648 is out of range for i32, expected -2147483648 to 2147483647"},
    {i32, "1.0", "found '1.0', expected an integer for i32"},
    {i32, "1e3", "found '1e3', expected an integer for i32"},
    {i32, "inf", "found 'inf', expected an integer for i32"},
    {i64, "-9223372036854775808", "0x8000000000000000"},
    {i64, "9223372036854775808",
     "9223372036854775808 is out of range for i64, expected -9223372036854775808 to "
     "9223372036854775807"},
    {i64, "-99999999999999999999999",
     "-99999999999999999999999 is out of range for i64, expected -9223372036854775808 to "
     "9223372036854775807"},
    // Integers narrower than a byte, whatever their layout.
    {u1, "1", "0x1"},
    {u1, "2", "2 is out of range for u1, expected 0 to 1"},
    {u3, "7", "0x7"},
    {u3_split, "8", "8 is out of range for u3.split, expected 0 to 7"},
    {u6, "0x3f", "0x3f"},
    {u6, "0x40", "0x40 is wider than u6, expected a bit pattern of 6 bits"},
    {i2, "-2", "0x2"},
    {i4, "-9", "-9 is out of range for i4, expected -8 to 7"},
    // Formats without infinity, or without NaN: overflow is an error all the same.
    {f8e4m3, "464", "0x7e"},
    {f8e4m3, "464.0000001",
     "464.0000001 is out of range for f8e4m3, expected a magnitude up to 448.0"},
    {f8e4m3, "inf", "found 'inf', expected a number, nan or a bit pattern for f8e4m3"},
    {f8e4m3, "nan", "0x7f"},
    {f8e4m3fnuz, "-247.9", "0xff"},
    {f8e4m3fnuz, "-248", "-248 is out of range for f8e4m3fnuz, expected a magnitude up to 240.0"},
    {f8e4m3fnuz, "-0.0", "0x0"},
    {f8e4m3fnuz, "nan", "0x80"},
    {f8e5m2, "61439", "0x7b"},
    {f8e5m2, "61440", "61440 is out of range for f8e5m2, expected a magnitude up to 57344.0"},
    {f8e5m2, "-inf", "0xfc"},
    {f8e5m2, "nan", "0x7e"},
    {f4e2m1, "-0", "0x8"},
    {f4e2m1, "0.25", "0x0"},
    {f4e2m1, "0.2500000000000000000000000000000001", "0x1"},
    {f4e2m1, "-6", "0xf"},
    {f4e2m1, "6.0000000000000000000000000000000001",
     "6.0000000000000000000000000000000001 is out of range for f4e2m1, expected a magnitude up to "
     "6.0"},
    {f4e2m1, "nan", "found 'nan', expected a number or a bit pattern for f4e2m1"},
    {f4e2m1, "-inf", "found '-inf', expected a number or a bit pattern for f4e2m1"},
    {f6e2m3, "-7.5", "0x3f"},
    {f6e2m3, "0.0625", "0x0"},
    {f6e2m3, "0.06250000000000000000000000000000000001", "0x1"},
    {f6e2m3, "7.75", "7.75 is out of range for f6e2m3, expected a magnitude up to 7.5"},
    {f6e2m3, "0x40", "0x40 is wider than f6e2m3, expected a bit pattern of 6 bits"},
    {f6e2m3, "nan", "found 'nan', expected a number or a bit pattern for f6e2m3"},
    {f6e3m2, "28", "0x1f"},
    {f6e3m2, "29", "29 is out of range for f6e3m2, expected a magnitude up to 28.0"},
    {nf4, "0", "0x7"},
    {nf4, "-1", "0x0"},
    {nf4, "0.03979014977812767028808593750000000000", "0x7"},
    {nf4, "0.03979014977812767028808593750000000001", "0x8"},
    {nf4, "1.00000000000000000000001",
     "1.00000000000000000000001 is out of range for nf4, expected a magnitude up to 1.0"},
    {nf4, "nan", "found 'nan', expected a number or a bit pattern for nf4"},
    {f8e8m0, "1", "0x7f"},
    {f8e8m0, "1.5", "0x80"},
    {f8e8m0, "3", "0x80"},
    {f8e8m0, "170141183460469231731687303715884105728", "0xfe"},
    {f8e8m0, "170141183460469231731687303715884105729",
     "170141183460469231731687303715884105729 is out of range for f8e8m0, expected 5.877472e-39 to "
     "1.7014118e+38"},
    {f8e8m0,
     "5.8774717541114375398436826861112283890933277838604376075437585313920862972736358642578125e-"
     "39",
     "0x0"},
    {f8e8m0, "5e-39", "5e-39 is out of range for f8e8m0, expected 5.877472e-39 to 1.7014118e+38"},
    {f8e8m0, "0.0", "0.0 is out of range for f8e8m0, expected 5.877472e-39 to 1.7014118e+38"},
    {f8e8m0, "-1", "-1 is out of range for f8e8m0, expected 5.877472e-39 to 1.7014118e+38"},
    {f8e8m0, "nan", "0xff"},
    // Boolean.
    {boolean, "true", "0x1"},
    {boolean, "false", "0x0"},
    {boolean, "0xfe", "0xfe"},
    {boolean, "1", "found '1', expected true, false or a bit pattern for boolean"},
    {boolean, "yes", "found 'yes', expected true, false or a bit pattern for boolean"},
};

TEST(Literal, ReadsToBitsOrFailsByMessage) {
  for (const LiteralCase& row : literal_cases) {
    EXPECT_EQ(read(row.text, row.type), row.expected) << row.text << " as " << name_of(row.type);
  }
}

TEST(Literal, PrintsAsExpected) {
  struct Row {
    ElementType type;
    uint64_t bits;
    std::string_view text;
  };
  const Row rows[] = {
      {boolean, 0, "false"},
      {boolean, 1, "true"},
      {boolean, 2, "0x02"},
      {i8, 0x80, "-128"},
      {u64, ~uint64_t{0}, "18446744073709551615"},
      {i64, ~uint64_t{0}, "-1"},
      {f32, 0x3f800000, "1.0"},
      {f32, 0x80000000, "-0.0"},
      {f32, 0x3dcccccd, "0.1"},
      {f32, 0x7f800000, "inf"},
      {f32, 0xff800000, "-inf"},
      {f32, 0x7fc00000, "nan"},
      {f32, 0xffc00000, "0xffc00000"},
      {f32, 0x7f800001, "0x7f800001"},
      {f32, 1, "1e-45"},
      {f64, 1, "5e-324"},
      {f16, 0x7bff, "65504.0"},
      {f16, 0x7c01, "0x7c01"},
      {f16, 0x3555, "0.33325195"},
      {bf16, 0x4049, "3.140625"},
      {i2, 0x2, "-2"},
      {u6_split, 0x3f, "63"},
      {f4e2m1, 0xb, "-1.5"},
      {f6e2m3, 0x21, "-0.125"},
      {f6e3m2, 0x01, "0.0625"},
      {f8e4m3, 0xff, "0xff"},
      {f8e5m2, 0x7d, "0x7d"},
      {f8e5m2fnuz, 0x80, "nan"},
      {f8e8m0, 0x00, "5.877472e-39"},
      {nf4, 0x1, "-0.6961928"},
  };
  for (const Row& row : rows) EXPECT_EQ(literal_text(row.bits, row.type), row.text);
}

void expect_reads_back(uint64_t bits, ElementType type) {
  const std::string text = literal_text(bits, type);
  const Token token = token_of(text);
  ASSERT_EQ(token.text, text);
  const Result<uint64_t> back = read_literal(token, type);
  ASSERT_TRUE(back.ok()) << text << ": " << back.error().message;
  ASSERT_EQ(*back, bits) << text << " as " << name_of(type);
}

TEST(Literal, EveryNarrowPatternReadsBack) {
  for (const ElementInfo& row : element_table) {
    const ElementType type = row.type;
    if (row.bits > 16) continue;
    for (uint64_t bits = 0; bits >> bits_of(type) == 0; ++bits) expect_reads_back(bits, type);
  }
}

TEST(Literal, RandomWidePatternsReadBack) {
  std::mt19937_64 random(3);
  for (ElementType type : {u32, i32, f32, u64, i64, f64}) {
    for (int i = 0; i < 20000; ++i) expect_reads_back(random() >> (64 - bits_of(type)), type);
    for (uint64_t bits : {uint64_t{0}, integer_max(u64) >> (64 - bits_of(type)),
                          uint64_t{1} << (bits_of(type) - 1)}) {
      expect_reads_back(bits, type);
    }
  }
}

}  // namespace
}  // namespace castor::text
