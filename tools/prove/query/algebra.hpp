// SPDX-License-Identifier: Apache-2.0
// Queries of integer arithmetic, decided as polynomials.
#pragma once

#include "tools/prove/query/subject.hpp"
#include "tools/prove/solver/solver.hpp"

namespace castor::prove {

/// Whether the query's operands are what decided_by_algebra takes: two integers of 16 bits or more.
bool has_algebra(const Query& query);

/// Whether the query never holds, proved with products and quotients of integers as unknowns, once
/// terms have one form (quotients.hpp): for each combination of signs, for a divisor of 0 and
/// others, and where that is not enough, by the comparisons in it. `steps` bound each question to
/// the solver. False says nothing.
bool decided_by_algebra(const Query& query, Steps steps, double& seconds);

}  // namespace castor::prove
