// SPDX-License-Identifier: Apache-2.0
// Records the time of calls, nest by nest, and within convolutions block by block.
//
// A call takes times only where it is given a profile; without one it costs a test of a pointer for
// each list of steps, each block and each packing.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string_view>
#include <vector>

namespace castor::detail {

/// What a call does. All of a nest contains the others of that nest, which do not contain each
/// other.
enum class Work : uint8_t {
  nest,          ///< all of it
  pack_weights,  ///< that are not known before the call, all of them or tile by tile
  pack_input,    ///< for a cache block
  window_sums,   ///< for a block, where weights have zero points
  block,         ///< kernels on a cache block, with an epilogue that they apply themselves
  transpose,     ///< results whose channels are adjacent, from kernels that store pixels so
  epilogue,      ///< that is a pass of its own, over results that are in scratch
};
inline constexpr size_t work_count = 7;
/// "pack input".
std::string_view name_of(Work work);

/// Bytes that are moved, each tensor's or buffer's once, and products that are summed.
struct WorkAmount {
  int64_t bytes_read = 0;
  int64_t bytes_written = 0;
  int64_t products = 0;
};

/// What was done, in how many parts, and how long it took all threads together.
struct WorkTotals {
  int64_t parts = 0;
  int64_t nanoseconds = 0;
  WorkAmount amount;
};

/// The sums of any number of calls of one bound kernel. Thread safe.
class CallProfile {
 public:
  explicit CallProfile(size_t nests) : nests_(nests) {}

  size_t nests() const { return nests_.size(); }
  /// Takes the time of work that has been done within other work away from that, which is of no
  /// nest but this, and is not done yet.
  void take_from(size_t nest, Work outer, std::chrono::nanoseconds time) {
    nests_[nest][static_cast<size_t>(outer)].nanoseconds.fetch_sub(time.count(),
                                                                   std::memory_order_relaxed);
  }
  void add(size_t nest, Work work, std::chrono::nanoseconds time, const WorkAmount& amount) {
    Sums& sums = nests_[nest][static_cast<size_t>(work)];
    constexpr auto order = std::memory_order_relaxed;
    sums.parts.fetch_add(1, order);
    sums.nanoseconds.fetch_add(time.count(), order);
    sums.bytes_read.fetch_add(amount.bytes_read, order);
    sums.bytes_written.fetch_add(amount.bytes_written, order);
    sums.products.fetch_add(amount.products, order);
  }
  /// After the calls.
  WorkTotals totals(size_t nest, Work work) const;

 private:
  struct Sums {
    std::atomic<int64_t> parts = 0;
    std::atomic<int64_t> nanoseconds = 0;
    std::atomic<int64_t> bytes_read = 0;
    std::atomic<int64_t> bytes_written = 0;
    std::atomic<int64_t> products = 0;
  };
  std::vector<std::array<Sums, work_count>> nests_;
};

/// Adds the time of some work to a profile, which may be null: then it does nothing.
class WorkTimer {
 public:
  WorkTimer(CallProfile* profile, size_t nest, Work work)
      : profile_(profile), nest_(nest), work_(work) {
    if (profile_ != nullptr) [[unlikely]]
      begin_ = std::chrono::steady_clock::now();
  }
  /// The work is done: `amount()` says how much it was.
  template <class Amount>
  void done(const Amount& amount) const {
    if (profile_ != nullptr) [[unlikely]]
      done_for(nest_, amount());
  }
  /// The same for work within a block, whose time it is not.
  template <class Amount>
  void done_within_block(const Amount& amount) const {
    if (profile_ == nullptr) [[likely]]
      return;
    const std::chrono::nanoseconds time = std::chrono::steady_clock::now() - begin_;
    profile_->add(nest_, work_, time, amount());
    profile_->take_from(nest_, Work::block, time);
  }
  /// The same with a profile alone, for another nest.
  void done_for(size_t nest, const WorkAmount& amount) const {
    profile_->add(nest, work_, std::chrono::steady_clock::now() - begin_, amount);
  }

 private:
  CallProfile* profile_;
  size_t nest_;
  Work work_;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace castor::detail
