// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/row_epilogue.hpp"

#include "jit/emit/frame.hpp"
#include "jit/lane/hoist.hpp"

namespace castor::jit {

namespace {

/// Of the frame, before the rows' addresses: the caller's MXCSR.
constexpr int mxcsr_bytes = 8;

/// Operands with one element for a row are the same for it.
std::vector<Scope> scopes_in_rows(const TileEpilogue& epilogue) {
  std::vector<Scope> sources;
  for (size_t k = 0; k < epilogue.inputs; ++k) {
    const bool repeats = k != epilogue.source && epilogue.operands[k].repeats;
    sources.push_back(repeats ? Scope::row : Scope::chunk);
  }
  return scopes_of(epilogue.program, sources);
}

}  // namespace

RowEpilogueEmitter::RowEpilogueEmitter(Assembler& code, const Target& target,
                                       const TileEpilogue& epilogue, const TakenRegisters& taken,
                                       int frame, const Xbyak::Reg64& element)
    : TileEpilogueEmitter(code, target, epilogue, taken, frame, scopes_in_rows(epilogue)),
      element_(element) {
  static_assert(mxcsr_bytes + 8 * (most_tile_operands + 1) <= saved_bytes);
}

Xbyak::Address RowEpilogueEmitter::row_address(size_t operand) {
  return code_.qword[gpr::stack + (frame_ + mxcsr_bytes + 8 * static_cast<int>(operand))];
}

void RowEpilogueEmitter::begin(const Xbyak::Address& operands) {
  load_constants();
  emit_scope(Scope::nest);
  code_.mov(gpr::scratch, operands);
  for (size_t k = 0; k < epilogue_.operands.size(); ++k) {
    if (k == epilogue_.source) continue;
    code_.mov(element_, code_.qword[gpr::scratch + static_cast<int>(k * sizeof(EpilogueOperand))]);
    code_.mov(row_address(k), element_);
  }
}

void RowEpilogueEmitter::next_row(const Xbyak::Address& operands) {
  code_.mov(gpr::scratch, operands);
  for (size_t k = 0; k < epilogue_.operands.size(); ++k) {
    if (k == epilogue_.source) continue;
    const size_t at = k * sizeof(EpilogueOperand) + offsetof(EpilogueOperand, row_step);
    code_.mov(element_, code_.qword[gpr::scratch + static_cast<int>(at)]);
    code_.add(row_address(k), element_);
  }
}

void RowEpilogueEmitter::prefetch(const Xbyak::Address& distance, const Xbyak::Reg64& scratch) {
  constexpr int least_bits = 32;  // narrower results come to the same lines again and again
  for (size_t k = epilogue_.inputs; k < epilogue_.operands.size(); ++k) {
    const int bits = bits_of(epilogue_.operands[k].element);
    if (bits < least_bits) continue;
    code_.mov(scratch, distance);
    code_.add(scratch, element_);
    code_.mov(gpr::scratch, row_address(k));
    code_.prefetchw(code_.ptr[gpr::scratch + scratch * (bits / 8)]);
  }
}

OperandPlace RowEpilogueEmitter::locate(size_t operand, int) {
  code_.mov(gpr::scratch, row_address(operand));
  const TileOperand& of = epilogue_.operands[operand];
  if (of.repeats) return {.mode = ChunkMode::masked, .base = gpr::scratch};
  return {.mode = ChunkMode::masked,
          .base = gpr::scratch,
          .index = element_,
          .scale = bits_of(of.element) / 8};
}

}  // namespace castor::jit
