// SPDX-License-Identifier: Apache-2.0
// The data caches of a core.
#pragma once

#include <cstdint>
#include <string>

#include "ir/support/export.hpp"

namespace castor::jit {

/// Capacities in bytes. By default those of plans that shall be the same on every machine.
struct CacheSizes {
  int64_t first = int64_t{32} << 10;
  int64_t second = int64_t{1} << 20;
  friend bool operator==(const CacheSizes&, const CacheSizes&) = default;
};

/// "32 KiB first, 1024 KiB second".
CASTOR_API std::string print(const CacheSizes& caches);

/// What the CPU says of its caches.
struct DetectedCaches {
  CacheSizes near;   ///< the defaults where it says nothing, or what cannot be
  int64_t last = 0;  ///< of the outermost cache; 0 where it says nothing
};

/// Asks cpuid leaf 4, or where that is empty leaf 0x8000001D.
CASTOR_API DetectedCaches detect_caches();

}  // namespace castor::jit
