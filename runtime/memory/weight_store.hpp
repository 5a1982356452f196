// SPDX-License-Identifier: Apache-2.0
// What PackedWeights is made of: packed weights by content and form, for as long as they are
// used.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "ir/function.hpp"
#include "runtime/fork_private.hpp"
#include "runtime/memory/memory_source.hpp"

namespace castor::detail {

/// Packed weights that do not change any more, shared by whoever holds this; or none.
class PackedDwords {
 public:
  PackedDwords() = default;
  PackedDwords(std::shared_ptr<const void> keeps, const int32_t* data)
      : keeps_(std::move(keeps)), data_(data) {}

  bool empty() const { return data_ == nullptr; }
  /// Begins at a cache line; null where there are none.
  const int32_t* data() const { return data_; }

 private:
  std::shared_ptr<const void> keeps_;
  const int32_t* data_ = nullptr;
};

/// Writes packed weights to their memory; what it leaves out is 0.
using PackDwords = std::function<void(int32_t* to)>;

/// Packed weights of nobody else.
PackedDwords pack_alone(const MemorySourcePtr& memory, size_t dwords, const PackDwords& pack);

/// Packed weights by key. Entries are held by their users alone. Thread safe: one lock for the
/// table, one for each entry while it is packed, so that different weights are packed at the same
/// time and equal ones once.
class WeightStore : public std::enable_shared_from_this<WeightStore> {
 public:
  /// The allocator is checked.
  WeightStore(const PackedWeightsOptions& options, const jit::SystemCalls& system);

  /// The weights with that key, which says everything that they depend on: found, or packed. Fails
  /// with out_of_memory at the limit. Throws std::bad_alloc.
  Result<PackedDwords> get(std::string key, size_t dwords, const PackDwords& pack);

  const MemorySourcePtr& memory() const { return memory_; }
  PackedWeightsStatistics statistics() const;

 private:
  struct Entry;
  struct Table {
    std::mutex mutex;
    std::unordered_map<std::string, std::weak_ptr<Entry>> entries;
    size_t bytes_under_way = 0;  ///< bytes of entries that this process packs at present
  };

  std::shared_ptr<Entry> entry_of(std::string key);
  Status make(Entry& entry, size_t dwords, const PackDwords& pack);
  Status reserve(size_t bytes);
  void settle(size_t reserved, size_t made);
  void forget(const Entry& entry) noexcept;

  const MemorySourcePtr memory_;
  const size_t bytes_limit_;
  ForkPrivate<Table> table_;
  std::atomic<size_t> bytes_ = 0;  // bytes of all entries
  std::atomic<size_t> count_ = 0;
  std::atomic<uint64_t> packs_ = 0;
  std::atomic<uint64_t> hits_ = 0;
};
using WeightStorePtr = std::shared_ptr<WeightStore>;

/// The store of a handle, or null.
struct WeightAccess {
  static const WeightStorePtr& of(const PackedWeights& weights) { return weights.store_; }
};

}  // namespace castor::detail
