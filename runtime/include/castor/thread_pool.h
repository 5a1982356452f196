// SPDX-License-Identifier: Apache-2.0
// A pool of threads for C programs that have none of their own: the library castor::threads.
#pragma once

#include "castor/castor.h"

#ifdef __cplusplus
extern "C" {
#endif

/// A pool of threads. Any thread may use it, several at a time: they share its threads.
typedef struct castor_thread_pool castor_thread_pool;

/// A pool of that many threads, callers included, but no more than the process may use cores; 0:
/// one for each of them. The others are started here. After a call they wait in a loop for 200 us,
/// so that the next one finds them within a microsecond, and then sleep; where they come late, the
/// caller has begun with their tasks. A child made by fork() must not use its parent's pool.
///
/// Fails with CASTOR_INVALID_ARGUMENT for a negative number or more than 256, with
/// CASTOR_OUT_OF_MEMORY where the system gives no more threads. On success *pool is the caller's,
/// else NULL.
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
