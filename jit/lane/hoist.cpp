// SPDX-License-Identifier: Apache-2.0
#include "jit/lane/hoist.hpp"

#include <algorithm>

namespace castor::jit {

std::vector<LoopLevel> loop_levels(const LaneProgram& program,
                                   const std::vector<LoopLevel>& sources) {
  std::vector<LoopLevel> levels;
  for (const LaneInst& inst : program.code) {
    LoopLevel level = LoopLevel::nest;
    if (inst.op == LaneOp::store) level = LoopLevel::chunk;
    if (inst.op == LaneOp::load || inst.op == LaneOp::gather)
      level = sources[static_cast<size_t>(inst.imm)];
    for (LaneId id : {inst.a, inst.b, inst.c, inst.mask}) {
      if (id != no_lane) level = std::max(level, levels[static_cast<size_t>(id)]);
    }
    levels.push_back(level);
  }
  return levels;
}

}  // namespace castor::jit
