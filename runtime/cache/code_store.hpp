// SPDX-License-Identifier: Apache-2.0
// Code memory and the cache of codes in it.
#pragma once

#include <castor/memory.hpp>

#include <cstddef>
#include <memory>
#include <utility>

#include "jit/memory/code_memory.hpp"
#include "runtime/cache/code_cache.hpp"

namespace castor::detail {

/// Code memory and cache; shared by a runtime and its kernels, which may outlive it.
struct CodeStore {
  CodeStore(const jit::SystemCalls& system, size_t capacity_bytes,
            std::shared_ptr<CodeWatcher> told = nullptr, size_t code_bytes_limit = no_limit)
      : watcher(std::move(told)),
        memory(system, code_bytes_limit),
        cache(memory, system, capacity_bytes, watcher.get()) {}
  std::shared_ptr<CodeWatcher> watcher;  ///< null: nobody watches
  jit::CodeMemory memory;
  CodeCache cache;
};

}  // namespace castor::detail
