// SPDX-License-Identifier: Apache-2.0
// Objects with locks that a forked child must not inherit.
#pragma once

#include <atomic>
#include <memory>
#include <tuple>

#include "jit/memory/fork_local.hpp"

namespace castor {

/// A `T` for this process. A child that was forked while another thread held a lock of the
/// parent's object could never take it; so it finds a fresh object, and leaves the parent's alone.
/// Where the system cannot tell a child from its parent, both have the parent's. Each is made of
/// the same arguments.
template <class T, class... Arguments>
class ForkPrivate {
 public:
  explicit ForkPrivate(const jit::SystemCalls& system, Arguments... arguments)
      : arguments_(std::move(arguments)...), local_(system) {
    if (local_.refusal()) inherited_ = make();
  }
  ~ForkPrivate() {
    if (!inherited_) delete local_.get();
  }
  ForkPrivate(const ForkPrivate&) = delete;
  ForkPrivate& operator=(const ForkPrivate&) = delete;

  /// This process's object, made at the first call. Thread safe; may throw std::bad_alloc.
  T& get() {
    if (inherited_) return *inherited_;
    if (T* mine = local_.get()) return *mine;
    auto fresh = make();
    T* installed = local_.install(fresh.get());
    if (installed == fresh.get()) {
      of_parent_ = visible_.exchange(installed);
      (void)fresh.release();
    }
    return *installed;
  }

 private:
  std::unique_ptr<T> make() const {
    return std::apply([](const auto&... each) { return std::make_unique<T>(each...); }, arguments_);
  }

  const std::tuple<Arguments...> arguments_;
  jit::ForkLocal<T> local_;
  std::unique_ptr<T> inherited_;
  // Leak checkers do not look into the page of `local_`; they find the objects here.
  std::atomic<T*> visible_ = nullptr;
  std::atomic<T*> of_parent_ = nullptr;
};

}  // namespace castor
