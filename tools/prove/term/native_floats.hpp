// SPDX-License-Identifier: Apache-2.0
// Float operations of terms on many lanes, by this process's own arithmetic.
#pragma once

#include "tools/prove/term/batch.hpp"

namespace castor::prove {

constexpr uint64_t mask_of(int width) { return ~uint64_t{0} >> (64 - width); }

/// Calls `compute(i)` for each lane; the loop is vectorised where `compute` can be.
template <class Compute>
void for_lanes(Batch::Lanes& to, int width, const Compute& compute) {
  const uint64_t mask = mask_of(width);
  for (size_t i = 0; i < Batch::lanes; ++i) to[i] = compute(i) & mask;
}

/// Computes a float node as soft_float.hpp says; false, and nothing, where this process has no
/// operation of that format and rounding. `operand_width`: that of the first operand.
bool compute_natively(const Node& node, int operand_width, Batch::Lanes& to,
                      const std::array<const Batch::Lanes*, 3>& v);

}  // namespace castor::prove
