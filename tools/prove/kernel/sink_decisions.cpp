// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/kernel/sink_decisions.hpp"

#include <random>

#include "tools/prove/lane/reciprocal_lemmas.hpp"
#include "tools/prove/term/evaluate.hpp"

namespace castor::prove {

namespace {

/// Whether inputs that are drawn make the term 1: faults mostly show at once.
bool holds_for_drawn_inputs(const Term& truth) {
  constexpr int draws = 1000;
  std::mt19937_64 random(3);
  std::vector<int> widths(truth.terms().input_count());
  for (const uint32_t id : reachable_nodes(std::span(&truth, 1))) {
    const Node& node = truth.terms().node(id);
    if (node.op == TermOp::input) widths[node.detail] = node.width;
  }
  Evaluator evaluator(std::span(&truth, 1));
  std::vector<Bits> inputs(widths.size());
  for (int i = 0; i < draws; ++i) {
    for (size_t k = 0; k < inputs.size(); ++k) {
      inputs[k] = widths[k] == 0 ? 0 : random() & low_mask(widths[k]);
    }
    if (evaluator(inputs)[0] != 0) return true;
  }
  return false;
}

}  // namespace

Decision SinkDecisions::operator()(const LaneResult& expected, size_t sink, const Term& found) {
  const auto [known, is_new] = decided_.try_emplace({sink, found.id()}, Decision::never);
  if (!is_new) return known->second;
  const Term is_wrong = ~expected.broken & not_equal(found, expected.elements[sink]);
  if (holds_for_drawn_inputs(is_wrong)) return known->second = Decision::possible;
  const std::optional<Term> by_lemmas = with_reciprocal_lemmas(is_wrong);
  if (by_lemmas && decide_(*by_lemmas) == Decision::never) return known->second;
  return known->second = decide_(is_wrong);
}

}  // namespace castor::prove
