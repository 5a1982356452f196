// SPDX-License-Identifier: Apache-2.0
// Ops of the integers of whole bytes against C++'s.
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "tests/support/interpreted.hpp"
#include "tests/support/op_rows.hpp"

namespace castor {
namespace {

using test::BinaryRow;
using test::comparison_rows;
using test::ComparisonRow;
using test::Patterns;
using test::row_of;
using test::UnaryRow;

template <class T>
constexpr ElementType integer_type() {
  constexpr int row = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
  constexpr ElementType types[4][2] = {{ElementType::u8, ElementType::i8},
                                       {ElementType::u16, ElementType::i16},
                                       {ElementType::u32, ElementType::i32},
                                       {ElementType::u64, ElementType::i64}};
  return types[row][std::is_signed_v<T>];
}

// Modulo 2^N, without the overflow of signed integers.

template <class T>
T multiplied(T a, T b) {
  return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

template <class T>
T subtracted(T a, T b) {
  return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}

template <class T>
bool divides_out_of_range(T a, T b) {
  return std::is_signed_v<T> && a == std::numeric_limits<T>::min() && b == static_cast<T>(-1);
}

template <class T>
T floor_divided(T a, T b) {
  if (b == 0) return 0;
  if (divides_out_of_range(a, b)) return a;
  return static_cast<T>(a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0));
}

template <class T>
T floor_modulus(T a, T b) {
  if (b == 0 || divides_out_of_range(a, b)) return 0;
  return subtracted(a, multiplied(b, floor_divided(a, b)));
}

template <class T>
bool count_is_small(T count) {
  return static_cast<std::make_unsigned_t<T>>(count) < 8 * sizeof(T);
}

template <class T>
const BinaryRow<T> integer_rows[] = {
    {OpKind::add,
     [](T a, T b) { return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)); }},
    {OpKind::sub, subtracted},
    {OpKind::mul, multiplied},
    {OpKind::div,
     [](T a, T b) {
       return b == 0 ? T{0} : divides_out_of_range(a, b) ? a : static_cast<T>(a / b);
     }},
    {OpKind::mod,
     [](T a, T b) { return b == 0 || divides_out_of_range(a, b) ? T{0} : static_cast<T>(a % b); }},
    {OpKind::floor_div, floor_divided},
    {OpKind::floor_mod, floor_modulus},
    {OpKind::min, [](T a, T b) { return a < b ? a : b; }},
    {OpKind::max, [](T a, T b) { return a < b ? b : a; }},
    {OpKind::squared_difference,
     [](T a, T b) { return multiplied(subtracted(a, b), subtracted(a, b)); }},
    {OpKind::prelu, [](T x, T slope) { return x < 0 ? multiplied(x, slope) : x; }},
    {OpKind::bitwise_and, [](T a, T b) { return static_cast<T>(a & b); }},
    {OpKind::bitwise_or, [](T a, T b) { return static_cast<T>(a | b); }},
    {OpKind::bitwise_xor, [](T a, T b) { return static_cast<T>(a ^ b); }},
    {OpKind::shift_left,
     [](T x, T count) {
       return count_is_small(count) ? static_cast<T>(static_cast<uint64_t>(x) << count) : T{0};
     }},
    {OpKind::shift_right,
     [](T x, T count) {
       return static_cast<T>(count_is_small(count) ? x >> count : x < 0 ? -1 : 0);
     }},
};

template <class T>
const UnaryRow<T> integer_unary_rows[] = {
    {OpKind::abs, [](T x) { return x < 0 ? subtracted(T{0}, x) : x; }},
    {OpKind::neg, [](T x) { return subtracted(T{0}, x); }},
    {OpKind::sign, [](T x) { return static_cast<T>((x > 0) - (x < 0)); }},
    {OpKind::relu, [](T x) { return x > 0 ? x : T{0}; }},
    {OpKind::bitwise_not, [](T x) { return static_cast<T>(~x); }},
    {OpKind::floor, [](T x) { return x; }},
    {OpKind::ceil, [](T x) { return x; }},
    {OpKind::trunc, [](T x) { return x; }},
    {OpKind::round_even, [](T x) { return x; }},
};

/// Limits, small numbers, powers of two and random ones, each with each.
template <class T>
std::vector<T> integer_samples() {
  std::vector<T> values = {
      0, 1, 2, 3, 5, 7, std::numeric_limits<T>::max(), std::numeric_limits<T>::min()};
  std::mt19937_64 random(5);
  for (size_t bit = 0; bit < 8 * sizeof(T); ++bit) {
    values.push_back(static_cast<T>(uint64_t{1} << bit));
    values.push_back(static_cast<T>(random() >> bit));
  }
  const size_t count = values.size();
  for (size_t i = 0; i < count; ++i) {
    values.push_back(subtracted(T{0}, values[i]));
    values.push_back(subtracted(values[i], static_cast<T>(-1)));
    values.push_back(static_cast<T>(~values[i]));
  }
  return values;
}

template <class T>
uint64_t pattern_of(T value) {
  return static_cast<std::make_unsigned_t<T>>(value);
}

template <class T>
void expect_integer_ops_agree() {
  const std::vector<T> values = integer_samples<T>();
  std::vector<uint64_t> elements;
  for (T value : values) elements.push_back(pattern_of(value));
  const auto count = static_cast<int64_t>(values.size());
  const Patterns column{integer_type<T>(), {count, 1}, elements};
  const Patterns row = row_of(integer_type<T>(), elements);
  for (const BinaryRow<T>& op : integer_rows<T>) {
    const Patterns actual = test::interpreted(op.op, {column, row});
    ASSERT_EQ(actual.shape, (Dims{count, count}));
    for (size_t i = 0; i < actual.elements.size(); ++i) {
      const T a = values[i / values.size()];
      const T b = values[i % values.size()];
      ASSERT_EQ(actual.elements[i], pattern_of(op.expected(a, b)))
          << name_of(op.op) << " " << name_of(integer_type<T>()) << " " << +a << ", " << +b;
    }
  }
  for (const ComparisonRow<T>& op : comparison_rows<T>) {
    const Patterns actual = test::interpreted(op.op, {column, row});
    for (size_t i = 0; i < actual.elements.size(); ++i) {
      ASSERT_EQ(actual.elements[i],
                op.expected(values[i / values.size()], values[i % values.size()]))
          << name_of(op.op);
    }
  }
  for (const UnaryRow<T>& op : integer_unary_rows<T>) {
    const Patterns actual = test::interpreted(op.op, {row});
    for (size_t i = 0; i < actual.elements.size(); ++i) {
      ASSERT_EQ(actual.elements[i], pattern_of(op.expected(values[i]))) << name_of(op.op);
    }
  }
}

TEST(ArithmeticIntegers, EveryOp) {
  expect_integer_ops_agree<int8_t>();
  expect_integer_ops_agree<uint8_t>();
  expect_integer_ops_agree<int16_t>();
  expect_integer_ops_agree<uint16_t>();
  expect_integer_ops_agree<int32_t>();
  expect_integer_ops_agree<uint32_t>();
  expect_integer_ops_agree<int64_t>();
  expect_integer_ops_agree<uint64_t>();
}

}  // namespace
}  // namespace castor
