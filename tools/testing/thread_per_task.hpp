// SPDX-License-Identifier: Apache-2.0
// An executor with a thread for each task.
#pragma once

#include <algorithm>
#include <thread>
#include <vector>

#include "castor/castor.hpp"

namespace castor::test {

class ThreadPerTask : public Executor {
 public:
  explicit ThreadPerTask(int tasks) : tasks_(tasks) {}
  int tasks() const override { return tasks_; }
  int64_t wake_up_ns() const override { return 0; }  // however small the work
  void run(int count, void (*task)(void* context, int index), void* context) override {
    max_ = std::max(max_, count);
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i) threads.emplace_back(task, context, i);
    for (std::thread& thread : threads) thread.join();
  }
  /// Maximum number of tasks that ran at a time.
  int max() const { return max_; }

 private:
  int tasks_;
  int max_ = 1;
};

}  // namespace castor::test
