// SPDX-License-Identifier: Apache-2.0
// What PackedWeights is made of: packed weights by content and form, for as long as they are
// used.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "ir/function.hpp"
#include "jit/target.hpp"
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

/// Where packed weights of a convolution that is bound come from, and what its operands hold.
struct WeightSharing {
  WeightStore* store = nullptr;  ///< null: nothing is shared
  /// Content ids of operands, by number; of those that are constants.
  std::array<std::optional<std::array<uint64_t, 2>>, 4> contents = {};
};

/// What the layout of packed weights depends on, number by number.
class WeightForm {
 public:
  /// `kind` is a literal, unlike those of all other layouts.
  WeightForm(std::string_view kind, const jit::Target& target, bool w_is_signed) : key_(kind) {
    add(target.tier, w_is_signed);
  }

  template <class... Number>
  WeightForm& add(Number... numbers) {
    (add_number(static_cast<int64_t>(numbers)), ...);
    return *this;
  }
  const std::string& key() const { return key_; }

 private:
  void add_number(int64_t number) {
    key_.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  std::string key_;
};

/// Which operands weights are packed from: w, and its zero points if there are any (else -1).
struct WeightSources {
  int zero_points = -1;
  bool zero_points_per_channel = false;
};

/// The weights in that form, which `pack` makes of constants where they are not there yet. Throws
/// std::bad_alloc.
Result<PackedDwords> share_weights(const WeightSharing& sharing, WeightForm form,
                                   const WeightSources& from, size_t dwords,
                                   const PackDwords& pack);

/// The store of a handle, or null.
struct WeightAccess {
  static const WeightStorePtr& of(const PackedWeights& weights) { return weights.store_; }
};

}  // namespace castor::detail
