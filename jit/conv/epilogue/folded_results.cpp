// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/epilogue/folded_results.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace castor::jit {

namespace {

constexpr int lane_bits = 32;

/// Whether elements that are folded twice change nothing.
bool may_fold_twice(const MemoryOperand& sink) {
  const bool adds = sink.fold == Fold::add || sink.fold == Fold::float_add;
  return sink.fold != Fold::none && !adds && bits_of(sink.element) == lane_bits;
}

/// Whether a nest folds all of one tensor, and nothing else, into minima and maxima.
bool folds_one_tensor(const Nest& nest) {
  if (nest.inputs.size() != 1 || nest.reduced.empty()) return false;
  const NestInput& input = nest.inputs[0];
  const auto looks_up = [](const LaneInst& inst) { return inst.table >= 0; };
  return input.accumulator < 0 && input.is_identity() && nest.program.sinks.size() <= max_folds &&
         std::ranges::all_of(nest.reduced, [](bool is_reduced) { return is_reduced; }) &&
         std::ranges::all_of(nest.program.sinks, may_fold_twice) &&
         std::ranges::none_of(nest.program.code, looks_up);
}

/// The lanes that are an output's elements as they are, of 32 bits; else none.
LaneId stored_lanes(const LaneProgram& program, size_t output) {
  const auto store = std::ranges::find_if(program.code, [&](const LaneInst& inst) {
    return inst.op == LaneOp::store && static_cast<size_t>(inst.imm) == output;
  });
  const bool is_as_it_is = store != program.code.end() && bits_of(store->type) == lane_bits &&
                           bits_of(program.sinks[output].element) == lane_bits &&
                           store->narrowing == Narrowing::truncate;
  return is_as_it_is ? store->a : no_lane;
}

/// Which output of an epilogue the value is, as lanes that can be folded.
std::optional<size_t> output_of(const Nest& nest, ValueId value) {
  if (!nest.epilogue || nest.folded) return std::nullopt;
  for (size_t output = 0; output < nest.outputs.size(); ++output) {
    const bool is_value = nest.outputs[output].value == value;
    if (is_value && stored_lanes(nest.program, output) != no_lane) return output;
  }
  return std::nullopt;
}

/// The epilogue with the folds of the nest that folds the output; nothing where kernels cannot
/// apply that.
std::optional<TileEpilogue> with_folds(TileEpilogue epilogue, size_t output, const Nest& folding) {
  LaneProgram& program = epilogue.program;
  const LaneId stored = stored_lanes(program, output);
  const auto first_fold = static_cast<int64_t>(program.sinks.size());
  std::vector<LaneId> lanes;  // the epilogue's, by lane of the folding program
  for (LaneInst inst : folding.program.code) {
    if (inst.op == LaneOp::load) {
      lanes.push_back(stored);
      continue;
    }
    for_each_operand(inst, [&](LaneId& id) { id = lanes[static_cast<size_t>(id)]; });
    if (inst.op == LaneOp::store) inst.imm += first_fold;
    lanes.push_back(static_cast<LaneId>(program.code.size()));
    program.code.push_back(inst);
  }
  for (const MemoryOperand& sink : folding.program.sinks) {
    program.sinks.push_back(sink);
    epilogue.operands.push_back({.repeats = true, .same_in_rows = true});
  }
  return is_applicable(program) ? std::optional(std::move(epilogue)) : std::nullopt;
}

}  // namespace

void mark_folded_results(const Function& function, std::vector<Nest>& nests) {
  const std::vector<ValueId> roots = reshape_roots(function);
  for (size_t n = 0; n < nests.size(); ++n) {
    if (!folds_one_tensor(nests[n])) continue;
    const ValueId folded = roots[nests[n].inputs[0].value];
    for (size_t e = 0; e < n; ++e) {
      if (const auto output = output_of(nests[e], folded)) nests[e].folded = {*output, n};
    }
  }
}

std::vector<TileEpilogue> ways_to_apply(TileEpilogue epilogue, const Nest& nest,
                                        std::span<const Nest> nests) {
  std::vector<TileEpilogue> ways;
  if (nest.folded) {
    auto folding = with_folds(epilogue, nest.folded->output, nests[nest.folded->nest]);
    if (folding) ways.push_back(std::move(*folding));
  }
  ways.push_back(std::move(epilogue));
  return ways;
}

}  // namespace castor::jit
