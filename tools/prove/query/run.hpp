// SPDX-License-Identifier: Apache-2.0
// Proving many subjects on many tiers: each distinct query once.
#pragma once

#include <array>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "tools/prove/query/results.hpp"

namespace castor::prove {

/// A subject on a tier with what was found.
struct Finding {
  const Subject& subject;
  jit::Tier tier;
  Verdict verdict;
  const Query* query = nullptr;  ///< null where it could not be made
};

/// Counts of subject x tier by status.
struct Tally {
  std::array<size_t, 5> by_status = {};
  size_t distinct = 0;  ///< queries that differ, but for those that building them decided
  size_t decided = 0;   ///< how many of them were decided in this run
  double seconds = 0;   ///< that deciding took
  uint64_t steps = 0;   ///< that the solver took

  size_t total() const;
  size_t of(Status status) const { return by_status[static_cast<size_t>(status)]; }
};

/// Proves subjects and remembers queries that it has seen. `prove` may be called by several threads
/// at once: each query is decided by one of them, and the others wait for its verdict.
class Prover {
 public:
  /// Whether a query whose result is known is decided again nevertheless.
  using Again = std::function<bool(uint64_t hash, const Results::Entry& known)>;

  /// Known queries are decided again until the solver has taken `steps`.
  Prover(Results known, const Effort& effort, Again again, uint64_t steps = ~uint64_t{0});

  /// `report` is called where the verdict is open or wrong, by one thread at a time.
  void prove(const Subject& subject, jit::Tier tier,
             const std::function<void(const Finding&)>& report);

  // While no thread proves:
  const Tally& tally() const { return tally_; }
  /// What was known and what was found.
  const Results& results() const { return results_; }
  /// What was met in this run alone.
  const Results& met() const { return met_; }
  /// Queries whose known result was not found again.
  size_t contradictions() const { return contradictions_; }

  /// Results so far, for a file, once `more` queries were decided since they were last taken.
  std::optional<Results> taken_results(size_t more);

 private:
  Verdict found(const Query& query);
  Verdict decided(const Query& query, uint64_t hash);
  bool is_proved(const Query& query);
  void count(const Verdict& verdict);
  void keep(uint64_t hash, const std::optional<Results::Entry>& known, Verdict& verdict);

  std::mutex mutex_;  ///< guards all that changes below
  std::condition_variable is_decided_;
  Results results_;
  Results met_;
  const Effort effort_;
  const Again again_;
  const uint64_t steps_;
  std::unordered_map<uint64_t, std::optional<Verdict>> seen_;  ///< empty while a thread decides
  std::unordered_map<uint64_t, bool> proved_;  ///< by hash, that others may follow from
  Tally tally_;
  size_t taken_ = 0;  ///< queries decided when results were last taken
  size_t contradictions_ = 0;
};

/// The sample that a seed draws: one in `parts` of the queries that are decided, of costly ones one
/// in 50 * parts, and none of those that were run on more than 2^16 inputs.
Prover::Again sample_of(uint64_t seed, uint64_t parts);

}  // namespace castor::prove
