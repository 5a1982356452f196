// SPDX-License-Identifier: Apache-2.0
// The tasks of one call: how many a given amount of work becomes, and running them.
#pragma once

#include <castor/executor.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "runtime/memory/memory_source.hpp"

namespace castor::detail {

/// The executor of one call, asked once for what it wants. Used by the call's own thread alone.
class CallTasks {
 public:
  /// Beyond that many, tasks have nothing left to win.
  static constexpr int64_t max_tasks = 256;

  /// `executor` may be null: nothing is split. Throws CallbackRefusal where it throws.
  explicit CallTasks(Executor* executor) : executor_(executor) {
    if (executor == nullptr) return;
    try {
      max_ = std::clamp<int64_t>(executor->tasks(), 1, max_tasks);
      if (max_ > 1) wake_up_ns_ = std::max<int64_t>(executor->wake_up_ns(), 0);
    } catch (...) {
      throw CallbackRefusal(callback_error("tasks() or wake_up_ns() of the executor"));
    }
  }

  /// The maximum number of tasks, whatever the work; 1: nothing is split.
  int64_t max() const { return max_; }

  /// The number of tasks for work that takes one thread so long: 1 where it is not worth more.
  int64_t count_for(int64_t nanoseconds) const {
    if (max_ == 1 || wake_up_ns_ == 0) return max_;
    return std::clamp<int64_t>(nanoseconds / wake_up_ns_, 1, max_);
  }

  /// Calls task(i) for each i from 0 to count - 1, by the executor; `count` is at least 2.
  template <class Task>
  void run(int64_t count, const Task& task) {
    struct Shared {
      const Task& task;
      const int count;
      std::atomic<int> done = 0;
      std::atomic<bool> repeats = false;
      std::array<std::atomic<uint64_t>, max_tasks / 64> begun = {};  ///< a bit for each task
    } shared = {task, static_cast<int>(count)};
    const auto run_one = [](void* context, int index) {
      auto& all = *static_cast<Shared*>(context);
      if (index < 0 || index >= all.count) return;
      const uint64_t bit = uint64_t{1} << (index % 64);
      const uint64_t others =
          all.begun[static_cast<size_t>(index / 64)].fetch_or(bit, std::memory_order_relaxed);
      if ((others & bit) != 0) {
        all.repeats.store(true, std::memory_order_relaxed);
        return;
      }
      all.task(int64_t{index});
      all.done.fetch_add(1, std::memory_order_release);
    };
    try {
      executor_->run(shared.count, run_one, &shared);
    } catch (...) {
      has_failed_ = true;
    }
    const bool is_done = shared.done.load(std::memory_order_acquire) == shared.count;
    if (!is_done || shared.repeats.load(std::memory_order_relaxed)) has_failed_ = true;
  }

  /// Whether the executor has thrown, or not run every task once. What it repeats is not run again.
  bool has_failed() const { return has_failed_; }

 private:
  Executor* executor_;
  int64_t max_ = 1;
  int64_t wake_up_ns_ = 0;
  bool has_failed_ = false;
};

}  // namespace castor::detail
