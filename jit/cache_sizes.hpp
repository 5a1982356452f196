// SPDX-License-Identifier: Apache-2.0
// The data caches of a core.
#pragma once

#include <cstdint>
#include <string>

#include "ir/support/export.hpp"

namespace castor::jit {

/// Capacities in bytes. The defaults are for plans that must be the same on every machine.
struct CacheSizes {
  int64_t l1 = int64_t{32} << 10;
  int64_t l2 = int64_t{1} << 20;
  friend bool operator==(const CacheSizes&, const CacheSizes&) = default;
};

/// "32 KiB L1, 1024 KiB L2".
CASTOR_API std::string print(const CacheSizes& caches);

/// What the CPU says about its caches.
struct DetectedCaches {
  CacheSizes near;  ///< the defaults where it says nothing, or gives impossible sizes
  int64_t llc = 0;  ///< of the last-level cache; 0 where it says nothing
};

/// Asks cpuid leaf 4, or where that is empty leaf 0x8000001D.
CASTOR_API DetectedCaches detect_caches();

}  // namespace castor::jit
