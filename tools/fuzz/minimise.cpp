// SPDX-License-Identifier: Apache-2.0
#include "tools/fuzz/minimise.hpp"

#include "tools/fuzz/child.hpp"
#include "tools/fuzz/reductions.hpp"
#include "tools/fuzz/shared_state.hpp"

namespace castor::fuzz {

namespace {

constexpr unsigned attempt_seconds = 10;

/// Tries programs on one tier, each in a process of its own.
class Trial {
 public:
  Trial(const std::vector<Tier>& tiers, const Finding& wanted, const Tamper& tamper)
      : tier_(tiers[wanted.tier]), wanted_(wanted), tamper_(tamper) {}

  int attempts() const { return attempts_; }

  /// How the program fails, if it does so as wanted.
  Finding run(const Program& program) {
    ++attempts_;
    *shared_ = {};
    const Result<ChildEnd> end = run_in_child([&] { return check(program); }, attempt_seconds);
    if (!end || end->status != 0) return {};
    if (end->signal != 0) *shared_ = {.kind = Finding::Kind::crash, .signal = end->signal};
    Finding finding = *shared_;
    finding.tier = wanted_.tier;
    return are_alike(finding, wanted_) ? finding : Finding{};
  }

 private:
  int check(const Program& program) {
    const Result<Prepared> prepared = prepare(program);
    if (!prepared) {
      shared_->kind = Finding::Kind::unprepared;
      prepared.error().message.copy(shared_->message, sizeof shared_->message - 1);
      return 0;
    }
    Result<Executor> executor = Executor::create({tier_}, tamper_);
    if (!executor) return 1;
    CallTrace trace;
    *shared_ = executor->run(*prepared, 0, trace);
    return 0;
  }

  const Tier tier_;
  const Finding wanted_;
  const Tamper& tamper_;
  Shared<Finding> shared_;
  int attempts_ = 0;
};

/// Takes the program for the smaller one if that fails alike.
bool replace_if_failing(Trial& trial, Mismatch& mismatch, Program candidate) {
  const Finding finding = trial.run(candidate);
  if (!finding) return false;
  mismatch.minimised = std::move(candidate);
  mismatch.finding = finding;
  return true;
}

/// One step, if any of them leaves a failing program.
bool reduce_once(Trial& trial, Mismatch& mismatch) {
  for (Program& candidate : reductions(mismatch.minimised, mismatch.finding)) {
    if (trial.attempts() >= max_attempts) return false;
    if (replace_if_failing(trial, mismatch, std::move(candidate))) return true;
  }
  return false;
}

}  // namespace

Mismatch minimise(const Program& original, const Finding& finding, const std::vector<Tier>& tiers,
                  const Tamper& tamper) {
  Mismatch mismatch{original, original, finding, true};
  if (finding.kind == Finding::Kind::unprepared) return mismatch;
  Trial trial(tiers, finding, tamper);
  mismatch.repeats = replace_if_failing(trial, mismatch, original);
  if (!mismatch.repeats) return mismatch;
  if (mismatch.finding.kind == Finding::Kind::element) {
    replace_if_failing(trial, mismatch, with_data_of(original, mismatch.finding));
  }
  while (reduce_once(trial, mismatch)) {
  }
  return mismatch;
}

}  // namespace castor::fuzz
