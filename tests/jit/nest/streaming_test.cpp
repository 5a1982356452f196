// SPDX-License-Identifier: Apache-2.0
// Stores past the caches: every pair on every tier, outputs that begin anywhere in a vector, and
// the calls in which such stores are not allowed.
#include <gtest/gtest.h>

#include "tests/support/conversions.hpp"
#include "tools/testing/guarded_pages.hpp"

namespace castor {
namespace {

using test::Conversion;
using test::ExpectedConversion;

constexpr RunOptions streaming = {StorePolicy::streaming};
constexpr size_t repeated = 1009 * 8;  // elements of the pattern that fills the tensors

/// Elements for which inputs and outputs together are large enough to stream, and not a round
/// number.
size_t count_for(const Conversion& conversion) {
  const auto bits = static_cast<size_t>(bits_of(conversion.from) + bits_of(conversion.to));
  return (size_t{8} << 20) / bits + 77;
}

void fill_repeating(std::byte* to, size_t bytes, const std::vector<std::byte>& pattern) {
  for (size_t at = 0; at < bytes; at += pattern.size()) {
    std::copy_n(pattern.begin(), std::min(pattern.size(), bytes - at), to + at);
  }
}

/// Whether a tensor of `count` elements holds the expected ones over and over, and 0 after them.
bool repeats(const std::byte* from, size_t count, ElementType type,
             const ExpectedConversion& expected) {
  const std::vector<std::byte>& pattern = expected.output_bytes;
  const size_t tail = count % 8;  // eight elements are whole bytes in every layout
  const size_t bytes = samples::storage_bytes(type, count - tail);
  for (size_t at = 0; at < bytes; at += pattern.size()) {
    if (!std::equal(from + at, from + at + std::min(pattern.size(), bytes - at), pattern.begin())) {
      return false;
    }
  }
  const std::vector<std::byte> end =
      samples::pack(type, std::span(expected.outputs).subspan((count - tail) % repeated, tail));
  return std::equal(end.begin(), end.end(), from + bytes);
}

class Tensors {
 public:
  static constexpr size_t capacity = (size_t{1} << 20) + 16384;  // one tensor takes most of it
  Tensors() : source_(capacity), destination_(capacity) {}

  /// Converts with the destination `shift` bytes away from the page after it.
  void check(const Runtime& runtime, const Conversion& conversion,
             const ExpectedConversion& expected, size_t shift) {
    const size_t count = count_for(conversion);
    const size_t in_bytes = samples::storage_bytes(conversion.from, count);
    const size_t out_bytes = samples::storage_bytes(conversion.to, count);
    std::byte* in = source_.at_end(in_bytes);
    std::byte* out = destination_.at_end(out_bytes + shift);
    fill_repeating(in, in_bytes, expected.input_bytes);
    destination_.fill(std::byte{0xc5});
    const auto extent = static_cast<int64_t>(count);
    const ConstView x(in, conversion.from, Dims{extent}, in_bytes);
    const View y(out, conversion.to, Dims{extent}, out_bytes);
    const Result<Kernel> kernel = runtime.compile(function_of(conversion));
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    const Result<BoundKernel> bound = kernel->bind({&x, 1}, {&y, 1});
    ASSERT_TRUE(bound.ok()) << bound.error().message;
    const Status status = bound->run({&x, 1}, {&y, 1}, streaming);
    ASSERT_TRUE(status.ok()) << status.error().message;
    ASSERT_TRUE(repeats(out, count, conversion.to, expected))
        << conversion.name() << ", shifted by " << shift << " bytes";
    ASSERT_TRUE(destination_.is_filled_but({out, out_bytes}, std::byte{0xc5}))
        << conversion.name() << ", shifted by " << shift << " bytes: bytes outside were written";
  }

  static FunctionPtr function_of(const Conversion& conversion) {
    FunctionBuilder builder("f");
    const ValueId x = builder.parameter("x", {conversion.from, {"?n"}});
    builder.result(builder.convert(x, conversion.to, conversion.options));
    return std::move(builder.finish()).value();
  }

 private:
  test::GuardedPages source_;
  test::GuardedPages destination_;
};

class Streaming : public testing::TestWithParam<ElementType> {};

TEST_P(Streaming, GivesTheSameBytes) {
  Tensors tensors;
  for (ElementType to : test::all_element_types()) {
    const Conversion conversion{GetParam(), to, {}};
    const ExpectedConversion expected =
        test::expect(conversion, samples::random_patterns(GetParam(), repeated, 5));
    for (const auto& [tier, runtime] : test::native_tier_runtimes()) {
      // Aligned elements anywhere in a vector, and elements that are not aligned at all.
      for (size_t shift : {0, 24, 3}) {
        tensors.check(runtime, conversion, expected, shift);
        if (HasFatalFailure()) FAIL() << "tier " << name_of(tier);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(From, Streaming, testing::ValuesIn(test::all_element_types()),
                         [](const auto& row) { return test::test_name(row.param); });

/// Outputs of different element sizes: equally many elements from an aligned address, or not.
TEST(StreamingCalls, SeveralOutputs) {
  constexpr std::string_view text =
      "func @f(%x: u16[?]) -> (i32[?], u8[?]) {\n"
      "  %a = convert %x : i32\n  %b = convert %x : u8\n  return %a, %b\n}\n";
  constexpr int64_t count = 200003;
  std::vector<uint16_t> x(count);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<uint16_t>(i * 40503);
  test::GuardedPages a_pages(count * 4 + 256);
  test::GuardedPages b_pages(count + 256);
  for (const auto& [tier, runtime] : test::tier_runtimes()) {
    for (const auto& [a_shift, b_shift] : {std::pair{16, 52}, {16, 20}, {0, 0}, {4, 1}, {60, 63}}) {
      auto* a = a_pages.at_begin() + a_shift;
      auto* b = b_pages.at_begin() + b_shift;
      const ConstView in(x.data(), ElementType::u16, {count}, count * 2);
      const View outs[] = {{a, ElementType::i32, {count}, count * 4},
                           {b, ElementType::u8, {count}, count}};
      const Result<BoundKernel> bound = runtime.compile(text)->bind({&in, 1}, outs);
      ASSERT_TRUE(bound.ok()) << bound.error().message;
      ASSERT_TRUE(bound->run({&in, 1}, outs, streaming).ok());
      for (size_t i = 0; i < x.size(); ++i) {
        int32_t wide = 0;
        std::memcpy(&wide, a + 4 * i, 4);
        ASSERT_EQ(wide, x[i]) << name_of(tier) << ", shifts " << a_shift << " and " << b_shift;
        ASSERT_EQ(static_cast<uint8_t>(b[i]), static_cast<uint8_t>(x[i])) << name_of(tier);
      }
    }
  }
}

TEST(StreamingCalls, InPlaceStaysCached) {
  for (const auto& [tier, runtime] : test::tier_runtimes()) {
    std::vector<uint32_t> data(1 << 18);
    for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<uint32_t>(i * 2654435761U);
    const std::vector<uint32_t> before = data;
    const Conversion conversion{ElementType::u32, ElementType::f32, {}};
    const ConstView x(data.data(), ElementType::u32, {1 << 18}, data.size() * 4);
    const View y(data.data(), ElementType::f32, {1 << 18}, data.size() * 4);
    const Result<BoundKernel> bound =
        runtime.compile(Tensors::function_of(conversion))->bind({&x, 1}, {&y, 1});
    ASSERT_TRUE(bound.ok()) << bound.error().message;
    ASSERT_TRUE(bound->run({&x, 1}, {&y, 1}, streaming).ok());
    for (size_t i = 0; i < data.size(); ++i) {
      const auto expected = static_cast<uint32_t>(
          numerics::convert(before[i], conversion.from, conversion.to, conversion.options));
      ASSERT_EQ(data[i], expected) << name_of(tier) << ", element " << i;
    }
  }
}

}  // namespace
}  // namespace castor
