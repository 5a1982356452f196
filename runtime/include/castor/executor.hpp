// SPDX-License-Identifier: Apache-2.0
// Who runs the tasks that a call is split into: an engine's own threads, or nobody but the caller.
// A pool that is ready to use is in castor/thread_pool.hpp.
#pragma once

#include <cstdint>

#include "ir/support/export.hpp"

namespace castor {

/// Runs the tasks of a call, at the same time if it likes. Implemented by the engine over its own
/// pool; all methods may be called from several threads at once, and should throw nothing: where
/// `tasks` or `wake_up_ns` throws, the call fails before it has written anything (invalid_argument,
/// or out_of_memory for std::bad_alloc), and `scratch_bytes` gives SIZE_MAX; see `run` for itself.
///
/// What a call computes does not depend on the executor: neither on the number of its tasks nor on
/// their order.
class CASTOR_API Executor {
 public:
  Executor() = default;
  Executor(const Executor&) = default;
  Executor& operator=(const Executor&) = default;
  virtual ~Executor() = default;

  /// Into at most how many tasks a call is split: normally the number of threads, the caller's
  /// included. 1 or less: calls are not split. Beyond 256 there are no more tasks.
  virtual int tasks() const = 0;

  /// How long it takes, in nanoseconds, from a call of `run` until other threads are at work. Every
  /// task is given at least so much to do, and work that takes one thread less than twice as long
  /// stays with the caller, without a call of `run`. 0 or less: everything is split that can be.
  virtual int64_t wake_up_ns() const { return usual_wake_up_ns; }

  /// Calls task(context, i) once for each i from 0 to count - 1, on any threads (the caller's among
  /// them) in any order, and returns when all have returned. Tasks do not throw, do not wait for
  /// each other and call no executor. An executor that leaves out a task, or throws, ends the call
  /// with an error; when it throws, no task may be running or begin later.
  virtual void run(int count, void (*task)(void* context, int index), void* context) = 0;

  /// Pools whose threads sleep when they have nothing to do: two threads begin to win somewhere
  /// between 45 and 125 us of work (waking takes 20 us, and data in the caller's cache as long
  /// again). Threads that spin begin to win at 5 us; their executor says 2'000. Measured on two
  /// cores of a virtual machine: `castor-bench --benchmark_filter='WakeUp/.*'`.
  static constexpr int64_t usual_wake_up_ns = 40'000;
};

/// The caller's thread alone: for single calls of a runtime that has another executor.
class CASTOR_API SerialExecutor final : public Executor {
 public:
  int tasks() const override { return 1; }
  void run(int count, void (*task)(void* context, int index), void* context) override {
    for (int i = 0; i < count; ++i) task(context, i);
  }
};

}  // namespace castor
