// SPDX-License-Identifier: Apache-2.0
// Reading, compiling, binding and running functions of thousands of operations: time grows in
// proportion to their number, and 10,000 take less than two seconds.
#include <gtest/gtest.h>
#include <castor/castor.hpp>

#include <algorithm>
#include <chrono>
#include <limits>

#include "tools/testing/growing_functions.hpp"

namespace castor {
namespace {

using test::growing_functions;
using test::GrowingFunction;

/// Without optimisation, or under a sanitizer, everything takes longer.
constexpr double slowdown() {
#if !defined(NDEBUG) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return 15;
#else
  return 1;
#endif
}

/// Seconds of the stages.
struct Times {
  double compile = 0;  ///< from the text to the kernel
  double call = 0;     ///< binding and one run
};

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Dense tensors of the function with zeros; unknown extents are 2.
class ZeroTensors {
 public:
  explicit ZeroTensors(const Function& function) {
    for (ValueId id : function.parameters) add(function.type_of(id), inputs_);
    for (ValueId id : function.results) add(function.type_of(id), outputs_);
  }
  std::span<const ConstView> inputs() const { return inputs_; }
  std::span<const View> outputs() const { return outputs_; }

 private:
  template <class AnyView>
  void add(const TensorType& type, std::vector<AnyView>& views) {
    Dims extents;
    for (const Dim& dim : type.shape) extents.push_back(dim.is_fixed() ? dim.extent : 2);
    const int64_t count = element_count(extents).value();
    std::vector<std::byte>& bytes =
        memory_.emplace_back(static_cast<size_t>(byte_size(type.element, count).value()));
    views.push_back({bytes.data(), type.element, extents, bytes.size()});
  }

  std::vector<std::vector<std::byte>> memory_;
  std::vector<ConstView> inputs_;
  std::vector<View> outputs_;
};

/// The first failure is the test's.
Times time_once(const GrowingFunction& kind, size_t operations) {
  Times times;
  const Result<Runtime> runtime = Runtime::create();
  const std::string text = kind.text(operations);
  auto begin = std::chrono::steady_clock::now();
  const Result<Kernel> kernel = runtime->compile(text);
  times.compile = seconds_since(begin);
  EXPECT_TRUE(kernel.ok()) << kernel.error().to_string();
  if (!kernel.ok()) return times;
  EXPECT_EQ(kernel->function().operations.size(), operations);
  const ZeroTensors tensors(kernel->function());
  begin = std::chrono::steady_clock::now();
  const Result<BoundKernel> bound = kernel->bind(tensors.inputs(), tensors.outputs());
  EXPECT_TRUE(bound.ok()) << bound.error().to_string();
  if (!bound.ok()) return times;
  const Status status = bound->run(tensors.inputs(), tensors.outputs());
  times.call = seconds_since(begin);
  EXPECT_TRUE(status.ok()) << status.error().to_string();
  return times;
}

/// The shortest of a few: other programs only ever add time.
Times time_of(const GrowingFunction& kind, size_t operations, int attempts) {
  constexpr double unmeasured = std::numeric_limits<double>::infinity();
  Times best{unmeasured, unmeasured};
  for (int attempt = 0; attempt < attempts; ++attempt) {
    const Times times = time_once(kind, operations);
    best.compile = std::min(best.compile, times.compile);
    best.call = std::min(best.call, times.call);
  }
  return best;
}

class CompileGrowth : public testing::TestWithParam<GrowingFunction> {};

TEST_P(CompileGrowth, TenThousandOperationsTakeLessThanTwoSeconds) {
  constexpr size_t operations = 10'000;
  Times times = time_of(GetParam(), operations, 1);
  if (times.compile + times.call > slowdown()) times = time_of(GetParam(), operations, 3);
  EXPECT_LT(times.compile, 2 * slowdown());
  EXPECT_LT(times.call, 2 * slowdown());
}

/// Four times as many operations take four times as long where growth is linear, 16 times where it
/// is quadratic. What a run of ever longer inputs takes grows with their elements.
TEST_P(CompileGrowth, TimeIsNearlyProportionalToTheOperations) {
  constexpr size_t few = 3000;
  constexpr size_t times_more = 4;
  constexpr double max = 2;  // times per operation
  double growth = 0;
  for (int round = 0; round < 4; ++round) {
    const Times at_few = time_of(GetParam(), few, 3);
    const Times at_many = time_of(GetParam(), few * times_more, 3);
    growth = at_many.compile / at_few.compile / times_more;
    if (growth <= max) break;
  }
  EXPECT_LE(growth, max);
}

INSTANTIATE_TEST_SUITE_P(Of, CompileGrowth, testing::ValuesIn(growing_functions),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace castor
