// SPDX-License-Identifier: Apache-2.0
// Executors of castor's C API: who runs the tasks that a call is split into. Include
// castor/castor.h. A pool that is ready to use is in castor/thread_pool.h.
#pragma once

#include "castor/c/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/// As castor_executor::wake_up_ns: pools whose threads sleep when they have nothing to do.
#define CASTOR_USUAL_WAKE_UP_NS INT64_C(40000)

/// Runs the tasks of a call: an engine's own threads. What a call computes does not depend on it:
/// neither on the number of its tasks nor on their order.
///
/// A structure of this type is copied where it is given. `parallel_for` and what `context` points
/// to must live as long as they may be called: until a run that was given it returns; where a
/// runtime was given it, as long as the runtime and all its kernels and bound kernels. A field of
/// zeros is its default, but for `tasks`.
typedef struct castor_executor {
  size_t struct_size;  ///< sizeof(castor_executor)
  void* context;       ///< the engine's, handed to parallel_for
  /// Into at most how many tasks a call is split: normally the number of threads, the caller's
  /// included; at least 1. 1: calls are not split. Beyond 256 there are no more tasks.
  int32_t tasks;
  int32_t reserved;  ///< 0
  /// Calls task(task_context, i) once for each i from 0 to count - 1, on any threads (the caller's
  /// among them) in any order, and returns when all have returned. Several calls may come at the
  /// same time. Tasks do not wait for each other and call no executor. Leaving out a task ends the
  /// call with CASTOR_INVALID_ARGUMENT, outputs incomplete; so does one in C++ that throws, which
  /// it should not, and only when no task is running or begins later. May be NULL where `tasks`
  /// is 1.
  void (*parallel_for)(void* context, int32_t count,
                       void (*task)(void* task_context, int32_t index), void* task_context);
  /// How long it takes, in nanoseconds, from a call of parallel_for until other threads are at
  /// work. Every task is given at least so much to do, and work that takes one thread less than
  /// twice as long stays with the caller. 0: CASTOR_USUAL_WAKE_UP_NS; threads that spin say 2000;
  /// less than 0: everything is split that can be.
  int64_t wake_up_ns;
} castor_executor;
/// The caller's thread alone: for single calls of a runtime that has another executor.
#define CASTOR_SERIAL_EXECUTOR \
  { sizeof(castor_executor), NULL, 1, 0, NULL, 0 }

#ifdef __cplusplus
}  // extern "C"
#endif
