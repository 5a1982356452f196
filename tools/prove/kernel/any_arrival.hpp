// SPDX-License-Identifier: Apache-2.0
// A loop's begin at any of its iterations, and of those of the loops around it: so kernels with
// several loops are proved for all counts, steps and addresses. What code does between two arrivals
// at the innermost loop's begin is compared with a model of the loops.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "tools/machine/machine.hpp"

namespace castor::prove {

using SymbolMachine = machine::Machine<machine::Symbols>;
using machine::Word;

/// Makes numbers that stand for any: each has a slope of its own, which no sum of some others has,
/// as if each grew with an index of its own. Slopes are odd, so that nothing is known of low bits.
class AnyWords {
 public:
  /// A number that a machine runs with that value; a count: that one or any larger.
  Word any(uint64_t value);

 private:
  uint64_t state_ = 1;
};

/// What a run from any arrival failed by. Numbers that are unknown there are not what the code's
/// loops keep: that too is an error of the code, not of the machine.
Error in_iteration(const Error& error);

/// Runs on until the code has come to an instruction that many times more, or returns.
Status run_to(SymbolMachine& machine, uint32_t offset, int64_t arrivals = 1);

/// The state of a machine at a loop's begin: variables, which are numbers, in registers and on the
/// stack; what never changes; and nothing else.
class AnyArrival {
 public:
  /// What holds a variable's value at `later`, an arrival at which values differ from each other,
  /// is the variable. All else that differs from the earlier arrival is unknown from here on.
  AnyArrival(const SymbolMachine& earlier, SymbolMachine later, std::span<const Word> variables);

  /// A machine there, with these variables; `counts` are those that are counts down or up to 0.
  SymbolMachine at(std::span<const Word> variables, std::span<const Word> counts) const;
  /// The same without the memory of the call but for the stack, constants and arguments.
  SymbolMachine alone_at(std::span<const Word> variables, std::span<const Word> counts) const;
  /// Fails (internal), naming what is not in that state, or where the machine is elsewhere.
  Status check(const SymbolMachine& machine, std::span<const Word> variables) const;
  /// The same at another instruction.
  Status check_state(const SymbolMachine& machine, std::span<const Word> variables) const;

 private:
  void find_registers(const SymbolMachine& earlier, std::span<const Word> variables);
  void find_vectors(const SymbolMachine& earlier);
  void find_on_stack(const SymbolMachine& earlier, std::span<const Word> variables);
  Status check_registers(const SymbolMachine& machine, std::span<const Word> variables) const;
  Status check_vectors(const SymbolMachine& machine) const;
  Status check_stack(const SymbolMachine& machine, std::span<const Word> variables) const;

  SymbolMachine later_;
  /// By general register and by slot of the stack: the variable that it holds.
  std::array<std::optional<size_t>, 16> variable_in_register_{};
  std::vector<std::optional<size_t>> variable_in_slot_;
  std::array<bool, 16> stays_in_register_{};
  std::vector<bool> stays_on_stack_;                   ///< by byte
  std::array<std::vector<bool>, 32> stays_in_vector_;  ///< by 8 bytes
  std::array<bool, 8> stays_in_mask_{};
};

}  // namespace castor::prove
