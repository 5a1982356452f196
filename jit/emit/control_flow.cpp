// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/control_flow.hpp"

namespace castor::jit {

void emit_jump_if(Assembler& code, Condition condition, const Xbyak::Label& to, Jump jump) {
  const auto type =
      jump == Jump::near ? Xbyak::CodeGenerator::T_NEAR : Xbyak::CodeGenerator::T_AUTO;
  switch (condition) {
    case Condition::equal: return code.je(to, type);
    case Condition::not_equal: return code.jne(to, type);
    case Condition::less: return code.jl(to, type);
    case Condition::less_equal: return code.jle(to, type);
    case Condition::greater: return code.jg(to, type);
    case Condition::greater_equal: return code.jge(to, type);
    case Condition::not_negative: return code.jns(to, type);
  }
}

}  // namespace castor::jit
