// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/kernel/loop_model.hpp"

#include <algorithm>

#include "tools/prove/kernel/loop_memory.hpp"

namespace castor::prove {

namespace {

/// Whether no iteration follows, given how many are left.
bool none_follows(const Word& left) { return left == Word{1, 0}; }

}  // namespace

// ---- model

LoopModel::Variables LoopModel::first(Variables variables) const {
  begin_from(0, variables);
  return variables;
}

std::optional<LoopModel::Variables> LoopModel::next(Variables variables) const {
  for (size_t loop = loops_.size(); loop-- > 0;) {
    Word& left = variables[loops_[loop].left];
    if (none_follows(left)) continue;
    --left.value;
    advance(loop, variables);
    begin_from(loop + 1, variables);
    return variables;
  }
  return std::nullopt;
}

void LoopModel::begin_from(size_t loop, Variables& variables) const {
  for (; loop < loops_.size(); ++loop) {
    variables[loops_[loop].left] = variables[loops_[loop].count];
    begin(loop, variables);
  }
}

bool LoopModel::is_inside(const Variables& variables) const {
  return std::ranges::all_of(loops_, [&](const Loop& loop) {
    return variables[loop.left].value + 1 == variables[loop.count].value;
  });
}

LoopModel::Variables LoopModel::numbers() const {
  Variables variables(variables_);
  for (const Argument& argument : arguments_) variables[argument.variable] = {argument.number, 0};
  derive(variables);
  return variables;
}

LoopModel::Variables LoopModel::any_call(AnyWords& words) const {
  Variables variables(variables_);
  for (const Argument& argument : arguments_) {
    variables[argument.variable] = words.any(argument.number);
  }
  for (const Loop& loop : loops_) variables[loop.count] = words.any(1);
  derive(variables);
  return variables;
}

LoopModel::Variables LoopModel::any_iteration(AnyWords& words,
                                              const std::vector<bool>& is_last) const {
  Variables variables(variables_);
  for (Word& variable : variables) variable = words.any(uint64_t{1} << 50);
  const Variables call = any_call(words);
  for (const Argument& argument : arguments_) {
    variables[argument.variable] = call[argument.variable];
  }
  derive(variables);
  for (size_t loop = 0; loop < loops_.size(); ++loop) {
    variables[loops_[loop].left] = is_last[loop] ? Word{1, 0} : words.any(2);
  }
  return variables;
}

void LoopModel::lay_out_arguments(SymbolMachine& machine, const Variables& variables) const {
  auto& region = machine.memory().add("the arguments", arguments_address, bytes_.size(), false);
  fill(machine.domain(), region, bytes_);
  set_arguments(machine, variables);
}

void LoopModel::set_arguments(SymbolMachine& machine, const Variables& variables) const {
  for (const Argument& argument : arguments_) {
    set_argument(machine, argument.offset, variables[argument.variable]);
  }
}

std::vector<Word> LoopModel::counts_of(const Variables& variables) const {
  std::vector<Word> counts;
  for (const Loop& loop : loops_) {
    counts.push_back(variables[loop.left]);
    counts.push_back(variables[loop.count]);
  }
  return counts;
}

// ---- proof

namespace {

class LoopProver {
 public:
  LoopProver(const jit::MachineCode& code, LoopModel& model, ConvProof& proof)
      : code_(code), model_(model), proof_(proof), begin_(code.loops.front().begin) {}

  Status prove() {
    auto started = SymbolMachine::create(symbols_, code_);
    if (!started) return started.error();
    started->begin(LoopModel::arguments_address);
    auto arrival = any_arrival(*started);
    if (!arrival) return arrival.error();
    if (Status status = prove_entry(*started, *arrival); !status) return status;
    const size_t cases = size_t{1} << model_.loops();
    for (size_t lasts = 0; lasts < cases; ++lasts) {
      std::vector<bool> is_last;
      for (size_t loop = 0; loop < model_.loops(); ++loop) {
        is_last.push_back((lasts >> loop & 1) != 0);
      }
      for (int way = 0; way < model_.ways(); ++way) {
        if (Status status = prove_iteration(*arrival, is_last, way); !status) return status;
      }
    }
    return {};
  }

 private:
  /// Runs a call of numbers from the entry. All runs begin with that state, so that registers which
  /// the code does not use are the same in them.
  Result<AnyArrival> any_arrival(SymbolMachine machine) {
    model_.lay_out_arguments(machine, model_.numbers());
    model_.lay_out_operands(machine);
    if (Status status = run_to(machine, begin_); !status) return status.error();
    const SymbolMachine earlier = machine;
    LoopModel::Variables variables = model_.first(model_.numbers());
    int64_t arrivals = 0;
    for (; !model_.is_inside(variables); ++arrivals) variables = *model_.next(variables);
    if (Status status = run_to(machine, begin_, arrivals); !status) return status.error();
    return AnyArrival(earlier, std::move(machine), variables);
  }

  Status prove_entry(SymbolMachine machine, const AnyArrival& arrival) {
    const LoopModel::Variables variables = model_.any_call(words_);
    model_.lay_out_arguments(machine, variables);
    model_.lay_out_entry(machine, variables);
    machine.grow_independently({});
    if (Status status = run_to(machine, begin_); !status) return status;
    if (Status status = arrival.check(machine, model_.first(variables)); !status) return status;
    return model_.compare_entry(machine);
  }

  Status prove_iteration(const AnyArrival& arrival, const std::vector<bool>& is_last, int way) {
    const LoopModel::Variables variables = model_.any_iteration(words_, is_last);
    SymbolMachine machine = arrival.alone_at(variables, model_.counts_of(variables));
    model_.set_arguments(machine, variables);
    model_.lay_out_iteration(machine, variables, way);
    if (Status status = run_to(machine, begin_); !status) return in_iteration(status.error());
    ++proof_.iterations;
    const auto next = model_.next(variables);
    if (machine.is_done() == next.has_value()) {
      return Error(ErrorCode::internal, next ? "the loops end too early" : "the loops go on");
    }
    if (next) {
      if (Status status = arrival.check(machine, *next); !status) return status;
    }
    return model_.compare(machine, variables, way, machine.is_done());
  }

  const jit::MachineCode& code_;
  LoopModel& model_;
  ConvProof& proof_;
  const uint32_t begin_;
  Terms terms_;
  machine::Symbols symbols_{terms_};
  AnyWords words_;
};

}  // namespace

Status prove_loops(const jit::MachineCode& code, LoopModel& model, ConvProof& proof) {
  return LoopProver(code, model, proof).prove();
}

}  // namespace castor::prove
