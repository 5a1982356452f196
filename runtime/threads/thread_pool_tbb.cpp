// SPDX-License-Identifier: Apache-2.0
// The library castor::threads with oneTBB.
#include <fmt/format.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <exception>

#include "castor/thread_pool.hpp"
#include "ir/support/guarded.hpp"

namespace castor {

namespace {

constexpr int max_threads = 256;

/// Hands out the tasks of one call: whoever comes takes the next one.
class TaskQueue {
 public:
  TaskQueue(int count, void (*task)(void* context, int index), void* context)
      : count_(count), task_(task), context_(context) {}

  /// False where none is left.
  bool run_next() noexcept {
    const int index = next_.fetch_add(1, std::memory_order_relaxed);
    if (index >= count_) return false;
    task_(context_, index);
    return true;
  }

 private:
  const int count_;
  void (*const task_)(void* context, int index);
  void* const context_;
  std::atomic<int> next_ = 0;
};

/// An arena of its own, so that a caller that waits is given no work of others' arenas.
class TbbPool final : public Executor {
 public:
  explicit TbbPool(int threads) : threads_(threads), arena_(threads) { arena_.initialize(); }

  int tasks() const override { return threads_; }

  /// Where TBB finds no memory for its own accounts, the caller runs what is left.
  void run(int count, void (*task)(void* context, int index), void* context) override {
    TaskQueue queue(count, task, context);
    try {
      arena_.execute([&] {
        tbb::parallel_for(
            0, count, 1, [&](int) { queue.run_next(); }, tbb::simple_partitioner());
      });
    } catch (const std::exception&) {
      while (queue.run_next()) {
      }
    }
  }

 private:
  const int threads_;
  tbb::task_arena arena_;
};

/// What TBB throws where it cannot make an arena stands for memory: it has its own allocator.
Result<std::shared_ptr<Executor>> make_pool(int threads) {
  try {
    return std::shared_ptr<Executor>(std::make_shared<TbbPool>(threads));
  } catch (const std::exception& failure) {
    return Error{ErrorCode::out_of_memory,
                 fmt::format("oneTBB cannot make an arena: {}", failure.what())};
  }
}

}  // namespace

bool has_thread_pool() { return true; }

Result<std::shared_ptr<Executor>> make_thread_pool(int threads) {
  return guarded([&]() -> Result<std::shared_ptr<Executor>> {
    if (threads < 0 || threads > max_threads) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("a thread pool of {} threads; expected 1 to {}, or 0 for one a core",
                               threads, max_threads)};
    }
    const int all = std::min(tbb::info::default_concurrency(), max_threads);
    const int wanted = threads == 0 ? all : std::min(threads, all);
    return make_pool(wanted);
  });
}

}  // namespace castor
