// SPDX-License-Identifier: Apache-2.0
// Executors on the caller's thread that are as unhelpful as they may be.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "castor/executor.hpp"

namespace castor::test {

/// Runs tasks one after the other, the last one first, and splits however small the work.
class Backwards : public Executor {
 public:
  explicit Backwards(int tasks) : tasks_(tasks) {}
  int tasks() const override { return tasks_; }
  int64_t wake_up_ns() const override { return 0; }
  void run(int count, void (*task)(void* context, int index), void* context) override {
    ++calls_;
    max_ = std::max(max_, count);
    for (int i = count; i-- > 0;) task(context, i);
  }
  int calls() const { return calls_; }
  /// Maximum number of tasks that ran at a time.
  int max() const { return max_; }

 private:
  int tasks_;
  int calls_ = 0;
  int max_ = 1;
};

/// Finds out which bytes of some memory each task changes. Run twice, over memory that is all zeros
/// and all ones, no write goes unnoticed.
class Watchful : public Executor {
 public:
  Watchful(int tasks, std::vector<std::span<std::byte>> memory)
      : tasks_(tasks), memory_(std::move(memory)) {}
  int tasks() const override { return tasks_; }
  int64_t wake_up_ns() const override { return 0; }
  void run(int count, void (*task)(void* context, int index), void* context) override {
    std::vector<std::vector<int>> writer;
    for (const auto& bytes : memory_) writer.emplace_back(bytes.size(), -1);
    for (int i = 0; i < count; ++i) {
      std::vector<std::vector<std::byte>> before;
      for (const auto& bytes : memory_) before.emplace_back(bytes.begin(), bytes.end());
      task(context, i);
      for (size_t m = 0; m < memory_.size(); ++m) {
        for (size_t at = 0; at < memory_[m].size(); ++at) {
          if (memory_[m][at] == before[m][at]) continue;
          if (writer[m][at] >= 0 && shared_.empty()) {
            shared_ = "byte " + std::to_string(at) + " of output " + std::to_string(m) +
                      " is written by tasks " + std::to_string(writer[m][at]) + " and " +
                      std::to_string(i) + " of " + std::to_string(count);
          }
          writer[m][at] = i;
        }
      }
    }
  }
  /// The first byte that two tasks of one run have changed; empty where there is none.
  const std::string& shared() const { return shared_; }

 private:
  int tasks_;
  std::vector<std::span<std::byte>> memory_;
  std::string shared_;
};

}  // namespace castor::test
