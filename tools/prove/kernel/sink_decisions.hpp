// SPDX-License-Identifier: Apache-2.0
// Whether what code stores can differ from what a lane program computes: asked once for each sink
// and term.
#pragma once

#include <map>
#include <utility>

#include "tools/prove/kernel/decision.hpp"
#include "tools/prove/lane/execute.hpp"

namespace castor::prove {

class SinkDecisions {
 public:
  explicit SinkDecisions(Decide decide) : decide_(std::move(decide)) {}

  /// Whether the sink's element can be another one than `found`, for inputs of the terms that break
  /// none of the program's preconditions. Drawn inputs are run before the solver is asked, and
  /// lemmas on quotients are tried (lane/reciprocal_lemmas.hpp).
  Decision operator()(const LaneResult& expected, size_t sink, const Term& found);
  /// How many were asked.
  size_t queries() const { return decided_.size(); }
  const Decide& solver() const { return decide_; }

 private:
  const Decide decide_;
  std::map<std::pair<size_t, uint32_t>, Decision> decided_;  ///< by sink and term
};

}  // namespace castor::prove
