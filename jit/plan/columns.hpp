// SPDX-License-Identifier: Apache-2.0
// Quotients by a divisor for each element of the innermost axis: what follows from the divisors, as
// their reciprocals, is computed once for a chunk of them and many rows.
#pragma once

#include "jit/plan/nest.hpp"

namespace castor::jit {

/// Rows at once, at least: those that pay for what chunks of columns begin with.
inline constexpr int64_t min_rows_of_columns = 8;

/// Where a nest divides by such operands, puts the loop over the next axis into that over the
/// innermost one: the access of operands that are the same along that axis becomes Access::column.
/// The axis is split, so that the rows of each part stay in caches.
void put_columns_first(const Nest& nest, IterationSpace& space, const Target& target);

}  // namespace castor::jit
