// SPDX-License-Identifier: Apache-2.0
// An executor of two threads for benchmarks: the caller's, and one that waits in a loop.
#pragma once

#include <castor/castor.hpp>

#include <atomic>
#include <thread>

namespace castor::bench {

class TwoThreads : public Executor {
 public:
  TwoThreads() : thread_([this] { work(); }) {}
  ~TwoThreads() override {
    task_ = nullptr;
    given_.fetch_add(1, std::memory_order_release);
    thread_.join();
  }

  int tasks() const override { return 2; }
  int64_t wake_up_ns() const override { return 2000; }
  /// Runs at most two tasks; calls come one after the other.
  void run(int count, void (*task)(void* context, int index), void* context) override {
    task_ = task;
    context_ = context;
    const uint64_t work = given_.load(std::memory_order_relaxed) + 1;
    if (count > 1) given_.store(work, std::memory_order_release);
    task(context, 0);
    while (count > 1 && done_.load(std::memory_order_acquire) != work) {
    }
  }

 private:
  void work() {
    for (uint64_t next = 1;; ++next) {
      while (given_.load(std::memory_order_acquire) != next) {
      }
      if (task_ == nullptr) return;
      task_(context_, 1);
      done_.store(next, std::memory_order_release);
    }
  }

  void (*task_)(void* context, int index) = nullptr;
  void* context_ = nullptr;
  alignas(64) std::atomic<uint64_t> given_ = 0;
  alignas(64) std::atomic<uint64_t> done_ = 0;
  std::thread thread_;
};

}  // namespace castor::bench
