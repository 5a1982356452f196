// SPDX-License-Identifier: Apache-2.0
#include "jit/lane/adjacent_chunks.hpp"

#include "jit/lane/program_copy.hpp"

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
  ProgramCopy copied(program);
  for (size_t i = 0; i < program.code.size(); ++i) {
    if (is_shared[i]) copied.copy(i);
  }
  for (int chunk = 0; chunk < chunks; ++chunk) {
    for (size_t i = 0; i < program.code.size(); ++i) {
      if (!is_shared[i]) copied.copy(i, chunk);
    }
  }
  return copied.take();
}

}  // namespace castor::jit
