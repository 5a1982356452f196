// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernel_table.hpp"

#include <mutex>

#include "runtime/state.hpp"

namespace castor {

namespace {

/// What remembering a kernel costs besides code and constants, roughly.
constexpr size_t bytes_of_a_kernel = 1024;

size_t bytes_held(const detail::KernelState& kernel) {
  size_t bytes = bytes_of_a_kernel;
  for (const detail::LikelyCode& likely : kernel.compiled->likely) {
    if (likely.code != nullptr) bytes += likely.code->block.size();
  }
  for (const Operation& operation : kernel.function->operations) {
    if (operation.data) bytes += operation.data->bytes.size();
  }
  return bytes;
}

}  // namespace

KernelStatePtr KernelTable::find(const FunctionPtr& function) const {
  const std::shared_lock lock(mutex_);
  const auto [begin, end] = kernels_.equal_range(function->hash);
  for (auto at = begin; at != end; ++at) {
    const KernelStatePtr& kernel = at->second;
    if (kernel->function == function) return kernel;
    if (same_computation(*kernel->function, *function)) {
      return std::make_shared<detail::KernelState>(detail::KernelState{function, kernel->compiled});
    }
  }
  return nullptr;
}

void KernelTable::add(KernelStatePtr kernel, size_t capacity_bytes) {
  const size_t bytes = bytes_held(*kernel);
  const std::unique_lock lock(mutex_);
  oldest_first_.emplace_back();  // whatever may throw comes before anything is counted
  try {
    oldest_first_.back() = kernels_.emplace(kernel->function->hash, kernel);
  } catch (...) {
    oldest_first_.pop_back();
    throw;
  }
  bytes_ += bytes;
  while (bytes_ > capacity_bytes && oldest_first_.size() > 1) {
    const Kernels::iterator oldest = oldest_first_.front();
    oldest_first_.pop_front();
    bytes_ -= bytes_held(*oldest->second);
    kernels_.erase(oldest);
  }
}

size_t KernelTable::bytes() const {
  const std::shared_lock lock(mutex_);
  return bytes_;
}

FunctionPtr KernelTable::find_conversion(uint64_t key) const {
  const std::shared_lock lock(mutex_);
  const auto at = conversions_.find(key);
  return at == conversions_.end() ? nullptr : at->second;
}

FunctionPtr KernelTable::add_conversion(uint64_t key, FunctionPtr function) {
  const std::unique_lock lock(mutex_);
  return conversions_.emplace(key, std::move(function)).first->second;
}

}  // namespace castor
