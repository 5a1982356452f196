// SPDX-License-Identifier: Apache-2.0
// What the other core does while something is measured on this one.
#pragma once

#include <sched.h>

#include <atomic>
#include <memory>
#include <string_view>
#include <thread>

#include "ir/support/result.hpp"

namespace castor::bench {

enum class OtherCore : uint8_t { idle, busy };
constexpr std::string_view name_of(OtherCore other) {
  return other == OtherCore::busy ? "busy" : "idle";
}

/// Keeps the calling thread on the core where it is and, for `busy`, a thread of this process
/// spinning on another core, so that changes of page tables must interrupt it. `idle` only means
/// that this process does nothing there. Both end with the object.
class OccupiedCore {
 public:
  /// Fails (unsupported) when this process may use one core only, and where cores cannot be chosen.
  static Result<std::unique_ptr<OccupiedCore>> start(OtherCore other);
  ~OccupiedCore();
  OccupiedCore(const OccupiedCore&) = delete;
  OccupiedCore& operator=(const OccupiedCore&) = delete;

 private:
  OccupiedCore() = default;
  void spin_on(int core);

  cpu_set_t allowed_before_;
  std::atomic<bool> spins_ = false;
  std::atomic<bool> stop_ = false;
  std::thread spinner_;
};

}  // namespace castor::bench
