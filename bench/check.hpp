// SPDX-License-Identifier: Apache-2.0
// Checks of results before they are timed.
#pragma once

#include <span>

#include "bench/footprint.hpp"
#include "bench/session.hpp"

namespace castor::bench {

/// Runs the conversion on a poisoned destination and compares some thousand elements (both ends
/// and a regular sample between) with numerics::convert. The error (internal) names the first
/// element that differs.
Status run_and_check(const BoundCall& call, const TypePair& pair, const Workspace& workspace);

/// Runs the conversion on every tier, checks samples, and compares a hash of all bytes. The error
/// (internal) names the tiers that differ.
Status same_on_all_tiers(std::span<const TierRuntime> tiers, const TypePair& pair,
                         const Workspace& workspace);

}  // namespace castor::bench
