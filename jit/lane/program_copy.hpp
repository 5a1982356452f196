// SPDX-License-Identifier: Apache-2.0
// A lane program that is made of another one's instructions in another order, or several times.
#pragma once

#include <utility>
#include <vector>

#include "jit/lane/program.hpp"

namespace castor::jit {

/// Copies instructions whose operands have been copied; operands become their last copies.
class ProgramCopy {
 public:
  explicit ProgramCopy(const LaneProgram& program)
      : program_(program), copied_(program), copies_(program.code.size(), no_lane) {
    copied_.code.clear();
  }

  void copy(size_t i, int chunk = 0) {
    LaneInst inst = program_.code[i];
    for_each_operand(inst,
                     [&](LaneId& operand) { operand = copies_[static_cast<size_t>(operand)]; });
    inst.chunk = chunk;
    copies_[i] = append(inst);
  }

  /// Appends a join of the last copy, which is what the instruction's readers take from then on.
  void join(size_t i) {
    const LaneInst& joined = program_.code[i];
    copies_[i] =
        append({.op = LaneOp::join, .type = joined.type, .a = copies_[i], .origin = joined.origin});
  }

  LaneProgram take() { return std::move(copied_); }

 private:
  LaneId append(const LaneInst& inst) {
    copied_.code.push_back(inst);
    return static_cast<LaneId>(copied_.code.size()) - 1;
  }

  const LaneProgram& program_;
  LaneProgram copied_;
  std::vector<LaneId> copies_;  ///< by instruction of the program
};

}  // namespace castor::jit
