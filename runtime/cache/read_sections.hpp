// SPDX-License-Identifier: Apache-2.0
// Reading without a lock what others unlink, and freeing it when no reader can see it any more.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "runtime/cache/stripes.hpp"

namespace castor {

/// What readers may still look at after it was unlinked.
class Retired {
 public:
  virtual ~Retired() = default;

 private:
  friend class RetiredList;
  Retired* next_ = nullptr;
};

/// A list that owns its elements; adding never fails. Not thread safe.
class RetiredList {
 public:
  RetiredList() = default;
  RetiredList(RetiredList&& other) noexcept : first_(std::exchange(other.first_, nullptr)) {}
  RetiredList& operator=(RetiredList&& other) noexcept {
    std::swap(first_, other.first_);
    return *this;
  }
  ~RetiredList();

  bool empty() const { return first_ == nullptr; }
  void add(std::unique_ptr<Retired> retired) noexcept;
  void add_all(RetiredList others) noexcept;

 private:
  Retired* first_ = nullptr;
};

/// Sleepable read-copy-update (McKenney, "Sleepable RCU", 2006): readers announce themselves in
/// counters that are striped by processor; there are two phases of them, so that a writer who waits
/// for the readers of one phase is not kept waiting by those who come later.
///
/// Readers must load, and writers must store, the pointers that lead to shared objects with
/// memory_order_seq_cst: a reader whose announcement a writer does not see then sees what the
/// writer stored before it looked. (On x86-64 such a load is a plain one.) No fences: what is
/// ordered is ordered by atomic variables, which race detectors understand.
class ReadSections {
 public:
  /// While it lives, nothing that its thread can reach is freed. Two atomic additions, to lines
  /// that threads on other processors do not write.
  class Section {
   public:
    explicit Section(const ReadSections& sections)
        : stripe_(sections.stripes_.current()), counts_(sections.enter(stripe_)) {}
    ~Section() { counts_.left.fetch_add(1, std::memory_order_release); }
    Section(const Section&) = delete;
    Section& operator=(const Section&) = delete;
    size_t stripe() const { return stripe_; }  ///< for other striped variables

   private:
    friend class ReadSections;
    struct Counts {
      std::atomic<uint64_t> entered = 0;
      std::atomic<uint64_t> left = 0;
    };
    const size_t stripe_;
    Counts& counts_;
  };

  ReadSections() : lines_(std::make_unique<Line[]>(stripes_.count())) {}

  size_t stripes() const { return stripes_.count(); }
  size_t current_stripe() const { return stripes_.current(); }
  /// Sections so far. Thread safe; exact while none begins.
  uint64_t entered() const;

  // The functions below are called under the writers' lock.

  /// Takes what was unlinked, for as long as a reader may see it.
  void retire(std::unique_ptr<Retired> unlinked) noexcept { unlinked_.add(std::move(unlinked)); }
  /// Gives back what no reader can see any more, for the caller to free when it has released the
  /// lock. Never waits: what readers still hold is left for a later call.
  RetiredList reclaim() noexcept;

 private:
  using Counts = Section::Counts;
  struct alignas(cache_line_size) Line {
    Counts phases[2];
  };

  Counts& enter(size_t stripe) const {
    Counts& counts = lines_[stripe].phases[phase_.load(std::memory_order_relaxed)];
    counts.entered.fetch_add(1, std::memory_order_seq_cst);
    return counts;
  }
  bool drained(size_t phase) const;

  const Stripes stripes_;
  const std::unique_ptr<Line[]> lines_;
  std::atomic<size_t> phase_ = 0;  // the phase of readers that enter now

  /// How many phases were seen without readers since `waiting_` was unlinked.
  int drained_phases_ = 0;
  RetiredList waiting_;
  RetiredList unlinked_;
};

}  // namespace castor
