// SPDX-License-Identifier: Apache-2.0
#include "jit/lane/adjacent_chunks.hpp"

namespace castor::jit {

namespace {

/// By instruction: whether it is the same in every chunk.
std::vector<bool> shared_instructions(const LaneProgram& program,
                                      const std::vector<bool>& is_uniform) {
  std::vector<bool> is_shared;
  for (const LaneInst& inst : program.code) {
    bool shared = inst.op != LaneOp::store;
    if (inst.op == LaneOp::load) shared = is_uniform[static_cast<size_t>(inst.imm)];
    for_each_operand(inst,
                     [&](LaneId id) { shared = shared && is_shared[static_cast<size_t>(id)]; });
    is_shared.push_back(shared);
  }
  return is_shared;
}

}  // namespace

LaneProgram adjacent_chunks(const LaneProgram& program, int chunks,
                            const std::vector<bool>& is_uniform) {
  const std::vector<bool> is_shared = shared_instructions(program, is_uniform);
  LaneProgram copied = program;
  copied.code.clear();
  std::vector<LaneId> copies(program.code.size(), no_lane);
  const auto copy = [&](size_t i, int chunk) {
    LaneInst inst = program.code[i];
    for_each_operand(inst,
                     [&](LaneId& operand) { operand = copies[static_cast<size_t>(operand)]; });
    inst.chunk = chunk;
    copies[i] = static_cast<LaneId>(copied.code.size());
    copied.code.push_back(inst);
  };
  for (size_t i = 0; i < program.code.size(); ++i) {
    if (is_shared[i]) copy(i, 0);
  }
  for (int chunk = 0; chunk < chunks; ++chunk) {
    for (size_t i = 0; i < program.code.size(); ++i) {
      if (!is_shared[i]) copy(i, chunk);
    }
  }
  return copied;
}

}  // namespace castor::jit
