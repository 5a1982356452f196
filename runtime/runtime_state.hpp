// SPDX-License-Identifier: Apache-2.0
// What a Runtime points to.
#pragma once

#include <castor/castor.hpp>

#include <memory>
#include <optional>
#include <string>

#include "jit/target.hpp"
#include "runtime/cache/code_store.hpp"
#include "runtime/cache/kernel_table.hpp"
#include "runtime/fork_private.hpp"
#include "runtime/memory/runtime_memory.hpp"

namespace castor {
class Observer;
}

namespace castor::detail {

struct RuntimeState {
  RuntimeState(const jit::SystemCalls& system, size_t cache_bytes)
      : table(std::make_shared<ForkPrivate<KernelTable, size_t>>(system, cache_bytes / 2)) {}
  std::optional<jit::Target> target;
  std::string interpreted_because;
  /// Not empty: the target is the best tier, but lower than the CPU's instructions allow.
  std::string lower_tier_because;
  CompileLimits limits;
  std::shared_ptr<Executor> executor;
  std::shared_ptr<CodeStore> store;
  std::shared_ptr<Observer> observer;  ///< null: nobody watches
  RuntimeMemoryPtr memory;
  const std::shared_ptr<ForkPrivate<KernelTable, size_t>> table;
};

/// Runtime::create with other system calls, so that tests can refuse memory.
Result<std::shared_ptr<RuntimeState>> make_runtime(const RuntimeOptions& options,
                                                   const jit::SystemCalls& system);

}  // namespace castor::detail
