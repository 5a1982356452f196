// SPDX-License-Identifier: Apache-2.0
// Threads that ask for the same function at once: one compiles for all, failures stay each one's
// own and are not kept, and a child that is forked meanwhile goes on by itself.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>
#include <functional>
#include <latch>
#include <thread>

#include "runtime/compiled.hpp"
#include "runtime/runtime_state.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/key_functions.hpp"
#include "tests/support/to_f16.hpp"

namespace castor {
namespace {

constexpr int thread_count = 8;

void in_threads(const std::function<void(int)>& body) {
  std::latch ready(thread_count);
  std::vector<std::thread> threads;
  for (int i = 0; i < thread_count; ++i) {
    threads.emplace_back([&, i] {
      ready.arrive_and_wait();
      body(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

/// What the system calls below do at present.
enum class Gate : uint8_t { open, closed, refusing };
std::atomic<Gate> gate = Gate::open;
std::atomic<int> at_the_gate = 0;

/// Publishing code begins with it in a runtime's first compile.
int memfd_at_the_gate(const char* name, unsigned flags) {
  ++at_the_gate;
  while (gate == Gate::closed) std::this_thread::yield();
  if (gate != Gate::refusing) return ::memfd_create(name, flags);
  errno = EPERM;
  return -1;
}
int mprotect_at_the_gate(void* at, size_t size, int protection) {
  if (gate != Gate::refusing || (protection & PROT_EXEC) == 0) {
    return ::mprotect(at, size, protection);
  }
  errno = EACCES;
  return -1;
}

std::shared_ptr<detail::RuntimeState> gated_runtime() {
  jit::SystemCalls calls = jit::SystemCalls::real();
  calls.memfd_create = memfd_at_the_gate;
  calls.mprotect = mprotect_at_the_gate;
  at_the_gate = 0;
  return *detail::make_runtime({}, calls);
}

CacheCounters counters_of(const detail::RuntimeState& runtime) {
  return runtime.table->get().kernel_counters();
}

bool is_interpreted(const Result<KernelStatePtr>& kernel) {
  return kernel.ok() && !(*kernel)->compiled->interpreted_because.empty();
}

TEST(CacheFlight, OneThreadCompilesForAll) {
  gate = Gate::closed;
  const auto runtime = gated_runtime();
  std::atomic<int> right = 0;
  std::thread opener([&] {
    while (counters_of(*runtime).misses < thread_count) std::this_thread::yield();
    gate = Gate::open;
  });
  std::vector<KernelStatePtr> kernels(thread_count);
  in_threads([&](int thread) {
    const FunctionPtr mine = test::key_function(7, "f" + std::to_string(thread));
    const Result<KernelStatePtr> kernel = runtime->table->get().get(mine, *runtime);
    if (kernel.ok() && (*kernel)->function == mine) ++right;  // each under its own names
    kernels[static_cast<size_t>(thread)] = *kernel;
  });
  opener.join();
  EXPECT_EQ(right, thread_count);
  EXPECT_EQ(counters_of(*runtime).made, 1u);
  EXPECT_EQ(runtime->store->cache.counters().made, 1u);
  for (const KernelStatePtr& kernel : kernels) {
    EXPECT_EQ(kernel->compiled.get(), kernels[0]->compiled.get());
  }
}

TEST(CacheFlight, ManyFunctionsAreCompiledOnceEach) {
  const Runtime runtime = test::make_runtime();
  std::atomic<int> wrong = 0;
  for (int key = 0; key < 60; ++key) {
    in_threads([&](int) {
      const Result<Kernel> kernel = runtime.compile(test::key_function(key));
      if (!kernel.ok() || !test::computes_key_function(*kernel, key)) ++wrong;
    });
  }
  EXPECT_EQ(wrong, 0);
  const CacheStatistics statistics = runtime.statistics();
  EXPECT_EQ(statistics.functions, 60u);
  EXPECT_EQ(statistics.codes, 60u);
  EXPECT_EQ(statistics.function_hits + statistics.function_misses, 60u * thread_count);
}

/// Memory that was refused may be granted later: all who asked are told, and nothing is kept.
TEST(CacheFlight, RefusedMemoryIsAskedForAgain) {
  gate = Gate::refusing;
  const auto runtime = gated_runtime();
  std::atomic<int> interpreted = 0;
  const FunctionPtr function = test::key_function(3);
  in_threads([&](int) {
    if (is_interpreted(runtime->table->get().get(function, *runtime))) ++interpreted;
  });
  EXPECT_EQ(interpreted, thread_count);
  EXPECT_EQ(counters_of(*runtime).entries, 0u);
  EXPECT_EQ(runtime->store->cache.counters().entries, 0u);
  gate = Gate::open;
  const Result<KernelStatePtr> kernel = runtime->table->get().get(function, *runtime);
  ASSERT_TRUE(kernel.ok());
  EXPECT_FALSE(is_interpreted(kernel));
  EXPECT_EQ(counters_of(*runtime).entries, 1u);
}

/// A function that no rule admits (nobody verified it), whose result has that name.
FunctionPtr wrong_function(const std::string& name) {
  Function function = *test::key_function(1);
  Operation& last = function.operations.back();
  last.op = OpKind::logical_and;  // its operands are i32
  function.values[last.results[0]].name = name;
  return std::make_shared<Function>(std::move(function));
}

TEST(CacheFlight, FailuresNameEachOnesOwnValuesAndAreNotKept) {
  const Runtime runtime = test::make_runtime();
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> right = 0;
    in_threads([&](int thread) {
      const std::string name = "wrong_" + std::to_string(thread);
      const Result<Kernel> kernel = runtime.compile(wrong_function(name));
      if (!kernel.ok() && kernel.error().code == ErrorCode::invalid_function &&
          kernel.error().message.find(name) != std::string::npos) {
        ++right;
      }
    });
    ASSERT_EQ(right, thread_count);
  }
  const CacheStatistics statistics = runtime.statistics();
  EXPECT_EQ(statistics.functions, 0u);
  EXPECT_EQ(statistics.function_hits, 0u);
  EXPECT_EQ(statistics.function_bytes, 0u);
}

/// The thread that compiles does not exist in the child; nobody may wait for it there.
TEST(CacheFlight, AChildForkedAmidACompileCompilesTheSameFunction) {
  gate = Gate::closed;
  const auto runtime = gated_runtime();
  const FunctionPtr function = test::key_function(9);
  const auto get = [&] { return runtime->table->get().get(function, *runtime); };
  std::thread compiler([&] { EXPECT_TRUE(get().ok()); });
  std::thread waiter([&] { EXPECT_TRUE(get().ok()); });
  while (at_the_gate == 0 || counters_of(*runtime).misses < 2) std::this_thread::yield();
  EXPECT_EQ(test::in_child([&] {
              gate = Gate::open;
              if (counters_of(*runtime).misses != 0) return 1;  // a table of its own
              const Result<KernelStatePtr> kernel = get();
              if (!kernel.ok() || is_interpreted(kernel)) return 2;
              if (counters_of(*runtime).made != 1) return 3;
              if (!get().ok() || counters_of(*runtime).hits != 1) return 4;
              return test::in_child([&] { return get().ok() ? 0 : 5; });
            }),
            0);
  gate = Gate::open;
  compiler.join();
  waiter.join();
  EXPECT_EQ(counters_of(*runtime).made, 1u);
}

}  // namespace
}  // namespace castor
