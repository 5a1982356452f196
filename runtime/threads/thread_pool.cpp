// SPDX-License-Identifier: Apache-2.0
// The library castor::threads.
#include <fmt/format.h>

#include <immintrin.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "castor/thread_pool.hpp"
#include "ir/support/guarded.hpp"
#include "ir/support/processors.hpp"

namespace castor {

namespace {

constexpr int max_threads = 256;

/// For so long a thread without work waits in a loop before it sleeps: longer than the gap between
/// two layers of a network, short enough to be nothing beside a call that comes alone.
constexpr std::chrono::microseconds spin_time(200);

/// Waits in a loop until `holds()`, or until the spin time is over: then false.
template <class Condition>
bool spin_until(const Condition& holds) {
  constexpr int looks_per_clock = 64;
  const auto end = std::chrono::steady_clock::now() + spin_time;
  do {
    for (int i = 0; i < looks_per_clock; ++i) {
      if (holds()) return true;
      _mm_pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

/// The pool's mutex is held for less than a microsecond: sleeping until it is free takes longer.
std::unique_lock<std::mutex> lock_spinning(std::mutex& mutex) {
  constexpr int tries = 100;
  std::unique_lock lock(mutex, std::defer_lock);
  for (int i = 0; i < tries; ++i) {
    if (lock.try_lock()) return lock;
    _mm_pause();
  }
  lock.lock();
  return lock;
}

/// The tasks of one call, which wait on the stack of its caller.
struct Call {
  const int count;
  void (*const task)(void* context, int index);
  void* const context;
  std::atomic<int> next = 0;
  std::atomic<int> helpers = 0;  ///< threads of the pool at work on it; set under the pool's mutex

  void work() noexcept {
    for (int i = next.fetch_add(1, std::memory_order_relaxed); i < count;
         i = next.fetch_add(1, std::memory_order_relaxed)) {
      task(context, i);
    }
  }
};

/// Threads that wait for calls, for a while in a loop and then asleep; each call gets as many as
/// are free.
class ThreadPool final : public Executor {
 public:
  explicit ThreadPool(int threads) : threads_(threads) {
    helpers_.reserve(threads - 1);
    try {
      while (std::ssize(helpers_) < threads - 1) helpers_.emplace_back([this] { help(); });
    } catch (...) {  // the destructor does not run
      stop();
      throw;
    }
  }
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool() override { stop(); }

  int tasks() const override { return threads_; }

  /// Threads that spin come within a microsecond; waking those that sleep takes the caller about
  /// 8 us (`castor-bench --benchmark_filter=WakeUp/pool`), and they spin for the calls that follow.
  int64_t wake_up_ns() const override { return 5'000; }

  void run(int count, void (*task)(void* context, int index), void* context) override {
    Call call{count, task, context};
    if (count < 2) return call.work();
    for (int missing = announce(call); missing > 0; --missing) called_.notify_one();
    call.work();
    close_locked(call);
    const auto is_left = [&] { return call.helpers.load(std::memory_order_acquire) == 0; };
    if (spin_until(is_left)) return;
    std::unique_lock lock(mutex_);
    left_.wait(lock, is_left);
  }

 private:
  /// How many threads are to be woken, since too few spin for its tasks.
  int announce(Call& call) {
    std::unique_lock lock = lock_spinning(mutex_);
    calls_.push_back(&call);
    const int missing = std::min(sleeping_, call.count - 1 - spinning_);
    lock.unlock();
    open_.store(true, std::memory_order_relaxed);  // now, since those who see it want the mutex
    return missing;
  }

  void close_locked(const Call& call) {
    const std::unique_lock lock = lock_spinning(mutex_);
    close(call);
  }

  /// No thread begins to help with it any more.
  void close(const Call& call) {
    std::erase(calls_, &call);
    open_.store(!calls_.empty() || stopped_, std::memory_order_relaxed);
  }

  void help() {
    std::unique_lock lock(mutex_);
    while (true) {
      wait_for_call(lock);
      if (stopped_) return;
      Call& call = *calls_.front();
      if (++call.helpers == call.count - 1) close(call);  // as many as there are tasks for
      lock.unlock();
      call.work();
      lock = lock_spinning(mutex_);
      close(call);                                  // all of its tasks are taken
      if (--call.helpers == 0) left_.notify_all();  // the caller may be gone with its call now
    }
  }

  /// Until there is one, or the end.
  void wait_for_call(std::unique_lock<std::mutex>& lock) {
    const auto is_over = [this] { return stopped_ || !calls_.empty(); };
    while (!is_over()) {
      ++spinning_;
      lock.unlock();
      const bool has_seen_one = spin_until([&] { return open_.load(std::memory_order_relaxed); });
      lock = lock_spinning(mutex_);
      --spinning_;
      if (has_seen_one) continue;  // which others may have ended meanwhile
      ++sleeping_;
      called_.wait(lock, is_over);
      --sleeping_;
    }
  }

  void stop() {
    {
      const std::scoped_lock lock(mutex_);
      stopped_ = true;
      open_.store(true, std::memory_order_relaxed);
    }
    called_.notify_all();
    for (std::thread& helper : helpers_) helper.join();
  }

  const int threads_;
  std::mutex mutex_;
  std::condition_variable called_;  ///< there is a call, or the end
  std::condition_variable left_;    ///< a call has no helpers any more
  std::deque<Call*> calls_;         ///< those that want more threads
  /// There are such, or it is the end: what spinning threads read.
  std::atomic<bool> open_ = false;
  int spinning_ = 0;
  int sleeping_ = 0;
  bool stopped_ = false;
  std::vector<std::thread> helpers_;
};

/// What the system throws where it gives no more threads stands for memory.
Result<std::shared_ptr<Executor>> make_pool(int threads) {
  try {
    return std::shared_ptr<Executor>(std::make_shared<ThreadPool>(threads));
  } catch (const std::system_error& failure) {
    return Error{ErrorCode::out_of_memory,
                 fmt::format("the system gives no {} threads: {}", threads, failure.what())};
  }
}

}  // namespace

Result<std::shared_ptr<Executor>> make_thread_pool(int threads) {
  return guarded([&]() -> Result<std::shared_ptr<Executor>> {
    if (threads < 0 || threads > max_threads) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("a thread pool of {} threads; expected 1 to {}, or 0 for one a core",
                               threads, max_threads)};
    }
    const int all = std::min(processors_of_process(), max_threads);
    return make_pool(threads == 0 ? all : std::min(threads, all));
  });
}

}  // namespace castor
