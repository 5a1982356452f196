// SPDX-License-Identifier: Apache-2.0
// What the loops of a kernel should do, as a model of numbers, and the proof that its code does it
// for every count, step and address.
#pragma once

#include <vector>

#include "jit/code.hpp"
#include "tools/prove/kernel/any_arrival.hpp"
#include "tools/prove/kernel/conv_proof.hpp"

namespace castor::prove {

/// Loops, each in the one before, that run a count of times, at least once. Variables are numbers:
/// arguments of the call, and what the loops keep; each has an index.
class LoopModel {
 public:
  using Variables = std::vector<Word>;

  virtual ~LoopModel() = default;

  /// At the innermost loop's begin when the code comes there first.
  Variables first(Variables variables) const;
  /// When it comes there next; none where it returns.
  std::optional<Variables> next(Variables variables) const;
  /// Whether each loop is in its second iteration.
  bool is_inside(const Variables& variables) const;

  /// A call in which numbers differ from each other, and all counts are at least 2.
  Variables numbers() const;
  /// A call with any arguments.
  Variables any_call(AnyWords& words) const;
  /// Any iteration of any call: of each loop, outermost first, the last one, or one before.
  Variables any_iteration(AnyWords& words, const std::vector<bool>& is_last) const;
  size_t loops() const { return loops_.size(); }
  /// The variables that count iterations.
  std::vector<Word> counts_of(const Variables& variables) const;

  static constexpr uint64_t arguments_address = 0x2000'0000;
  /// Adds a call's arguments to the memory.
  void lay_out_arguments(SymbolMachine& machine, const Variables& variables) const;
  void set_arguments(SymbolMachine& machine, const Variables& variables) const;

  /// All memory of a call with numbers().
  virtual void lay_out_operands(SymbolMachine& machine) const = 0;
  /// The memory that the code may touch before it comes to the innermost loop first.
  virtual void lay_out_entry(SymbolMachine&, const Variables&) {}
  /// Whether the loops begin with the right vectors.
  virtual Status compare_entry(SymbolMachine&) { return {}; }
  /// Ways in which an iteration of the innermost loop may be called, at least one.
  virtual int ways() const { return 1; }
  /// Exactly the memory that one iteration may touch, and vectors that it goes on with.
  virtual void lay_out_iteration(SymbolMachine& machine, const Variables& variables, int way) = 0;
  /// Whether it stored what it should, and left vectors so; `returns`: and the code returned.
  virtual Status compare(SymbolMachine& machine, const Variables& variables, int way,
                         bool returns) = 0;

 protected:
  /// A number of the call's arguments: where it is in them, its variable, and a value.
  struct Argument {
    size_t offset = 0;
    size_t variable = 0;
    uint64_t number = 0;
  };
  /// How many iterations a loop has, and how many are left, this one included.
  struct Loop {
    size_t count = 0;
    size_t left = 0;
  };

  /// `bytes` of arguments that are no variables too.
  LoopModel(size_t variables, std::vector<Argument> arguments, std::vector<Loop> loops,
            std::vector<std::byte> bytes)
      : variables_(variables),
        arguments_(std::move(arguments)),
        loops_(std::move(loops)),
        bytes_(std::move(bytes)) {}

  /// What follows from the arguments alone.
  virtual void derive(Variables&) const {}
  /// What a loop keeps, when it begins.
  virtual void begin(size_t loop, Variables& variables) const = 0;
  /// How that changes from one iteration to the next.
  virtual void advance(size_t loop, Variables& variables) const = 0;

 private:
  void begin_from(size_t loop, Variables& variables) const;

  size_t variables_;
  std::vector<Argument> arguments_;
  std::vector<Loop> loops_;
  std::vector<std::byte> bytes_;
};

/// Proves that the code does what the model does: from its entry, from any iteration to the next,
/// and to its return. Fails (internal), naming what is different.
Status prove_loops(const jit::MachineCode& code, LoopModel& model, ConvProof& proof);

/// Every count, step and address of packers.
Status prove_every_count(const KernelSubject<jit::PackInput>& kernel, ConvProof& proof);
Status prove_every_count(const KernelSubject<jit::PackWeights>& kernel, ConvProof& proof);

}  // namespace castor::prove
