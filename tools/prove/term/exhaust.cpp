// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/term/exhaust.hpp"

#include <algorithm>

#include "tools/prove/term/batch.hpp"
#include "tools/prove/term/evaluate.hpp"

namespace castor::prove {

int input_bits(const Term& term) {
  int bits = 0;
  for (const uint32_t id : reachable_nodes(std::span(&term, 1))) {
    const Node& node = term.terms().node(id);
    if (node.op == TermOp::input) bits += node.width;
  }
  return bits;
}

Exhaustion run_on_all_inputs(const Term& truth,
                             const std::function<bool(double fraction)>& goes_on) {
  constexpr int max_bits = 32;
  constexpr uint64_t asked_every = 1024;  // batches
  const int bits = input_bits(truth);
  if (bits > max_bits) return {};
  Batch batch(std::span(&truth, 1));
  if (!batch.fits()) return {};
  const uint64_t count = uint64_t{1} << bits;
  for (uint64_t first = 0, batches = 0; first < count; first += Batch::lanes, ++batches) {
    const double fraction = static_cast<double>(first) / static_cast<double>(count);
    if (batches % asked_every == 0 && !goes_on(fraction)) return {};
    batch.run(first);
    const Batch::Lanes& is_true = batch.of(truth.id());
    uint64_t any = 0;
    for (const uint64_t lane : is_true) any |= lane;
    if (any == 0) continue;
    const auto at = std::ranges::find(is_true, uint64_t{1}) - is_true.begin();
    return {.complete = true, .inputs = batch.inputs_at(static_cast<size_t>(at))};
  }
  return {.complete = true, .inputs = {}};
}

}  // namespace castor::prove
