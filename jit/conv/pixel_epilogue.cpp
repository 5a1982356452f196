// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/pixel_epilogue.hpp"

#include "jit/emit/frame.hpp"

namespace castor::jit {

PixelEpilogueEmitter::PixelEpilogueEmitter(Assembler& code, const Target& target,
                                           const TileEpilogue& epilogue,
                                           const TakenRegisters& taken, int frame,
                                           const Xbyak::Reg64& pixel, const Xbyak::Reg64& channel)
    : TileEpilogueEmitter(code, target, epilogue, taken, frame + operand_bytes,
                          levels_of_chunks(epilogue, &TileOperand::same_in_rows)),
      operands_(frame),
      pixel_(pixel),
      channel_(channel) {
  static_assert(sizeof(EpilogueOperand) * (max_tile_operands + 1) <= operand_bytes);
}

Xbyak::Address PixelEpilogueEmitter::slot(size_t operand, size_t field) {
  const size_t at = operand * sizeof(EpilogueOperand) + field;
  return code_.qword[gpr::stack + (operands_ + static_cast<int>(at))];
}

void PixelEpilogueEmitter::begin(const Xbyak::Address& operands) {
  enter();
  emit_constants();
  emit_hoisted(LoopLevel::nest);
  code_.mov(gpr::scratch, operands);
  for (size_t k = 0; k < epilogue_.operands.size(); ++k) {
    if (k == epilogue_.source) continue;
    for (size_t field : {offsetof(EpilogueOperand, data), offsetof(EpilogueOperand, row_step)}) {
      const size_t at = k * sizeof(EpilogueOperand) + field;
      code_.mov(pixel_, code_.qword[gpr::scratch + static_cast<int>(at)]);
      code_.mov(slot(k, field), pixel_);
    }
  }
}

void PixelEpilogueEmitter::emit_channels_routine() {
  emit_hoisted(LoopLevel::row);
  code_.ret();
}

void PixelEpilogueEmitter::emit_routine(const Xbyak::Xmm& sums, const Xbyak::Address& ahead) {
  apply(sums);
  prefetch(ahead);
  code_.ret();
}

void PixelEpilogueEmitter::prefetch(const Xbyak::Address& ahead) {
  constexpr int min_bits = 32;  // narrower results come to the same lines again and again
  for (size_t k = epilogue_.inputs; k < epilogue_.operands.size(); ++k) {
    const int bits = bits_of(epilogue_.operands[k].element);
    if (bits < min_bits) continue;
    code_.mov(gpr::scratch, pixel_);
    code_.add(gpr::scratch, ahead);
    code_.imul(gpr::scratch, slot(k, offsetof(EpilogueOperand, row_step)));
    code_.add(gpr::scratch, slot(k, offsetof(EpilogueOperand, data)));
    code_.prefetchw(code_.ptr[gpr::scratch + channel_ * (bits / 8)]);
  }
}

ChunkAddress PixelEpilogueEmitter::emit_chunk_address(size_t operand, int) {
  code_.mov(gpr::scratch, pixel_);
  code_.imul(gpr::scratch, slot(operand, offsetof(EpilogueOperand, row_step)));
  code_.add(gpr::scratch, slot(operand, offsetof(EpilogueOperand, data)));
  const TileOperand& of = epilogue_.operands[operand];
  if (of.repeats) return {.mode = ChunkMode::masked, .base = gpr::scratch};
  return {.mode = ChunkMode::masked,
          .base = gpr::scratch,
          .index = channel_,
          .scale = bits_of(of.element) / 8};
}

}  // namespace castor::jit
