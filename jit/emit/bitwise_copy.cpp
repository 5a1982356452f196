// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/bitwise_copy.hpp"

#include "ir/types/storage.hpp"
#include "jit/emit/bit_element_copy.hpp"
#include "jit/emit/bit_run_copy.hpp"
#include "jit/emit/control_flow.hpp"

namespace castor::jit {

namespace {

/// Calls `copy` where copying::element and copying::count say what is copied.
template <class Copy>
void emit_borrowing(Assembler& code, const Frame& frame, const WindowOperand& at,
                    const Copy& copy) {
  code.mov(copying::element, frame.group_begin());
  code.imul(copying::element, at.step);
  code.add(copying::element, frame.emit_pointer(at.operand));
  for (int i = 0; i < Frame::borrowed_count; ++i) {
    frame.emit_borrow(i, Xbyak::Reg64(copying::borrowed[static_cast<size_t>(i)]));
  }
  code.mov(copying::count, frame.group_end());
  code.sub(copying::count, frame.group_begin());
  copy();
  for (int i = 0; i < Frame::borrowed_count; ++i) {
    frame.emit_give_back(i, Xbyak::Reg64(copying::borrowed[static_cast<size_t>(i)]));
  }
}

}  // namespace

void emit_copy_bitwise(LaneEmitter& emitter, const Frame& frame, const WindowOperand& at, bool in) {
  Assembler& code = emitter.code();
  emit_borrowing(code, frame, at, [&] {
    if (!is_bit_string(at.element)) return emit_copy_elements(emitter, frame, at, in);
    Xbyak::Label done;
    code.cmp(at.step, 1);
    emit_unless(code, Condition::not_equal, [&] {
      emit_copy_run(code, frame, at, in);
      code.jmp(done, Xbyak::CodeGenerator::T_NEAR);
    });
    emit_copy_elements(emitter, frame, at, in);
    code.L(done);
  });
}

void emit_copy_one_bitwise(LaneEmitter& emitter, const Frame& frame, const WindowOperand& at) {
  emit_borrowing(emitter.code(), frame, at, [&] { emit_copy_elements(emitter, frame, at, true); });
}

}  // namespace castor::jit
