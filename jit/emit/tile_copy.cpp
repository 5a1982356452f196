// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/tile_copy.hpp"

#include "jit/emit/strided_copy_emitter.hpp"
#include "jit/emit/transpose_emitter.hpp"

namespace castor::jit {

namespace {

/// Jumps where the copy is not one of whole blocks between two orders of the axes.
void emit_jump_unless_transposed(Assembler& code, int element_bytes, Xbyak::Label& other) {
  const Xbyak::Reg64 arguments(Xbyak::Operand::RDI);
  const auto argument = [&](size_t offset) { return code.qword[arguments + offset]; };
  const Section choice = code.section(CodeSection::choice);
  const int block = transposed_block_bytes / element_bytes;
  for (size_t step : {offsetof(TileCopy, source_row_step), offsetof(TileCopy, destination_step)}) {
    code.cmp(argument(step), element_bytes);
    code.jne(other, Xbyak::CodeGenerator::T_NEAR);
  }
  for (size_t extent : {offsetof(TileCopy, columns), offsetof(TileCopy, rows)}) {
    code.cmp(argument(extent), block);
    code.jl(other, Xbyak::CodeGenerator::T_NEAR);
  }
}

MachineCode emit(int element_bytes, bool frame_pointers, const CodeBuffer& buffer) {
  Assembler code(buffer, frame_pointers);
  const FrameState entered = code.frame_state();
  Xbyak::Label other;
  emit_jump_unless_transposed(code, element_bytes, other);
  emit_transpose(code, element_bytes);
  code.L(other);
  code.resume_frame(entered);
  emit_strided_copy(code, element_bytes);
  return code.finish();
}

}  // namespace

Result<MachineCode> emit_kernel(const TileCopySpec& spec, const Target& target,
                                const EmitOptions& options) {
  return assemble("a copy of a tile", options, [&](const CodeBuffer& buffer) {
    return emit(spec.element_bytes, target.frame_pointers, buffer);
  });
}

}  // namespace castor::jit
