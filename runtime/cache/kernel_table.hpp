// SPDX-License-Identifier: Apache-2.0
// The compiled functions that a runtime remembers.
#pragma once

#include <cstdint>
#include <memory>

#include "ir/function.hpp"
#include "runtime/cache/clock_cache.hpp"

namespace castor {

namespace detail {
struct KernelState;
struct RuntimeState;
}  // namespace detail

using KernelStatePtr = std::shared_ptr<const detail::KernelState>;

/// Kernels by the function that they were compiled from, and the functions of one-call
/// conversions, each in a ClockCache: thread safe, without a lock for what is known; each function
/// is compiled once for all who ask for it at the same time. Bounded by the bytes that functions
/// and kernels keep alive (HeldBytes). Functions whose names hold more than everything else are
/// kept without them. May throw std::bad_alloc.
class KernelTable {
 public:
  /// An eighth of the capacity is for the functions of conversions.
  explicit KernelTable(size_t capacity_bytes)
      : kernels_(capacity_bytes - capacity_bytes / 8), conversions_(capacity_bytes / 8) {}

  /// The kernel of the function, under its own names: known by the same computation, or compiled
  /// for `runtime`.
  Result<KernelStatePtr> get(const FunctionPtr& function, const detail::RuntimeState& runtime);

  /// A function that converts one tensor of that rank, every extent unknown.
  Result<FunctionPtr> get_conversion(ElementType from, ElementType to, int rank,
                                     const ConvertOptions& options);

  /// Forgets all kernels, so that code which nobody else holds is freed.
  void clear_kernels() { kernels_.clear(); }

  /// Bytes of the kernels. They count for all that they hold, even if others share it, and what
  /// remembering them costs.
  CacheCounters kernel_counters() const { return kernels_.counters(); }
  CacheCounters conversion_counters() const { return conversions_.counters(); }

 private:
  struct SameComputation {
    bool operator()(const FunctionPtr& a, const FunctionPtr& b) const {
      return same_computation(*a, *b);
    }
  };
  using Kernels = ClockCache<FunctionPtr, detail::KernelState, SameComputation>;
  using Conversions = ClockCache<uint64_t, Function>;

  static Result<Kernels::Made> compile(const FunctionPtr& function,
                                       const detail::RuntimeState& runtime);

  Kernels kernels_;
  Conversions conversions_;
};

}  // namespace castor
