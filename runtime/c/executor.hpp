// SPDX-License-Identifier: Apache-2.0
// Executors of the C API as those of the C++ API.
#pragma once

#include <castor/c/executor.h>

#include <castor/executor.hpp>

#include <optional>

#include "ir/support/result.hpp"

namespace castor::c {

/// The caller's threads.
class ExecutorFromC final : public Executor {
 public:
  explicit ExecutorFromC(const castor_executor& given) : given_(given) {}
  int tasks() const override { return given_.tasks; }
  int64_t wake_up_ns() const override {
    return given_.wake_up_ns == 0 ? usual_wake_up_ns : given_.wake_up_ns;
  }
  void run(int count, void (*task)(void* context, int index), void* context) override {
    given_.parallel_for(given_.context, count, task, context);
  }

 private:
  const castor_executor given_;
};

/// Leaves `executor` empty where `given` is null.
Status read_executor(const castor_executor* given, std::optional<ExecutorFromC>& executor);

}  // namespace castor::c
