// SPDX-License-Identifier: Apache-2.0
// Values that a process makes once, without the lock that a function's static variable has.
#pragma once

#include <atomic>
#include <memory>

namespace castor::jit {

/// A value made by the first thread that asks, and never destroyed: threads may use it while the
/// process ends. Threads that ask at the same time may make one each; the first that is stored is
/// kept, and the others are destroyed. So no thread waits for another one: a child that was forked
/// while its parent made the value makes its own, where a static variable of a function would wait
/// for ever for a thread that the fork did not bring along. Declare it `static constinit`.
template <class T>
class Published {
 public:
  constexpr Published() = default;
  Published(const Published&) = delete;
  Published& operator=(const Published&) = delete;

  /// The value. `make` gives a std::unique_ptr<T>; what it throws (std::bad_alloc) is passed on,
  /// and the next call tries again. Thread safe.
  template <class Make>
  T& get(const Make& make) {
    if (T* present = value_.load(std::memory_order_acquire)) return *present;
    std::unique_ptr<T> mine = make();
    T* present = nullptr;
    if (!value_.compare_exchange_strong(present, mine.get(), std::memory_order_acq_rel)) {
      return *present;
    }
    return *mine.release();
  }

 private:
  std::atomic<T*> value_ = nullptr;
};

}  // namespace castor::jit
