// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/epilogue/epilogue_emitter.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstddef>
#include <numeric>
#include <utility>

#include "jit/emit/broadcast_operands.hpp"
#include "jit/emit/fold_ops.hpp"
#include "jit/emit/frame.hpp"
#include "jit/lane/unsigned_stores.hpp"

namespace castor::jit {

namespace {

using Xbyak::Address;
using Xbyak::Operand;
using Xbyak::Reg64;
using Xbyak::Xmm;
using Xbyak::Ymm;
using Xbyak::Zmm;

constexpr int vector_bytes = 64;

/// Bytes of the frame after those that EpilogueAddresses uses, where there are folds: the address
/// of what has been folded.
constexpr int fold_bytes = 64;

/// The highest registers that are not taken, for that many folds.
uint32_t fold_vectors(uint32_t taken, size_t folds) {
  uint32_t vectors = 0;
  for (; folds > 0; --folds) vectors |= std::bit_floor(~(taken | vectors));
  return vectors;
}

TakenRegisters with_fold_vectors(TakenRegisters taken, size_t folds) {
  taken.vectors |= fold_vectors(taken.vectors, folds);
  return taken;
}

/// Whether results of 8 bits are packed: vectors follow each other so that several can be.
bool packs(const TileEpilogue& epilogue, const EpilogueUse& use) {
  const bool may_pack = use.order == EpilogueOrder::rows || use.order == EpilogueOrder::channels;
  return may_pack && vectors_of_packs(epilogue) > 0;
}

/// The epilogue with the stores that suit its use.
TileEpilogue with_stores(TileEpilogue epilogue, const EpilogueUse& use) {
  if (!packs(epilogue, use)) store_from_unsigned(epilogue.program);
  return epilogue;
}

}  // namespace

// ---- sources and sinks

EpilogueEmitter::EpilogueEmitter(Assembler& code, const Target& target,
                                 const TileEpilogue& epilogue, const EpilogueUse& use)
    : EpilogueAddresses(code, with_stores(epilogue, use), use),
      lanes_(code, target, epilogue_.program, lanes,
             packs(epilogue_, use) ? vectors_of_packs(epilogue_) : 0, levels(),
             with_fold_vectors(use.taken, epilogue.folds())) {
  lanes_.set_spill_base(use.frame + spills_at());
  for (size_t k = 0; k < epilogue_.inputs(); ++k) add_source(k);
  sinks_.resize(epilogue_.program.sinks.size());
  for (const LaneInst& inst : epilogue_.program.code) {
    if (inst.op == LaneOp::store) add_sink(inst);
  }
}

/// Vectors follow each other along a row, or, for pixels, from row to row.
std::vector<LoopLevel> EpilogueEmitter::levels() const {
  if (use_.order == EpilogueOrder::vectors) return {};
  const auto is_same =
      use_.order == EpilogueOrder::pixels ? &TileOperand::same_in_rows : &TileOperand::repeats;
  std::vector<LoopLevel> sources;
  for (size_t k = 0; k < epilogue_.inputs(); ++k) {
    const bool is_of_row = k != epilogue_.source && epilogue_.operands[k].*is_same;
    const LoopLevel level = is_of_row ? LoopLevel::row : LoopLevel::chunk;
    sources.push_back(is_uniform(k) ? LoopLevel::nest : level);
  }
  return loop_levels(epilogue_.program, sources);
}

void EpilogueEmitter::add_source(size_t operand) {
  if (operand == epilogue_.source) {
    sources_.push_back(&sums_);
  } else if (epilogue_.operands[operand].repeats) {
    sources_.push_back(&repeated_.emplace_back(operand, *this));
  } else {
    sources_.push_back(&memory_sources_.emplace_back(operand, epilogue_.element(operand), *this));
  }
}

void EpilogueEmitter::add_sink(const LaneInst& store) {
  const auto sink = static_cast<size_t>(store.imm);
  const size_t operand = epilogue_.inputs() + sink;
  if (const Fold fold = epilogue_.program.sinks[sink].fold; fold != Fold::none) {
    uint32_t free = fold_vectors(use_.taken.vectors, epilogue_.folds());
    for (size_t before = folded_.size(); before > 0; --before) free &= free - 1;
    sinks_[sink] = &folded_.emplace_back(Zmm(std::countr_zero(free)), fold, *this);
  } else if (packs(epilogue_, use_) && is_packable(epilogue_.program, store)) {
    sinks_[sink] = &packed_.emplace_back(operand, store, code_, *this);
  } else {
    MemorySink& to = memory_sinks_.emplace_back(operand, epilogue_.element(operand), false, *this);
    to.set_store(store, epilogue_.program);
    sinks_[sink] = &to;
  }
}

void EpilogueEmitter::Sums::emit_load(LaneEmitter& emitter, const LaneInst&, const Xmm& to) {
  address ? emitter.code().vmovups(to, *address) : emitter.code().vmovaps(to, vector);
}

void EpilogueEmitter::Repeated::emit_load(LaneEmitter& emitter, const LaneInst& inst,
                                          const Xmm& to) {
  Assembler& code = emitter.code();
  const bool is_uniform = epilogue.is_uniform(operand);
  if (is_uniform) code.mov(gpr::scratch, epilogue.data(operand));
  const Reg64 address = is_uniform ? gpr::scratch : epilogue.emit_chunk_address(operand, 0).base;
  emit_broadcast_element(emitter, to, code.ptr[address], epilogue.epilogue_.element(operand),
                         bits_of(inst.type));
}

void EpilogueEmitter::emit_flush_packs(int stored_of_row) {
  const Section packs = code_.section(CodeSection::packed_results);
  for (PackedSink& packed : packed_) packed.emit_flush(lanes_, stored_of_row);
}

// ---- folds

void EpilogueEmitter::Folded::emit_store(LaneEmitter& emitter, const LaneInst& inst) {
  const Zmm value(emitter.use(inst.a).getIdx());
  const ScratchForFold scratch(emitter, fold, 32);
  const Zmm to = epilogue.mode(0) == ChunkMode::masked ? all | tail_mask : all;
  emit_fold(emitter.code(), emitter.target(), fold, 32, to, all, value, scratch.vectors());
}

/// RAX has the address of the call's operands.
void EpilogueEmitter::emit_find_folds() {
  if (folded_.empty()) return;
  const Section fold = code_.section(CodeSection::fold_results);
  const size_t results = epilogue_.in_memory();
  code_.mov(gpr::scratch, code_.ptr[gpr::scratch + results * sizeof(EpilogueOperand)]);
  code_.mov(code_.qword[gpr::stack + (use_.frame + saved_bytes)], gpr::scratch);
}

template <class Move>
void EpilogueEmitter::emit_move_folds(const Move& move) {
  if (folded_.empty()) return;
  const Section fold = code_.section(CodeSection::fold_results);
  code_.mov(gpr::scratch, code_.qword[gpr::stack + (use_.frame + saved_bytes)]);
  int at = 0;
  for (const Folded& each : folded_) {
    move(each.all, code_.zword[gpr::scratch + at]);
    at += vector_bytes;
  }
}

void EpilogueEmitter::emit_store_folds() {
  emit_move_folds([&](const Zmm& vector, const Address& at) { code_.vmovups(at, vector); });
}

// ---- the program

void EpilogueEmitter::emit_enter(const Address& operands) {
  const Section entry = code_.section(CodeSection::epilogue_operands);
  if (epilogue_.program.uses_float_state()) {
    const Section float_state = code_.section(CodeSection::float_state);
    constexpr uint32_t nearest_even_masked = 0x1f80;  // no FTZ, no DAZ, exceptions masked
    code_.stmxcsr(code_.dword[gpr::stack + use_.frame]);
    code_.ldmxcsr(code_.constant_of(nearest_even_masked));
  }
  const OwnedVector copied = lanes_.scratch();
  code_.mov(gpr::scratch, operands);
  for_each_operand([&](size_t k) {
    code_.vmovups(copied.as(128), code_.ptr[gpr::scratch + k * sizeof(EpilogueOperand)]);
    code_.vmovups(data(k), copied.as(128));
  });
  emit_find_folds();
}

int EpilogueEmitter::spills_at() const {
  return saved_bytes + (epilogue_.folds() > 0 ? fold_bytes : 0);
}

int EpilogueEmitter::frame_bytes() const {
  const auto values = static_cast<int>(epilogue_.program.code.size());
  return spills_at() + values * vector_bytes;
}

void EpilogueEmitter::emit_leave() {
  assert(spills_at() + lanes_.spill_bytes() <= frame_bytes());
  if (epilogue_.program.uses_float_state()) {
    const Section float_state = code_.section(CodeSection::float_state);
    code_.ldmxcsr(code_.dword[gpr::stack + use_.frame]);
  }
}

void EpilogueEmitter::emit_begin() {
  lanes_.emit_constants(sources_, sinks_);
  lanes_.emit_hoisted(LoopLevel::nest, sources_);
  emit_move_folds([&](const Zmm& vector, const Address& at) { code_.vmovups(vector, at); });
}

void EpilogueEmitter::emit_apply(const Address& sums) {
  sums_.address = sums;
  lanes_.emit_chunk(sources_, sinks_, CodeSection::epilogue);
}

void EpilogueEmitter::emit_apply(const Xmm& sums) {
  sums_.address.reset();
  sums_.vector = sums;
  lanes_.emit_chunk(sources_, sinks_, CodeSection::epilogue);
}

int EpilogueEmitter::group_rows() const {
  constexpr int chunks = PackedSink::chunks_of_pack;
  return packed_.empty() ? 1 : chunks / std::gcd(chunks, use_.row_vectors);
}

void EpilogueEmitter::emit_apply_rows(const Xbyak::RegExp& sums, int rows) {
  for (int row = 0; row < rows; ++row) {
    emit_begin_row();
    for (vector_ = 0; vector_ < use_.row_vectors; ++vector_) {
      emit_apply(code_.ptr[sums + (row * use_.row_vectors + vector_) * vector_bytes]);
    }
    lanes_.release_hoisted(LoopLevel::row);
    if (row + 1 == rows) emit_flush_packs(use_.row_vectors);
    emit_next_row();
  }
}

}  // namespace castor::jit
