// SPDX-License-Identifier: Apache-2.0
// Which shapes of lanes nests are planned with.
#pragma once

#include <vector>

#include "jit/plan/nest.hpp"
#include "tools/fuzz/cells.hpp"

namespace castor::fuzz {

/// Numbers of the lane cells that the nest's loads and stores hit in this form.
std::vector<size_t> planned_lanes(const jit::Nest& nest, const jit::NestForm& form,
                                  const jit::Target& target);

/// A conversion whose dense nest hits a lane cell, by the cell's number.
using ReachingConversions = std::vector<std::optional<ConversionCell>>;

/// For every lane cell a single conversion between any two types (older layouts too, default
/// options and all others) that hits it on the tier; planned once for each tier and kept.
const ReachingConversions& reaching_conversions(jit::Tier tier);

/// For every lane cell: whether there is one.
const std::vector<bool>& reachable_lanes(jit::Tier tier);

}  // namespace castor::fuzz
