// SPDX-License-Identifier: Apache-2.0
#include "jit/lane/hoist.hpp"

#include <algorithm>

namespace castor::jit {

std::vector<Scope> scopes_of(const LaneProgram& program, const std::vector<Scope>& sources) {
  std::vector<Scope> scopes;
  for (const LaneInst& inst : program.code) {
    Scope scope = Scope::nest;
    if (inst.op == LaneOp::store) scope = Scope::chunk;
    if (inst.op == LaneOp::load) scope = sources[static_cast<size_t>(inst.imm)];
    for (LaneId id : {inst.a, inst.b, inst.c, inst.mask}) {
      if (id != no_lane) scope = std::max(scope, scopes[static_cast<size_t>(id)]);
    }
    scopes.push_back(scope);
  }
  return scopes;
}

}  // namespace castor::jit
