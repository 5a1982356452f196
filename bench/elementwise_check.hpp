// SPDX-License-Identifier: Apache-2.0
// Checks of the Elementwise benchmarks' results against the interpreter.
#pragma once

#include "bench/elementwise_tensors.hpp"
#include "bench/session.hpp"

namespace castor::bench {

/// Runs the call on a poisoned result and compares some rows at either end, about a thousand
/// elements or one row, with what the interpreter makes of the same rows. The error (internal)
/// names the first element that differs.
Status run_and_check(const BoundCall& call, const ElementwiseCase& each);

/// The function on small tensors of random bits, on every tier: all results are the interpreter's.
Status check_all_tiers(const Session& session, const ElementwiseCase& each);

}  // namespace castor::bench
