// SPDX-License-Identifier: Apache-2.0
// What the fuzzer found, kept: each function runs on every tier with every tensor against an
// inaccessible page.
#include <gtest/gtest.h>

#include <array>
#include <deque>

#include "ir/interpreter.hpp"
#include "tests/support/conversions.hpp"
#include "tests/support/guarded_pages.hpp"

namespace castor {
namespace {

struct Finding {
  const char* what;
  const char* text;
  std::vector<int64_t> counts;
};

const Finding findings[] = {
    {"avx2: four bytes widened to words in a program of 64-bit lanes; the load read eight",
     "func @f(%0: i8[?]) -> (i64[?]) {\n"
     "  %1 = convert %0 : u16\n  %2 = convert %1 : i64\n  return %2\n}\n",
     {4, 8, 16, 20}},
    {"the same behind a store of the input itself",
     "func @f(%0: boolean[?]) -> (i16[?], boolean[?], u64[?], boolean[?]) {\n"
     "  %1 = convert %0 : i16\n  %2 = convert %0 : u64\n  return %1, %0, %2, %0\n}\n",
     {4, 8, 153}},
    {"the same with a conversion that merges",
     "func @f(%0: u8[?]) -> (u8[?], i16[?], i64[?], i8[?]) {\n"
     "  %1 = convert %0 : i64\n  %2 = convert %1 : i8\n  %3 = convert %0 : i16\n"
     "  return %0, %3, %1, %2\n}\n",
     {4, 12}},
    {"two results, one of nibbles: the code touched what lies behind the tensors",
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

/// Tensors of one call, each ending where an inaccessible page begins.
class Call {
 public:
  Call(const Function& function, int64_t count) {
    for (ValueId parameter : function.parameters) {
      const ElementType type = function.type_of(parameter).element;
      const auto bytes =
          samples::pack(type, samples::random_patterns(type, static_cast<size_t>(count), 17));
      std::byte* at = allocate(bytes.size());
      std::copy(bytes.begin(), bytes.end(), at);
      inputs.emplace_back(at, type, Dims{count}, bytes.size());
    }
    for (ValueId result : function.results) {
      const ElementType type = function.type_of(result).element;
      const size_t bytes = samples::storage_bytes(type, static_cast<size_t>(count));
      outputs.emplace_back(allocate(bytes), type, Dims{count}, bytes);
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
  std::byte* allocate(size_t bytes) { return pages_.emplace_back(bytes + 1).at_end(bytes); }
  std::deque<test::GuardedPages> pages_;
};

TEST(FuzzFindings, StayMended) {
  for (const Finding& finding : findings) {
    const Result<FunctionPtr> function = parse_function(finding.text);
    ASSERT_TRUE(function.ok()) << function.error().to_string();
    for (int64_t count : finding.counts) {
      Call expected(**function, count);
      ASSERT_TRUE(interpret(**function, expected.inputs, expected.outputs).ok());
      for (const auto& [tier, runtime] : test::tier_runtimes()) {
        Call call(**function, count);
        const Result<BoundKernel> bound =
            runtime.compile(*function)->bind(call.inputs, call.outputs);
        ASSERT_TRUE(bound.ok()) << bound.error().message;
        ASSERT_TRUE(bound->run(call.inputs, call.outputs).ok());
        EXPECT_EQ(call.results(), expected.results())
            << finding.what << ", " << name_of(tier) << ", " << count << " elements";
      }
    }
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

/// A result of split groups that begins behind others cleared unused bits that are not its own.
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
