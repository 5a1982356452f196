// SPDX-License-Identifier: Apache-2.0
// The memory of a runtime and its kernels, which may outlive it.
#pragma once

#include "runtime/memory/weight_store.hpp"

namespace castor::detail {

struct RuntimeMemory {
  MemorySourcePtr scratch;
  WeightStorePtr weights;  ///< perhaps other runtimes' as well
};
using RuntimeMemoryPtr = std::shared_ptr<const RuntimeMemory>;

/// With weights of its own where `shared` is none. Fails where the allocator has one callback
/// without the other. Throws std::bad_alloc.
Result<RuntimeMemoryPtr> make_runtime_memory(const Allocator& allocator,
                                             const PackedWeights& shared,
                                             const jit::SystemCalls& system);

}  // namespace castor::detail
