// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory/runtime_memory.hpp"

namespace castor::detail {

Result<RuntimeMemoryPtr> make_runtime_memory(const Allocator& allocator,
                                             const PackedWeights& shared,
                                             const jit::SystemCalls& system) {
  if (Status status = check_allocator(allocator); !status) return status.error();
  RuntimeMemory memory;
  memory.scratch = std::make_shared<MemorySource>(allocator, "scratch");
  memory.weights = WeightAccess::of(shared);
  if (memory.weights == nullptr) {
    const PackedWeightsOptions own = {.allocator = allocator};
    memory.weights = std::make_shared<WeightStore>(own, system);
  }
  return std::make_shared<const RuntimeMemory>(std::move(memory));
}

}  // namespace castor::detail
