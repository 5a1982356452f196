// SPDX-License-Identifier: Apache-2.0
// Cycles of single instructions, measured: from one independent one to the next, and from a source
// to the result.
#pragma once

#include <xbyak/xbyak.h>

#include <memory>
#include <optional>
#include <vector>

#include "bench/core_clock.hpp"
#include "bench/limits.hpp"
#include "bench/ports/instruction_forms.hpp"
#include "jit/code.hpp"

namespace castor::bench {

/// A loop of instructions of one form, or of two by turns, as code that can be called and as code
/// that the port model weighs.
class InstructionLoop {
 public:
  /// How many there are in an iteration.
  static constexpr int copies = 24;
  static constexpr int unrolling = 4;

  /// Independent instructions, one of each form by turns.
  static std::unique_ptr<InstructionLoop> independent(
      const std::vector<const InstructionForm*>& forms);
  /// Instructions that wait for each other; null where the form has no chain.
  static std::unique_ptr<InstructionLoop> chain(const InstructionForm& form);

  /// Runs iterations; valid while this object lives.
  Contender contender() const;
  /// Cycles per turn, from times and clock that were measured in turn.
  double cycles(const Contender& clock, const Contender& measured) const;
  /// One unrolled copy, for the port model: `copies` turns.
  const jit::MachineCode& body() const { return body_; }
  jit::CodeLoop body_loop() const;

 private:
  template <class EmitTurn>
  static std::unique_ptr<InstructionLoop> make(const EmitTurn& emit_turn);

  InstructionLoop() : code_(std::make_unique<Xbyak::CodeGenerator>(1 << 16)) {}

  std::unique_ptr<Xbyak::CodeGenerator> code_;
  jit::MachineCode body_;
  std::shared_ptr<std::vector<float>> buffer_;
};

struct InstructionCycles {
  double throughput = 0;          ///< cycles from one to the next
  std::optional<double> latency;  ///< none where the form has no chain
};
/// Measures for about 2 x `budget_ns`.
InstructionCycles measure_instruction(const InstructionForm& form, const CoreClock& clock,
                                      double budget_ns);
/// Cycles of one instruction of each form, run by turns.
double measure_pair(const InstructionForm& one, const InstructionForm& other,
                    const CoreClock& clock, double budget_ns);

}  // namespace castor::bench
