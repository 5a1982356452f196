// SPDX-License-Identifier: Apache-2.0
// Which copy of a striped variable a thread uses, so that cores do not write the same lines.
#pragma once

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace castor {

/// What the caches of x86-64 keep coherent as one.
inline constexpr size_t cache_line_size = 64;

/// Stripes by processor: threads that run at the same time use different ones, as long as the
/// machine has no more than `max` processors. Where a thread runs is only a hint: it may move on
/// at any moment, so stripes are atomic all the same.
class Stripes {
 public:
  static constexpr size_t max = 16;

  size_t count() const { return mask_ + 1; }  ///< a power of two
  /// The stripe of the processor that the calling thread runs on. (Where the system does not tell,
  /// it is -1: the last stripe.)
  size_t current() const { return static_cast<size_t>(::sched_getcpu()) & mask_; }

 private:
  static size_t count_of_machine() {
    const long processors = std::clamp<long>(::sysconf(_SC_NPROCESSORS_CONF), 1, max);
    return std::bit_ceil(static_cast<size_t>(processors));
  }
  size_t mask_ = count_of_machine() - 1;
};

}  // namespace castor
