// SPDX-License-Identifier: Apache-2.0
// A pool of threads for programs that have none of their own: the library castor::threads.
#pragma once

#include <memory>

#include "castor/executor.hpp"
#include "ir/support/result.hpp"

namespace castor {

/// An executor with that many threads, callers included, but no more than the process may use
/// cores; 0: one for each of them. The others are started here. After a call they wait in a loop
/// for 200 us, so that the next one finds them within a microsecond, and then sleep; where they
/// come late, the caller has begun with their tasks.
///
/// Any number of threads may use one pool at the same time: they share its threads. A child made by
/// fork() must not use its parent's pool.
///
/// Fails with `invalid_argument` for a negative number or more than 256, with `out_of_memory` where
/// the system gives no more threads.
CASTOR_API Result<std::shared_ptr<Executor>> make_thread_pool(int threads = 0);

}  // namespace castor
