// SPDX-License-Identifier: Apache-2.0
// The interpreter: values, views, results; the numbers themselves are tested by numerics_*_test.
#include "ir/interpreter/interpreter.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "ir/builder.hpp"

namespace castor {
namespace {

FunctionPtr finished(FunctionBuilder& builder) {
  Result<FunctionPtr> function = builder.finish();
  EXPECT_TRUE(function) << function.error().to_string();
  return function ? *function : nullptr;
}

/// A function with one parameter that it converts through a chain of types.
FunctionPtr chain(const TensorType& from, std::initializer_list<ElementType> to,
                  const ConvertOptions& options = {}) {
  FunctionBuilder builder("chain");
  ValueId value = builder.parameter("x", from);
  for (ElementType type : to) value = builder.convert(value, type, options);
  builder.result(value);
  return finished(builder);
}

template <class T>
ConstView dense(const std::vector<T>& data, ElementType type, const Dims& shape) {
  return {data.data(), type, shape, data.size() * sizeof(T)};
}

template <class T>
View dense(std::vector<T>& data, ElementType type, const Dims& shape) {
  return {data.data(), type, shape, data.size() * sizeof(T)};
}

Status run(const FunctionPtr& function, std::vector<ConstView> inputs, std::vector<View> outputs) {
  return interpret(*function, inputs, outputs);
}

TEST(Interpreter, Converts) {
  const FunctionPtr function = chain({ElementType::f32, {2, 3}}, {ElementType::u8});
  const std::vector<float> x = {0.9f, -1, 2.5f, 255.5f, 300, 7};
  std::vector<uint8_t> y(6, 0xaa);
  ASSERT_TRUE(
      run(function, {dense(x, ElementType::f32, {2, 3})}, {dense(y, ElementType::u8, {2, 3})}));
  EXPECT_EQ(y, (std::vector<uint8_t>{0, 0, 2, 255, 255, 7}));
}

TEST(Interpreter, OptionsReachTheConversion) {
  const FunctionPtr function =
      chain({ElementType::f32, {3}}, {ElementType::i8},
            {.overflow = Overflow::wrap, .rounding = Rounding::nearest_even});
  const std::vector<float> x = {2.5f, 200.5f, -129};
  std::vector<int8_t> y(3);
  ASSERT_TRUE(run(function, {dense(x, ElementType::f32, {3})}, {dense(y, ElementType::i8, {3})}));
  EXPECT_EQ(y, (std::vector<int8_t>{2, -56, 127}));
}

// Every op of a chain rounds: f64 -> f32 -> f16 is not f64 -> f16.
TEST(Interpreter, ChainsRoundAtEveryStep) {
  const std::vector<uint64_t> x = {0x3ff0020000000001};
  std::vector<uint16_t> y(1);
  const TensorType type{ElementType::f64, {1}};
  ASSERT_TRUE(run(chain(type, {ElementType::f32, ElementType::f16}),
                  {dense(x, ElementType::f64, {1})}, {dense(y, ElementType::f16, {1})}));
  EXPECT_EQ(y[0], 0x3c00);
  ASSERT_TRUE(run(chain(type, {ElementType::f16}), {dense(x, ElementType::f64, {1})},
                  {dense(y, ElementType::f16, {1})}));
  EXPECT_EQ(y[0], 0x3c01);
}

TEST(Interpreter, SeveralAndRepeatedResults) {
  FunctionBuilder builder("many");
  const ValueId x = builder.parameter("x", {ElementType::i32, {2}});
  const ValueId narrow = builder.convert(x, ElementType::i8);
  const ValueId wide = builder.convert(narrow, ElementType::i64);
  builder.convert(narrow, ElementType::f64);  // nobody reads it
  for (ValueId result : {wide, x, narrow, wide}) builder.result(result);
  const FunctionPtr function = finished(builder);

  const std::vector<int32_t> input = {300, -1};
  std::vector<int64_t> first(2);
  std::vector<int32_t> copy(2);
  std::vector<int8_t> bytes(2);
  std::vector<int64_t> second(2);
  const Dims shape{2};
  ASSERT_TRUE(run(function, {dense(input, ElementType::i32, shape)},
                  {dense(first, ElementType::i64, shape), dense(copy, ElementType::i32, shape),
                   dense(bytes, ElementType::i8, shape), dense(second, ElementType::i64, shape)}));
  EXPECT_EQ(first, (std::vector<int64_t>{44, -1}));
  EXPECT_EQ(copy, input);
  EXPECT_EQ(bytes, (std::vector<int8_t>{44, -1}));
  EXPECT_EQ(second, first);
}

// A parameter as a result is no conversion: signalling NaNs and boolean bytes stay as they are.
TEST(Interpreter, ParametersAsResultsCopyBits) {
  FunctionBuilder builder("copy");
  const ValueId b = builder.parameter("b", {ElementType::boolean, {3}});
  const ValueId f = builder.parameter("f", {ElementType::f32, {2}});
  builder.parameter("unused", {ElementType::f64, {1}});
  builder.result(f);
  builder.result(b);
  builder.result(builder.convert(b, ElementType::boolean));
  const FunctionPtr function = finished(builder);

  const std::vector<uint8_t> bytes = {0, 2, 255};
  const std::vector<uint32_t> nans = {0x7f800001, 0xffbfffff};
  const std::vector<double> unused = {1};
  std::vector<uint32_t> floats(2);
  std::vector<uint8_t> copied(3);
  std::vector<uint8_t> normalised(3);
  ASSERT_TRUE(run(function,
                  {dense(bytes, ElementType::boolean, {3}), dense(nans, ElementType::f32, {2}),
                   dense(unused, ElementType::f64, {1})},
                  {dense(floats, ElementType::f32, {2}), dense(copied, ElementType::boolean, {3}),
                   dense(normalised, ElementType::boolean, {3})}));
  EXPECT_EQ(floats, nans);
  EXPECT_EQ(copied, bytes);
  EXPECT_EQ(normalised, (std::vector<uint8_t>{0, 1, 1}));
}

TEST(Interpreter, Constants) {
  FunctionBuilder builder("constants");
  const int16_t data[] = {1, -2, 3, -4, 5, -6};
  const ValueId c = builder.constant({ElementType::i16, {3, 2}}, std::as_bytes(std::span(data)));
  builder.result(c);
  builder.result(builder.convert(c, ElementType::f32));
  builder.result(builder.constant({ElementType::f64, {int64_t{0}, 4}}, {}));
  const FunctionPtr function = finished(builder);

  std::vector<int16_t> transposed(6);
  std::vector<float> floats(6);
  const View columns(transposed.data(), ElementType::i16, {3, 2}, {1, 3}, 0, 12);
  const View empty(nullptr, ElementType::f64, {0, 4}, 0);
  ASSERT_TRUE(run(function, {}, {columns, dense(floats, ElementType::f32, {3, 2}), empty}));
  EXPECT_EQ(transposed, (std::vector<int16_t>{1, 3, 5, -2, -4, -6}));
  EXPECT_EQ(floats, (std::vector<float>{1, -2, 3, -4, 5, -6}));
}

TEST(Interpreter, StridesAndOffsets) {
  const FunctionPtr function = chain({ElementType::u8, {2, 3}}, {ElementType::u16});
  std::vector<uint8_t> x(40);
  std::iota(x.begin(), x.end(), uint8_t{0});
  std::vector<uint16_t> y(20, 0xffff);
  // Element (i, j) is read at 5 + 10 i + 3 j, and written at 1 + i + 4 j.
  const ConstView input(x.data(), ElementType::u8, {2, 3}, {10, 3}, 5, x.size());
  const View output(y.data(), ElementType::u16, {2, 3}, {1, 4}, 1, y.size() * 2);
  ASSERT_TRUE(run(function, {input}, {output}));
  std::vector<uint16_t> expected(20, 0xffff);  // what is between elements survives
  for (size_t i = 0; i < 2; ++i) {
    for (size_t j = 0; j < 3; ++j) {
      expected[1 + i + 4 * j] = static_cast<uint16_t>(5 + 10 * i + 3 * j);
    }
  }
  EXPECT_EQ(y, expected);
}

std::vector<uint8_t> converted(const std::vector<uint8_t>& x, ElementType from, ElementType to,
                               const Dims& shape, std::vector<uint8_t> y) {
  const FunctionPtr function = chain({from, to_shape(shape)}, {to});
  EXPECT_TRUE(run(function, {dense(x, from, shape)}, {dense(y, to, shape)}));
  return y;
}

TEST(Interpreter, SubByteElementsArePacked) {
  using enum ElementType;
  using Bytes = std::vector<uint8_t>;
  // Unused bits of the last byte, or group of three bytes, become 0; the byte after it stays.
  EXPECT_EQ(converted({0x21, 0xA3}, u4, u8, {4}, Bytes(5, 0xEE)), (Bytes{1, 2, 3, 10, 0xEE}));
  EXPECT_EQ(converted({1, 2, 3}, u8, u4, {3}, Bytes(3, 0xEE)), (Bytes{0x21, 0x03, 0xEE}));
  EXPECT_EQ(converted({1, 1, 1}, u8, u1, {3}, Bytes(2, 0xFF)), (Bytes{0xE0, 0xFF}));
  EXPECT_EQ(converted({7}, u8, u3, {1}, Bytes(2, 0xFF)), (Bytes{0x07, 0xFF}));
  EXPECT_EQ(converted({7}, u8, u3_split, {1}, Bytes(4, 0xFF)), (Bytes{0xC0, 0x00, 0x80, 0xFF}));
  EXPECT_EQ(converted({63}, u8, u6_split, {1}, Bytes(4, 0xFF)), (Bytes{0xF0, 0x00, 0xC0, 0xFF}));
  // Between layouts.
  EXPECT_EQ(converted({0xB1, 0x1B, 0x0F}, u3_split, u3, {8}, Bytes(3)), (Bytes{0x1A, 0xC2, 0xFA}));
  EXPECT_EQ(converted({0x16}, u1, u1_lsb_first, {2, 4}, Bytes(1)), (Bytes{0x68}));
  EXPECT_EQ(converted({0xC6}, u2, u2_msb_first, {4}, Bytes(1)), (Bytes{0x93}));
}

TEST(Interpreter, NeighboursInASharedByteSurvive) {
  using enum ElementType;
  const FunctionPtr function = chain({u8, {2}}, {u3});
  const std::vector<uint8_t> x = {0, 0};
  // Elements 1 and 3: bits 3 to 5 and 9 to 11 of the stream.
  std::vector<uint8_t> y(3, 0xFF);
  ASSERT_TRUE(run(function, {dense(x, u8, {2})}, {View(y.data(), u3, {2}, {2}, 1, y.size())}));
  EXPECT_EQ(y, (std::vector<uint8_t>{0xC7, 0xF1, 0xFF}));
  // Dense, but not from the first bit on: elements 2 and 3, the first of them across two bytes.
  y.assign(3, 0xFF);
  ASSERT_TRUE(run(function, {dense(x, u8, {2})}, {View(y.data(), u3, {2}, {1}, 2, y.size())}));
  EXPECT_EQ(y, (std::vector<uint8_t>{0x3F, 0xF0, 0xFF}));
  // From the first bit on, but with gaps.
  y.assign(3, 0xFF);
  ASSERT_TRUE(run(function, {dense(x, u8, {2})}, {View(y.data(), u3, {2}, {3}, 0, y.size())}));
  EXPECT_EQ(y, (std::vector<uint8_t>{0xF8, 0xF1, 0xFF}));
}

TEST(Interpreter, BroadcastAndReversedInputs) {
  const FunctionPtr function = chain({ElementType::i8, {2, 3}}, {ElementType::i32});
  const std::vector<int8_t> x = {1, 2, 3};
  std::vector<int32_t> y(6);
  const ConstView input(x.data(), ElementType::i8, {2, 3}, {0, -1}, 2, x.size());
  ASSERT_TRUE(run(function, {input}, {dense(y, ElementType::i32, {2, 3})}));
  EXPECT_EQ(y, (std::vector<int32_t>{3, 2, 1, 3, 2, 1}));
}

TEST(Interpreter, UnalignedData) {
  const FunctionPtr function = chain({ElementType::u32, {2}}, {ElementType::u64});
  std::vector<uint8_t> x = {9, 1, 0, 0, 0, 2, 0, 0, 1};
  std::vector<uint8_t> y(17, 9);
  const ConstView input(x.data() + 1, ElementType::u32, {2}, 8);
  const View output(y.data() + 1, ElementType::u64, {2}, 16);
  ASSERT_TRUE(run(function, {input}, {output}));
  EXPECT_EQ(y, (std::vector<uint8_t>{9, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 1, 0, 0, 0, 0}));
}

TEST(Interpreter, RankZeroAndRankSixteen) {
  const std::vector<float> x = {1.5f};
  std::vector<uint16_t> y(1);
  ASSERT_TRUE(run(chain({ElementType::f32, {}}, {ElementType::bf16}),
                  {dense(x, ElementType::f32, {})}, {dense(y, ElementType::bf16, {})}));
  EXPECT_EQ(y[0], 0x3fc0);

  const Shape ones(max_rank, Dim(1));
  const Dims extents = Dims::filled(max_rank, 1);
  ASSERT_TRUE(run(chain({ElementType::f32, ones}, {ElementType::f16}),
                  {dense(x, ElementType::f32, extents)}, {dense(y, ElementType::f16, extents)}));
  EXPECT_EQ(y[0], 0x3e00);
}

TEST(Interpreter, ZeroSizesTouchNothing) {
  const FunctionPtr function =
      chain({ElementType::f32, {Dim::any(), Dim::any(), Dim::any()}}, {ElementType::i32});
  for (const Dims& shape : {Dims{0, 2, 3}, Dims{2, 0, 3}, Dims{2, 3, 0}, Dims{0, 0, INT64_MAX}}) {
    const ConstView input(nullptr, ElementType::f32, shape, 0);
    const View output(nullptr, ElementType::i32, shape, 0);
    EXPECT_TRUE(run(function, {input}, {output})) << to_string(shape);
  }
}

TEST(Interpreter, InPlace) {
  const FunctionPtr same_size = chain({ElementType::f32, {4}}, {ElementType::i32});
  std::vector<float> data = {1.5f, -2.5f, 1e10f, 0};
  const View output(data.data(), ElementType::i32, {4}, 16);
  ASSERT_TRUE(run(same_size, {dense(data, ElementType::f32, {4})}, {output}));
  std::vector<int32_t> result(4);
  std::memcpy(result.data(), data.data(), 16);
  EXPECT_EQ(result, (std::vector<int32_t>{1, -2, INT32_MAX, 0}));

  // Reversal in place: every input is read before any output is written.
  const FunctionPtr copy = chain({ElementType::u8, {5}}, {ElementType::u8});
  std::vector<uint8_t> bytes = {1, 2, 3, 4, 5};
  const ConstView reversed(bytes.data(), ElementType::u8, {5}, {-1}, 4, 5);
  ASSERT_TRUE(run(copy, {reversed}, {dense(bytes, ElementType::u8, {5})}));
  EXPECT_EQ(bytes, (std::vector<uint8_t>{5, 4, 3, 2, 1}));
}

TEST(Interpreter, SwapsTwoBuffersInPlace) {
  FunctionBuilder builder("swap");
  const TensorType type{ElementType::i16, {2}};
  const ValueId a = builder.parameter("a", type);
  const ValueId b = builder.parameter("b", type);
  builder.result(b);
  builder.result(a);
  const FunctionPtr function = finished(builder);
  std::vector<int16_t> x = {1, 2};
  std::vector<int16_t> y = {3, 4};
  const View x_view = dense(x, ElementType::i16, {2});
  const View y_view = dense(y, ElementType::i16, {2});
  ASSERT_TRUE(run(function, {x_view, y_view}, {x_view, y_view}));
  EXPECT_EQ(x, (std::vector<int16_t>{3, 4}));
  EXPECT_EQ(y, (std::vector<int16_t>{1, 2}));
}

TEST(Interpreter, UnknownDimensionsAreBoundByTheInputs) {
  FunctionBuilder builder("unknown");
  const Shape shape = {"?n", 2};
  const ValueId x = builder.parameter("x", {ElementType::u8, shape});
  const ValueId y = builder.parameter("y", {ElementType::u8, {"?n"}});
  builder.result(builder.convert(x, ElementType::u16));
  builder.result(builder.convert(y, ElementType::u16));
  const FunctionPtr function = finished(builder);

  const std::vector<uint8_t> bytes = {1, 2, 3, 4, 5, 6};
  for (int64_t n : {0, 1, 3}) {
    std::vector<uint16_t> wide(static_cast<size_t>(2 * n));
    std::vector<uint16_t> thin(static_cast<size_t>(n));
    ASSERT_TRUE(run(function,
                    {dense(bytes, ElementType::u8, {n, 2}), dense(bytes, ElementType::u8, {n})},
                    {dense(wide, ElementType::u16, {n, 2}), dense(thin, ElementType::u16, {n})}));
    EXPECT_EQ(wide, (std::vector<uint16_t>(bytes.begin(), bytes.begin() + 2 * n)));
    EXPECT_EQ(thin, (std::vector<uint16_t>(bytes.begin(), bytes.begin() + n)));
  }
}

TEST(Interpreter, ShapesThatDoNotBindAreRefusedUntouched) {
  const FunctionPtr function = chain({ElementType::u8, {3}}, {ElementType::u8});
  const std::vector<uint8_t> x = {1, 2};
  std::vector<uint8_t> y = {7, 7};
  const Status status =
      run(function, {dense(x, ElementType::u8, {2})}, {dense(y, ElementType::u8, {2})});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(y, (std::vector<uint8_t>{7, 7}));
}

// More elements than a vector holds, and more than the machine does at 8 bytes each, though a
// single byte backs them. Sanitizers end the program where operator new would throw.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int64_t refused_counts[] = {int64_t{1} << 62};
#else
constexpr int64_t refused_counts[] = {int64_t{1} << 62, int64_t{1} << 58};
#endif

TEST(Interpreter, RefusedMemoryIsAnErrorAndOutputsStayUntouched) {
  for (int64_t count : refused_counts) {
    const FunctionPtr function = chain({ElementType::u8, {Dim::any()}}, {ElementType::u8});
    const uint8_t x = 1;
    std::vector<uint8_t> y = {7};
    const ConstView input(&x, ElementType::u8, {count}, {0}, 0, 1);
    const View output(y.data(), ElementType::u8, {count}, {0}, 0, 1);
    const Status status = run(function, {input}, {output});
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::out_of_memory);
    EXPECT_EQ(status.error().message, "no memory left");
    EXPECT_EQ(y[0], 7);
  }
}

}  // namespace
}  // namespace castor
