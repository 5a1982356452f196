// SPDX-License-Identifier: Apache-2.0
// clamp: its bounds in every kind of type.
#include <gtest/gtest.h>

#include <limits>
#include <optional>

#include "tests/support/op_cases.hpp"

namespace castor {
namespace {

using enum ElementType;
using namespace test;

struct ClampRow {
  ElementType type;
  std::optional<AttributeValue> lo;
  std::optional<AttributeValue> hi;
  uint64_t x;
  uint64_t expected;
};

AttributeValue integer(int64_t value) { return {value}; }
AttributeValue number(double value) { return {value}; }

TEST(ArithmeticClamp, BoundsAndNan) {
  const double infinity = std::numeric_limits<double>::infinity();
  const ClampRow rows[] = {
      {f32, integer(0), integer(1), f32_two, f32_one},
      {f32, integer(0), {}, minus, 0},  // -0 is below +0
      {f32, number(-0.0), {}, minus, minus},
      {f32, {}, number(-0.0), 0, minus},
      {f32, integer(2), integer(1), 0, f32_one},  // lo > hi gives hi
      {f32, integer(2), integer(1), f32_inf, f32_one},
      {f32, integer(2), integer(1), 0x7f800001, 0x7fc00001},
      {f32, {}, {}, 0x7f800001, 0x7fc00001},
      {f32, {}, {}, minus, minus},
      {f32, number(0.1), {}, 0, 0x3dcccccd},
      {f32, number(1e300), {}, 0, f32_inf},
      {f16, {}, number(1e6), 0x7c00, 0x7c00},
      {f8e4m3, {}, number(1e6), 0x7e, 0x7e},
      {f8e4m3, number(1e6), {}, 0x00, 0x7e},
      {f8e4m3fnuz, number(-0.0), integer(1), 0xff, 0x00},
      {f4e2m1, integer(-100), integer(100), 0xf, 0xf},
      {f32, integer((int64_t{1} << 24) + 1), {}, 0, 0x4b800000},
      {i8, number(-0.5), number(0.5), 0x80, 0},
      {i8, number(1.1), {}, 0, 2},
      {i8, {}, number(-1.1), 0, 0xfe},
      {i8, integer(-1000), integer(1000), 0x80, 0x80},
      {i8, number(infinity), {}, 0, 0x7f},
      {i8, integer(5), integer(3), 4, 3},
      {u8, integer(-5), integer(300), 0xff, 0xff},
      {u8, {}, integer(-5), 0xff, 0},
      {u64, number(1e300), {}, 0, ~uint64_t{0}},
      {i64, integer(INT64_MIN), integer(INT64_MAX), uint64_t{1} << 63, uint64_t{1} << 63},
      {i4, integer(-8), integer(7), 0x8, 0x8},
  };
  for (const ClampRow& row : rows) {
    Attributes attributes;
    if (row.lo) attributes.push_back({"lo", *row.lo});
    if (row.hi) attributes.push_back({"hi", *row.hi});
    EXPECT_EQ(result_of(OpKind::clamp, row.type, {row.x}, attributes), row.expected)
        << name_of(row.type) << std::hex << " 0x" << row.x << " lo "
        << (row.lo ? to_string(*row.lo) : "-") << " hi " << (row.hi ? to_string(*row.hi) : "-");
  }
}

}  // namespace
}  // namespace castor
