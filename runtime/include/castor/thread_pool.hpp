// SPDX-License-Identifier: Apache-2.0
// A pool of threads for programs that have none of their own: the library castor::threads, made
// with oneTBB where that was found (CMake option CASTOR_WITH_TBB).
#pragma once

#include <memory>

#include "castor/executor.hpp"
#include "ir/support/result.hpp"

namespace castor {

/// Whether the library was built with oneTBB, so that `make_thread_pool` gives pools.
CASTOR_API bool has_thread_pool();

/// An executor over oneTBB with that many threads, callers included, but no more than the process
/// may use cores; 0: one for each of them. Threads are TBB's own: they are started by the first
/// call that is split, and sleep when there is nothing to do.
///
/// Any number of threads may use one pool at the same time: they share its threads. A child made by
/// fork() must not use its parent's pool.
///
/// Fails with `unsupported` where the library was built without oneTBB, with `invalid_argument` for
/// a negative number or more than 256, with `out_of_memory`.
CASTOR_API Result<std::shared_ptr<Executor>> make_thread_pool(int threads = 0);

}  // namespace castor
