// SPDX-License-Identifier: Apache-2.0
// Every pair on every tier at sizes from nothing to three vectors and one more, aligned and not,
// with the tensors against inaccessible pages on either side.
#include <gtest/gtest.h>

#include "tests/support/conversions.hpp"
#include "tools/testing/guarded_pages.hpp"

namespace castor {
namespace {

using test::Conversion;
using test::ExpectedConversion;
using test::GuardedPages;

constexpr size_t max_elements = 3 * 4 * 64 + 1;  // three iterations of four 64-lane chunks

/// Sizes where loops, chunks and tails begin and end.
std::vector<size_t> sizes() {
  std::vector<size_t> all;
  for (size_t n = 0; n <= 70; ++n) all.push_back(n);
  for (size_t vector : {96, 128, 192, 256, 384, 512, 768}) {
    for (size_t n : {vector - 1, vector, vector + 1}) all.push_back(n);
  }
  return all;
}

/// One call: `shift` bytes away from the inaccessible page after (or before) both tensors.
struct Placement {
  bool at_end;
  size_t source_shift;
  size_t destination_shift;
};
constexpr Placement placements[] = {{true, 0, 0}, {false, 0, 0}, {true, 1, 3}, {false, 5, 2}};

/// Whether a tensor holds the first `count` expected elements, and 0 after them.
bool begins_with(const ExpectedConversion& expected, ElementType type, size_t count,
                 std::span<const std::byte> tensor) {
  const size_t tail = count % 8;  // eight elements are whole bytes in every layout
  const size_t whole_bytes = samples::storage_bytes(type, count - tail);
  const std::vector<std::byte> end =
      samples::pack(type, std::span(expected.outputs).subspan(count - tail, tail));
  return std::ranges::equal(tensor.first(whole_bytes),
                            std::span(expected.output_bytes).first(whole_bytes)) &&
         std::ranges::equal(tensor.subspan(whole_bytes), end);
}

class Sizes {
 public:
  Sizes() : source_(max_elements * 8 + 64), destination_(max_elements * 8 + 64) {}

  void check(const Runtime& runtime, const Conversion& conversion,
             const ExpectedConversion& expected, size_t count, const Placement& placement) {
    const size_t in_bytes = samples::storage_bytes(conversion.from, count);
    const size_t out_bytes = samples::storage_bytes(conversion.to, count);
    std::byte* in = placement.at_end ? source_.at_end(in_bytes + placement.source_shift)
                                     : source_.at_begin() + placement.source_shift;
    std::byte* out = placement.at_end ? destination_.at_end(out_bytes + placement.destination_shift)
                                      : destination_.at_begin() + placement.destination_shift;
    constexpr std::byte canary{0xc5};
    destination_.fill(canary);
    std::copy_n(expected.input_bytes.begin(), in_bytes, in);
    const auto extent = static_cast<int64_t>(count);
    const Status status =
        runtime.convert(ConstView(in, conversion.from, {extent}, in_bytes),
                        View(out, conversion.to, {extent}, out_bytes), conversion.options);
    ASSERT_TRUE(status.ok()) << conversion.name() << ": " << status.error().message;
    ASSERT_TRUE(begins_with(expected, conversion.to, count, {out, out_bytes}))
        << conversion.name() << ", " << count
        << " elements: " << test::first_difference(conversion, expected, {out, out_bytes}, count);
    ASSERT_TRUE(destination_.is_filled_but({out, out_bytes}, canary))
        << conversion.name() << ", " << count << " elements: bytes outside were written";
  }

 private:
  GuardedPages source_;
  GuardedPages destination_;
};

class ConvertSizes : public testing::TestWithParam<ElementType> {};

TEST_P(ConvertSizes, TouchNothingOutsideTheTensors) {
  const ElementType from = GetParam();
  Sizes memory;
  for (ElementType to : test::all_element_types()) {
    const Conversion conversion{from, to, {}};
    const ExpectedConversion expected =
        test::expect(conversion, samples::random_patterns(from, max_elements, 7));
    for (const auto& [tier, runtime] : test::elementwise_tier_runtimes()) {
      for (size_t count : sizes()) {
        for (const Placement& placement : placements) {
          memory.check(runtime, conversion, expected, count, placement);
          if (HasFatalFailure()) FAIL() << "tier " << name_of(tier);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(From, ConvertSizes, testing::ValuesIn(test::all_element_types()),
                         [](const auto& row) { return test::test_name(row.param); });

/// Options change sinks and lane programs, so each of them meets tails too.
TEST(ConvertSizes, OptionsAtTheTails) {
  Sizes memory;
  for (const Conversion& conversion : test::all_conversions()) {
    const ExpectedConversion expected =
        test::expect(conversion, samples::random_patterns(conversion.from, 140, 3));
    for (const auto& [tier, runtime] : test::elementwise_tier_runtimes()) {
      for (size_t count : {1, 3, 7, 9, 17, 33, 63, 65, 129}) {
        memory.check(runtime, conversion, expected, count, placements[0]);
        if (HasFatalFailure()) FAIL() << "tier " << name_of(tier);
      }
    }
  }
}

}  // namespace
}  // namespace castor
