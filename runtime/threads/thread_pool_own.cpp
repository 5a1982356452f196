// SPDX-License-Identifier: Apache-2.0
// The library castor::threads on plain threads, for libraries that may not bring oneTBB.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "castor/thread_pool.hpp"
#include "ir/support/guarded.hpp"

namespace castor {

namespace {

constexpr int max_threads = 256;

/// The tasks of one call, which wait on the stack of its caller.
struct Call {
  const int count;
  void (*const task)(void* context, int index);
  void* const context;
  std::atomic<int> next = 0;
  int helpers = 0;  ///< threads of the pool that are at work on it; guarded by the pool's mutex

  void work() noexcept {
    for (int i = next.fetch_add(1, std::memory_order_relaxed); i < count;
         i = next.fetch_add(1, std::memory_order_relaxed)) {
      task(context, i);
    }
  }
};

/// Threads that sleep until there are calls; each call gets as many as are free.
class OwnPool final : public Executor {
 public:
  explicit OwnPool(int threads) : threads_(threads) {
    helpers_.reserve(threads - 1);
    try {
      while (std::ssize(helpers_) < threads - 1) helpers_.emplace_back([this] { help(); });
    } catch (...) {  // the destructor does not run
      stop();
      throw;
    }
  }
  OwnPool(const OwnPool&) = delete;
  OwnPool& operator=(const OwnPool&) = delete;
  ~OwnPool() override { stop(); }

  int tasks() const override { return threads_; }

  void run(int count, void (*task)(void* context, int index), void* context) override {
    Call call{count, task, context};
    std::unique_lock lock(mutex_);
    calls_.push_back(&call);
    lock.unlock();
    called_.notify_all();
    call.work();
    lock.lock();
    close(call);
    left_.wait(lock, [&] { return call.helpers == 0; });
  }

 private:
  /// No thread begins to help with it any more.
  void close(const Call& call) { std::erase(calls_, &call); }

  void help() {
    std::unique_lock lock(mutex_);
    while (true) {
      called_.wait(lock, [this] { return stopped_ || !calls_.empty(); });
      if (stopped_) return;
      Call& call = *calls_.front();
      ++call.helpers;
      lock.unlock();
      call.work();
      lock.lock();
      close(call);  // all of its tasks are taken
      if (--call.helpers == 0) left_.notify_all();
    }
  }

  void stop() {
    {
      const std::scoped_lock lock(mutex_);
      stopped_ = true;
    }
    called_.notify_all();
    for (std::thread& helper : helpers_) helper.join();
  }

  const int threads_;
  std::mutex mutex_;
  std::condition_variable called_;  ///< there is a call, or the end
  std::condition_variable left_;    ///< a call has no helpers any more
  std::deque<Call*> calls_;         ///< those with tasks that nobody has taken
  bool stopped_ = false;
  std::vector<std::thread> helpers_;
};

/// What the system throws where it gives no more threads stands for memory.
Result<std::shared_ptr<Executor>> make_pool(int threads) {
  try {
    return std::shared_ptr<Executor>(std::make_shared<OwnPool>(threads));
  } catch (const std::system_error& failure) {
    return Error{ErrorCode::out_of_memory,
                 fmt::format("the system gives no {} threads: {}", threads, failure.what())};
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
    const int cores = static_cast<int>(std::thread::hardware_concurrency());
    const int all = std::clamp(cores, 1, max_threads);
    return make_pool(threads == 0 ? all : std::min(threads, all));
  });
}

}  // namespace castor
