// SPDX-License-Identifier: Apache-2.0
#include "runtime/cache/read_sections.hpp"

namespace castor {

RetiredList::~RetiredList() {
  while (first_ != nullptr) delete std::exchange(first_, first_->next_);
}

void RetiredList::add(std::unique_ptr<Retired> retired) noexcept {
  retired->next_ = first_;
  first_ = retired.release();
}

void RetiredList::add_all(RetiredList others) noexcept {
  while (others.first_ != nullptr) {
    Retired* const each = std::exchange(others.first_, others.first_->next_);
    each->next_ = std::exchange(first_, each);
  }
}

uint64_t ReadSections::entered() const {
  uint64_t sum = 0;
  for (size_t stripe = 0; stripe < stripes_.count(); ++stripe) {
    for (const Counts& counts : lines_[stripe].phases) {
      sum += counts.entered.load(std::memory_order_relaxed);
    }
  }
  return sum;
}

/// Whether every reader of the phase that entered before has left. Those who left are counted
/// first: a reader who comes and goes meanwhile is then counted among those who entered, too, and
/// cannot stand in for one who is still there.
bool ReadSections::drained(size_t phase) const {
  uint64_t left = 0;
  for (size_t stripe = 0; stripe < stripes_.count(); ++stripe) {
    left += lines_[stripe].phases[phase].left.load(std::memory_order_acquire);
  }
  uint64_t entered = 0;
  for (size_t stripe = 0; stripe < stripes_.count(); ++stripe) {
    entered += lines_[stripe].phases[phase].entered.load(std::memory_order_seq_cst);
  }
  return entered == left;
}

/// A reader who can see what is waiting announced itself in one of the two phases before that was
/// unlinked; so each phase must be seen drained once afterwards. The second can be only when
/// readers no longer enter it, hence the change of phase in between.
RetiredList ReadSections::reclaim() noexcept {
  RetiredList free;
  for (;;) {
    if (waiting_.empty()) {
      if (unlinked_.empty()) return free;
      waiting_ = std::move(unlinked_);
      drained_phases_ = 0;
    }
    const size_t phase = phase_.load(std::memory_order_relaxed);
    if (!drained(1 - phase)) return free;
    if (++drained_phases_ == 2) {
      free.add_all(std::move(waiting_));
    } else {
      phase_.store(1 - phase, std::memory_order_relaxed);
    }
  }
}

}  // namespace castor
