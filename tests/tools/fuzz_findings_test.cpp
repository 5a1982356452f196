// SPDX-License-Identifier: Apache-2.0
// What the fuzzer found, kept: each function runs on every tier with every tensor against an
// inaccessible page.
#include <gtest/gtest.h>

#include <array>
#include <deque>

#include "ir/interpreter/interpreter.hpp"
#include "tests/support/conversions.hpp"
#include "tools/testing/guarded_pages.hpp"

namespace castor {
namespace {

struct Finding {
  const char* what;
  const char* text;
  std::vector<int64_t> counts;
};

const Finding findings[] = {
    {"products of small integers were not rounded to a format that has no negative zero",
     "func @f(%0: i2[?], %1: i2[?]) -> (f32[?], f32[?]) {\n"
     "  %2 = convert %0 : f8e4m3fnuz\n  %3 = convert %1 : f8e4m3fnuz\n  %4 = mul %2, %3\n"
     "  %5 = convert %4 : f32\n  %6 = convert %0 : f8e5m2fnuz\n"
     "  %7 = convert %1 : f8e5m2fnuz\n  %8 = mul %6, %7\n  %9 = convert %8 : f32\n"
     "  return %5, %9\n}\n",
     {64, 133}},
    {"codes from a table of thresholds: what computed with them did not saturate finite numbers",
     "func @f(%0: f16[?]) -> (i16[?]) {\n"
     "  %1 = convert %0 {overflow = saturate_finite} : f8e5m2\n"
     "  %2 = convert %1 {overflow = wrap} : i16\n  return %2\n}\n",
     {5000}},
    {"codes of bf16 from such a table, which also became f32",
     "func @f(%0: bf16[?]) -> (f8e5m2[?], f32[?]) {\n"
     "  %1 = convert %0 {overflow = saturate_finite} : f8e5m2\n"
     "  %2 = neg %1\n  %3 = convert %1 : f32\n  return %2, %3\n}\n",
     {5000}},
    {"avx2: four bytes widened to words in a program of 64-bit lanes; the load read eight",
     "func @f(%0: i8[?]) -> (i64[?]) {\n"
     "  %1 = convert %0 : u16\n  %2 = convert %1 : i64\n  return %2\n}\n",
     {4, 8, 16, 20}},
    {"the same after a store of the input itself",
     "func @f(%0: boolean[?]) -> (i16[?], boolean[?], u64[?], boolean[?]) {\n"
     "  %1 = convert %0 : i16\n  %2 = convert %0 : u64\n  return %1, %0, %2, %0\n}\n",
     {4, 8, 153}},
    {"the same with a conversion that merges",
     "func @f(%0: u8[?]) -> (u8[?], i16[?], i64[?], i8[?]) {\n"
     "  %1 = convert %0 : i64\n  %2 = convert %1 : i8\n  %3 = convert %0 : i16\n"
     "  return %0, %3, %1, %2\n}\n",
     {4, 12}},
    {"two results, one of nibbles: the code touched what is after the tensors",
     "func @f(%0: f8e8m0[?]) -> (nf4[?], f32[?]) {\n"
     "  %1 = convert %0 : f32\n  %2 = convert %1 : nf4\n  return %2, %1\n}\n",
     {64, 65, 66, 130}},
    {"the same with two bits",
     "func @f(%0: boolean[?]) -> (f8e8m0[?], u2.msb_first[?]) {\n"
     "  %1 = convert %0 : u2.msb_first\n  %2 = convert %1 : f8e8m0\n  return %2, %1\n}\n",
     {63, 64, 65, 128}},
    {"a signed sub-byte type between two others lost its sign",
     "func @f(%0: f8e4m3fnuz[?]) -> (u16[?]) {\n"
     "  %1 = convert %0 : i2\n  %2 = convert %1 : u16\n  return %2\n}\n",
     {1, 64, 700}},
    {"the same with overflow = wrap",
     "func @f(%0: f4e2m1[?]) -> (f16[?]) {\n"
     "  %1 = convert %0 {overflow = wrap} : i2\n  %2 = convert %1 : f16\n  return %2\n}\n",
     {1, 64, 130}},
    {"one of several results of f4e2m1 had a sign",
     "func @f(%0: u6.split[?]) -> (u3.split[?], f8e5m2[?], f4e2m1[?]) {\n"
     "  %1 = convert %0 : f4e2m1\n  %2 = convert %1 : f8e5m2\n  %3 = convert %2 : f8e5m2fnuz\n"
     "  %4 = convert %3 : u64\n  %5 = convert %4 : u3.split\n  return %5, %2, %1\n}\n",
     {1, 64, 130}},
    {"codes of a table were taken for those of the narrower type that they are stored as",
     "func @f(%0: f8e4m3[?]) -> (u4[?]) {\n"
     "  %1 = convert %0 : u8\n  %2 = convert %1 : u4\n  return %2\n}\n",
     {64, 256, 300}},
    {"the same with sub-byte types between",
     "func @f(%0: bf16[?]) -> (u2.msb_first[?]) {\n"
     "  %1 = convert %0 : f4e2m1\n  %2 = convert %1 : u6\n  %3 = convert %2 : u2.msb_first\n"
     "  return %3\n}\n",
     {64, 130}},
    {"a table was loaded over the bytes that it was to look up",
     "func @f(%0: u2[?]) -> (bf16[?], u2[?], f4e2m1[?]) {\n"
     "  %1 = convert %0 : f4e2m1\n  %2 = convert %0 : bf16\n  return %2, %0, %1\n}\n",
     {1, 40, 130}},
};

/// Functions of all ops; extents are fixed, and the inputs hold many sets of data.
const Finding elementwise_findings[] = {
    {"a boolean constant in code was its byte, where any byte but 0 is true",
     "func @f(%0: boolean[4]) -> (boolean[4], f16[]) {\n"
     "  %1 = constant 0x58 : boolean[]\n  %2 = constant 0x4f : boolean[]\n"
     "  %3 = logical_and %0, %2\n  %4 = logical_xor %1, %2\n  %5 = logical_or %3, %4\n"
     "  %6 = convert %2 : f16\n  return %5, %6\n}\n",
     {}},
    {"select copied a boolean's byte, and convert took it for 0 or 1",
     "func @f(%0: boolean[], %1: boolean[70]) -> (u8[70], f32[70]) {\n"
     "  %2 = select %0, %1, %1\n  %3 = select %1, %1, %0\n  %4 = convert %2 : u8\n"
     "  %5 = convert %3 : f32\n  return %4, %5\n}\n",
     {}},
    {"the same of a promoted constant",
     "func @f(%0: boolean[]) -> (boolean[], boolean[]) {\n"
     "  %1 = constant 0xaa : boolean[]\n  %2, %3 = convert_promote_types %0, %1\n"
     "  return %2, %3\n}\n",
     {}},
    {"what is computed once a row lost an operand that the rows still needed",
     "func @f(%0: boolean[70], %1: boolean[]) -> (boolean[70]) {\n"
     "  %2 = logical_and %0, %1\n  %3 = greater %1, %1\n  %4 = greater %2, %3\n"
     "  return %4\n}\n",
     {}},
    {"the same in the parts of a remainder",
     "func @f(%0: f32[], %1: f32[20], %2: f32[], %3: boolean[]) -> (f32[20]) {\n"
     "  %4 = mod %0, %1\n  %5 = select %3, %4, %1\n  %6 = floor_mod %5, %2\n"
     "  return %6\n}\n",
     {}},
    {"what is computed once a row found no register",
     "func @f(%0: f8e5m2[]) -> (f8e5m2[40]) {\n"
     "  %1 = broadcast %0 : [40]\n  %2 = floor_mod %1, %0\n  return %2\n}\n",
     {}},
    {"the same of a function of constants",
     "func @f() -> (bf16[], f8e5m2[]) {\n"
     "  %0 = constant 0.0 : f8e5m2[]\n  %1 = convert %0 : nf4\n  %2 = convert %1 : i64\n"
     "  %3 = convert %2 : bf16\n  %4 = floor_mod %0, %0\n  return %3, %4\n}\n",
     {}},
    {"what the kernel of a grouped NHWC layer begins with was not at a cache line (seen by UBSan)",
     "func @f(%0: u8[1, 6, 66], %1: i8[264, 1, 3], %2: i16[]) -> (i32[1, 1, 264]) {\n"
     "  %3 = constant [108] : u8[1]\n  %4 = convert %2 : i8\n"
     "  %5 = conv_integer %0, %1, %3, %4 {dilations = [2], group = 66, strides = [3], layout = "
     "nhwc}\n  return %5\n}\n",
     {}},
};

/// Tensors of one call, each ending where an inaccessible page begins.
class Call {
 public:
  /// `count` stands for unknown extents; the inputs' elements depend on the seed.
  Call(const Function& function, int64_t count, uint64_t seed = 17) {
    for (ValueId parameter : function.parameters) {
      const ElementType type = function.type_of(parameter).element;
      const Dims shape = extents(function, parameter, count);
      const auto elements = static_cast<size_t>(*element_count(shape));
      const auto bytes = samples::pack(type, samples::random_patterns(type, elements, seed));
      std::byte* at = allocate(bytes.size());
      std::copy(bytes.begin(), bytes.end(), at);
      inputs.emplace_back(at, type, shape, bytes.size());
    }
    for (ValueId result : function.results) {
      const ElementType type = function.type_of(result).element;
      const Dims shape = extents(function, result, count);
      const size_t bytes = samples::storage_bytes(type, static_cast<size_t>(*element_count(shape)));
      outputs.emplace_back(allocate(bytes), type, shape, bytes);
    }
  }

  std::vector<std::vector<std::byte>> results() const {
    std::vector<std::vector<std::byte>> all;
    for (const View& output : outputs) {
      const auto* data = static_cast<const std::byte*>(output.data);
      all.emplace_back(data, data + output.bytes);
    }
    return all;
  }

  std::vector<ConstView> inputs;
  std::vector<View> outputs;

 private:
  static Dims extents(const Function& function, ValueId value, int64_t count) {
    Dims shape;
    for (const Dim& dim : function.type_of(value).shape) {
      shape.push_back(dim.is_fixed() ? dim.extent : count);
    }
    return shape;
  }
  std::byte* allocate(size_t bytes) { return pages_.emplace_back(bytes + 1).at_end(bytes); }
  std::deque<test::GuardedPages> pages_;
};

/// One set of data on every tier.
void expect_interpreted(const Finding& finding, const FunctionPtr& function, int64_t count,
                        uint64_t seed) {
  Call expected(*function, count, seed);
  ASSERT_TRUE(interpret(*function, expected.inputs, expected.outputs).ok());
  for (const auto& [tier, runtime] : test::tier_runtimes()) {
    Call call(*function, count, seed);
    const Result<Kernel> kernel = runtime.compile(function);
    ASSERT_TRUE(kernel.ok()) << finding.what << ": " << kernel.error().message;
    const Result<BoundKernel> bound = kernel->bind(call.inputs, call.outputs);
    ASSERT_TRUE(bound.ok()) << finding.what << ": " << bound.error().message;
    ASSERT_TRUE(bound->run(call.inputs, call.outputs).ok());
    EXPECT_EQ(call.results(), expected.results())
        << finding.what << ", " << name_of(tier) << ", " << count << " elements, seed " << seed;
  }
}

TEST(FuzzFindings, StayMended) {
  for (const Finding& finding : findings) {
    const Result<FunctionPtr> function = parse_function(finding.text);
    ASSERT_TRUE(function.ok()) << function.error().to_string();
    for (int64_t count : finding.counts) expect_interpreted(finding, *function, count, 17);
  }
}

TEST(FuzzFindings, ElementwiseOnesStayMended) {
  for (const Finding& finding : elementwise_findings) {
    const Result<FunctionPtr> function = parse_function(finding.text);
    ASSERT_TRUE(function.ok()) << function.error().to_string();
    for (uint64_t seed = 0; seed < 40; ++seed) expect_interpreted(finding, *function, 0, seed);
  }
}

/// A dense result had its unused bits left as they were where another operand was not dense.
TEST(FuzzFindings, UnusedBitsBecomeZeroBesideOperandsThatAreNotDense) {
  const Result<FunctionPtr> function = parse_function(
      "func @f(%0: u4[?]) -> (u4[?], i16[?]) {\n"
      "  %1 = convert %0 : i16\n  return %0, %1\n}\n");
  ASSERT_TRUE(function.ok()) << function.error().to_string();
  for (const auto& [tier, runtime] : test::tier_runtimes()) {
    for (const auto& [offset, stride] : {std::pair<int64_t, int64_t>{0, 1}, {1, 1}, {0, 3}}) {
      const std::array<std::byte, 3> in = {std::byte{0x21}, std::byte{0x43}, std::byte{0x65}};
      std::array<std::byte, 2> nibbles = {std::byte{0xff}, std::byte{0xff}};
      std::array<int16_t, 7> words = {};
      const ConstView input(in.data(), ElementType::u4, {3}, {1}, offset, in.size());
      const View outputs[] = {{nibbles.data(), ElementType::u4, {3}, nibbles.size()},
                              {words.data(), ElementType::i16, {3}, {stride}, 0, sizeof words}};
      const Result<BoundKernel> bound = runtime.compile(*function)->bind({&input, 1}, outputs);
      ASSERT_TRUE(bound.ok() && bound->run({&input, 1}, outputs).ok());
      const std::array<std::byte, 2> expected = offset == 0
                                                    ? std::array{std::byte{0x21}, std::byte{0x03}}
                                                    : std::array{std::byte{0x32}, std::byte{0x04}};
      EXPECT_EQ(nibbles, expected) << name_of(tier) << ' ' << offset << ' ' << stride;
    }
  }
}

/// A result of split groups that begins after others cleared unused bits that are not its own.
TEST(FuzzFindings, ViewsWithOffsetsClearNothing) {
  const Result<FunctionPtr> function =
      parse_function("func @f(%0: u3.split[1]) -> (u3.split[1]) {\n  return %0\n}\n");
  ASSERT_TRUE(function.ok()) << function.error().to_string();
  for (const auto& [tier, runtime] : test::tier_runtimes()) {
    const std::array<std::byte, 3> in = {};
    std::array<std::byte, 6> out;
    out.fill(std::byte{0xff});
    const ConstView input(in.data(), ElementType::u3_split, {1}, in.size());
    const View output(out.data(), ElementType::u3_split, {1}, {1}, 8, out.size());
    const Result<BoundKernel> bound = runtime.compile(*function)->bind({&input, 1}, {&output, 1});
    ASSERT_TRUE(bound.ok() && bound->run({&input, 1}, {&output, 1}).ok());
    const std::array<std::byte, 6> expected = {std::byte{0xff}, std::byte{0xff}, std::byte{0xff},
                                               std::byte{0x3f}, std::byte{0xff}, std::byte{0x7f}};
    EXPECT_EQ(out, expected) << name_of(tier);
  }
}

}  // namespace
}  // namespace castor
