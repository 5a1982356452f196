// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/row_epilogue.hpp"

#include "jit/emit/frame.hpp"

namespace castor::jit {

namespace {

/// Of the frame, before the rows' addresses: the caller's MXCSR.
constexpr int mxcsr_bytes = 8;

}  // namespace

RowEpilogueEmitter::RowEpilogueEmitter(Assembler& code, const Target& target,
                                       const TileEpilogue& epilogue, const TakenRegisters& taken,
                                       int frame, const Xbyak::Reg64& element,
                                       const Xbyak::Reg64& row_step)
    : TileEpilogueEmitter(code, target, epilogue, taken, frame,
                          levels_of_chunks(epilogue, &TileOperand::repeats),
                          epilogue.packs ? vectors_of_packs(epilogue) : 0),
      element_(element),
      row_step_(row_step) {
  static_assert(mxcsr_bytes + 8 * (max_tile_operands + 1) <= saved_bytes);
  replace_packable(epilogue, sinks_, packed_, *this);
}

Xbyak::Address RowEpilogueEmitter::row_address(size_t operand) {
  return code_.qword[gpr::stack + (frame_ + mxcsr_bytes + 8 * static_cast<int>(operand))];
}

void RowEpilogueEmitter::begin(const Xbyak::Address& operands) {
  emit_constants();
  emit_hoisted(LoopLevel::nest);
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

void RowEpilogueEmitter::flush() {
  for (PackedRows& rows : packed_) rows.flush(lanes_);
}

void RowEpilogueEmitter::prefetch(const Xbyak::Address& distance, const Xbyak::Reg64& scratch) {
  constexpr int min_bits = 32;  // narrower results come to the same lines again and again
  for (size_t k = epilogue_.inputs; k < epilogue_.operands.size(); ++k) {
    const int bits = bits_of(epilogue_.operands[k].element);
    if (bits < min_bits) continue;
    code_.mov(scratch, distance);
    code_.add(scratch, element_);
    code_.mov(gpr::scratch, row_address(k));
    code_.prefetchw(code_.ptr[gpr::scratch + scratch * (bits / 8)]);
  }
}

ChunkAddress RowEpilogueEmitter::emit_chunk_address(size_t operand, int) {
  code_.mov(gpr::scratch, row_address(operand));
  const TileOperand& of = epilogue_.operands[operand];
  if (of.repeats) return {.mode = ChunkMode::masked, .base = gpr::scratch};
  return {.mode = ChunkMode::masked,
          .base = gpr::scratch,
          .index = element_,
          .scale = bits_of(of.element) / 8};
}

/// Stores chunks of which the last one's row is the current, or the one before. Parts of a vector
/// can be stored by themselves, but not under a mask.
void RowEpilogueEmitter::PackedRows::put(LaneEmitter& emitter, const OwnedVector& pack, int chunks,
                                         bool is_flush) {
  Assembler& code = rows_.code_;
  code.mov(gpr::scratch, rows_.row_address(operand_));
  code.add(gpr::scratch, rows_.element_);
  if (is_flush) code.sub(gpr::scratch, rows_.row_step_);
  const Xbyak::Zmm vector(pack.as(512).getIdx());
  const OwnedVector part = emitter.scratch();
  const Xbyak::Xmm masked = part.as(128);
  Xbyak::Label whole;
  Xbyak::Label done;
  code.kortestw(tail_mask, tail_mask);
  code.jc(whole, Xbyak::CodeGenerator::T_NEAR);
  put_chunks(vector, chunks, &masked);
  code.jmp(done, Xbyak::CodeGenerator::T_NEAR);
  code.L(whole);
  put_chunks(vector, chunks, nullptr);
  code.L(done);
}

/// `masked`: a register for parts that are stored under the mask; null: whole ones.
void RowEpilogueEmitter::PackedRows::put_chunks(const Xbyak::Zmm& pack, int chunks,
                                                const Xbyak::Xmm* masked) {
  Assembler& code = rows_.code_;
  const Xbyak::Address to = code.ptr[gpr::scratch];
  for (int chunk = chunks - 1; chunk > 0; --chunk) {
    const auto part = static_cast<uint8_t>(chunk);
    if (masked == nullptr) {
      code.vextracti32x4(to, pack, part);
    } else {
      code.vextracti32x4(*masked, pack, part);
      code.vmovdqu8(to | tail_mask, *masked);
    }
    code.sub(gpr::scratch, rows_.row_step_);
  }
  const Xbyak::Xmm first(pack.getIdx());
  code.vmovdqu8(masked == nullptr ? to : to | tail_mask, first);
}

}  // namespace castor::jit
