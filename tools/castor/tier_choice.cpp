// SPDX-License-Identifier: Apache-2.0
#include "tools/castor/tier_choice.hpp"

#include "tools/emulator/emulator.hpp"

namespace castor::tools {

namespace {

std::optional<TierChoice> tier_choice_named(std::string_view name) {
  if (name == "all") return TierChoice{};
  const std::optional<jit::Tier> tier = jit::tier_named(name);
  return tier ? std::optional(TierChoice{tier}) : std::nullopt;
}

void emulate_above(const std::string& name) {
  const std::optional<jit::Tier> tier = jit::tier_named(name);
  if (!tier) {
    throw CLI::ValidationError("--emulate-above",
                               fmt::format("found '{}', expected one of {}", name, tier_names()));
  }
  const jit::FeatureSet above = emulator::features_above(*tier);
  if (above == jit::FeatureSet{}) return;  // there is no tier above
  if (emulator::install_with_functions(above) == jit::FeatureSet{}) {
    throw CLI::ValidationError("--emulate-above", "this machine has no AVX2 to begin with");
  }
}

}  // namespace

void add_tier_choice(CLI::App& command, std::optional<TierChoice>& choice) {
  add_named_option<TierChoice>(command, "--isa", choice, tier_choice_named, "tier",
                               tier_names() + " or all",
                               "tier to check, or all that this machine runs");
  CLI::Option* const missing = command.add_flag_callback(
      "--emulate", [] { emulator::install_with_functions(); },
      "carry out instructions that this machine lacks: slow");
  command
      .add_option_function<std::string>(
          "--emulate-above", emulate_above,
          "carry out all code for tiers above this one, as if the machine had no other: very slow")
      ->type_name("TIER")
      ->excludes(missing);
}

Result<std::vector<jit::Tier>> chosen_tiers(const std::optional<TierChoice>& choice) {
  if (choice && !choice->tier) {
    std::vector<jit::Tier> tiers;
    for (const jit::TierInfo& row : jit::tier_table()) {
      if (jit::host().runs(row.tier)) tiers.push_back(row.tier);
    }
    if (!tiers.empty()) return tiers;
    return Error{ErrorCode::unsupported, "this machine runs none of the tiers"};
  }
  const auto requested = choice ? choice->tier : std::nullopt;
  const Result<jit::Target> target = jit::choose_target(requested);
  if (!target) return target.error();
  return std::vector<jit::Tier>{target->tier};
}

}  // namespace castor::tools
