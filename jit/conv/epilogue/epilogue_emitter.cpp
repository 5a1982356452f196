// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/epilogue/epilogue_emitter.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <numeric>
#include <utility>

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

/// Of operands: their addresses from the first register on, row steps from the last one on.
const std::array<Reg64, max_tile_operands> operand_registers = {
    Reg64(Operand::R9),  Reg64(Operand::RSI), Reg64(Operand::RDX),
    Reg64(Operand::R13), Reg64(Operand::R14), Reg64(Operand::R15)};

constexpr int lanes = 16;
constexpr int vector_bytes = 64;

/// Of the frame, before spilled values: the caller's MXCSR, then the call's EpilogueOperands.
constexpr int operands_at = 16;
constexpr int saved_bytes = 128;
static_assert(operands_at + sizeof(EpilogueOperand) * (max_tile_operands + 1) <= saved_bytes);

/// The frame then has, where there are folds, the address of what has been folded.
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

// ---- addresses

template <class Visit>
void EpilogueAddresses::for_each_operand(const Visit& visit) const {
  for (size_t k = 0; k < epilogue_.in_memory(); ++k) {
    if (k != epilogue_.source) visit(k);
  }
}

Reg64 EpilogueAddresses::pointer(size_t operand) const {
  return operand_registers[operand < epilogue_.source ? operand : operand - 1];
}

/// Operands that move take what addresses leave, in their order; the last ones may have none.
std::optional<Reg64> EpilogueAddresses::step_register(size_t operand) const {
  if (!in_registers() || !moves(operand)) return std::nullopt;
  size_t left = operand_registers.size() - (epilogue_.in_memory() - 1);
  for (size_t k = 0; k < operand && left > 0; ++k) {
    if (k != epilogue_.source && moves(k)) --left;
  }
  if (left == 0) return std::nullopt;
  return operand_registers[epilogue_.in_memory() - 1 + (left - 1)];
}

Address EpilogueAddresses::slot(size_t operand, size_t field) {
  const size_t at = operands_at + operand * sizeof(EpilogueOperand) + field;
  return code_.qword[gpr::stack + (use_.frame + static_cast<int>(at))];
}

void EpilogueAddresses::emit_point(const Reg64& element) {
  const Section operands = code_.section(CodeSection::epilogue_operands);
  for_each_operand([&](size_t k) {
    code_.mov(pointer(k), data(k));
    if (!epilogue_.operands[k].repeats) {
      code_.lea(pointer(k), code_.ptr[pointer(k) + element * bytes_of(k)]);
    }
    if (const std::optional<Reg64> step = step_register(k)) code_.mov(*step, row_step(k));
  });
}

void EpilogueAddresses::emit_skip_rows(const Reg64& rows) {
  const Section operands = code_.section(CodeSection::epilogue_operands);
  for_each_operand([&](size_t k) {
    if (!moves(k)) return;
    with_row_step(k, [&](const auto& step) { code_.mov(gpr::scratch, step); });
    code_.imul(gpr::scratch, rows);
    code_.add(pointer(k), gpr::scratch);
  });
}

void EpilogueAddresses::emit_next_row() {
  const Section operands = code_.section(CodeSection::epilogue_operands);
  for_each_operand([&](size_t k) {
    if (!moves(k)) return;
    if (in_registers()) {
      return with_row_step(k, [&](const auto& step) { code_.add(pointer(k), step); });
    }
    code_.mov(gpr::scratch, row_step(k));
    code_.add(data(k), gpr::scratch);
  });
}

void EpilogueAddresses::emit_prefetch_of_rows(int rows, int elements, const Address& pixel,
                                              const Reg64& scratch) {
  const Section prefetch = code_.section(CodeSection::prefetch);
  constexpr int line_bytes = 64;
  for_each_operand([&](size_t k) {
    const TileOperand& operand = epilogue_.operands[k];
    if (k >= epilogue_.inputs() || operand.repeats || operand.same_in_rows) return;
    code_.mov(scratch, pixel);
    code_.mov(gpr::scratch, data(k));
    code_.lea(gpr::scratch, code_.ptr[gpr::scratch + scratch * bytes_of(k)]);
    code_.mov(scratch, row_step(k));
    for (int row = 0; row < rows; ++row) {
      if (row > 0) code_.add(gpr::scratch, scratch);
      for (int at = 0; at < elements * bytes_of(k); at += line_bytes) {
        code_.prefetcht0(code_.ptr[gpr::scratch + at]);
      }
    }
  });
}

void EpilogueAddresses::emit_prefetch(const Address& distance, const Reg64& scratch) {
  const Section prefetch = code_.section(CodeSection::prefetch);
  constexpr int min_bytes = 4;  // narrower results come to the same cache lines again and again
  const bool by_pixels = use_.order == EpilogueOrder::pixels;
  const Reg64& ahead = by_pixels ? gpr::scratch : scratch;
  for_each_operand([&](size_t k) {
    if (k < epilogue_.inputs() || bytes_of(k) < min_bytes) return;
    code_.mov(ahead, by_pixels ? use_.position : use_.element);
    code_.add(ahead, distance);
    if (by_pixels) code_.imul(gpr::scratch, row_step(k));
    by_pixels ? code_.add(gpr::scratch, data(k)) : code_.mov(gpr::scratch, data(k));
    const Reg64& index = by_pixels ? use_.element : scratch;
    code_.prefetchw(code_.ptr[gpr::scratch + index * bytes_of(k)]);
  });
}

ChunkMode EpilogueAddresses::mode(size_t) const {
  return use_.order == EpilogueOrder::rows ? ChunkMode::whole : ChunkMode::masked;
}

ChunkAddress EpilogueAddresses::emit_chunk_address(size_t operand, int) {
  const int bytes = epilogue_.operands[operand].repeats ? 0 : bytes_of(operand);
  if (in_registers()) {
    const int64_t displacement = int64_t{vector_} * lanes * bytes;
    return {.mode = mode(operand), .base = pointer(operand), .displacement = displacement};
  }
  if (use_.order == EpilogueOrder::channels) {
    code_.mov(gpr::scratch, data(operand));
  } else {
    code_.mov(gpr::scratch, use_.position);
    code_.imul(gpr::scratch, row_step(operand));
    code_.add(gpr::scratch, data(operand));
  }
  return {.mode = mode(operand), .base = gpr::scratch, .index = use_.element, .scale = bytes};
}

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
    const bool is_source = k == epilogue_.source;
    const bool is_of_row = !is_source && epilogue_.operands[k].*is_same;
    sources.push_back(!is_source && is_uniform(k) ? LoopLevel::nest
                      : is_of_row                 ? LoopLevel::row
                                                  : LoopLevel::chunk);
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
    sinks_[sink] = &packed_.emplace_back(operand, store, *this);
  } else {
    MemorySink& to = memory_sinks_.emplace_back(operand, epilogue_.element(operand), false, *this);
    to.set_store(store, epilogue_.program);
    sinks_[sink] = &to;
  }
}

void EpilogueEmitter::Sums::emit_load(LaneEmitter& emitter, const LaneInst&, const Xmm& to) {
  address ? emitter.code().vmovups(to, *address) : emitter.code().vmovaps(to, vector);
}

void EpilogueEmitter::Repeated::emit_load(LaneEmitter& emitter, const LaneInst&, const Xmm& to) {
  Assembler& code = emitter.code();
  const bool is_uniform = epilogue.is_uniform(operand);
  if (is_uniform) code.mov(gpr::scratch, epilogue.data(operand));
  const Reg64 address = is_uniform ? gpr::scratch : epilogue.emit_chunk_address(operand, 0).base;
  code.vpbroadcastd(to, code.ptr[address]);
}

// ---- packed results

void EpilogueEmitter::Packed::reserve_constants(LaneEmitter& emitter) {
  packer = Packer(emitter, bits_of(store.type), 8, store.narrowing);
  assert(packer.chunks() == chunks_of_pack);
  packer.reserve_constants(emitter);
}

void EpilogueEmitter::Packed::emit_store(LaneEmitter& emitter, const LaneInst& inst) {
  ++waiting;
  OwnedVector pack;
  if (!packer.emit_push(emitter, emitter.take(inst.a), pack)) return;
  epilogue.emit_put(operand, pack, std::exchange(waiting, 0), epilogue.vector_ + 1);
}

/// What fills the rest of the vector is not stored.
void EpilogueEmitter::Packed::emit_flush(LaneEmitter& emitter, int stored_of_row) {
  if (waiting == 0) return;
  OwnedVector pack;
  for (int i = waiting; i < chunks_of_pack; ++i) {
    packer.emit_push(emitter, emitter.scratch(), pack);
  }
  epilogue.emit_put(operand, pack, std::exchange(waiting, 0), stored_of_row);
}

void EpilogueEmitter::emit_flush_packs(int stored_of_row) {
  const Section packs = code_.section(CodeSection::packed_results);
  for (Packed& packed : packed_) packed.emit_flush(lanes_, stored_of_row);
}

/// Stores the first chunks of a pack, which end with the first `stored_of_row` vectors of the
/// current row. Parts of a vector can be stored by themselves, but not under a mask.
void EpilogueEmitter::emit_put(size_t operand, const OwnedVector& pack, int chunks,
                               int stored_of_row) {
  const Zmm vector(pack.as(512).getIdx());
  if (mode(operand) == ChunkMode::whole) {
    return emit_put_rows(operand, vector, chunks, stored_of_row, nullptr);
  }
  const OwnedVector copied = lanes_.scratch();
  const Xmm part = copied.as(128);
  Xbyak::Label whole;
  Xbyak::Label done;
  code_.kortestw(tail_mask, tail_mask);
  code_.jc(whole, Xbyak::CodeGenerator::T_NEAR);
  emit_put_rows(operand, vector, chunks, stored_of_row, &part);
  code_.jmp(done, Xbyak::CodeGenerator::T_NEAR);
  code_.L(whole);
  emit_put_rows(operand, vector, chunks, stored_of_row, nullptr);
  code_.L(done);
}

/// The same from the last row to the first, under the mask where there is a `part` to copy chunks
/// to.
void EpilogueEmitter::emit_put_rows(size_t operand, const Zmm& pack, int chunks, int stored_of_row,
                                    const Xmm* part) {
  if (in_registers()) {
    code_.mov(gpr::scratch, pointer(operand));
  } else {
    code_.mov(gpr::scratch, data(operand));
    code_.add(gpr::scratch, use_.element);
  }
  while (chunks > 0) {
    if (stored_of_row == 0) {
      const auto emit_back = [&](const auto& step) { code_.sub(gpr::scratch, step); };
      in_registers() ? with_row_step(operand, emit_back) : emit_back(use_.position);
      stored_of_row = use_.row_vectors;
    }
    const int count = std::min(stored_of_row, chunks);
    chunks -= count;
    stored_of_row -= count;
    part == nullptr ? emit_put_parts(pack, chunks, chunks + count, stored_of_row)
                    : emit_put_masked(pack, chunks, *part);
  }
}

/// Stores consecutive chunks of a pack from a vector of the row on, in parts as large as can be
/// taken out.
void EpilogueEmitter::emit_put_parts(const Zmm& pack, int first, int end, int vector) {
  for (int chunk = first; chunk < end;) {
    const Address to = code_.ptr[gpr::scratch + (vector + chunk - first) * lanes];
    const int left = end - chunk;
    const int count = left == Packed::chunks_of_pack ? left : chunk % 2 == 0 && left > 1 ? 2 : 1;
    if (count == Packed::chunks_of_pack) {
      code_.vmovups(to, pack);
    } else if (count == 2) {
      chunk == 0 ? code_.vmovups(to, Ymm(pack.getIdx())) : code_.vextracti64x4(to, pack, 1);
    } else {
      chunk == 0 ? code_.vmovups(to, Xmm(pack.getIdx()))
                 : code_.vextracti32x4(to, pack, static_cast<uint8_t>(chunk));
    }
    chunk += count;
  }
}

/// The same of one chunk, of which `part` takes a copy, under the mask.
void EpilogueEmitter::emit_put_masked(const Zmm& pack, int chunk, const Xmm& part) {
  if (chunk > 0) code_.vextracti32x4(part, pack, static_cast<uint8_t>(chunk));
  code_.vmovdqu8(code_.ptr[gpr::scratch] | tail_mask, chunk > 0 ? part : Xmm(pack.getIdx()));
}

// ---- folds

void EpilogueEmitter::Folded::emit_store(LaneEmitter& emitter, const LaneInst& inst) {
  const Zmm value(emitter.use(inst.a).getIdx());
  const Zmm to = epilogue.mode(0) == ChunkMode::masked ? all | tail_mask : all;
  emit_fold(emitter.code(), emitter.target(), fold, 32, to, all, value, FoldScratch());
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
  constexpr int chunks = Packed::chunks_of_pack;
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
