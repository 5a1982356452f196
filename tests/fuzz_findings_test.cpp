// SPDX-License-Identifier: Apache-2.0
// What the fuzzer found, kept: each function runs on every tier with every tensor against an
// inaccessible page.
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace castor
