// SPDX-License-Identifier: Apache-2.0
// Cache lines that code prefetches.
#pragma once

#include "jit/plan/nest.hpp"

namespace castor::jit {

/// How far ahead code prefetches in a space whose tensors do not fit in L1 (PrefetchTuning),
/// accumulators aside; in any other it does not. Nor does it for rows that are short and apart from
/// one another, for poolings, whose inputs overlap, for inputs of sums in order, whose loops have
/// no cycle to spare, and for inputs of nests whose outputs it cannot prefetch.
Prefetch prefetch_of(const Nest& nest, const IterationSpace& space, const Target& target);

}  // namespace castor::jit
