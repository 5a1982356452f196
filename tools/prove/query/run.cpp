// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/query/run.hpp"

#include <numeric>

#include "tools/prove/term/canonical.hpp"

namespace castor::prove {

namespace {

/// What is known and was costly may have been decided with more steps than are usual.
constexpr uint64_t costly_factor = 4;

}  // namespace

size_t Tally::total() const {
  return std::accumulate(by_status.begin(), by_status.end(), size_t{});
}

Prover::Prover(Results known, const Effort& effort, Again again, uint64_t steps)
    : results_(std::move(known)), effort_(effort), again_(std::move(again)), steps_(steps) {}

Verdict Prover::decided(const Query& query, uint64_t hash) {
  const std::optional<Results::Entry> known = results_.find(hash);
  if (known && (tally_.steps >= steps_ || !again_(hash, *known))) {
    return {.status = known->status,
            .reason = "as in the results",
            .inputs = {},
            .is_costly = known->is_costly};
  }
  Effort effort = effort_;
  if (known && known->is_costly) effort.solver_steps *= costly_factor;
  Verdict verdict = decide(query, effort, [this](const Query& other) { return is_proved(other); });
  ++tally_.decided;
  tally_.seconds += verdict.seconds;
  tally_.steps += verdict.steps;
  const bool is_decided = verdict.status != Status::open && verdict.status != Status::wrong;
  const bool was_decided = known && known->status != Status::open;
  if (was_decided && !is_decided) ++contradictions_;
  if (was_decided && is_decided) {  // whichever way; the file stays as it is
    verdict.status = known->status;
    verdict.is_costly = known->is_costly;
  }
  if (is_decided || (!known && verdict.status == Status::open)) {
    results_.set(hash, {verdict.status, verdict.is_costly});
  }
  return verdict;
}

/// Queries that others follow from need not be any subject's: they are not kept.
bool Prover::is_proved(const Query& query) {
  const uint64_t hash = canonical_hash(query.is_wrong);
  const std::optional<Results::Entry> known = results_.find(hash);
  if (known && known->status != Status::open) return true;
  const auto [found, is_new] = proved_.try_emplace(hash);
  if (is_new) found->second = decide(query, effort_).status == Status::proved;
  return found->second;
}

const Verdict& Prover::found(const Query& query) {
  const uint64_t hash = canonical_hash(query.is_wrong);
  const auto seen = seen_.find(hash);
  if (seen != seen_.end()) return seen->second;
  const Verdict& verdict = seen_.emplace(hash, decided(query, hash)).first->second;
  ++tally_.distinct;
  if (verdict.status != Status::wrong) met_.set(hash, {verdict.status, verdict.is_costly});
  return verdict;
}

void Prover::prove(const Subject& subject, jit::Tier tier,
                   const std::function<void(const Finding&)>& report) {
  Terms terms;
  const Result<Query> query = query_of(subject, tier, terms);
  if (!query) {
    const Finding finding{subject, tier, {.reason = query.error().message, .inputs = {}}};
    ++tally_.by_status[static_cast<size_t>(Status::open)];
    return report(finding);
  }
  const Verdict verdict = query->is_wrong.is_constant() ? decide(*query, effort_) : found(*query);
  ++tally_.by_status[static_cast<size_t>(verdict.status)];
  if (verdict.status == Status::open || verdict.status == Status::wrong) {
    report({subject, tier, verdict, &*query});
  }
}

Prover::Again sample_of(uint64_t seed, uint64_t parts) {
  constexpr uint64_t costly_share = 50;
  return [seed, parts](uint64_t hash, const Results::Entry& known) {
    if (known.status == Status::open) return false;
    uint64_t x = hash ^ seed * 0x9e3779b97f4a7c15;  // SplitMix64
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return (x ^ (x >> 31)) % (parts * (known.is_costly ? costly_share : 1)) == 0;
  };
}

}  // namespace castor::prove
