// SPDX-License-Identifier: Apache-2.0
#include "bench/other_core.hpp"

#include <fmt/format.h>

namespace castor::bench {

namespace {

bool keep_on(int core) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<size_t>(core), &one);
  return sched_setaffinity(0, sizeof one, &one) == 0;
}

/// A core of the set other than `here`, or -1.
int another(const cpu_set_t& allowed, int here) {
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (core != here && CPU_ISSET(static_cast<size_t>(core), &allowed)) return core;
  }
  return -1;
}

}  // namespace

Result<std::unique_ptr<OccupiedCore>> OccupiedCore::start(OtherCore other) {
  std::unique_ptr<OccupiedCore> cores(new OccupiedCore);
  const int here = sched_getcpu();
  if (here < 0 ||
      sched_getaffinity(0, sizeof cores->allowed_before_, &cores->allowed_before_) != 0) {
    return Error{ErrorCode::unsupported, "the system does not say on which core this thread runs"};
  }
  const int there = another(cores->allowed_before_, here);
  if (there < 0) {
    return Error{ErrorCode::unsupported, fmt::format("core {} is the only one allowed", here)};
  }
  if (!keep_on(here)) {
    return Error{ErrorCode::unsupported, fmt::format("cannot stay on core {}", here)};
  }
  if (other == OtherCore::busy) cores->spin_on(there);
  return cores;
}

void OccupiedCore::spin_on(int core) {
  spinner_ = std::thread([this, core] {
    keep_on(core);
    spins_ = true;
    while (!stop_.load(std::memory_order_relaxed)) {
    }
  });
  while (!spins_.load()) std::this_thread::yield();
}

OccupiedCore::~OccupiedCore() {
  stop_ = true;
  if (spinner_.joinable()) spinner_.join();
  sched_setaffinity(0, sizeof allowed_before_, &allowed_before_);
}

}  // namespace castor::bench
