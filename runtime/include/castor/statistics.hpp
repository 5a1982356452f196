// SPDX-License-Identifier: Apache-2.0
// What a runtime's cache did, in numbers.
#pragma once

#include <cstdint>

namespace castor {

/// Counters of one runtime, since it was made; in a forked child, since its first use there. Each
/// only grows, but for the bytes. Hits are exact while no other thread is in the runtime; a request
/// under way may count as one.
///
/// Compiling a function requests the machine code of its operations, and so may binding a kernel.
/// Requests that find another thread at work on the same thing wait for it and are misses.
struct CacheStatistics {
  uint64_t functions = 0;      ///< functions compiled (a repeated function counts once)
  uint64_t function_hits = 0;  ///< compile and convert calls that found their function
  /// Calls that did not: they compiled it, waited for another thread that did, or failed.
  uint64_t function_misses = 0;
  uint64_t function_evictions = 0;  ///< functions dropped to make room for others
  /// Nanoseconds spent compiling functions, in total over all threads, from verification to
  /// published code, failures included; so it holds code_compile_ns but for what binding generated.
  uint64_t function_compile_ns = 0;
  /// What the cache's functions hold at present: operations, names, constants, plans, code (counted
  /// again for each), and bookkeeping.
  uint64_t function_bytes = 0;

  uint64_t codes = 0;            ///< pieces of machine code generated
  uint64_t code_hits = 0;        ///< requests for machine code that found it
  uint64_t code_misses = 0;      ///< requests that did not
  uint64_t code_evictions = 0;   ///< codes dropped to make room for others
  uint64_t code_compile_ns = 0;  ///< nanoseconds spent generating and publishing code, in total
  /// What the cache's codes count for at present: machine code, keys and bookkeeping.
  uint64_t code_bytes = 0;
};

}  // namespace castor
