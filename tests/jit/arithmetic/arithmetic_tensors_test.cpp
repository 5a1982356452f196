// SPDX-License-Identifier: Apache-2.0
// Ops on whole tensors: broadcasting, reshaping, selection, promotion, storage layouts.
#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/element_types.hpp"
#include "tests/support/interpreted.hpp"

namespace castor {
namespace {

using enum ElementType;
using test::interpreted;
using test::Patterns;
using test::row_of;

std::vector<uint64_t> counted(size_t count) {
  std::vector<uint64_t> elements(count);
  std::iota(elements.begin(), elements.end(), uint64_t{1});
  return elements;
}

Patterns counted(ElementType type, const Dims& shape) {
  return {type, shape, counted(static_cast<size_t>(element_count(shape).value()))};
}

Attribute identifier(std::string name, std::string value) {
  return {std::move(name), {Identifier{std::move(value)}}};
}

TEST(ArithmeticTensors, RowsColumnsAndScalars) {
  const Patterns matrix = counted(i32, {2, 3});
  const Patterns row{i32, {3}, {10, 20, 30}};
  const Patterns column{i32, {2, 1}, {100, 200}};
  const Patterns scalar{i32, {}, {1000}};
  EXPECT_EQ(interpreted(OpKind::add, {matrix, row}),
            (Patterns{i32, {2, 3}, {11, 22, 33, 14, 25, 36}}));
  EXPECT_EQ(interpreted(OpKind::add, {column, matrix}),
            (Patterns{i32, {2, 3}, {101, 102, 103, 204, 205, 206}}));
  EXPECT_EQ(interpreted(OpKind::sub, {scalar, row}), (Patterns{i32, {3}, {990, 980, 970}}));
  EXPECT_EQ(interpreted(OpKind::add, {column, row}),
            (Patterns{i32, {2, 3}, {110, 120, 130, 210, 220, 230}}));
  EXPECT_EQ(interpreted(OpKind::add, {scalar, scalar}), (Patterns{i32, {}, {2000}}));
}

TEST(ArithmeticTensors, MiddleDimensions) {
  const Patterns a{i32, {2, 1, 2}, {100, 200, 300, 400}};
  const Patterns b = counted(i32, {2, 3, 2});
  EXPECT_EQ(
      interpreted(OpKind::add, {a, b}),
      (Patterns{i32, {2, 3, 2}, {101, 202, 103, 204, 105, 206, 307, 408, 309, 410, 311, 412}}));
}

TEST(ArithmeticTensors, PdpdLaysTheSecondOperandAlongAnAxis) {
  const Patterns a = counted(i32, {2, 3, 2});
  const Patterns b{i32, {3}, {100, 200, 300}};
  const Attributes attributes = {identifier("broadcast", "pdpd"), {"axis", {int64_t{1}}}};
  const std::vector<uint64_t> expected = {101, 102, 203, 204, 305, 306,
                                          107, 108, 209, 210, 311, 312};
  EXPECT_EQ(interpreted(OpKind::add, {a, b}, attributes), (Patterns{i32, {2, 3, 2}, expected}));
  const Patterns trailing_ones{i32, {3, 1}, {100, 200, 300}};
  EXPECT_EQ(interpreted(OpKind::add, {a, trailing_ones}, attributes),
            (Patterns{i32, {2, 3, 2}, expected}));
}

TEST(ArithmeticTensors, ZeroSizes) {
  const Patterns empty{f32, {2, 0}, {}};
  EXPECT_EQ(interpreted(OpKind::mul, {empty, Patterns{f32, {1}, {0x3f800000}}}), empty);
  EXPECT_EQ(interpreted(OpKind::mul, {Patterns{f32, {2, 1}, {1, 2}}, Patterns{f32, {0}, {}}}),
            empty);
  EXPECT_EQ(interpreted(OpKind::sqrt, {empty}), empty);
  EXPECT_EQ(interpreted(OpKind::is_nan, {empty}), (Patterns{boolean, {2, 0}, {}}));
  EXPECT_EQ(interpreted(OpKind::clamp, {empty}, {{"lo", {int64_t{0}}}}), empty);
}

TEST(ArithmeticTensors, RankSixteen) {
  Dims a = Dims::filled(max_rank, 1);
  Dims b = Dims::filled(max_rank, 1);
  Dims both = Dims::filled(max_rank, 1);
  a[0] = both[0] = 2;
  b[15] = both[15] = 3;
  a[7] = b[7] = both[7] = 2;
  const Patterns first{u8, a, {10, 20, 30, 40}};
  const Patterns second{u8, b, {1, 2, 3, 4, 5, 6}};
  EXPECT_EQ(interpreted(OpKind::add, {first, second}),
            (Patterns{u8, both, {11, 12, 13, 24, 25, 26, 31, 32, 33, 44, 45, 46}}));
}

TEST(ArithmeticTensors, BroadcastCopiesBits) {
  const Patterns x{f32, {2, 1}, {0x7f800001, 0x80000000}};
  EXPECT_EQ(interpreted(OpKind::broadcast, {x}, {}, {.element = {}, .shape = Shape{2, 2, 2}}),
            (Patterns{f32,
                      {2, 2, 2},
                      {0x7f800001, 0x7f800001, 0x80000000, 0x80000000, 0x7f800001, 0x7f800001,
                       0x80000000, 0x80000000}}));
  const Patterns truth{boolean, {1}, {7}};
  EXPECT_EQ(interpreted(OpKind::broadcast, {truth}, {}, {.element = {}, .shape = Shape{3}}),
            (Patterns{boolean, {3}, {7, 7, 7}}));
  const Patterns nibbles{u4, {2}, {3, 12}};
  const Attributes along_rows = {identifier("mode", "explicit"),
                                 {"axes", {AttributeValue::List{{int64_t{0}}}}}};
  EXPECT_EQ(
      interpreted(OpKind::broadcast, {nibbles}, along_rows, {.element = {}, .shape = Shape{2, 3}}),
      (Patterns{u4, {2, 3}, {3, 3, 3, 12, 12, 12}}));
}

TEST(ArithmeticTensors, ReshapeCopiesBits) {
  const Patterns x{f16, {2, 3}, {0x7c01, 1, 2, 3, 4, 0x8000}};
  EXPECT_EQ(interpreted(OpKind::reshape, {x}, {}, {.element = {}, .shape = Shape{3, 2, 1}}),
            (Patterns{f16, {3, 2, 1}, {0x7c01, 1, 2, 3, 4, 0x8000}}));
  const Patterns bits = counted(u3, {7});
  EXPECT_EQ(
      interpreted(OpKind::reshape, {bits}, {}, {.element = {}, .shape = Shape{7, 1}}).elements,
      bits.elements);
}

TEST(ArithmeticTensors, SelectCopiesBits) {
  const Patterns condition{boolean, {2, 1}, {2, 0}};
  const Patterns a{f32, {2}, {0x7f800001, 0x80000000}};
  const Patterns b{f32, {}, {0xff800002}};
  EXPECT_EQ(interpreted(OpKind::select, {condition, a, b}),
            (Patterns{f32, {2, 2}, {0x7f800001, 0x80000000, 0xff800002, 0xff800002}}));
  EXPECT_EQ(interpreted(OpKind::select, {row_of(boolean, {0, 1, 128}), row_of(boolean, {3, 4, 5}),
                                         row_of(boolean, {6, 7, 8})}),
            row_of(boolean, {6, 4, 5}));
  EXPECT_EQ(interpreted(OpKind::select,
                        {row_of(boolean, {0, 1}), row_of(nf4, {3, 4}), row_of(nf4, {6, 7})}),
            row_of(nf4, {6, 4}));
}

TEST(ArithmeticTensors, PromotionConvertsEachOperandInItsShape) {
  FunctionBuilder builder("promote");
  Operation operation{.op = OpKind::convert_promote_types};
  operation.operands = {builder.parameter("a", {f16, {2}}), builder.parameter("b", {i8, {1, 3}})};
  const std::vector<std::string> names = {"x", "y"};
  const ValueId first = builder.append(std::move(operation), {}, names);
  builder.result(first + 1);
  builder.result(first);
  const Result<FunctionPtr> function = builder.finish();
  ASSERT_TRUE(function) << function.error().to_string();
  const Patterns a{f16, {2}, {0x7c01, 0xbc00}};
  const Patterns b{i8, {1, 3}, {1, 0xff, 0x80}};
  EXPECT_EQ(interpreted(**function, {a, b}), (Patterns{f16, {1, 3}, {0x3c00, 0xbc00, 0xd800}}));
}

TEST(ArithmeticTensors, OlderLayoutsComputeTheSame) {
  const std::pair<ElementType, ElementType> pairs[] = {
      {u1_lsb_first, u1}, {u2_msb_first, u2}, {u3_split, u3}, {u6_split, u6}};
  for (const auto& [layout, type] : pairs) {
    const std::vector<uint64_t> codes = samples::all_patterns(type);
    const Dims column{static_cast<int64_t>(codes.size()), 1};
    for (OpKind op : {OpKind::add, OpKind::mul, OpKind::div, OpKind::less, OpKind::bitwise_xor,
                      OpKind::shift_left}) {
      const Patterns expected = interpreted(op, {{type, column, codes}, row_of(type, codes)});
      const Patterns actual = interpreted(op, {{layout, column, codes}, row_of(layout, codes)});
      EXPECT_EQ(actual.elements, expected.elements) << name_of(op) << " " << name_of(layout);
    }
  }
}

TEST(ArithmeticTensors, OutputInTheMemoryOfAnInput) {
  const Patterns type = row_of(f32, {0, 0, 0});
  const FunctionPtr function = test::function_of(OpKind::sub, {type, type});
  ASSERT_TRUE(function);
  std::vector<float> a = {1, 2, 3};
  const std::vector<float> b = {4, 3, 2};
  const std::vector<ConstView> inputs = {{a.data(), f32, {3}, 12}, {b.data(), f32, {3}, 12}};
  const std::vector<View> outputs = {{a.data(), f32, {3}, 12}};
  ASSERT_TRUE(interpret(*function, inputs, outputs));
  EXPECT_EQ(a, (std::vector<float>{-3, -1, 1}));
}

// More elements than the machine holds at 8 bytes each, though single bytes back them.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(ArithmeticTensors, RefusedMemoryLeavesOutputsAlone) {
  const int64_t many = int64_t{1} << 58;
  const Patterns x = row_of(u8, {1});
  const FunctionPtr function =
      test::function_of(OpKind::broadcast, {x}, {}, {.element = {}, .shape = Shape{many}});
  ASSERT_TRUE(function);
  const uint8_t input = 1;
  uint8_t output = 0xaa;
  const std::vector<ConstView> inputs = {{&input, u8, {1}, 1}};
  const std::vector<View> outputs = {{&output, u8, {many}, {0}, 0, 1}};
  const Status status = interpret(*function, inputs, outputs);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::out_of_memory);
  EXPECT_EQ(output, 0xaa);
}
#endif

}  // namespace
}  // namespace castor
