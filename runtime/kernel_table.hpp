// SPDX-License-Identifier: Apache-2.0
// The compiled functions that a runtime remembers.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <shared_mutex>
#include <unordered_map>

#include "ir/function.hpp"

namespace castor {

namespace detail {
struct KernelState;
struct Compiled;
}  // namespace detail

using KernelStatePtr = std::shared_ptr<const detail::KernelState>;

/// Kernels by the function that they were compiled from, and the functions of one-call
/// conversions. Thread safe. Bounded by the bytes that the kernels keep alive (code and
/// constants): what was added first is forgotten first.
class KernelTable {
 public:
  /// The kernel of the same computation, under the names of `function`; or null.
  KernelStatePtr find(const FunctionPtr& function) const;
  /// Adds a kernel. `capacity_bytes` is the table's bound.
  void add(KernelStatePtr kernel, size_t capacity_bytes);

  FunctionPtr find_conversion(uint64_t key) const;
  FunctionPtr add_conversion(uint64_t key, FunctionPtr function);

  /// Bytes of code and constants that the kernels keep alive; shared code counts for each.
  size_t bytes() const;

 private:
  using Kernels = std::unordered_multimap<uint64_t, KernelStatePtr>;  // by Function::hash

  mutable std::shared_mutex mutex_;
  Kernels kernels_;
  std::deque<Kernels::iterator> oldest_first_;
  size_t bytes_ = 0;
  std::unordered_map<uint64_t, FunctionPtr> conversions_;
};

}  // namespace castor
