// SPDX-License-Identifier: Apache-2.0
// A pool of threads for C programs that have none of their own: the library castor::threads, made
// with oneTBB where that was found (CMake option CASTOR_WITH_TBB).
#pragma once

#include "castor/castor.h"

#ifdef __cplusplus
extern "C" {
#endif

/// A pool of threads. Any thread may use it, several at a time: they share its threads.
typedef struct castor_thread_pool castor_thread_pool;

/// 1 where the library was built with oneTBB, so that castor_thread_pool_create gives pools; else
/// 0.
CASTOR_API int32_t castor_has_thread_pool(void) CASTOR_NOEXCEPT;

/// A pool of that many threads, callers included, but no more than the process may use cores; 0:
/// one for each of them. Threads are TBB's own: they are started by the first call that is split,
/// and sleep when there is nothing to do. A child made by fork() must not use its parent's pool.
///
/// Fails with CASTOR_UNSUPPORTED where the library was built without oneTBB, with
/// CASTOR_INVALID_ARGUMENT for a negative number or more than 256, with CASTOR_OUT_OF_MEMORY. On
/// success *pool is the caller's, else NULL.
CASTOR_API castor_status castor_thread_pool_create(int32_t threads, castor_thread_pool** pool,
                                                   castor_error* error) CASTOR_NOEXCEPT;
/// Not before the runs that use its executor have returned, and not before the runtimes that were
/// given it, and their kernels and bound kernels, are destroyed.
CASTOR_API void castor_thread_pool_destroy(castor_thread_pool* pool) CASTOR_NOEXCEPT;

/// For castor_run_options and castor_runtime_options. Lives as long as the pool; NULL for NULL.
CASTOR_API const castor_executor* castor_thread_pool_executor(const castor_thread_pool* pool)
    CASTOR_NOEXCEPT;

#ifdef __cplusplus
}  // extern "C"
#endif
