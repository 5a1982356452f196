// SPDX-License-Identifier: Apache-2.0
// Objects with locks that a forked child must not inherit.
#pragma once

#include <memory>

#include "jit/fork_local.hpp"

namespace castor {

/// A `T` for this process. A child that was forked while another thread held a lock of the
/// parent's object could never take it; so it finds a fresh object, and leaves the parent's alone.
/// Where the system cannot tell a child from its parent, both have the parent's.
template <class T>
class ForkPrivate {
 public:
  explicit ForkPrivate(const jit::SystemCalls& system) : local_(system) {
    if (local_.refusal()) inherited_ = std::make_unique<T>();
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
    auto fresh = std::make_unique<T>();
    T* installed = local_.install(fresh.get());
    if (installed == fresh.get()) (void)fresh.release();
    return *installed;
  }

 private:
  jit::ForkLocal<T> local_;
  std::unique_ptr<T> inherited_;
};

}  // namespace castor
