// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory/weight_store.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace castor {

namespace detail {

struct WeightStore::Entry {
  explicit Entry(std::shared_ptr<WeightStore> of, std::string name)
      : store(std::move(of)), key(std::move(name)) {}
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;
  ~Entry() { store->forget(*this); }

  const std::shared_ptr<WeightStore> store;
  const std::string key;
  std::mutex mutex;   // held while the block is made
  MemoryBlock block;  // none before that, and where it failed
};

PackedDwords pack_alone(const MemorySourcePtr& memory, size_t dwords, const PackDwords& pack) {
  auto block = std::make_shared<MemoryBlock>(memory, dwords * sizeof(int32_t));
  auto* data = reinterpret_cast<int32_t*>(block->data());
  std::fill_n(data, dwords, 0);
  pack(data);
  return {std::move(block), data};
}

WeightStore::WeightStore(const PackedWeightsOptions& options, const jit::SystemCalls& system)
    : memory_(std::make_shared<MemorySource>(options.allocator, "packed weights")),
      bytes_limit_(options.bytes_limit),
      table_(system) {}

Result<PackedDwords> WeightStore::get(std::string key, size_t dwords, const PackDwords& pack) {
  const std::shared_ptr<Entry> entry = entry_of(std::move(key));
  const std::lock_guard lock(entry->mutex);
  if (entry->block.data() != nullptr) {
    hits_.fetch_add(1, std::memory_order_relaxed);
  } else if (Status status = make(*entry, dwords, pack); !status) {
    return status.error();
  }
  return PackedDwords(entry, reinterpret_cast<const int32_t*>(entry->block.data()));
}

/// The entry with that key, which may not be made yet.
std::shared_ptr<WeightStore::Entry> WeightStore::entry_of(std::string key) {
  Table& table = table_.get();
  const std::lock_guard lock(table.mutex);
  const auto slot = table.entries.try_emplace(key).first;
  std::shared_ptr<Entry> entry = slot->second.lock();
  if (entry != nullptr) return entry;
  try {
    entry = std::make_shared<Entry>(shared_from_this(), std::move(key));
  } catch (...) {
    table.entries.erase(slot);
    throw;
  }
  slot->second = entry;
  return entry;
}

Status WeightStore::make(Entry& entry, size_t dwords, const PackDwords& pack) {
  const size_t bytes = dwords * sizeof(int32_t);
  if (Status status = reserve(bytes); !status) return status;
  try {
    MemoryBlock block(memory_, bytes);
    auto* data = reinterpret_cast<int32_t*>(block.data());
    std::fill_n(data, dwords, 0);
    pack(data);
    entry.block = std::move(block);
  } catch (...) {
    settle(bytes, 0);
    throw;
  }
  settle(bytes, bytes);
  count_.fetch_add(1, std::memory_order_relaxed);
  packs_.fetch_add(1, std::memory_order_relaxed);
  return {};
}

Status WeightStore::reserve(size_t bytes) {
  Table& table = table_.get();
  const std::lock_guard lock(table.mutex);
  const size_t held = bytes_.load(std::memory_order_relaxed) + table.bytes_under_way;
  if (held > bytes_limit_ || bytes > bytes_limit_ - held) {
    return Error{ErrorCode::out_of_memory,
                 fmt::format("packed weights: {} bytes are held, {} more are needed; the limit "
                             "is {}",
                             held, bytes, bytes_limit_)};
  }
  table.bytes_under_way += bytes;
  return {};
}

/// Ends what was reserved: `made` bytes are an entry's now.
void WeightStore::settle(size_t reserved, size_t made) {
  Table& table = table_.get();
  const std::lock_guard lock(table.mutex);
  table.bytes_under_way -= reserved;
  bytes_.fetch_add(made, std::memory_order_relaxed);
}

/// Erases an entry whose last user is gone. Meanwhile another one may have replaced it.
void WeightStore::forget(const Entry& entry) noexcept {
  if (entry.block.data() != nullptr) {
    bytes_.fetch_sub(entry.block.bytes(), std::memory_order_relaxed);
    count_.fetch_sub(1, std::memory_order_relaxed);
  }
  try {
    Table& table = table_.get();
    const std::lock_guard lock(table.mutex);
    const auto slot = table.entries.find(entry.key);
    if (slot != table.entries.end() && slot->second.expired()) table.entries.erase(slot);
  } catch (const std::bad_alloc&) {  // a child's fresh table, which knows no entry, found no memory
  }
}

PackedWeightsStatistics WeightStore::statistics() const {
  return {.entries = count_.load(std::memory_order_relaxed),
          .bytes = bytes_.load(std::memory_order_relaxed),
          .packs = packs_.load(std::memory_order_relaxed),
          .hits = hits_.load(std::memory_order_relaxed)};
}

Result<PackedDwords> share_weights(const WeightSharing& sharing, WeightForm form,
                                   const WeightSources& from, size_t dwords,
                                   const PackDwords& pack) {
  if (sharing.store == nullptr) {
    return pack_alone(std::make_shared<MemorySource>(Allocator{}, "packed weights"), dwords, pack);
  }
  constexpr int weights = 1;
  for (const int operand : {weights, from.zero_points}) {
    if (operand < 0) continue;
    const auto& content = sharing.contents[static_cast<size_t>(operand)];
    if (!content) return Error{ErrorCode::internal, "packed weights: a constant has no content id"};
    form.add((*content)[0], (*content)[1]);
  }
  form.add(from.zero_points >= 0, from.zero_points_per_channel);
  return sharing.store->get(form.key(), dwords, pack);
}

}  // namespace detail

Result<PackedWeights> PackedWeights::create(const PackedWeightsOptions& options) {
  return detail::guarded_call([&]() -> Result<PackedWeights> {
    if (Status status = detail::check_allocator(options.allocator); !status) return status.error();
    return PackedWeights(std::make_shared<detail::WeightStore>(options, jit::SystemCalls::real()));
  });
}

PackedWeightsStatistics PackedWeights::statistics() const {
  return store_ == nullptr ? PackedWeightsStatistics() : store_->statistics();
}

}  // namespace castor
