// SPDX-License-Identifier: Apache-2.0
// Conversions against the machine and the compiler, where C++ defines what they give: an
// independent truth for casts in range, widening, and rounding to nearest even.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <type_traits>

#include "ir/numerics/scalar.hpp"

namespace castor {
namespace {

using F16 = _Float16;  // IEEE binary16: the compiler's runtime rounds once

template <class T>
using Bits =
    std::conditional_t<sizeof(T) == 1, uint8_t,
                       std::conditional_t<sizeof(T) == 2, uint16_t,
                                          std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;

template <class T>
constexpr ElementType type_of() {
  if constexpr (std::is_same_v<T, F16>) return ElementType::f16;
  if constexpr (std::is_same_v<T, float>) return ElementType::f32;
  if constexpr (std::is_same_v<T, double>) return ElementType::f64;
  constexpr int row = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
  constexpr ElementType integers[4][2] = {{ElementType::u8, ElementType::i8},
                                          {ElementType::u16, ElementType::i16},
                                          {ElementType::u32, ElementType::i32},
                                          {ElementType::u64, ElementType::i64}};
  return integers[row][std::is_signed_v<T>];
}

template <class To, class From>
uint64_t converted(From value, const ConvertOptions& options = {}) {
  return numerics::convert(std::bit_cast<Bits<From>>(value), type_of<From>(), type_of<To>(),
                           options);
}

template <class To, class From>
uint64_t cast(From value) {
  return std::bit_cast<Bits<To>>(static_cast<To>(value));
}

/// Random bit patterns; every second one with its exponent or leading bits near the middle.
template <class T>
class Samples {
 public:
  T next() {
    const uint64_t bits = random_();
    if (++count_ % 2 == 0) return std::bit_cast<T>(static_cast<Bits<T>>(bits));
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(std::bit_cast<Bits<T>>(static_cast<T>(bits)) >>
                            (random_() % (8 * sizeof(T))));
    } else {
      return static_cast<T>(std::ldexp(static_cast<double>(bits), -63 + int(random_() % 64) - 32)) *
             (bits % 2 ? T(1) : T(-1));
    }
  }

 private:
  std::mt19937_64 random_{7};
  size_t count_ = 0;
};

constexpr int sample_count = 100'000;

template <class From, class To>
void expect_casts_agree() {
  Samples<From> samples;
  for (int i = 0; i < sample_count; ++i) {
    const From value = samples.next();
    ASSERT_EQ((converted<To>(value)), cast<To>(value))
        << name_of(type_of<From>()) << " -> " << name_of(type_of<To>()) << std::hex << ", input 0x"
        << uint64_t{std::bit_cast<Bits<From>>(value)};
  }
}

/// Calls visit with a value of every integer type.
template <class Visit>
void for_each_integer_type(Visit visit) {
  visit(uint8_t{}), visit(int8_t{}), visit(uint16_t{}), visit(int16_t{});
  visit(uint32_t{}), visit(int32_t{}), visit(uint64_t{}), visit(int64_t{});
}

TEST(Hardware, IntegerToIntegerWraps) {
  for_each_integer_type([](auto from) {
    for_each_integer_type([](auto to) { expect_casts_agree<decltype(from), decltype(to)>(); });
  });
}

TEST(Hardware, IntegerToFloatRoundsToNearestEven) {
  for_each_integer_type([](auto from) {
    expect_casts_agree<decltype(from), float>();
    expect_casts_agree<decltype(from), double>();
  });
}

// SSE's conversions keep a NaN's sign and top payload bits and make it quiet, as the table has it.
TEST(Hardware, FloatToFloatRoundsToNearestEven) {
  expect_casts_agree<float, double>();
  expect_casts_agree<double, float>();
}

TEST(Hardware, FloatToF16RoundsOnce) {
  const auto expect = [](auto value) {
    if (std::isnan(value)) return;
    ASSERT_EQ(converted<F16>(value), cast<F16>(value)) << std::hexfloat << value;
  };
  Samples<float> floats;
  Samples<double> doubles;
  for (int i = 0; i < sample_count; ++i) {
    expect(floats.next());
    expect(doubles.next());
  }
}

TEST(Hardware, EveryF16WidensExactly) {
  for (uint32_t code = 0; code < 0x10000; ++code) {
    const F16 value = std::bit_cast<F16>(static_cast<uint16_t>(code));
    if (std::isnan(static_cast<float>(value))) continue;
    ASSERT_EQ(converted<float>(value), cast<float>(value)) << std::hex << code;
    ASSERT_EQ(converted<double>(value), cast<double>(value)) << std::hex << code;
  }
}

TEST(Hardware, EveryBf16IsTheUpperHalfOfAnF32) {
  for (uint64_t code = 0; code < 0x10000; ++code) {
    const bool nan = (code & 0x7fff) > 0x7f80;
    const uint64_t widened = (nan ? code | 0x40 : code) << 16;
    ASSERT_EQ(numerics::convert(code, ElementType::bf16, ElementType::f32, {}), widened);
    ASSERT_EQ(numerics::convert(widened, ElementType::f32, ElementType::bf16, {}), widened >> 16);
  }
}

/// Rounds as `rounding` says, with the machine's own instructions; exact for |x| < 2^52.
double rounded(double value, Rounding rounding) {
  switch (rounding) {
    case Rounding::nearest_even: return std::nearbyint(value);
    case Rounding::nearest_away: return std::round(value);
    case Rounding::down: return std::floor(value);
    case Rounding::up: return std::ceil(value);
    case Rounding::half_up: return std::floor(value) + (value - std::floor(value) >= 0.5 ? 1 : 0);
    default: return std::trunc(value);
  }
}

template <class To>
To saturated(double value) {
  if (std::isnan(value)) return 0;
  constexpr double low = static_cast<double>(std::numeric_limits<To>::min());
  constexpr auto half = std::numeric_limits<To>::max() / 2 + 1;
  constexpr double beyond = static_cast<double>(half) * 2;
  if (value < low) return std::numeric_limits<To>::min();
  if (value >= beyond) return std::numeric_limits<To>::max();
  return static_cast<To>(value);
}

template <class From>
void expect_integers_agree(From value) {
  for (int mode = 0; mode <= static_cast<int>(Rounding::half_up); ++mode) {
    const auto rounding = static_cast<Rounding>(mode);
    const double integral = rounded(static_cast<double>(value), rounding);
    for_each_integer_type([&](auto to) {
      using To = decltype(to);
      const uint64_t expected = std::bit_cast<Bits<To>>(saturated<To>(integral));
      ASSERT_EQ(converted<To>(value, {.rounding = rounding}), expected)
          << std::hexfloat << static_cast<double>(value) << ", "
          << rounding_names[static_cast<size_t>(mode)] << " -> " << name_of(type_of<To>());
    });
  }
}

TEST(Hardware, EveryF16ToEveryIntegerInEveryRounding) {
  for (uint32_t code = 0; code < 0x10000; ++code) {
    expect_integers_agree(std::bit_cast<F16>(static_cast<uint16_t>(code)));
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(Hardware, WideFloatsToEveryIntegerInEveryRounding) {
  Samples<float> floats;
  Samples<double> doubles;
  for (int i = 0; i < sample_count / 10 && !testing::Test::HasFatalFailure(); ++i) {
    expect_integers_agree(floats.next());
    expect_integers_agree(doubles.next());
  }
}

}  // namespace
}  // namespace castor
