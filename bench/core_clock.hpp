// SPDX-License-Identifier: Apache-2.0
// The core's clock, measured by a chain of dependent additions.
#pragma once

#include <xbyak/xbyak.h>

#include <cstddef>

#include "bench/limits.hpp"

namespace castor::bench {

/// A chain of register additions, each of which waits for the one before it and takes one cycle
/// on every x86-64 core that castor knows. The time stamp counter ticks at another rate.
class CoreClock {
 public:
  CoreClock();

  /// Measures the chain beside other contenders; valid while this object lives.
  Contender contender() const;
  /// Cycles per nanosecond in one group.
  static double gigahertz(const Contender& measured, size_t group);
  /// The median over the groups.
  static double gigahertz(const Contender& measured);
  /// Measures the chain alone, for about 20 ms.
  double measure() const;

 private:
  Xbyak::CodeGenerator code_;
};

}  // namespace castor::bench
