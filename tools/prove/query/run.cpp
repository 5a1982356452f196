// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/query/run.hpp"

#include <numeric>

#include "tools/prove/term/canonical.hpp"

namespace castor::prove {

namespace {

/// What is known and was costly may have been decided with more steps than are usual.
constexpr uint64_t costly_factor = 30;

}  // namespace

size_t Tally::total() const {
  return std::accumulate(by_status.begin(), by_status.end(), size_t{});
}

Prover::Prover(Results known, const Effort& effort, Again again, uint64_t steps)
    : results_(std::move(known)), effort_(effort), again_(std::move(again)), steps_(steps) {}

void Prover::count(const Verdict& verdict) {
  ++tally_.decided;
  tally_.seconds += verdict.seconds;
  tally_.steps += verdict.steps;
}

/// A known result that was found again stays as it is in the file, whichever way it was found.
void Prover::keep(uint64_t hash, const std::optional<Results::Entry>& known, Verdict& verdict) {
  const bool is_decided = verdict.status != Status::open && verdict.status != Status::wrong;
  const bool was_decided = known && known->status != Status::open;
  if (was_decided && !is_decided) ++contradictions_;
  if (was_decided && is_decided) {
    verdict.status = known->status;
    verdict.is_costly = known->is_costly;
  }
  if (is_decided || (!known && verdict.status == Status::open)) {
    results_.set(hash, {verdict.status, verdict.is_costly});
  }
}

Verdict Prover::decided(const Query& query, uint64_t hash) {
  std::unique_lock lock(mutex_);
  const std::optional<Results::Entry> known = results_.find(hash);
  if (known && (tally_.steps >= steps_ || !again_(hash, *known))) {
    return {.status = known->status,
            .reason = "as in the results",
            .inputs = {},
            .is_costly = known->is_costly};
  }
  lock.unlock();
  Effort effort = effort_;
  if (known && known->is_costly) effort.solver_steps *= costly_factor;
  Verdict verdict = decide(query, effort, [this](const Query& other) { return is_proved(other); });
  lock.lock();
  count(verdict);
  keep(hash, known, verdict);
  return verdict;
}

/// Queries that others follow from need not be any subject's: they are not kept.
bool Prover::is_proved(const Query& query) {
  const uint64_t hash = canonical_hash(query.is_wrong);
  std::unique_lock lock(mutex_);
  const std::optional<Results::Entry> known = results_.find(hash);
  if (known && known->status != Status::open) return true;
  const auto found = proved_.find(hash);
  if (found != proved_.end()) return found->second;
  lock.unlock();
  const bool is_proved = decide(query, effort_).status == Status::proved;
  lock.lock();
  return proved_[hash] = is_proved;
}

Verdict Prover::found(const Query& query) {
  const uint64_t hash = canonical_hash(query.is_wrong);
  std::unique_lock lock(mutex_);
  const auto [seen, is_new] = seen_.try_emplace(hash);
  std::optional<Verdict>& kept = seen->second;  // stays where it is when others are added
  if (!is_new) {
    is_decided_.wait(lock, [&] { return kept.has_value(); });
    return *kept;
  }
  lock.unlock();
  const Verdict verdict = decided(query, hash);
  lock.lock();
  kept = verdict;
  is_decided_.notify_all();
  ++tally_.distinct;
  if (verdict.status != Status::wrong) met_.set(hash, {verdict.status, verdict.is_costly});
  return verdict;
}

void Prover::prove(const Subject& subject, jit::Tier tier,
                   const std::function<void(const Finding&)>& report) {
  Terms terms;
  const Result<Query> query = query_of(subject, tier, terms);
  Verdict verdict{.reason = query ? std::string() : query.error().message, .inputs = {}};
  if (query) verdict = query->is_wrong.is_constant() ? decide(*query, effort_) : found(*query);
  const std::scoped_lock lock(mutex_);
  ++tally_.by_status[static_cast<size_t>(verdict.status)];
  if (verdict.status == Status::open || verdict.status == Status::wrong) {
    report({subject, tier, verdict, query ? &*query : nullptr});
  }
}

std::optional<Results> Prover::taken_results(size_t more) {
  const std::scoped_lock lock(mutex_);
  if (tally_.decided < taken_ + more) return std::nullopt;
  taken_ = tally_.decided;
  return results_;
}

Prover::Again sample_of(uint64_t seed, uint64_t parts) {
  constexpr uint64_t costly_share = 50;
  return [seed, parts](uint64_t hash, const Results::Entry& known) {
    const bool runs_for_minutes = known.status == Status::exhausted && known.is_costly;
    if (known.status == Status::open || runs_for_minutes) return false;
    uint64_t x = hash ^ seed * 0x9e3779b97f4a7c15;  // SplitMix64
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return (x ^ (x >> 31)) % (parts * (known.is_costly ? costly_share : 1)) == 0;
  };
}

}  // namespace castor::prove
