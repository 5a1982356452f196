// SPDX-License-Identifier: Apache-2.0
// When castor asks for tile data, what a refusal leads to, threads and forks. Each test runs in a
// child of a process that has not asked, since what Linux grants stays.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "castor/castor.hpp"
#include "jit/tile_permission.hpp"
#include "tests/support/child_process.hpp"
#include "tools/emulator/permission.hpp"

namespace castor::test {
namespace {

constexpr int pixels = 32;
constexpr int channels = 64;

/// A pointwise convolution: y = x w, of ones and twos.
class PointwiseCall {
 public:
  explicit PointwiseCall(const Runtime& runtime) {
    x_.fill(1);
    w_.fill(2);
    const Result<Kernel> kernel = runtime.compile(
        "func @f(%x: u8[1, 1, 32, 64], %w: i8[64, 64, 1, 1]) -> (i32[1, 1, 32, 64]) {\n"
        "  %y = conv_integer %x, %w {layout = nhwc}\n  return %y\n}\n");
    views_ = {ConstView{x_.data(), ElementType::u8, {1, 1, pixels, channels}, x_.size()},
              ConstView{w_.data(), ElementType::i8, {channels, channels, 1, 1}, w_.size()}};
    const View y = output();
    bound_ = kernel->bind(views_, {&y, 1}).value();
  }

  const BoundKernel& bound() const { return *bound_; }

  bool gives_what_it_should() {
    y_.fill(-1);
    const View y = output();
    if (!bound_->run(views_, {&y, 1}).ok()) return false;
    return std::ranges::all_of(y_, [](int32_t value) { return value == channels * 2; });
  }

 private:
  View output() { return {y_.data(), ElementType::i32, {1, 1, pixels, channels}, 4 * y_.size()}; }

  alignas(64) std::array<uint8_t, pixels * channels> x_;
  std::array<int8_t, channels * channels> w_;
  alignas(64) std::array<int32_t, pixels * channels> y_;
  std::vector<ConstView> views_;
  std::optional<BoundKernel> bound_;
};

Runtime runtime_of(Tier tier) { return Runtime::create({.tier = tier}).value(); }

bool converts(const Runtime& runtime) {
  const std::array<float, 4> x = {1, 2, 3, 4};
  std::array<int8_t, 4> y = {};
  return runtime
             .convert({x.data(), ElementType::f32, {4}, sizeof x},
                      {y.data(), ElementType::i8, {4}, sizeof y})
             .ok() &&
         y[3] == 4;
}

/// Nothing but a check that fails is returned: 0, or its number.
#define CHECK_IN_CHILD(condition)                \
  do {                                           \
    if (!(condition)) return __LINE__ % 200 + 1; \
  } while (false)

/// An alternate signal stack of this thread that is too small for tile data.
class SmallSignalStack {
 public:
  SmallSignalStack() {
    const stack_t stack = {.ss_sp = bytes_.data(), .ss_flags = 0, .ss_size = bytes_.size()};
    error_ = sigaltstack(&stack, &before_) == 0 ? 0 : errno;
  }
  ~SmallSignalStack() {
    if (error_ == 0) sigaltstack(&before_, nullptr);  // a sanitizer's, perhaps
  }
  SmallSignalStack(const SmallSignalStack&) = delete;
  SmallSignalStack& operator=(const SmallSignalStack&) = delete;

  int error() const { return error_; }

 private:
  std::array<char, 2048> bytes_;  // what MINSIGSTKSZ is in old headers
  stack_t before_ = {};
  int error_ = 0;
};

class TilePermission : public testing::Test {
 protected:
  void SetUp() override {
    if (!jit::host().runs(Tier::amx)) GTEST_SKIP() << "the CPU has no AVX-512 to emulate AMX with";
    if (jit::may_use_tiles()) GTEST_SKIP() << "another test of this program has asked already";
  }
};

TEST_F(TilePermission, IsAskedForWhenAKernelWithTilesIsBound) {
  EXPECT_EQ(in_child([] {
              const Runtime runtime = runtime_of(Tier::amx);
              CHECK_IN_CHILD(converts(runtime));
              CHECK_IN_CHILD(!jit::may_use_tiles());
              PointwiseCall call(runtime);
              CHECK_IN_CHILD(jit::may_use_tiles());
              CHECK_IN_CHILD(call.bound().tier() == Tier::amx);
              CHECK_IN_CHILD(call.bound().engine_reason().empty());
              CHECK_IN_CHILD(call.gives_what_it_should());
              return 0;
            }),
            0);
}

TEST_F(TilePermission, IsNotAskedForByLowerTiers) {
  EXPECT_EQ(in_child([] {
              PointwiseCall call(runtime_of(Tier::avx512_fp16));
              CHECK_IN_CHILD(!jit::may_use_tiles());
              CHECK_IN_CHILD(call.gives_what_it_should());
              return 0;
            }),
            0);
}

bool is_lowered_for_want_of_signal_stack(const BoundKernel& bound) {
  const std::string_view reason = bound.engine_reason();
  return bound.tier() == Tier::avx512_fp16 && bound.engine() == Engine::jit &&
         reason.starts_with("code is of tier avx512_fp16: no permission for tile registers: ") &&
         reason.find("alternate signal stack") != std::string_view::npos;
}

TEST_F(TilePermission, RefusedLowersTheTierForGood) {
  EXPECT_EQ(in_child([] {
              // With it Linux refuses tiles.
              auto small = std::make_unique<SmallSignalStack>();
              CHECK_IN_CHILD(small->error() == 0);
              emulator::refuse_tile_data(ENOSPC);
              const Runtime runtime = runtime_of(Tier::amx);
              PointwiseCall call(runtime);
              CHECK_IN_CHILD(!jit::may_use_tiles());
              CHECK_IN_CHILD(is_lowered_for_want_of_signal_stack(call.bound()));
              CHECK_IN_CHILD(call.gives_what_it_should());
              small.reset();
              emulator::refuse_tile_data(0);
              PointwiseCall later(runtime_of(Tier::amx));
              CHECK_IN_CHILD(is_lowered_for_want_of_signal_stack(later.bound()));
              CHECK_IN_CHILD(later.gives_what_it_should());
              CHECK_IN_CHILD(converts(runtime));
              return 0;
            }),
            0);
}

TEST_F(TilePermission, EveryRefusalHasItsReason) {
  if (!jit::host().emulates(Tier::amx)) GTEST_SKIP() << "Linux itself answers";
  struct Row {
    int error;
    std::string_view reason;
  };
  for (const Row& row :
       {Row{EINVAL, "this kernel does not know tile data"},
        Row{EPERM, "the system call is filtered"}, Row{ENOSYS, "the system call is filtered"},
        Row{EBUSY, "the request is refused"}}) {
    EXPECT_EQ(in_child([&row] {
                emulator::refuse_tile_data(row.error);
                PointwiseCall call(runtime_of(Tier::amx));
                CHECK_IN_CHILD(call.bound().engine_reason().find(row.reason) != std::string::npos);
                CHECK_IN_CHILD(call.gives_what_it_should());
                return 0;
              }),
              0)
        << row.reason;
  }
}

TEST_F(TilePermission, IsForAllThreads) {
  EXPECT_EQ(in_child([] {
              const Runtime runtime = runtime_of(Tier::amx);
              std::atomic<int> good = 0;
              std::vector<std::thread> threads;
              for (int t = 0; t < 4; ++t) {
                threads.emplace_back([&] {
                  PointwiseCall call(runtime);
                  good += call.gives_what_it_should() && call.bound().tier() == Tier::amx;
                });
              }
              for (std::thread& thread : threads) thread.join();
              CHECK_IN_CHILD(good == 4);
              return 0;
            }),
            0);
}

TEST_F(TilePermission, IsInheritedByForks) {
  EXPECT_EQ(in_child([] {
              const Runtime runtime = runtime_of(Tier::amx);
              PointwiseCall call(runtime);
              CHECK_IN_CHILD(call.gives_what_it_should());
              CHECK_IN_CHILD(in_child([&] {
                               CHECK_IN_CHILD(jit::may_use_tiles());
                               CHECK_IN_CHILD(call.gives_what_it_should());
                               PointwiseCall another(runtime);
                               CHECK_IN_CHILD(another.gives_what_it_should());
                               return 0;
                             }) == 0);
              CHECK_IN_CHILD(call.gives_what_it_should());
              return 0;
            }),
            0);
}

/// Once Linux has granted tiles, it refuses such signal stacks; kernels run in either case.
TEST_F(TilePermission, GoesWithSmallSignalStacks) {
  EXPECT_EQ(in_child([] {
              PointwiseCall before(runtime_of(Tier::amx));
              int failed = 0;
              std::thread([&] {
                const SmallSignalStack small;
                if (small.error() != 0 && small.error() != ENOMEM) failed = 1;
                PointwiseCall call(runtime_of(Tier::amx));
                if (!call.gives_what_it_should()) failed = 2;
              }).join();
              CHECK_IN_CHILD(failed == 0);
              CHECK_IN_CHILD(before.gives_what_it_should());
              return 0;
            }),
            0);
}

}  // namespace
}  // namespace castor::test
