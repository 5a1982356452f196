// SPDX-License-Identifier: Apache-2.0
// A call whose machine code is interrupted before each instruction, to unwind from there.
#pragma once

#include <castor/castor.hpp>

#include <cstdint>
#include <span>

namespace castor::test {

/// What unwinding found from the instructions of generated code, each tried once.
struct TracedCall {
  bool is_ok = false;        ///< the call
  int instructions = 0;      ///< in generated code that were reached
  int lost = 0;              ///< from which the caller's frames were not found as they are
  uintptr_t first_lost = 0;  ///< the first of them
};

/// Runs the kernel. Generated code is what arenas have at the beginning. Not thread safe.
TracedCall trace_call(const BoundKernel& bound, std::span<const ConstView> inputs,
                      std::span<const View> outputs);

}  // namespace castor::test
