// SPDX-License-Identifier: Apache-2.0
// The public C++ interface: what calls do, what they refuse and in which words.
#include <gtest/gtest.h>

#include "tests/support/conversions.hpp"
#include "tests/support/to_f16.hpp"

namespace castor {
namespace {

using test::make_runtime;
using test::to_f16_text;

TEST(Runtime, TheStepsOfUse) {
  const Runtime runtime = make_runtime();
  const Result<Kernel> kernel = runtime.compile(to_f16_text);
  ASSERT_TRUE(kernel.ok()) << kernel.error().to_string();
  EXPECT_EQ(kernel->function().name, "to_f16");
  const Result<BoundKernel> bound = kernel->bind({{2, 3}});
  ASSERT_TRUE(bound.ok()) << bound.error().message;
  ASSERT_EQ(bound->output_shapes().size(), 1u);
  EXPECT_EQ(bound->output_shapes()[0], (Dims{2, 3}));
  const float in[6] = {0, 1, -2, 0.5F, 65504, 1e6F};
  uint16_t out[6] = {};
  const ConstView x(in, ElementType::f32, {2, 3}, sizeof in);
  const View y(out, ElementType::f16, {2, 3}, sizeof out);
  const Status status = bound->run({&x, 1}, {&y, 1});
  ASSERT_TRUE(status.ok()) << status.error().message;
  const uint16_t expected[6] = {0, 0x3c00, 0xc000, 0x3800, 0x7bff, 0x7c00};
  EXPECT_TRUE(std::equal(out, out + 6, expected));
}

TEST(Runtime, InterpretsWhenAsked) {
  RuntimeOptions options;
  options.interpret = true;
  const Runtime runtime = make_runtime(options);
  EXPECT_FALSE(runtime.tier().has_value());
  const Result<Kernel> kernel = runtime.compile(to_f16_text);
  ASSERT_TRUE(kernel.ok());
  EXPECT_EQ(kernel->engine(), Engine::interpreter);
  EXPECT_EQ(kernel->engine_reason(), "the runtime was asked to interpret");
  const float in = 1.5F;
  uint16_t out = 0;
  const Status status =
      runtime.convert(ConstView(&in, ElementType::f32, {}, 4), View(&out, ElementType::f16, {}, 2));
  ASSERT_TRUE(status.ok()) << status.error().message;
  EXPECT_EQ(out, 0x3e00);
}

TEST(Runtime, TextErrorsHaveAPlace) {
  const Result<Kernel> kernel = make_runtime().compile("func @f(%x: f32[2]) -> (f16[2]) {\n  oops");
  ASSERT_FALSE(kernel.ok());
  EXPECT_EQ(kernel.error().code, ErrorCode::invalid_text);
  EXPECT_EQ(kernel.error().where.line, 2u);
}

TEST(Runtime, FunctionsThatNobodyVerifiedAreRefused) {
  auto function = std::make_shared<Function>();
  function->name = "f";
  function->values = {{"x", {ElementType::f32, {4}}}};
  function->parameters = {0};
  function->results = {7};
  function->result_types = {{ElementType::f32, {4}}};
  EXPECT_FALSE(make_runtime().compile(function).ok());
}

TEST(Runtime, OptionsOutsideTheirEnumerationsAreRefused) {
  const float in = 1;
  uint8_t out = 9;
  const Status status = make_runtime().convert(
      ConstView(&in, ElementType::f32, {1}, 4), View(&out, ElementType::u8, {1}, 1),
      {.overflow = Overflow::by_type, .rounding = static_cast<Rounding>(77)});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(out, 9);
}

TEST(Runtime, RanksOverTheLimitAreRefused) {
  const std::vector<int64_t> ones(40, 1);
  const Dims shape{std::span<const int64_t>(ones)};
  const float in = 1;
  uint8_t out = 9;
  const Status status = make_runtime().convert(ConstView(&in, ElementType::f32, shape, 4),
                                               View(&out, ElementType::u8, shape, 1));
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(out, 9);
}

TEST(Runtime, StridesWhoseProductsOverflowStillBind) {
  const Result<Kernel> kernel = make_runtime().compile(
      "func @f(%x: u8[2, 2]) -> (u8[2, 2]) {\n  %y = convert %x {overflow = saturate} : u8\n"
      "  return %y\n}\n");
  ASSERT_TRUE(kernel.ok()) << kernel.error().to_string();
  const Dims strides[] = {{1, int64_t{1} << 62}, {2, 1}};
  EXPECT_TRUE(kernel->bind(std::vector<Dims>{{2, 2}}, strides).ok());
}

TEST(Runtime, NullFunctionIsRefused) {
  const Result<Kernel> kernel = make_runtime().compile(FunctionPtr());
  ASSERT_FALSE(kernel.ok());
  EXPECT_EQ(kernel.error().code, ErrorCode::invalid_argument);
}

// Calls that must be refused before anything is written.

struct BadCall {
  const char* message;
  std::vector<ConstView> inputs;
  std::vector<View> outputs;
};

float source_data[64];
std::byte output_data[256];

const ConstView good_input(source_data, ElementType::f32, {2, 3}, sizeof source_data);
const View good_output(output_data, ElementType::f16, {2, 3}, sizeof output_data);

View at(void* data, const Dims& strides, int64_t offset, size_t bytes) {
  return {data, ElementType::f16, {2, 3}, strides, offset, bytes};
}

std::vector<BadCall> bad_calls() {
  return {
      {"0 inputs given; the function has 1", {}, {good_output}},
      {"2 outputs given; the function has 1", {good_input}, {good_output, good_output}},
      {"input %x: element type f64; expected f32",
       {ConstView(source_data, ElementType::f64, {2, 3}, sizeof source_data)},
       {good_output}},
      {"output 0 (%y): shape [3, 2]; expected [2, 3], as bound",
       {good_input},
       {View(output_data, ElementType::f16, {3, 2}, sizeof output_data)}},
      {"output 0 (%y): strides [1, 2]; expected [3, 1], as bound",
       {good_input},
       {at(output_data, {1, 2}, 0, sizeof output_data)}},
      {"output 0 (%y): no data (null) for 6 elements", {good_input}, {at(nullptr, {3, 1}, 0, 12)}},
      {"output 0 (%y): offset -1; expected 0 or more",
       {good_input},
       {at(output_data, {3, 1}, -1, sizeof output_data)}},
      {"output 0 (%y): 11 bytes available; shape [2, 3] with strides [3, 1] at offset 0 reaches "
       "element 5 of 2 bytes each",
       {good_input},
       {at(output_data, {3, 1}, 0, 11)}},
      {"output 0 (%y): 12 bytes available; shape [2, 3] with strides [3, 1] at offset 1 reaches "
       "element 6 of 2 bytes each",
       {good_input},
       {at(output_data, {3, 1}, 1, 12)}},
      {"output 0 (%y): 256 bytes available; shape [2, 3] with strides [3, 1] at offset "
       "9223372036854775807 reaches element 9223372036854775812 of 2 bytes each",
       {good_input},
       {at(output_data, {3, 1}, INT64_MAX, sizeof output_data)}},
      {"output 0 (%y) overlaps input %x; in place needs the same address, element size, storage "
       "order, shape and strides, and no later use of the input",
       {good_input},
       {at(source_data, {3, 1}, 0, sizeof source_data)}},
  };
}

TEST(Runtime, BadCallsWriteNothing) {
  const BoundKernel bound = std::move(make_runtime().compile(to_f16_text)->bind({{2, 3}})).value();
  for (const BadCall& call : bad_calls()) {
    std::fill(std::begin(output_data), std::end(output_data), std::byte{0x5a});
    std::fill(std::begin(source_data), std::end(source_data), 3.0F);
    const Status status = bound.run(call.inputs, call.outputs);
    ASSERT_FALSE(status.ok()) << call.message;
    EXPECT_EQ(status.error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(status.error().message, call.message);
    for (std::byte byte : output_data) ASSERT_EQ(byte, std::byte{0x5a}) << call.message;
    for (float value : source_data) ASSERT_EQ(value, 3.0F) << call.message;
  }
}

struct BadBinding {
  const char* message;
  std::vector<Dims> shapes;
  std::vector<Dims> strides;
};

const BadBinding bad_bindings[] = {
    {"0 input shapes given; the function has 1", {}, {}},
    {"1 strides (inputs and outputs) given; the function has 2", {{2, 3}}, {{3, 1}}},
    {"input %x: stride 0 on axis 1 of shape [2, 3]; expected a positive stride",
     {{2, 3}},
     {{3, 0}, {3, 1}}},
    {"input %x: stride -3 on axis 0 of shape [2, 3]; expected a positive stride",
     {{2, 3}},
     {{-3, 1}, {3, 1}}},
    {"input %x: 1 strides for shape [2, 3]; expected one for each of its 2 dimensions",
     {{2, 3}},
     {{1}, {3, 1}}},
    {"output 0 (%y): strides [2, 1] over shape [2, 3] make elements overlap",
     {{2, 3}},
     {{3, 1}, {2, 1}}},
    {"output 0 (%y): strides [9223372036854775807, 1] over shape [2, 3] reach beyond 2^63 bytes",
     {{2, 3}},
     {{3, 1}, {INT64_MAX, 1}}},
};

TEST(Runtime, BadBindingsAreRefused) {
  const Kernel kernel = std::move(make_runtime().compile(to_f16_text)).value();
  for (const BadBinding& row : bad_bindings) {
    const Result<BoundKernel> bound = kernel.bind(row.shapes, row.strides);
    ASSERT_FALSE(bound.ok()) << row.message;
    EXPECT_EQ(bound.error().message, row.message);
  }
}

TEST(Runtime, ShapesThatDoNotBindAreRefused) {
  const Kernel kernel = std::move(make_runtime().compile(to_f16_text)).value();
  for (const Dims& shape :
       {Dims{6}, Dims{2, 3, 1}, Dims{-1, 3}, Dims{int64_t{1} << 40, int64_t{1} << 40}}) {
    EXPECT_FALSE(kernel.bind({shape}).ok()) << to_string(shape);
  }
  EXPECT_TRUE(kernel.bind({Dims{0, int64_t{1} << 62}}).ok());
}

TEST(Runtime, ZeroSizedTensorsNeedNoData) {
  const Runtime runtime = make_runtime();
  const Status status = runtime.convert(ConstView(nullptr, ElementType::f32, {3, 0}, 0),
                                        View(nullptr, ElementType::u8, {3, 0}, 0));
  EXPECT_TRUE(status.ok()) << status.error().message;
}

TEST(Runtime, InPlaceWhereElementsAreEquallyWide) {
  for (const auto& [tier, runtime] : test::tier_runtimes()) {
    std::vector<float> data(150);
    for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i) - 70.5F;
    const ConstView in(data.data(), ElementType::f32, {150}, data.size() * 4);
    const View out(data.data(), ElementType::i32, {150}, data.size() * 4);
    const Status status = runtime.convert(in, out, {.rounding = Rounding::down});
    ASSERT_TRUE(status.ok()) << status.error().message;
    const auto* integers = reinterpret_cast<const int32_t*>(data.data());
    for (int i = 0; i < 150; ++i) ASSERT_EQ(integers[i], i - 71) << name_of(tier);
  }
}

/// One result in place of the input that another result is computed from as well.
TEST(Runtime, InPlaceReadsEverythingBeforeItWrites) {
  constexpr std::string_view text =
      "func @f(%x: i32[?]) -> (f32[?], i64[?], u8[?]) {\n"
      "  %a = convert %x : f32\n  %b = convert %x : i64\n  %c = convert %x : u8\n"
      "  return %a, %b, %c\n}\n";
  for (const auto& [tier, runtime] : test::tier_runtimes()) {
    std::vector<int32_t> x(100);
    for (int i = 0; i < 100; ++i) x[static_cast<size_t>(i)] = i * 3 - 150;
    std::vector<int64_t> wide(100);
    std::vector<uint8_t> narrow(100);
    const ConstView in(x.data(), ElementType::i32, {100}, 400);
    const View outs[] = {{x.data(), ElementType::f32, {100}, 400},
                         {wide.data(), ElementType::i64, {100}, 800},
                         {narrow.data(), ElementType::u8, {100}, 100}};
    const Result<BoundKernel> bound = runtime.compile(text)->bind({{100}});
    ASSERT_TRUE(bound.ok());
    const Status status = bound->run({&in, 1}, outs);
    ASSERT_TRUE(status.ok()) << status.error().message;
    for (int i = 0; i < 100; ++i) {
      const auto at = static_cast<size_t>(i);
      ASSERT_EQ(reinterpret_cast<float*>(x.data())[at], static_cast<float>(i * 3 - 150))
          << name_of(tier);
      ASSERT_EQ(wide[at], i * 3 - 150) << name_of(tier);
      ASSERT_EQ(narrow[at], static_cast<uint8_t>(i * 3 - 150)) << name_of(tier);
    }
  }
}

TEST(Runtime, InterleavedOutputsAreApart) {
  constexpr std::string_view text =
      "func @f(%x: f32[?]) -> (i16[?], u16[?]) {\n"
      "  %a = convert %x : i16\n  %b = convert %x : u16\n  return %a, %b\n}\n";
  const Runtime runtime = make_runtime();
  const float x[4] = {-1, 2, 40000, 5};
  uint16_t pairs[8] = {};
  const ConstView in(x, ElementType::f32, {4}, sizeof x);
  const View outs[] = {{pairs, ElementType::i16, {4}, {2}, 0, sizeof pairs},
                       {pairs, ElementType::u16, {4}, {2}, 1, sizeof pairs}};
  const Result<BoundKernel> bound = runtime.compile(text)->bind({&in, 1}, outs);
  ASSERT_TRUE(bound.ok()) << bound.error().message;
  const Status status = bound->run({&in, 1}, outs);
  ASSERT_TRUE(status.ok()) << status.error().message;
  const uint16_t expected[8] = {0xffff, 0, 2, 2, 0x7fff, 40000, 5, 5};
  EXPECT_TRUE(std::equal(pairs, pairs + 8, expected));
}

// Elements narrower than a byte: what is checked is bytes.

struct NibbleCall {
  const char* what;
  const char* refusal;  ///< empty: the call is admitted
  Dims strides;
  int64_t first_offset;
  int64_t second_offset;
  size_t bytes;
};

const NibbleCall nibble_calls[] = {
    {"bytes in turn", "", {4}, 0, 2, 8},
    {"bytes in turn, high nibbles", "", {4}, 1, 3, 8},
    {"one byte too few for the last nibble",
     "output 1 (%b): 7 bytes available; shape [4] with strides [4] at offset 2 reaches element 14 "
     "of 4 bits each",
     {4},
     0,
     2,
     7},
    {"nibbles in turn",
     "output 1 (%b) overlaps output 0 (%a); outputs must be apart",
     {2},
     0,
     1,
     8},
    {"halves that meet in a byte",
     "output 1 (%b) overlaps output 0 (%a); outputs must be apart",
     {1},
     1,
     5,
     8},
    {"halves that do not", "", {1}, 0, 4, 8},
};

TEST(Runtime, OutputsOfNibblesShareNoByte) {
  constexpr std::string_view text =
      "func @f(%x: f32[?]) -> (i4[?], u4[?]) {\n"
      "  %a = convert %x : i4\n  %b = convert %x : u4\n  return %a, %b\n}\n";
  RuntimeOptions options;
  options.interpret = true;
  const Runtime runtime = make_runtime(options);
  const float x[4] = {-1, 2, 3, 5};
  const ConstView in(x, ElementType::f32, {4}, sizeof x);
  for (const NibbleCall& row : nibble_calls) {
    std::array<std::byte, 8> nibbles = {};
    const View outs[] = {
        {nibbles.data(), ElementType::i4, {4}, row.strides, row.first_offset, row.bytes},
        {nibbles.data(), ElementType::u4, {4}, row.strides, row.second_offset, row.bytes}};
    const Status status = runtime.compile(text)->bind({&in, 1}, outs)->run({&in, 1}, outs);
    EXPECT_EQ(status ? "" : status.error().message, row.refusal) << row.what;
    const uint64_t last = samples::load_pattern(
        nibbles, ElementType::i4, static_cast<size_t>(row.first_offset + 3 * row.strides[0]));
    EXPECT_EQ(last, status ? 5u : 0u) << row.what;
  }
}

TEST(Runtime, InPlaceNibblesBeginAtOneNibble) {
  RuntimeOptions options;
  options.interpret = true;
  const Runtime runtime = make_runtime(options);
  std::array<std::byte, 3> bytes = {std::byte{0x21}, std::byte{0xA3}, std::byte{0x5F}};
  const auto convert = [&](int64_t from, int64_t to, ElementType type) {
    return runtime.convert(ConstView(bytes.data(), ElementType::u4, {3}, {1}, from, 3),
                           View(bytes.data(), type, {3}, {1}, to, 3));
  };
  EXPECT_FALSE(convert(0, 1, ElementType::i4).ok());
  EXPECT_FALSE(convert(1, 0, ElementType::i4).ok());
  EXPECT_FALSE(convert(0, 0, ElementType::i8).ok());
  ASSERT_TRUE(convert(1, 1, ElementType::i4).ok());
  EXPECT_EQ(bytes, (std::array{std::byte{0x21}, std::byte{0xA3}, std::byte{0x5F}}));
  ASSERT_TRUE(convert(0, 0, ElementType::i4).ok());
  EXPECT_EQ(bytes, (std::array{std::byte{0x21}, std::byte{0x03}, std::byte{0x5F}}))
      << "a dense output's unused bits become 0, the byte after it stays";
}

TEST(Runtime, OverlappingOutputsAreRefused) {
  constexpr std::string_view text =
      "func @f(%x: f32[?]) -> (i16[?], u16[?]) {\n"
      "  %a = convert %x : i16\n  %b = convert %x : u16\n  return %a, %b\n}\n";
  const float x[4] = {};
  uint16_t out[5] = {};
  const ConstView in(x, ElementType::f32, {4}, sizeof x);
  const View outs[] = {{out, ElementType::i16, {4}, 8}, {out + 1, ElementType::u16, {4}, 8}};
  const Status status = make_runtime().compile(text)->bind({{4}})->run({&in, 1}, outs);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "output 1 (%b) overlaps output 0 (%a); outputs must be apart");
}

TEST(Runtime, ConstantsAreOperands) {
  constexpr std::string_view text =
      "func @f(%x: u8[2]) -> (f16[3], f32[2]) {\n"
      "  %c = constant [1, 2, 3] : i32[3]\n  %h = convert %c : f16\n"
      "  %y = convert %x : f32\n  return %h, %y\n}\n";
  for (const auto& [tier, runtime] : test::tier_runtimes()) {
    const uint8_t x[2] = {7, 255};
    uint16_t h[3] = {};
    float y[2] = {};
    const ConstView in(x, ElementType::u8, {2}, 2);
    const View outs[] = {{h, ElementType::f16, {3}, 6}, {y, ElementType::f32, {2}, 8}};
    const Result<Kernel> kernel = runtime.compile(text);
    ASSERT_TRUE(kernel.ok()) << kernel.error().to_string();
    ASSERT_TRUE(kernel->bind({{2}})->run({&in, 1}, outs).ok());
    EXPECT_TRUE(h[0] == 0x3c00 && h[1] == 0x4000 && h[2] == 0x4200) << name_of(tier);
    EXPECT_TRUE(y[0] == 7 && y[1] == 255) << name_of(tier);
  }
}

}  // namespace
}  // namespace castor
