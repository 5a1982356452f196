// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/tile_epilogue.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "jit/emit/frame.hpp"
#include "jit/lane/hoist.hpp"
#include "jit/lane/unsigned_stores.hpp"
#include "jit/plan/access_pattern.hpp"

namespace castor::jit {

namespace {

using Xbyak::Operand;
using Xbyak::Reg64;
using Xbyak::Xmm;

const std::array<Reg64, most_tile_operands> pointers = {Reg64(Operand::R9),  Reg64(Operand::RSI),
                                                        Reg64(Operand::RDX), Reg64(Operand::R13),
                                                        Reg64(Operand::R14), Reg64(Operand::R15)};

constexpr size_t most_instructions = 64;
constexpr int lanes = 16;
constexpr int most_lane_bits = 32;

/// Whether the operation goes lane by lane, through general registers.
bool is_scalar(LaneOp op) {
  return op == LaneOp::divide_each || op == LaneOp::remainder_each ||
         op == LaneOp::float_remainder_each;
}

bool is_simple(const LaneProgram& program) {
  return program.code.size() <= most_instructions && program.widest_bits() <= most_lane_bits &&
         std::ranges::none_of(program.code,
                              [](const LaneInst& inst) { return is_scalar(inst.op); });
}

/// Registers that an epilogue has at least, and one that encodes by tables or looks up.
constexpr int least_vectors = 10;
constexpr int least_table_vectors = 16;

}  // namespace

bool is_packable(const TileEpilogue& epilogue, const LaneInst& inst) {
  if (inst.op != LaneOp::store || looks_up(inst.narrowing) || encodes(inst.narrowing)) return false;
  const TileOperand& to = epilogue.operands[epilogue.inputs + static_cast<size_t>(inst.imm)];
  return bits_of(inst.type) == 32 && bits_of(to.element) == 8;
}

std::vector<LoopLevel> levels_of_chunks(const TileEpilogue& epilogue, bool TileOperand::*is_same) {
  std::vector<LoopLevel> sources;
  for (size_t k = 0; k < epilogue.inputs; ++k) {
    const bool is_of_row = k != epilogue.source && epilogue.operands[k].*is_same;
    sources.push_back(is_of_row ? LoopLevel::row : LoopLevel::chunk);
  }
  return loop_levels(epilogue.program, sources);
}

int vectors_for(const TileEpilogue* epilogue) {
  if (epilogue == nullptr) return 0;
  const bool by_tables = std::ranges::any_of(epilogue->program.code, [](const LaneInst& inst) {
    return looks_up(inst.narrowing) || encodes(inst.narrowing);
  });
  return by_tables ? least_table_vectors : least_vectors;
}

std::optional<TileEpilogue> tile_epilogue(const Nest& nest, const EpilogueWalk& walk,
                                          const Target& target) {
  if (!target.has_avx512() || !is_simple(nest.program)) return std::nullopt;
  if (nest.operands() > most_tile_operands + 1) return std::nullopt;
  TileEpilogue epilogue;
  epilogue.inputs = nest.inputs.size();
  epilogue.source = nest.epilogue->source;
  for (size_t k = 0; k < nest.operands(); ++k) {
    const TileOperand operand = {nest.element(k), walk.operands[k].element == 0,
                                 walk.operands[k].row == 0};
    const bool is_repeated_input = operand.repeats && k < epilogue.inputs;
    if (is_sub_byte(operand.element)) return std::nullopt;
    if (is_repeated_input && bits_of(operand.element) != most_lane_bits) return std::nullopt;
    if (operand.repeats && k >= epilogue.inputs) return std::nullopt;
    epilogue.operands.push_back(operand);
  }
  epilogue.program = nest.program;
  epilogue.packed = nest.program;
  store_from_unsigned(epilogue.program);
  epilogue.rows_of_channels = walk.rows_of_channels;
  return epilogue;
}

std::optional<TileEpilogue> likely_tile_epilogue(const Function& function, const Nest& nest,
                                                 const Target& target) {
  const Result<BoundShapes> shapes = likely_shapes(function);
  if (!shapes) return std::nullopt;
  const Dims& space = shapes->values[nest.space];
  std::vector<Dims> strides;
  for (const NestInput& input : nest.inputs) {
    const Dims& extents = shapes->values[input.value];
    strides.push_back(strides_in_space(input.axes, extents, dense_strides(extents), space));
  }
  strides.resize(nest.operands(), dense_strides(space));
  const std::optional<EpilogueWalk> walk = epilogue_walk(nest, space, strides);
  return walk ? tile_epilogue(nest, *walk, target) : std::nullopt;
}

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
