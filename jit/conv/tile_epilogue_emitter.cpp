// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/tile_epilogue_emitter.hpp"

#include <array>
#include <cstddef>

#include "jit/emit/frame.hpp"

namespace castor::jit {

namespace {

using Xbyak::Operand;
using Xbyak::Reg64;
using Xbyak::Xmm;

const std::array<Reg64, max_tile_operands> pointers = {Reg64(Operand::R9),  Reg64(Operand::RSI),
                                                       Reg64(Operand::RDX), Reg64(Operand::R13),
                                                       Reg64(Operand::R14), Reg64(Operand::R15)};

constexpr int lanes = 16;

}  // namespace

TileEpilogueEmitter::TileEpilogueEmitter(Assembler& code, const Target& target,
                                         const TileEpilogue& epilogue, uint32_t taken_vectors,
                                         int frame)
    : TileEpilogueEmitter(code, target, epilogue, {.vectors = taken_vectors}, frame, {}) {}

TileEpilogueEmitter::TileEpilogueEmitter(Assembler& code, const Target& target,
                                         const TileEpilogue& epilogue, const TakenRegisters& taken,
                                         int frame, std::vector<LoopLevel> levels,
                                         int pending_vectors)
    : code_(code),
      epilogue_(epilogue),
      frame_(frame),
      lanes_(code, target, epilogue.program, lanes, pending_vectors, std::move(levels), taken) {
  lanes_.set_spill_base(frame + saved_bytes);
  for (size_t k = 0; k < epilogue.operands.size(); ++k) {
    const TileOperand& operand = epilogue.operands[k];
    if (k >= epilogue.inputs) {
      sinks_.push_back(&memory_sinks_.emplace_back(k, operand.element, false, *this));
    } else if (k == epilogue.source) {
      sources_.push_back(&sums_);
    } else if (operand.repeats) {
      sources_.push_back(&repeated_.emplace_back(k, *this));
    } else {
      sources_.push_back(&memory_sources_.emplace_back(k, operand.element, *this));
    }
  }
  for (const LaneInst& inst : epilogue.program.code) {
    if (inst.op != LaneOp::store) continue;
    memory_sinks_[static_cast<size_t>(inst.imm)].set_store(inst, epilogue.program);
  }
}

void TileEpilogueEmitter::enter() {
  if (!epilogue_.program.uses_float_state()) return;
  constexpr uint32_t nearest_even_masked = 0x1f80;  // no FTZ, no DAZ, exceptions masked
  code_.stmxcsr(code_.dword[gpr::stack + frame_]);
  code_.ldmxcsr(code_.constant_of(nearest_even_masked));
}

void TileEpilogueEmitter::leave() {
  if (epilogue_.program.uses_float_state()) code_.ldmxcsr(code_.dword[gpr::stack + frame_]);
}

Reg64 TileEpilogueEmitter::pointer(size_t operand) const {
  return pointers[operand < epilogue_.source ? operand : operand - 1];
}

void TileEpilogueEmitter::point(const Reg64& operands, const Reg64& element) {
  for (size_t k = 0; k < epilogue_.operands.size(); ++k) {
    if (k == epilogue_.source) continue;
    const auto at = static_cast<int>(k * sizeof(EpilogueOperand));
    code_.mov(pointer(k), code_.qword[operands + at]);
    const TileOperand& operand = epilogue_.operands[k];
    if (operand.repeats) continue;
    code_.lea(pointer(k), code_.ptr[pointer(k) + element * (bits_of(operand.element) / 8)]);
  }
}

void TileEpilogueEmitter::skip_rows(const Reg64& operands, const Reg64& rows) {
  for (size_t k = 0; k < epilogue_.operands.size(); ++k) {
    if (k == epilogue_.source) continue;
    const size_t at = k * sizeof(EpilogueOperand) + offsetof(EpilogueOperand, row_step);
    code_.mov(gpr::scratch, code_.qword[operands + static_cast<int>(at)]);
    code_.imul(gpr::scratch, rows);
    code_.add(pointer(k), gpr::scratch);
  }
}

void TileEpilogueEmitter::next_row(const Xbyak::Address& operands) {
  code_.mov(gpr::scratch, operands);
  for (size_t k = 0; k < epilogue_.operands.size(); ++k) {
    if (k == epilogue_.source) continue;
    const size_t at = k * sizeof(EpilogueOperand) + offsetof(EpilogueOperand, row_step);
    code_.add(pointer(k), code_.qword[gpr::scratch + static_cast<int>(at)]);
  }
}

ChunkAddress TileEpilogueEmitter::emit_chunk_address(size_t operand, int) {
  return {.mode = ChunkMode::masked, .base = pointer(operand)};
}

void TileEpilogueEmitter::apply(const Xbyak::Address& sums) {
  sums_.address = sums;
  apply_to_sums();
}

void TileEpilogueEmitter::apply(const Xmm& sums) {
  sums_.address.reset();
  sums_.vector = sums;
  apply_to_sums();
}

void TileEpilogueEmitter::Sums::emit_load(LaneEmitter& emitter, const LaneInst&, const Xmm& to) {
  if (address) {
    emitter.code().vmovups(to, *address);
  } else {
    emitter.code().vmovaps(to, vector);
  }
}

void TileEpilogueEmitter::Repeated::emit_load(LaneEmitter& emitter, const LaneInst&,
                                              const Xmm& to) {
  emitter.code().vpbroadcastd(to,
                              emitter.code().ptr[locator_.emit_chunk_address(operand_, 0).base]);
}

}  // namespace castor::jit
