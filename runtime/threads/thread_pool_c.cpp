// SPDX-License-Identifier: Apache-2.0
// The thread pool in C.
#include <castor/thread_pool.h>

#include "castor/thread_pool.hpp"
#include "runtime/c/guard.hpp"

struct castor_thread_pool {
  std::shared_ptr<castor::Executor> pool;
  castor_executor executor;
};

namespace castor {

namespace {

void parallel_for(void* context, int32_t count, void (*task)(void* task_context, int32_t index),
                  void* task_context) {
  static_cast<Executor*>(context)->run(count, task, task_context);
}

castor_executor in_c(Executor& pool) {
  castor_executor executor = CASTOR_SERIAL_EXECUTOR;
  executor.context = &pool;
  executor.tasks = pool.tasks();
  executor.parallel_for = parallel_for;
  executor.wake_up_ns = pool.wake_up_ns() > 0 ? pool.wake_up_ns() : -1;
  return executor;
}

}  // namespace

}  // namespace castor

extern "C" {

castor_status castor_thread_pool_create(int32_t threads, castor_thread_pool** pool,
                                        castor_error* error) noexcept {
  using namespace castor;
  return c::guarded_make(error, pool, [&](std::unique_ptr<castor_thread_pool>& made) -> Status {
    Result<std::shared_ptr<Executor>> created = make_thread_pool(threads);
    if (!created) return created.error();
    made.reset(new castor_thread_pool{*created, in_c(**created)});
    return {};
  });
}

void castor_thread_pool_destroy(castor_thread_pool* pool) noexcept { delete pool; }

const castor_executor* castor_thread_pool_executor(const castor_thread_pool* pool) noexcept {
  return pool == nullptr ? nullptr : &pool->executor;
}

}  // extern "C"
