// SPDX-License-Identifier: Apache-2.0
// `--isa TIER|all`: the tiers that a subcommand compares with the interpreter.
#pragma once

#include <vector>

#include "tools/castor/command.hpp"

namespace castor::tools {

/// One tier, or every tier that the host runs.
struct TierChoice {
  std::optional<jit::Tier> tier;
};

/// Adds `--isa TIER|all` and `--emulate`, with which tiers that the host lacks are among them.
void add_tier_choice(CLI::App& command, std::optional<TierChoice>& choice);

/// The tiers of a choice; without one, the tier in use. Fails where the host runs none of them.
Result<std::vector<jit::Tier>> chosen_tiers(const std::optional<TierChoice>& choice);

}  // namespace castor::tools
