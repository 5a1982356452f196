// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory/scratch_plan.hpp"

#include <new>

#include "runtime/memory/scratch.hpp"

namespace castor::detail {

size_t ScratchPlan::take(size_t bytes) {
  constexpr size_t unit = ScratchPool::alignment;
  constexpr size_t max = ~size_t{0} / 4;
  if (bytes > max) throw std::bad_alloc();
  const size_t size = (bytes + padding + unit - 1) / unit * unit;
  const auto fit = free_.lower_bound(size);
  if (fit != free_.end()) {
    const size_t offset = fit->second;
    taken_[offset] = fit->first;
    free_.erase(fit);
    return offset;
  }
  const size_t offset = end_;
  if (end_ > max) throw std::bad_alloc();
  end_ += size;
  taken_[offset] = size;
  return offset;
}

void ScratchPlan::give_back(size_t offset) {
  const auto taken = taken_.find(offset);
  free_.emplace(taken->second, offset);
  taken_.erase(taken);
}

}  // namespace castor::detail
