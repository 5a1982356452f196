// SPDX-License-Identifier: Apache-2.0
// Quotients without a division (LaneOp::float_quotient): the cases in which the formula's last
// rounding is nearly wrong, enumerated, and rows of numbers that are nearly halves of their
// divisors, divisors of every size, on every tier.
#include <cmath>
#include <random>

#include "ir/numerics/scalar.hpp"
#include "tests/support/long_form.hpp"
#include "tests/support/on_every_engine.hpp"

namespace castor::test {
namespace {

float quotient(float x, float s) {
  const float reciprocal = 1.0f / s;
  const float first = x * reciprocal;
  return std::fma(std::fma(-first, s, x), reciprocal, first);
}

/// The same in two steps, for dividends of 8 significant bits (with_reciprocals).
float quotient_of_short(float x, float s) {
  const float reciprocal = 1.0f / s;
  const float correction = std::fma(-reciprocal, s, 1.0f) / s;
  return std::fma(x, reciprocal, x * correction);
}

uint64_t bits_of_float(float value) { return std::bit_cast<uint32_t>(value); }

constexpr int64_t min_significand = int64_t{1} << 23;
constexpr int64_t significands = int64_t{1} << 23;

/// The inverse of an odd number modulo 2^64.
uint64_t inverse_of(uint64_t odd) {
  uint64_t inverse = odd;
  for (int i = 0; i < 5; ++i) inverse *= 2 - odd * inverse;
  return inverse;
}

/// Counts wrong quotients x / s, over the x whose quotient is nearest to a point between two
/// floats: |2^shift x - n s| is at most 16 for an odd n of 25 bits, with x and s as integers. Then
/// n s = j modulo 2^shift.
struct HardCases {
  int64_t s;
  int64_t max_distance = 16;
  bool has_all_dividends = true;  ///< not only those of 8 significant bits
  int64_t tried = 0;
  int64_t wrong = 0;
  int64_t short_tried = 0;
  int64_t short_wrong = 0;

  /// Quotients from one up have a shift of 24, those below of 25.
  void try_all() {
    for (const int shift : {24, 25}) {
      for (int64_t j = -max_distance; j <= max_distance; ++j) try_distance(shift, j);
    }
  }

  void try_distance(int shift, int64_t j) {
    const int twos = std::countr_zero(static_cast<uint64_t>(s));
    if (j == 0 || j % (int64_t{1} << twos) != 0) return;
    const int bits = shift - twos;
    const uint64_t odd = static_cast<uint64_t>(s) >> twos;
    const uint64_t least = static_cast<uint64_t>(j / (int64_t{1} << twos)) * inverse_of(odd) &
                           ((uint64_t{1} << bits) - 1);
    for (auto n = static_cast<int64_t>(least); n < int64_t{1} << 25; n += int64_t{1} << bits) {
      const bool is_midpoint = n % 2 == 1 && n >= int64_t{1} << 24;
      if (is_midpoint) try_dividend((n * s - j) >> shift, shift == 24);
    }
  }

  /// Whether a float may be an integer, or half of one, of the magnitudes of bounded quotients.
  static bool is_near_half(float value) {
    constexpr uint32_t below_half = (1 << 6) - 1;  // from 2^16 on, of larger numbers less
    return (bits_of_float(value) & below_half) == 0;
  }

  void try_dividend(int64_t x, bool from_one_up) {
    const bool is_float = x >= min_significand && x < 2 * min_significand;
    if (!is_float || from_one_up != (x >= s)) return;
    const bool is_short = x % (int64_t{1} << 16) == 0;
    if (!is_short && !has_all_dividends) return;
    ++tried;
    const auto dividend = static_cast<float>(x);
    const auto divisor = static_cast<float>(s);
    if (quotient(dividend, divisor) != dividend / divisor) ++wrong;
    if (!is_short) return;
    ++short_tried;
    const float computed = quotient_of_short(dividend, divisor);
    const float exact = dividend / divisor;
    if (computed != exact && (is_near_half(computed) || is_near_half(exact))) ++short_wrong;
  }
};

TEST(Quotient, HardCases) {
  const int64_t step = long_form() ? 1 : 61;
  HardCases cases{0};
  for (int64_t s = min_significand; s < min_significand + significands; s += step) {
    cases.s = s;
    cases.try_all();
  }
  constexpr int64_t all_cases = 93'000'000;
  EXPECT_GT(cases.tried, all_cases / step / 2);
  EXPECT_EQ(cases.wrong, 0) << "of " << cases.tried;
  EXPECT_EQ(cases.short_wrong, 0) << "of " << cases.short_tried;
}

/// The sum that is rounded last is within 2^-47 of the quotient, so that distances below 4 count.
/// Two quotients are wrong, 199 / 2^x over 13675331 and 244 / 2^x over 16328803, but both are far
/// from halves of integers.
TEST(Quotient, HardCasesOfShortDividends) {
  HardCases cases{.s = 0, .max_distance = 4, .has_all_dividends = false};
  for (int64_t s = min_significand; s < min_significand + significands; ++s) {
    cases.s = s;
    cases.try_all();
  }
  EXPECT_GT(cases.short_tried, 100);
  EXPECT_EQ(cases.short_wrong, 0) << "of " << cases.short_tried;
}

/// Rows of numbers whose quotients are nearly halves of integers, and of special ones.
struct Rows {
  static constexpr int64_t columns = 150;

  Patterns x{ElementType::f32, {}, {}};
  Patterns s{ElementType::f32, {}, {}};

  void add(float divisor, std::mt19937& random) {
    constexpr float specials[] = {0.0f, HUGE_VALF, 0x1p-149f, 0x1p-126f, 0x1.fffffep127f, 1.0f};
    s.elements.push_back(bits_of_float(divisor));
    for (int64_t i = 0; i < columns; ++i) {
      const auto n = static_cast<int>(random() % 600) - 300;
      float value = static_cast<float>((n + 0.5) * static_cast<double>(divisor));
      auto pattern = static_cast<uint32_t>(bits_of_float(value) + random() % 5 - 2);
      if (i % 5 == 0) {
        const uint32_t sign = random() % 2 << 31;
        pattern =
            static_cast<uint32_t>(bits_of_float(specials[random() % std::size(specials)])) | sign;
      }
      if (i % 17 == 0) pattern = static_cast<uint32_t>(random());
      if (i % 19 == 0) pattern = 0x7f800001 | static_cast<uint32_t>(random());
      x.elements.push_back(pattern);
    }
    set_shapes();
  }

  /// A row of quotients of all sizes, few of which are near to a half.
  void add_spread(float divisor, std::mt19937& random) {
    s.elements.push_back(bits_of_float(divisor));
    for (int64_t i = 0; i < columns; ++i) {
      const double part = static_cast<double>(random()) / 0x1p32 - 0.5;
      const bool is_large = i / 16 % 2 == 0 && random() % 8 == 0;
      const int exponent = is_large ? static_cast<int>(random() % 40) : 9;
      x.elements.push_back(bits_of_float(
          static_cast<float>(std::ldexp(part * static_cast<double>(divisor), exponent))));
    }
    set_shapes();
  }

  void set_shapes() {
    const auto rows = static_cast<int64_t>(s.elements.size());
    s.shape = Dims{rows};
    x.shape = Dims{rows, columns};
  }
};

/// Divisors of every exponent, the ends of the range of reciprocals, zeros, infinities and NaNs.
Rows all_rows() {
  std::mt19937 random(20);
  Rows rows;
  for (int exponent = -149; exponent <= 127; ++exponent) {
    const float significand =
        std::bit_cast<float>(0x3f800000 | static_cast<uint32_t>(random()) >> 9);
    rows.add(std::ldexp(significand, exponent), random);
    rows.add(-std::ldexp(1.0f, exponent), random);
    rows.add_spread(std::ldexp(exponent % 2 == 0 ? significand : -significand, exponent), random);
  }
  for (const float divisor : {0x1p-100f, 0x1.fffffep-101f, 0x1p100f, 0x1.000002p100f, 0.0f, -0.0f,
                              HUGE_VALF, -HUGE_VALF, std::nanf("")}) {
    rows.add(divisor, random);
  }
  return rows;
}

void check(const std::string& text, const std::vector<Patterns>& operands) {
  const Result<FunctionPtr> function = parse_function(text);
  ASSERT_TRUE(function.ok()) << function.error().message;
  EXPECT_EQ(mistake_anywhere(*function, operands, interpreted(**function, operands)), "") << text;
}

TEST(Quotient, RowsOfEveryDivisor) {
  const Rows rows = all_rows();
  for (const std::string to : {"u8", "i8", "i16", "u4", "u16", "i2"}) {
    check("func @f(%x: f32[?n, ?c], %s: f32[?n]) -> " + to +
              "[?n, ?c] { %y = quantize_linear %x, %s {axis = 0} : " + to + " return %y }",
          {rows.x, rows.s});
  }
  for (const std::string rounding : {"toward_zero", "nearest_away", "half_up", "down", "up"}) {
    check(
        "func @f(%x: f32[?n, ?c], %s: f32[?n]) -> i8[?n, ?c] {"
        " %q = div %x, %s {broadcast = pdpd, axis = 0}"
        " %y = convert %q {overflow = saturate, rounding = " +
            rounding + "} : i8 return %y }",
        {rows.x, rows.s});
  }
}

TEST(Quotient, ZeroPoints) {
  const Rows rows = all_rows();
  for (const std::string to : {"u8", "i8", "u16", "i16"}) {
    Patterns zero_points{*element_type_named(to), rows.s.shape, {}};
    for (size_t i = 0; i < rows.s.elements.size(); ++i) {
      zero_points.elements.push_back(i * 4663 & ((uint64_t{1} << bits_of(zero_points.type)) - 1));
    }
    check("func @f(%x: f32[?n, ?c], %s: f32[?n], %z: " + to + "[?n]) -> " + to +
              "[?n, ?c] { %y = quantize_linear %x, %s, %z {axis = 0} : " + to + " return %y }",
          {rows.x, rows.s, zero_points});
  }
}

/// Rows of numbers whose quotients are nearly halfway between codes of a small float, and of
/// special ones.
Rows rows_to_encode(ElementType to) {
  std::mt19937 random(22);
  Rows rows;
  const uint64_t codes = uint64_t{1} << (bits_of(to) - 1);
  const auto value = [&](uint64_t code) {
    return std::bit_cast<double>(numerics::convert(code, to, ElementType::f64, {}));
  };
  for (int exponent = -149; exponent <= 127; ++exponent) {
    const float significand =
        std::bit_cast<float>(0x3f800000 | static_cast<uint32_t>(random()) >> 9);
    const float divisor = std::ldexp(exponent % 3 == 0 ? -significand : significand, exponent);
    rows.add(divisor, random);
    for (int64_t i = 0; i < Rows::columns; i += 2) {
      const uint64_t code = random() % (codes - 1);
      const double halfway = (value(code) + value(code + 1)) / 2;
      if (!std::isfinite(halfway)) continue;
      const auto near = static_cast<float>(halfway * static_cast<double>(divisor));
      rows.x.elements[rows.x.elements.size() - static_cast<size_t>(Rows::columns - i)] =
          static_cast<uint32_t>(bits_of_float(random() % 2 == 0 ? near : -near) + random() % 5 - 2);
    }
  }
  for (const float divisor : {0x1p-80f, 0x1.fffffep-81f, 0x1p100f, 0x1.000002p100f, 0.0f, -0.0f,
                              HUGE_VALF, -HUGE_VALF, std::nanf("")}) {
    rows.add(divisor, random);
  }
  return rows;
}

TEST(Quotient, RowsThatAreEncoded) {
  for (const std::string to :
       {"f8e4m3", "f8e5m2", "f8e4m3fnuz", "f8e5m2fnuz", "f6e2m3", "f6e3m2", "f4e2m1"}) {
    const Rows rows = rows_to_encode(*element_type_named(to));
    for (const std::string overflow :
         {"", "{overflow = saturate}", "{overflow = saturate_finite}"}) {
      check("func @f(%x: f32[?n, ?c], %s: f32[?n]) -> " + to +
                "[?n, ?c] { %q = div %x, %s {broadcast = pdpd, axis = 0} %y = convert %q " +
                overflow + " : " + to + " return %y }",
            {rows.x, rows.s});
    }
  }
}

/// The rows as columns: divisors along the innermost axis.
TEST(Quotient, ColumnsOfEveryDivisor) {
  const Rows rows = all_rows();
  const int64_t count = rows.s.shape[0];
  Patterns x{ElementType::f32, Dims{Rows::columns, count}, {}};
  for (int64_t column = 0; column < Rows::columns; ++column) {
    for (int64_t row = 0; row < count; ++row) {
      x.elements.push_back(rows.x.elements[static_cast<size_t>(row * Rows::columns + column)]);
    }
  }
  check(
      "func @f(%x: f32[?n, ?c], %s: f32[?c]) -> i8[?n, ?c] {"
      " %y = quantize_linear %x, %s : i8 return %y }",
      {x, rows.s});
}

/// Columns beside outer axes, and beside operands that are the same for all elements.
TEST(Quotient, ColumnsOfMatrices) {
  const Rows rows = all_rows();
  const auto part = [&](ElementType type, const Dims& shape) {
    Patterns patterns{type, shape, {}};
    for (int64_t i = 0; i < *element_count(shape); ++i) {
      patterns.elements.push_back(rows.x.elements[static_cast<size_t>(i)]);
    }
    return patterns;
  };
  for (const int64_t columns : {64, 70, 130, 191}) {
    Patterns s{ElementType::f32, Dims{columns}, {}};
    Patterns z{ElementType::i16, Dims{columns}, {}};
    for (int64_t i = 0; i < columns; ++i) {
      s.elements.push_back(rows.s.elements[static_cast<size_t>(7 * i) % rows.s.elements.size()]);
      z.elements.push_back(static_cast<uint64_t>(i * 4663 & 0xffff));
    }
    const Patterns x = part(ElementType::f32, Dims{3, 16, columns});
    check(
        "func @f(%x: f32[3, 16, ?c], %s: f32[?c], %z: i16[?c], %p: f32[3, 1, 1])"
        " -> i16[3, 16, ?c] { %w = mul %x, %p"
        " %y = quantize_linear %w, %s, %z {axis = 2} : i16 return %y }",
        {x, s, z, part(ElementType::f32, Dims{3, 1, 1})});
    check(
        "func @f(%x: f32[3, 16, ?c], %s: f32[?c]) -> f8e5m2[3, 16, ?c] {"
        " %q = div %x, %s %y = convert %q : f8e5m2 return %y }",
        {x, s});
  }
}

TEST(Quotient, OtherReadersSeeTheWholeQuotient) {
  const Rows rows = all_rows();
  check(
      "func @f(%x: f32[?n, ?c], %s: f32[?n]) -> f32[?n, ?c] {"
      " %q = div %x, %s {broadcast = pdpd, axis = 0}"
      " %i = convert %q {rounding = nearest_even} : i32"
      " %c = clamp %i {lo = -9, hi = 300}"
      " %d = clamp %i {lo = -500.0, hi = 7.0}"
      " %a = add %c, %d %f = convert %a : f32 return %f }",
      {rows.x, rows.s});
  check(
      "func @f(%x: f32[?n, ?c], %s: f32[?n]) -> f32[?n, ?c] {"
      " %q = div %x, %s {broadcast = pdpd, axis = 0}"
      " %i = convert %q {rounding = nearest_even} : i8"
      " %f = convert %i : f32 %a = add %f, %q return %a }",
      {rows.x, rows.s});
}

TEST(Quotient, ClampsThatSaturationDoesNotReplace) {
  const Rows rows = all_rows();
  Patterns zero_points{ElementType::u8, rows.s.shape, {}};
  for (size_t i = 0; i < rows.s.elements.size(); ++i) zero_points.elements.push_back(i * 97 & 255);
  for (const std::string lo : {"-5", "-131071", "-131072", "-200000"}) {
    for (const std::string to : {"u8", "i16"}) {
      check("func @f(%x: f32[?n, ?c], %s: f32[?n], %z: u8[?n]) -> " + to +
                "[?n, ?c] {"
                " %q = div %x, %s {broadcast = pdpd, axis = 0}"
                " %i = convert %q {rounding = nearest_even} : i32"
                " %c = clamp %i {lo = " +
                lo +
                ", hi = 90} %w = convert %z : i32"
                " %a = add %c, %w {broadcast = pdpd, axis = 0}"
                " %y = convert %a {overflow = saturate} : " +
                to + " return %y }",
            {rows.x, rows.s, zero_points});
    }
  }
}

/// Rows whose largest magnitude is `range`, and elements that are nearly halves of the scale that
/// follows.
Patterns rows_of_range(ElementType type, double parts, bool has_specials) {
  std::mt19937 random(21);
  Patterns x{type, Dims{0, Rows::columns}, {}};
  const int dropped = type == ElementType::bf16 ? 16 : 0;
  const auto add = [&](float number) { x.elements.push_back(bits_of_float(number) >> dropped); };
  for (int exponent = -149; exponent <= 127; ++exponent) {
    const uint32_t significand = 0x3f800000 | static_cast<uint32_t>(random()) >> 9;
    const float range =
        std::ldexp(std::bit_cast<float>(significand >> dropped << dropped), exponent);
    const auto position = static_cast<int64_t>(random() % Rows::columns);
    for (int64_t i = 0; i < Rows::columns; ++i) {
      const auto n = static_cast<int>(random() % 255) - 127;
      const auto half = static_cast<float>((n + 0.5) * (static_cast<double>(range) / parts));
      const float other = i % 4 == 0 ? std::ldexp(half, -static_cast<int>(random() % 30)) : half;
      const bool is_within = std::fabs(other) < range;
      add(i == position ? range : is_within ? other : 0);
    }
    if (has_specials && exponent % 8 == 0) {
      constexpr float specials[] = {HUGE_VALF, -HUGE_VALF,
                                    -std::numeric_limits<float>::quiet_NaN()};
      x.elements.back() = bits_of_float(specials[exponent & 1 ? 0 : random() % 3]) >> dropped;
    }
    ++x.shape[0];
  }
  for (int64_t i = 0; i < Rows::columns; ++i) add(i % 2 == 0 ? 0.0f : -0.0f);
  ++x.shape[0];
  return x;
}

/// Rows that are quantized by their own range, of every exponent, of zeros and of what is no
/// number.
TEST(Quotient, RowsByTheirOwnRange) {
  for (const ElementType type : {ElementType::f32, ElementType::bf16}) {
    for (const std::string to : {"i8", "i4", "i16"}) {
      const double parts = to == "i8" ? 127 : to == "i4" ? 7 : 32767;
      for (const bool has_specials : {false, true}) {
        for (const std::string scaling : {"divide", "reciprocal"}) {
          check("func @f(%x: " + std::string(name_of(type)) + "[?n, ?c]) -> " + to +
                    "[?n, ?c] { %f = convert %x : f32"
                    " %y, %s = dynamic_quantize_symmetric %f {axes = [1]" +
                    (scaling == "divide" ? "" : ", scaling = reciprocal") + "} : " + to +
                    " return %y }",
                {rows_of_range(type, parts, has_specials)});
        }
      }
    }
    check("func @f(%x: " + std::string(name_of(type)) +
              "[?n, ?c]) -> u8[?n, ?c] { %f = convert %x : f32"
              " %y, %s, %z = dynamic_quantize_linear %f {axes = [1]} : u8 return %y }",
          {rows_of_range(type, 255, true)});
  }
}

/// Scales of other elements' range bound nothing.
TEST(Quotient, ColumnsByTheRangeOfRows) {
  Patterns x = rows_of_range(ElementType::f32, 127, true);
  x.shape = Dims{Rows::columns, Rows::columns};
  x.elements.resize(static_cast<size_t>(Rows::columns * Rows::columns));
  check(
      "func @f(%x: f32[?n, ?n]) -> i8[?n, ?n] { %m = reduce_max_abs %x {axes = [1]}"
      " %c = constant 127.0 : f32[] %s = div %m, %c %q = div %x, %s"
      " %y = convert %q {overflow = saturate, rounding = nearest_even} : i8 return %y }",
      {x});
}

/// Types without NaN have another number instead, before it is an integer.
TEST(Quotient, OfSmallFloats) {
  for (const std::string type : {"f4e2m1", "f6e3m2", "f8e4m3", "f8e5m2", "f16", "bf16"}) {
    const ElementType element = *element_type_named(type);
    Patterns x{element, Dims{int64_t{1} << bits_of(element), 1}, {}};
    Patterns s{element, Dims{1, 64}, {}};
    for (int64_t code = 0; code < x.shape[0]; ++code) {
      x.elements.push_back(static_cast<uint64_t>(code));
    }
    const uint64_t codes = x.elements.size();
    for (uint64_t i = 0; i < 64; ++i) s.elements.push_back(i * codes / 64);
    check("func @f(%x: " + type + "[?n, 1], %s: " + type +
              "[1, ?c]) -> i8[?n, ?c] {"
              " %q = div %x, %s %y = convert %q : i8 return %y }",
          {x, s});
  }
}

}  // namespace
}  // namespace castor::test
