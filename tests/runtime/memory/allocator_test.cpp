// SPDX-License-Identifier: Apache-2.0
// Allocators of the caller: what they are asked for, when they get it back, and what happens when
// they refuse or break their word.
#include <fmt/format.h>

#include "tests/support/counting_memory.hpp"
#include "tests/support/function_case.hpp"

namespace castor {
namespace {

constexpr std::string_view text =
    "func @f(%x: u8[?n, 3], %m: f32[3]) -> f32[?n, 3] {\n  %f = convert %x : f32\n"
    "  %y = sub %f, %m\n  return %y\n}\n";

/// The tensors of that function.
struct Call {
  std::vector<uint8_t> x = std::vector<uint8_t>(600, 7);
  float m[3] = {1, 2, 3};
  std::vector<float> y = std::vector<float>(600, -1);

  Status run(const BoundKernel& bound) {
    const ConstView inputs[] = {{x.data(), ElementType::u8, {200, 3}, 600},
                                {m, ElementType::f32, {3}, 12}};
    const View output(y.data(), ElementType::f32, {200, 3}, 2400);
    return bound.run(inputs, {&output, 1});
  }
};

Result<Runtime> runtime_with(const Allocator& allocator) {
  RuntimeOptions options;
  options.allocator = allocator;
  return Runtime::create(options);
}

TEST(Allocator, GivesScratchAndGetsItBack) {
  test::CountingAllocator allocator;
  std::optional<BoundKernel> bound;
  {
    const Runtime runtime = *runtime_with(allocator.callbacks());
    EXPECT_EQ(allocator.calls, 0u);
    bound = *runtime.compile(text)->bind({{200, 3}, {3}});
    EXPECT_EQ(allocator.calls, 1u);
    EXPECT_EQ(allocator.alignment, 64u);
    EXPECT_EQ(allocator.held, bound->scratch_bytes());
    EXPECT_EQ(runtime.memory().scratch_bytes, bound->scratch_bytes());
  }
  Call call;
  EXPECT_TRUE(call.run(*bound).ok());  // after the runtime's end
  EXPECT_EQ(call.y[4], 5);
  EXPECT_GT(allocator.held, 0u);
  bound.reset();
  EXPECT_EQ(allocator.held, 0u);
  EXPECT_EQ(allocator.errors, 0u);
}

TEST(Allocator, HalfOfOneIsRefused) {
  test::CountingAllocator counting;
  Allocator allocator = counting.callbacks();
  allocator.release = nullptr;
  const Result<Runtime> runtime = runtime_with(allocator);
  ASSERT_FALSE(runtime.ok());
  EXPECT_EQ(runtime.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(runtime.error().message,
            "allocator: release is null and allocate is not; expected both or none");
  PackedWeightsOptions options;
  options.allocator.release = counting.callbacks().release;
  const Result<PackedWeights> weights = PackedWeights::create(options);
  ASSERT_FALSE(weights.ok());
  EXPECT_EQ(weights.error().message,
            "allocator: allocate is null and release is not; expected both or none");
}

TEST(Allocator, NullIsOutOfMemory) {
  test::CountingAllocator allocator;
  const Runtime runtime = *runtime_with(allocator.callbacks());
  const Kernel kernel = *runtime.compile(text);
  allocator.refuses = true;
  const Result<BoundKernel> bound = kernel.bind({{200, 3}, {3}});
  ASSERT_FALSE(bound.ok());
  EXPECT_EQ(bound.error().code, ErrorCode::out_of_memory);
  EXPECT_EQ(bound.error().message.find("the allocator returned null for "), 0u)
      << bound.error().message;
  EXPECT_NE(bound.error().message.find(" bytes of scratch"), std::string::npos);
  EXPECT_TRUE(kernel.bind({{200, 3}, {3}}, {.scratch = ScratchOwner::caller}).ok());
  allocator.refuses = false;
  EXPECT_TRUE(kernel.bind({{200, 3}, {3}}).ok());
}

TEST(Allocator, MisalignedBlocksAreGivenBack) {
  for (const size_t shift : {1, 32, 63}) {
    test::CountingAllocator allocator;
    allocator.shift = shift;
    const Result<BoundKernel> bound =
        runtime_with(allocator.callbacks())->compile(text)->bind({{200, 3}, {3}});
    ASSERT_FALSE(bound.ok());
    EXPECT_EQ(bound.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(bound.error().message.find(
                  fmt::format("{} above a multiple of 64; expected a multiple", shift)),
              std::string::npos)
        << bound.error().message;
    EXPECT_EQ(allocator.held, 0u);
    EXPECT_EQ(allocator.errors, 0u);
  }
}

/// Calls at the same time: the spare block goes to one of them, the others need more.
TEST(Allocator, RefusedRunsTouchNothing) {
  test::CountingAllocator allocator;
  const BoundKernel bound =
      *runtime_with(allocator.callbacks())
           ->compile(
               "func @f(%x: u8[1, 64, 40, 40], %w: i8[32, 64, 3, 3]) -> i32[1, 32, 38, 38] {\n"
               "  %y = conv_integer %x, %w\n  return %y\n}\n")
           ->bind({{1, 64, 40, 40}, {32, 64, 3, 3}});
  std::vector<uint8_t> x(64 * 1600, 1);
  std::vector<int8_t> w(32 * 64 * 9, 2);
  std::vector<int32_t> y(32 * 38 * 38, -1);
  const ConstView inputs[] = {{x.data(), ElementType::u8, {1, 64, 40, 40}, x.size()},
                              {w.data(), ElementType::i8, {32, 64, 3, 3}, w.size()}};
  const View output(y.data(), ElementType::i32, {1, 32, 38, 38}, 4 * y.size());
  struct Two : Executor {
    int tasks() const override { return 2; }
    void run(int count, void (*task)(void*, int), void* context) override {
      for (int i = 0; i < count; ++i) task(context, i);
    }
  } executor;
  const RunOptions options = {.executor = &executor};
  allocator.refuses = true;
  const Status refused = bound.run(inputs, {&output, 1}, options);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::out_of_memory);
  EXPECT_EQ(std::ranges::count(y, -1), static_cast<int64_t>(y.size()));
  EXPECT_TRUE(bound.run(inputs, {&output, 1}).ok());  // one task's is there
  EXPECT_EQ(y[5], 64 * 9 * 2);
  allocator.refuses = false;
  EXPECT_TRUE(bound.run(inputs, {&output, 1}, options).ok());
  EXPECT_EQ(y[5], 64 * 9 * 2);
}

}  // namespace
}  // namespace castor
