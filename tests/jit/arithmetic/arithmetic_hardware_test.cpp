// SPDX-License-Identifier: Apache-2.0
// Ops of f32 and f64 against the machine: SSE instructions in assembly, whose operands no compiler
// swaps, and the C library.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/support/interpreted.hpp"
#include "tests/support/op_rows.hpp"
#include "tests/support/sse.hpp"

namespace castor {
namespace {

using test::BinaryRow;
using test::comparison_rows;
using test::ComparisonRow;
using test::Patterns;
using test::row_of;
using test::sse_add;
using test::sse_div;
using test::sse_mul;
using test::sse_sqrt;
using test::sse_sub;
using test::UnaryRow;

template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;

template <class T>
constexpr ElementType float_type = sizeof(T) == 4 ? ElementType::f32 : ElementType::f64;

template <class T>
T from_bits(uint64_t bits) {
  return std::bit_cast<T>(static_cast<Bits<T>>(bits));
}

template <class T>
const T invalid = -std::numeric_limits<T>::quiet_NaN();

/// The first NaN, made quiet by an addition, or else what `otherwise` gives.
template <class T, class Otherwise>
T unless_nan(T a, T b, Otherwise otherwise) {
  if (std::isnan(a) || std::isnan(b)) return sse_add(a, b);
  const T result = otherwise(a, b);
  return std::isnan(result) ? invalid<T> : result;  // the C library's NaNs have either sign
}

template <class T>
bool is_below(T a, T b) {
  return a < b || (a == b && std::signbit(a) && !std::signbit(b));
}

template <class T>
T floor_mod(T a, T b) {
  const T modulus = std::fmod(a, b);
  if (modulus == 0) return std::copysign(T{0}, b);
  return std::signbit(modulus) != std::signbit(b) && !std::isnan(modulus) ? sse_add(modulus, b)
                                                                          : modulus;
}

template <class T>
const BinaryRow<T> binary_rows[] = {
    {OpKind::add, sse_add},
    {OpKind::sub, sse_sub},
    {OpKind::mul, sse_mul},
    {OpKind::div, sse_div},
    {OpKind::floor_div,
     [](T a, T b) {
       const T ratio = sse_div(a, b);
       return std::isnan(ratio) ? ratio : std::floor(ratio);
     }},
    {OpKind::mod,
     [](T a, T b) { return unless_nan(a, b, [](T x, T y) { return std::fmod(x, y); }); }},
    {OpKind::floor_mod, [](T a, T b) { return unless_nan(a, b, floor_mod<T>); }},
    {OpKind::min,
     [](T a, T b) { return unless_nan(a, b, [](T x, T y) { return is_below(y, x) ? y : x; }); }},
    {OpKind::max,
     [](T a, T b) { return unless_nan(a, b, [](T x, T y) { return is_below(x, y) ? y : x; }); }},
    {OpKind::squared_difference,
     [](T a, T b) {
       const T difference = sse_sub(a, b);
       return sse_mul(difference, difference);
     }},
    {OpKind::prelu, [](T x, T slope) { return x < 0 ? sse_mul(x, slope) : sse_add(x, -T{0}); }},
};

template <class T>
const UnaryRow<T> unary_rows[] = {
    {OpKind::abs, [](T x) { return std::bit_cast<T>(std::bit_cast<Bits<T>>(x) << 1 >> 1); }},
    {OpKind::neg,
     [](T x) {
       return std::bit_cast<T>(std::bit_cast<Bits<T>>(x) ^ std::bit_cast<Bits<T>>(-T{0}));
     }},
    {OpKind::sign,
     [](T x) { return std::isnan(x) ? sse_add(x, x) : static_cast<T>((x > 0) - (x < 0)); }},
    {OpKind::relu, [](T x) { return std::isnan(x) ? sse_add(x, x)
                                    : x > 0       ? x
                                                  : T{0}; }},
    {OpKind::sqrt, [](T x) { return sse_sqrt(x, x); }},
    {OpKind::floor, [](T x) { return std::isnan(x) ? sse_add(x, x) : std::floor(x); }},
    {OpKind::ceil, [](T x) { return std::isnan(x) ? sse_add(x, x) : std::ceil(x); }},
    {OpKind::trunc, [](T x) { return std::isnan(x) ? sse_add(x, x) : std::trunc(x); }},
    {OpKind::round_even, [](T x) { return std::isnan(x) ? sse_add(x, x) : std::nearbyint(x); }},
};

/// A few dozen of the numbers at which ops go wrong.
template <class T>
std::vector<uint64_t> special_floats() {
  using Limits = std::numeric_limits<T>;
  std::vector<uint64_t> patterns;
  for (T value : {T{0},
                  Limits::denorm_min(),
                  Limits::denorm_min() * 3,
                  Limits::min(),
                  Limits::max(),
                  std::nextafter(Limits::min(), T{0}),
                  Limits::infinity(),
                  T{1},
                  T{0.5},
                  T{1.5},
                  T{2},
                  T{2.5},
                  T{3},
                  T{10},
                  T{0.1},
                  std::nextafter(T{1}, T{2}),
                  std::nextafter(T{1}, T{0}),
                  1 / Limits::epsilon(),
                  2 / Limits::epsilon(),
                  1 / Limits::epsilon() - T{0.5},
                  std::sqrt(Limits::min()),
                  Limits::max() / 2}) {
    patterns.push_back(std::bit_cast<Bits<T>>(value));
  }
  const uint64_t infinity = std::bit_cast<Bits<T>>(Limits::infinity());
  const uint64_t quiet = std::bit_cast<Bits<T>>(Limits::quiet_NaN());
  for (uint64_t nan : {infinity | 1, infinity | 0x1234, quiet, quiet | 0x4321}) {
    patterns.push_back(nan);
  }
  const size_t count = patterns.size();
  const uint64_t sign = std::bit_cast<Bits<T>>(-T{0});
  for (size_t i = 0; i < count; ++i) patterns.push_back(patterns[i] | sign);
  return patterns;
}

/// Pairs of operands: all of the special ones, and random ones of which some are close in size.
template <class T>
std::pair<Patterns, Patterns> float_pairs() {
  std::vector<uint64_t> a;
  std::vector<uint64_t> b;
  for (uint64_t first : special_floats<T>()) {
    for (uint64_t second : special_floats<T>()) a.push_back(first), b.push_back(second);
  }
  std::mt19937_64 random(11);
  const uint64_t mask = std::numeric_limits<Bits<T>>::max();
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t first = random() & mask;
    const int near = std::numeric_limits<T>::digits + 3;  // the exponent changes by a few only
    a.push_back(first);
    b.push_back((i % 2 ? random() : first ^ random() >> (64 - near)) & mask);
  }
  return {row_of(float_type<T>, a), row_of(float_type<T>, b)};
}

template <class T>
void expect_binary_ops_agree() {
  const auto [a, b] = float_pairs<T>();
  for (const BinaryRow<T>& row : binary_rows<T>) {
    const Patterns actual = test::interpreted(row.op, {a, b});
    ASSERT_EQ(actual.elements.size(), a.elements.size());
    for (size_t i = 0; i < a.elements.size(); ++i) {
      const T expected = row.expected(from_bits<T>(a.elements[i]), from_bits<T>(b.elements[i]));
      ASSERT_EQ(actual.elements[i], std::bit_cast<Bits<T>>(expected))
          << name_of(row.op) << std::hex << " 0x" << a.elements[i] << ", 0x" << b.elements[i];
    }
  }
}

template <class T>
void expect_unary_ops_agree() {
  const auto [x, unused] = float_pairs<T>();
  for (const UnaryRow<T>& row : unary_rows<T>) {
    const Patterns actual = test::interpreted(row.op, {x});
    ASSERT_EQ(actual.elements.size(), x.elements.size());
    for (size_t i = 0; i < x.elements.size(); ++i) {
      const T expected = row.expected(from_bits<T>(x.elements[i]));
      ASSERT_EQ(actual.elements[i], std::bit_cast<Bits<T>>(expected))
          << name_of(row.op) << std::hex << " 0x" << x.elements[i];
    }
  }
}

template <class T>
void expect_comparisons_agree() {
  const auto [a, b] = float_pairs<T>();
  for (const ComparisonRow<T>& row : comparison_rows<T>) {
    const Patterns actual = test::interpreted(row.op, {a, b});
    ASSERT_EQ(actual.elements.size(), a.elements.size());
    for (size_t i = 0; i < a.elements.size(); ++i) {
      const bool expected = row.expected(from_bits<T>(a.elements[i]), from_bits<T>(b.elements[i]));
      ASSERT_EQ(actual.elements[i], expected)
          << name_of(row.op) << std::hex << " 0x" << a.elements[i] << ", 0x" << b.elements[i];
    }
  }
}

TEST(ArithmeticHardware, BinaryOpsOfFloats) {
  expect_binary_ops_agree<float>();
  expect_binary_ops_agree<double>();
}

TEST(ArithmeticHardware, UnaryOpsOfFloats) {
  expect_unary_ops_agree<float>();
  expect_unary_ops_agree<double>();
}

TEST(ArithmeticHardware, ComparisonsOfFloats) {
  expect_comparisons_agree<float>();
  expect_comparisons_agree<double>();
}

}  // namespace
}  // namespace castor
