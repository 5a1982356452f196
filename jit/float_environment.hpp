// SPDX-License-Identifier: Apache-2.0
// Host arithmetic while code is planned and made: always in the same environment.
#pragma once

#include <xmmintrin.h>

namespace castor::jit {

/// Until the object dies, this thread computes as kernels do: to nearest even, no FTZ, no DAZ,
/// exceptions masked. Then the caller's MXCSR is back, flags included.
class KernelFloatEnvironment {
 public:
  KernelFloatEnvironment() : callers_(_mm_getcsr()) { _mm_setcsr(nearest_even_masked); }
  KernelFloatEnvironment(const KernelFloatEnvironment&) = delete;
  KernelFloatEnvironment& operator=(const KernelFloatEnvironment&) = delete;
  ~KernelFloatEnvironment() { _mm_setcsr(callers_); }

 private:
  static constexpr unsigned nearest_even_masked = 0x1f80;
  unsigned callers_;
};

}  // namespace castor::jit
