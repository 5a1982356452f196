// SPDX-License-Identifier: Apache-2.0
// Control flow in emitted code: bodies that are skipped or repeated on a condition. The bodies are
// host functions that emit code; host code itself branches with `if` and `for`.
#pragma once

#include "jit/emit/assembler.hpp"

namespace castor::jit {

/// What the flags say after a comparison of signed numbers, or of a result with 0.
enum class Condition : uint8_t {
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  not_negative,
};

/// Length of the jump: `near` reaches all code. `shortest` is a short jump forward, which the
/// assembler refuses if it does not reach; backward it is short where that reaches.
enum class Jump : uint8_t { near, shortest };

/// Emits a jump to the label that is taken if the condition holds.
void emit_jump_if(Assembler& code, Condition condition, const Xbyak::Label& to,
                  Jump jump = Jump::near);

/// Emits `body` so that it is skipped if the condition holds before it.
template <class Body>
void emit_unless(Assembler& code, Condition condition, Jump jump, const Body& body) {
  Xbyak::Label end;
  emit_jump_if(code, condition, end, jump);
  body();
  code.L(end);
}
template <class Body>
void emit_unless(Assembler& code, Condition condition, const Body& body) {
  emit_unless(code, condition, Jump::near, body);
}

/// Emits `body` so that it is repeated while the condition holds after it; it runs at least once.
template <class Body>
void emit_loop_while(Assembler& code, Condition condition, Jump jump, const Body& body) {
  Xbyak::Label begin;
  code.L(begin);
  body();
  emit_jump_if(code, condition, begin, jump);
}
template <class Body>
void emit_loop_while(Assembler& code, Condition condition, const Body& body) {
  emit_loop_while(code, condition, Jump::near, body);
}

/// Emits `body` so that it is repeated until it jumps to the label that it is given, which is after
/// the loop.
template <class Body>
void emit_loop_until_exit(Assembler& code, const Body& body) {
  Xbyak::Label begin;
  Xbyak::Label exit;
  code.L(begin);
  body(exit);
  code.jmp(begin, Xbyak::CodeGenerator::T_NEAR);
  code.L(exit);
}

}  // namespace castor::jit
