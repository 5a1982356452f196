// SPDX-License-Identifier: Apache-2.0
// The contract between calls and executors: when they are asked, what becomes of odd answers, who
// wins where several are named, many callers at once; and the pool of castor::threads.
#include <gtest/gtest.h>

#include <climits>
#include <optional>
#include <stdexcept>

#include "castor/castor.hpp"
#include "castor/thread_pool.hpp"
#include "tools/testing/executors.hpp"

namespace castor {
namespace {

using test::Backwards;

constexpr int64_t large = int64_t{1} << 20;  // elements

/// Counts, and runs tasks in order; says what it is told to say.
class Counting : public Executor {
 public:
  explicit Counting(int tasks) : tasks_(tasks) {}
  int tasks() const override { return tasks_; }
  void run(int count, void (*task)(void* context, int index), void* context) override {
    ++calls_;
    for (int i = 0; i < count; ++i) task(context, i);
  }
  int calls() const { return calls_; }

 private:
  int tasks_;
  int calls_ = 0;
};

/// f32 to i8 of that many elements.
class Call {
 public:
  explicit Call(const Runtime& runtime, int64_t count)
      : x_(static_cast<size_t>(count)), y_(x_.size(), 99) {
    for (size_t i = 0; i < x_.size(); ++i) x_[i] = static_cast<float>(i % 100) - 50;
    kernel_ = *runtime.compile(
        "func @f(%x: f32[?]) -> (i8[?]) {\n  %y = convert %x : i8\n  return %y\n}\n");
    bound_ = *kernel_->bind({{count}});
  }
  Status run(Executor* executor = nullptr) {
    const auto count = static_cast<int64_t>(x_.size());
    const ConstView in(x_.data(), ElementType::f32, {count}, x_.size() * 4);
    const View out(y_.data(), ElementType::i8, {count}, y_.size());
    return bound_->run({&in, 1}, {&out, 1}, {.executor = executor});
  }
  bool is_right() const {
    for (size_t i = 0; i < y_.size(); ++i) {
      if (y_[i] != static_cast<int8_t>(static_cast<int>(i % 100) - 50)) return false;
    }
    return true;
  }

 private:
  std::vector<float> x_;
  std::vector<int8_t> y_;
  std::optional<Kernel> kernel_;
  std::optional<BoundKernel> bound_;
};

class ExecutorCalls : public testing::Test {
 protected:
  void SetUp() override {
    if (!runtime_.tier()) GTEST_SKIP() << "no machine code here";
  }
  Runtime runtime_ = *Runtime::create();
};

/// Small work is not given to the executor at all, large work once a nest.
TEST_F(ExecutorCalls, SmallWorkStaysSerial) {
  for (const int64_t count : {0, 1, 100, 4096, 20000}) {
    Counting executor(8);
    Call call(runtime_, count);
    ASSERT_TRUE(call.run(&executor).ok());
    EXPECT_EQ(executor.calls(), 0) << count << " elements";
    EXPECT_TRUE(call.is_right());
  }
  Counting executor(8);
  Call call(runtime_, large);
  ASSERT_TRUE(call.run(&executor).ok());
  EXPECT_EQ(executor.calls(), 1);
  EXPECT_TRUE(call.is_right());
}

/// Without an executor's wake-up, a convolution of a few elements is not split, either.
TEST_F(ExecutorCalls, SmallConvolutionsStaySerial) {
  const BoundKernel bound =
      *runtime_
           .compile(
               "func @f(%x: u8[1, 4, 6, 6], %w: i8[4, 4, 3, 3]) -> i32[1, 4, 4, 4] {\n"
               "  %y = conv_integer %x, %w\n  return %y\n}\n")
           ->bind({{1, 4, 6, 6}, {4, 4, 3, 3}});
  const std::vector<uint8_t> x(144, 3);
  const std::vector<int8_t> w(144, 2);
  std::vector<int32_t> y(64);
  const ConstView inputs[] = {{x.data(), ElementType::u8, {1, 4, 6, 6}, x.size()},
                              {w.data(), ElementType::i8, {4, 4, 3, 3}, w.size()}};
  const View output(y.data(), ElementType::i32, {1, 4, 4, 4}, y.size() * 4);
  Counting executor(2);
  ASSERT_TRUE(bound.run(inputs, {&output, 1}, {.executor = &executor}).ok());
  EXPECT_EQ(executor.calls(), 0);
  EXPECT_EQ(y, std::vector<int32_t>(64, 4 * 9 * 6));
}

TEST_F(ExecutorCalls, OddNumbersOfTasks) {
  for (const int tasks : {1, 0, -1, INT_MIN}) {
    Counting executor(tasks);
    Call call(runtime_, large);
    ASSERT_TRUE(call.run(&executor).ok());
    EXPECT_EQ(executor.calls(), 0) << tasks << " tasks";
    EXPECT_TRUE(call.is_right());
  }
  for (const int64_t count : {int64_t{1}, int64_t{9}, int64_t{3000}, large}) {
    Backwards executor(INT_MAX);
    Call call(runtime_, count);
    ASSERT_TRUE(call.run(&executor).ok());
    EXPECT_LE(executor.max(), std::min<int64_t>(count, 256));
    EXPECT_TRUE(call.is_right()) << count << " elements";
  }
}

/// A transposed tensor is copied tile by tile to scratch, of which each task has its own.
TEST_F(ExecutorCalls, MoreTasksThanTiles) {
  constexpr int64_t rows = 70;
  constexpr int64_t columns = 60;
  const BoundKernel bound =
      *runtime_
           .compile(
               "func @f(%x: f32[70, 60]) -> f32[70, 60] {\n"
               "  %y = add %x, %x\n  return %y\n}\n")
           ->bind(std::vector<Dims>{{rows, columns}}, std::vector<Dims>{{1, rows}, {columns, 1}});
  std::vector<float> x(rows * columns);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  std::vector<float> y(x.size());
  const ConstView in(x.data(), ElementType::f32, {rows, columns}, {1, rows}, 0, x.size() * 4);
  const View out(y.data(), ElementType::f32, {rows, columns}, y.size() * 4);
  Backwards executor(1000);
  ASSERT_TRUE(bound.run({&in, 1}, {&out, 1}, {.executor = &executor}).ok());
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      ASSERT_EQ(y[static_cast<size_t>(row * columns + column)],
                2 * x[static_cast<size_t>(column * rows + row)]);
    }
  }
}

/// The call's executor, before the runtime's; kernels keep the runtime's.
TEST_F(ExecutorCalls, CallsOverrideTheRuntime) {
  const auto own = std::make_shared<Counting>(4);
  std::optional<Call> call;
  {
    const Runtime runtime = *Runtime::create({.executor = own});
    call.emplace(runtime, large);
  }
  EXPECT_GT(own.use_count(), 1);
  ASSERT_TRUE(call->run().ok());
  EXPECT_EQ(own->calls(), 1);
  Counting other(4);
  ASSERT_TRUE(call->run(&other).ok());
  EXPECT_EQ(own->calls(), 1);
  EXPECT_EQ(other.calls(), 1);
  SerialExecutor serial;
  ASSERT_TRUE(call->run(&serial).ok());
  EXPECT_EQ(own->calls(), 1);
  EXPECT_TRUE(call->is_right());
  call.reset();
  EXPECT_EQ(own.use_count(), 1);
}

TEST_F(ExecutorCalls, ConvertUsesTheRuntimes) {
  const auto own = std::make_shared<Counting>(4);
  const Runtime runtime = *Runtime::create({.executor = own});
  std::vector<uint8_t> x(large, 7);
  std::vector<float> y(large);
  const ConstView in(x.data(), ElementType::u8, {large}, x.size());
  const View out(y.data(), ElementType::f32, {large}, y.size() * 4);
  ASSERT_TRUE(runtime.convert(in, out).ok());
  EXPECT_EQ(own->calls(), 1);
  EXPECT_EQ(y, std::vector<float>(large, 7));
}

/// Breaks the contract in one way.
class Broken : public Executor {
 public:
  enum class Way {
    runs_none,
    leaves_one_out,
    repeats_one,
    runs_only_the_first,
    goes_beyond,
    throws
  };
  explicit Broken(Way way) : way_(way) {}
  int tasks() const override { return 4; }
  void run(int count, void (*task)(void* context, int index), void* context) override {
    if (way_ == Way::runs_none) return;
    if (way_ == Way::throws) throw std::runtime_error("no threads");
    for (int i = way_ == Way::leaves_one_out ? 1 : 0; i < count; ++i) {
      task(context, way_ == Way::runs_only_the_first ? 0 : i);
    }
    if (way_ == Way::repeats_one) task(context, 0);
    if (way_ == Way::goes_beyond) {
      task(context, count);
      task(context, -1);
    }
  }

 private:
  Way way_;
};

TEST_F(ExecutorCalls, BrokenExecutorsAreReported) {
  using enum Broken::Way;
  for (const Broken::Way way :
       {runs_none, leaves_one_out, repeats_one, runs_only_the_first, throws}) {
    Broken executor(way);
    Call call(runtime_, large);
    const Status status = call.run(&executor);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(status.error().message.find("executor"), std::string::npos);
    ASSERT_TRUE(call.run().ok());  // the kernel is as good as before
    EXPECT_TRUE(call.is_right());
  }
  Broken executor(goes_beyond);  // indices that are no task's do nothing
  Call call(runtime_, large);
  EXPECT_TRUE(call.run(&executor).ok());
  EXPECT_TRUE(call.is_right());
}

TEST(ThreadPoolErrors, AreTyped) {
  for (const int threads : {-1, 257, INT_MAX}) {
    const Result<std::shared_ptr<Executor>> pool = make_thread_pool(threads);
    ASSERT_FALSE(pool.ok());
    EXPECT_EQ(pool.error().code, ErrorCode::invalid_argument);
  }
}

}  // namespace
}  // namespace castor
