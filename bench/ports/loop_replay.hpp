// SPDX-License-Identifier: Apache-2.0
// Runs a loop of generated code on its own, in L1, and measures an iteration.
#pragma once

#include <xbyak/xbyak.h>

#include <array>
#include <memory>
#include <vector>

#include "bench/core_clock.hpp"
#include "bench/ports/loop_state.hpp"

namespace castor::bench {

/// The kernel's own bytes with an entry into the loop that sets all registers and an exit after it.
/// Every pointer that the loop has is that of a buffer of its own; strides and the like are 64;
/// tensors, vectors and masks are full of 1.0f, tables of offsets lead to 64 cache lines, tables of
/// masks have all bits. Branches but the closing one are made not to be taken (`jo`, as nothing
/// overflows), as the port model counts inner loops once, and streaming stores are plain ones, as
/// nothing leaves L1; nothing else is changed. Calls of some iterations and of about twice as
/// many are measured in turn, so that the difference is the loop's alone (as LoopSlope has it).
class LoopReplay {
 public:
  /// Fails where loop_needs does, (unsupported) where the loop takes addresses from memory, so that
  /// a first call, in a child process, accesses what is not there, and (internal) where that call
  /// ends otherwise.
  static Result<std::unique_ptr<LoopReplay>> prepare(const jit::MachineCode& code,
                                                     const jit::CodeLoop& loop);

  /// Cycles of an iteration.
  double measure(const CoreClock& clock, double budget_ns) const;

 private:
  struct Call {
    std::array<uint64_t, 16> registers{};
    std::vector<std::pair<uint64_t*, uint64_t>> slots;
  };

  LoopReplay();
  void emit(const jit::MachineCode& code, const jit::CodeLoop& loop,
            std::span<const jit::DecodedInstruction> body);
  void allocate(const LoopNeeds& needs);
  void fill_records(const LoopNeeds& needs);
  uint64_t value_of(const LoopSource& source) const;
  Call call_of(const LoopNeeds& needs, int64_t iterations) const;
  void run(const Call& call) const;
  Status try_in_child() const;
  Contender contender(const std::vector<Call>& calls) const;

  std::unique_ptr<Xbyak::CodeGenerator> code_;
  std::shared_ptr<std::vector<std::byte>> memory_;
  std::map<LoopSource, uint64_t> addresses_;  ///< what pointers hold
  std::array<uint64_t, 24> saved_{};          ///< the caller's stack pointer; the call's registers
  std::vector<Call> many_;
  std::vector<Call> few_;
  int64_t iterations_ = 0;  ///< between a call of `many_` and one of `few_`
};

}  // namespace castor::bench
