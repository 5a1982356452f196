// SPDX-License-Identifier: Apache-2.0
// Proofs of a nest's code: each element that it stores is what its lane program computes of the
// elements at the same index, and all that it touches is inside its tensors, for every length.
#pragma once

#include <functional>
#include <map>

#include "tools/prove/kernel/nest_run.hpp"
#include "tools/prove/kernel/own_element.hpp"
#include "tools/prove/kernel/sink_decisions.hpp"
#include "tools/prove/lane/execute.hpp"

namespace castor::prove {

/// What was proved of one code.
struct NestProof {
  size_t runs = 0;       ///< the code was run symbolically
  size_t elements = 0;   ///< stored ones that were compared
  size_t same = 0;       ///< those whose term is the lane program's term itself
  size_t queries = 0;    ///< distinct ones that were decided
  size_t undecided = 0;  ///< elements whose queries were not
  /// Whether the main loop, or the tail where there is none, was proved for an iteration of any
  /// number; else only lengths that were run are proved.
  bool every_length = false;
  std::string not_every_length_because = {};
  double seconds = 0;
};

/// Compares what a code stores with its lane program; queries are decided once each.
class NestProver {
 public:
  /// `takes` chooses among the counts of elements after whole iterations.
  NestProver(const NestSubject& code, Decide decide, std::function<bool(int64_t)> takes)
      : code_(code), decisions_(std::move(decide)), takes_(std::move(takes)) {}
  NestProver(const NestProver&) = delete;
  NestProver& operator=(const NestProver&) = delete;

  /// All lengths, or as many as the code's loops allow. Fails (internal), naming instruction or
  /// element, where something is wrong; unsupported, where there is no meaning.
  Result<NestProof> prove();

  /// One run of given extents.
  castor::Status prove_extents(const std::vector<int64_t>& extents);

  /// So far, where a proof has failed.
  const NestProof& proof() const { return proof_; }

 private:
  castor::Status compare(NestRun& run, int64_t first, int64_t end);
  castor::Status check_gaps(NestRun& run);
  // Nests that fold: nest_folds.cpp.
  /// By sink: what rows are folded into before one result is made of them.
  using Partials = std::vector<std::vector<Term>>;
  bool folds_rows() const;
  Result<Term> lane_at(NestRun& run, std::span<const int64_t> index, size_t sink);
  Partials partials_in(NestRun& run) const;
  Partials neutral_partials(NestRun& run) const;
  castor::Status fold_elements(NestRun& run, std::vector<int64_t> index, int64_t first, int64_t end,
                               size_t sink, std::vector<Term>& partials);
  Term fold_partials(NestRun& run, size_t sink, int64_t end, std::vector<Term> partials);
  castor::Status compare_rows(NestRun& run, const Partials& partials, int64_t first);
  castor::Status compare_partials(NestRun& run, const Partials& partials, int64_t first,
                                  int64_t end);
  castor::Status compare_column(NestRun& run, std::span<const int64_t> index);
  castor::Status compute_expected();
  castor::Status compare_element(NestRun& run, std::span<const int64_t> index);
  Term renamed(const Term& found, NestRun& run, std::span<const int64_t> index,
               Neighbours neighbours);
  castor::Status prove_lengths(const jit::CodeLoop* loop);
  castor::Status prove_iterations(const jit::CodeLoop& loop, int64_t left);
  Result<NestRun> any_iteration(Symbols& symbols, RepeatedElements& repeated,
                                const jit::CodeLoop& loop, int64_t left);
  int64_t iterations_of_round(const jit::CodeLoop& loop) const;
  std::vector<int64_t> extents_of(int64_t length) const;
  Result<NestRun> run_to_arrival(Symbols& symbols, RepeatedElements& repeated,
                                 const jit::CodeLoop& loop, int64_t length, int arrival);

  NestSubject code_;
  SinkDecisions decisions_;
  const std::function<bool(int64_t)> takes_;
  /// Terms of one element: what the lane program computes, and what stored elements are once their
  /// inputs have the same names.
  Terms terms_;
  SourceElements inputs_;
  OtherInputs others_;
  std::optional<LaneResult> expected_;
  NestProof proof_;
};

/// The loop whose iterations do most elements of a row: the main loop, or the tail; where rows go
/// through tiles, the loop over them. Nothing where there is no loop.
Result<std::optional<jit::CodeLoop>> loop_over_rows(const NestSubject& code);

}  // namespace castor::prove
