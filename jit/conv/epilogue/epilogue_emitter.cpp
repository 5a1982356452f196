// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/epilogue/epilogue_emitter.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <numeric>
#include <utility>

#include "jit/emit/frame.hpp"
#include "jit/lane/hoist.hpp"
#include "jit/lane/unsigned_stores.hpp"

namespace castor::jit {

namespace {

using Xbyak::Address;
using Xbyak::Operand;
using Xbyak::Reg64;
using Xbyak::Xmm;
using Xbyak::Zmm;

const std::array<Reg64, max_tile_operands> pointers = {Reg64(Operand::R9),  Reg64(Operand::RSI),
                                                       Reg64(Operand::RDX), Reg64(Operand::R13),
                                                       Reg64(Operand::R14), Reg64(Operand::R15)};

constexpr int lanes = 16;
constexpr int vector_bytes = 64;

/// A field of an operand's EpilogueOperand.
Address field_of(Assembler& code, const Reg64& operands, size_t operand, size_t field) {
  return code.qword[operands + static_cast<int>(operand * sizeof(EpilogueOperand) + field)];
}

/// Whether results of 8 bits are packed: sums follow each other so that several can be.
bool packs(const TileEpilogue& epilogue, const EpilogueUse& use) {
  return (use.row_vectors > 0 || use.addresses == AddressesIn::rows) &&
         vectors_of_packs(epilogue) > 0;
}

/// The epilogue with the stores that suit its use.
TileEpilogue with_stores(TileEpilogue epilogue, const EpilogueUse& use) {
  if (!packs(epilogue, use)) store_from_unsigned(epilogue.program);
  return epilogue;
}

constexpr size_t data_field = offsetof(EpilogueOperand, data);
constexpr size_t step_field = offsetof(EpilogueOperand, row_step);

}  // namespace

// ---- addresses

template <class Visit>
void EpilogueAddresses::for_each_operand(const Visit& visit) {
  for (size_t k = 0; k < epilogue_.operands.size(); ++k) {
    if (k != epilogue_.source) visit(k, epilogue_.operands[k]);
  }
}

Reg64 EpilogueAddresses::pointer(size_t operand) const {
  return pointers[operand < epilogue_.source ? operand : operand - 1];
}

Address EpilogueAddresses::slot(size_t operand, size_t field) {
  const size_t at = operand * sizeof(EpilogueOperand) + field;
  return code_.qword[gpr::stack + (use_.frame + mxcsr_bytes + static_cast<int>(at))];
}

void EpilogueAddresses::point(const Reg64& operands, const Reg64& element) {
  for_each_operand([&](size_t k, const TileOperand& operand) {
    code_.mov(pointer(k), field_of(code_, operands, k, data_field));
    if (operand.repeats) return;
    code_.lea(pointer(k), code_.ptr[pointer(k) + element * (bits_of(epilogue_.element(k)) / 8)]);
  });
}

void EpilogueAddresses::skip_rows(const Reg64& operands, const Reg64& rows) {
  for_each_operand([&](size_t k, const TileOperand&) {
    code_.mov(gpr::scratch, field_of(code_, operands, k, step_field));
    code_.imul(gpr::scratch, rows);
    code_.add(pointer(k), gpr::scratch);
  });
}

void EpilogueAddresses::next_row(const Address& operands) {
  code_.mov(gpr::scratch, operands);
  for_each_operand([&](size_t k, const TileOperand&) {
    const Address step = field_of(code_, gpr::scratch, k, step_field);
    if (in_registers()) {
      code_.add(pointer(k), step);
    } else {
      code_.mov(use_.element, step);
      code_.add(slot(k, data_field), use_.element);
    }
  });
}

void EpilogueAddresses::add_row_step(size_t operand, const Address& operands, int sign) {
  code_.mov(gpr::scratch, operands);
  const Address step = field_of(code_, gpr::scratch, operand, step_field);
  sign > 0 ? code_.add(pointer(operand), step) : code_.sub(pointer(operand), step);
}

void EpilogueAddresses::load_operands(const Address& operands) {
  const bool by_pixels = use_.addresses == AddressesIn::pixels;
  const Reg64 value = by_pixels ? use_.position : use_.element;
  code_.mov(gpr::scratch, operands);
  for_each_operand([&](size_t k, const TileOperand&) {
    for (const size_t field : {data_field, step_field}) {
      if (field == step_field && !by_pixels) continue;
      code_.mov(value, field_of(code_, gpr::scratch, k, field));
      code_.mov(slot(k, field), value);
    }
  });
}

void EpilogueAddresses::prefetch(const Address& distance, const Reg64& scratch) {
  constexpr int min_bits = 32;  // narrower results come to the same cache lines again and again
  for_each_operand([&](size_t k, const TileOperand&) {
    const int bits = bits_of(epilogue_.element(k));
    if (k < epilogue_.inputs() || bits < min_bits) return;
    if (use_.addresses == AddressesIn::rows) {
      code_.mov(scratch, distance);
      code_.add(scratch, use_.element);
      code_.mov(gpr::scratch, slot(k, data_field));
      code_.prefetchw(code_.ptr[gpr::scratch + scratch * (bits / 8)]);
    } else {
      code_.mov(gpr::scratch, use_.position);
      code_.add(gpr::scratch, distance);
      code_.imul(gpr::scratch, slot(k, step_field));
      code_.add(gpr::scratch, slot(k, data_field));
      code_.prefetchw(code_.ptr[gpr::scratch + use_.element * (bits / 8)]);
    }
  });
}

ChunkMode EpilogueAddresses::mode(size_t) const {
  return use_.row_vectors > 0 ? ChunkMode::whole : ChunkMode::masked;
}

ChunkAddress EpilogueAddresses::emit_chunk_address(size_t operand, int) {
  const TileOperand& of = epilogue_.operands[operand];
  const int bytes = of.repeats ? 0 : bits_of(epilogue_.element(operand)) / 8;
  if (in_registers()) {
    const int64_t displacement = int64_t{vector_} * lanes * bytes;
    return {.mode = mode(operand), .base = pointer(operand), .displacement = displacement};
  }
  if (use_.addresses == AddressesIn::rows) {
    code_.mov(gpr::scratch, slot(operand, data_field));
  } else {
    code_.mov(gpr::scratch, use_.position);
    code_.imul(gpr::scratch, slot(operand, step_field));
    code_.add(gpr::scratch, slot(operand, data_field));
  }
  return {.mode = mode(operand), .base = gpr::scratch, .index = use_.element, .scale = bytes};
}

// ---- packed results

void PackedSink::reserve_constants(LaneEmitter& emitter) {
  packer_ = Packer(emitter, bits_of(store_.type), 8, store_.narrowing);
  assert(packer_.chunks() == chunks_of_pack);
  packer_.reserve_constants(emitter);
}

void PackedSink::emit_store(LaneEmitter& emitter, const LaneInst& inst) {
  ++waiting_;
  OwnedVector pack;
  if (!packer_.emit_push(emitter, emitter.take(inst.a), pack)) return;
  put_(emitter, pack, std::exchange(waiting_, 0), false);
}

/// What fills the rest of the vector is not stored.
void PackedSink::flush(LaneEmitter& emitter) {
  if (waiting_ == 0) return;
  OwnedVector pack;
  for (int i = waiting_; i < chunks_of_pack; ++i)
    packer_.emit_push(emitter, emitter.scratch(), pack);
  put_(emitter, pack, std::exchange(waiting_, 0), true);
}

/// From the current row back to the one that the pack's first chunk belongs to.
void EpilogueEmitter::put_in_tile(size_t operand, const OwnedVector& pack, int chunks,
                                  bool is_flush) {
  const Zmm vector(pack.as(512).getIdx());
  // In the group, counted in chunks.
  const int end = row_ * use_.row_vectors + vector_ + (is_flush ? 0 : 1);
  const int begin = end - chunks;
  int row = row_;
  for (int last = end; last > begin;) {
    const int first = std::max(begin, row * use_.row_vectors);
    put_chunks(pointer(operand), vector, first - begin, last - begin,
               first - row * use_.row_vectors);
    last = first;
    if (last == begin) break;
    add_row_step(operand, *row_operands_, -1);
    --row;
  }
  for (; row < row_; ++row) add_row_step(operand, *row_operands_, 1);
}

/// Stores consecutive chunks of a pack from a vector of the row on: in parts as large as are where
/// they can be taken out.
void EpilogueEmitter::put_chunks(const Reg64& row, const Zmm& pack, int first, int end,
                                 int vector) {
  for (int chunk = first; chunk < end;) {
    const Address to = code_.ptr[row + (vector + chunk - first) * lanes];
    if (chunk == 0 && end == PackedSink::chunks_of_pack) {
      code_.vmovups(to, pack);
      chunk += 4;
    } else if (chunk % 2 == 0 && end - chunk >= 2) {
      chunk == 0 ? code_.vmovups(to, Xbyak::Ymm(pack.getIdx()))
                 : code_.vextracti64x4(to, pack, static_cast<uint8_t>(chunk / 2));
      chunk += 2;
    } else {
      chunk == 0 ? code_.vmovups(to, Xmm(pack.getIdx()))
                 : code_.vextracti32x4(to, pack, static_cast<uint8_t>(chunk));
      chunk += 1;
    }
  }
}

/// Stores chunks of which the last one's row of sums is the current, or the one before. Parts of a
/// vector can be stored by themselves, but not under a mask.
void EpilogueEmitter::put_in_rows(size_t operand, LaneEmitter& emitter, const OwnedVector& pack,
                                  int chunks, bool is_flush) {
  code_.mov(gpr::scratch, slot(operand, data_field));
  code_.add(gpr::scratch, use_.element);
  if (is_flush) code_.sub(gpr::scratch, use_.position);
  const Zmm vector(pack.as(512).getIdx());
  const OwnedVector part = emitter.scratch();
  const Xmm masked = part.as(128);
  Xbyak::Label whole;
  Xbyak::Label done;
  code_.kortestw(tail_mask, tail_mask);
  code_.jc(whole, Xbyak::CodeGenerator::T_NEAR);
  put_row_chunks(vector, chunks, &masked);
  code_.jmp(done, Xbyak::CodeGenerator::T_NEAR);
  code_.L(whole);
  put_row_chunks(vector, chunks, nullptr);
  code_.L(done);
}

/// `masked`: a register for parts that are stored under the mask; null: whole ones.
void EpilogueEmitter::put_row_chunks(const Zmm& pack, int chunks, const Xmm* masked) {
  const Address to = code_.ptr[gpr::scratch];
  for (int chunk = chunks - 1; chunk > 0; --chunk) {
    const auto part = static_cast<uint8_t>(chunk);
    if (masked == nullptr) {
      code_.vextracti32x4(to, pack, part);
    } else {
      code_.vextracti32x4(*masked, pack, part);
      code_.vmovdqu8(to | tail_mask, *masked);
    }
    code_.sub(gpr::scratch, use_.position);
  }
  const Xmm first(pack.getIdx());
  code_.vmovdqu8(masked == nullptr ? to : to | tail_mask, first);
}

// ---- the program

EpilogueEmitter::EpilogueEmitter(Assembler& code, const Target& target,
                                 const TileEpilogue& epilogue, const EpilogueUse& use)
    : EpilogueAddresses(code, with_stores(epilogue, use), use),
      lanes_(code, target, epilogue_.program, lanes,
             packs(epilogue_, use) ? vectors_of_packs(epilogue_) : 0, levels(), use.taken) {
  lanes_.set_spill_base(use.frame + saved_bytes);
  for (size_t k = 0; k < epilogue_.operands.size(); ++k) add_operand(k);
  add_stores();
}

/// Chunks follow each other along a row, from row to row where addresses are in pixels, or in any
/// order.
std::vector<LoopLevel> EpilogueEmitter::levels() const {
  if (in_registers() && use_.row_vectors == 0) return {};
  const auto is_same =
      use_.addresses == AddressesIn::pixels ? &TileOperand::same_in_rows : &TileOperand::repeats;
  std::vector<LoopLevel> sources;
  for (size_t k = 0; k < epilogue_.inputs(); ++k) {
    const bool is_of_row = k != epilogue_.source && epilogue_.operands[k].*is_same;
    sources.push_back(is_of_row ? LoopLevel::row : LoopLevel::chunk);
  }
  return loop_levels(epilogue_.program, sources);
}

void EpilogueEmitter::add_operand(size_t operand) {
  const TileOperand& of = epilogue_.operands[operand];
  if (operand >= epilogue_.inputs()) {
    sinks_.push_back(
        &memory_sinks_.emplace_back(operand, epilogue_.element(operand), false, *this));
  } else if (operand == epilogue_.source) {
    sources_.push_back(&sums_);
  } else if (of.repeats) {
    sources_.push_back(&repeated_.emplace_back(operand, *this));
  } else {
    sources_.push_back(&memory_sources_.emplace_back(operand, epilogue_.element(operand), *this));
  }
}

void EpilogueEmitter::add_stores() {
  for (const LaneInst& inst : epilogue_.program.code) {
    if (inst.op != LaneOp::store) continue;
    const auto sink = static_cast<size_t>(inst.imm);
    memory_sinks_[sink].set_store(inst, epilogue_.program);
    if (!packs(epilogue_, use_) || !is_packable(epilogue_.program, inst)) continue;
    const auto put = [this, operand = epilogue_.inputs() + sink](
                         LaneEmitter& emitter, const OwnedVector& pack, int chunks, bool flush) {
      in_registers() ? put_in_tile(operand, pack, chunks, flush)
                     : put_in_rows(operand, emitter, pack, chunks, flush);
    };
    sinks_[sink] = &packed_sinks_.emplace_back(inst, put);
  }
}

void EpilogueEmitter::enter() {
  if (!epilogue_.program.uses_float_state()) return;
  constexpr uint32_t nearest_even_masked = 0x1f80;  // no FTZ, no DAZ, exceptions masked
  code_.stmxcsr(code_.dword[gpr::stack + use_.frame]);
  code_.ldmxcsr(code_.constant_of(nearest_even_masked));
}

void EpilogueEmitter::leave() {
  if (epilogue_.program.uses_float_state()) code_.ldmxcsr(code_.dword[gpr::stack + use_.frame]);
}

void EpilogueEmitter::begin() {
  lanes_.emit_constants(sources_, sinks_);
  lanes_.emit_hoisted(LoopLevel::nest, sources_, {});
}

void EpilogueEmitter::begin(const Address& operands) {
  begin();
  load_operands(operands);
}

void EpilogueEmitter::apply(const Address& sums) {
  sums_.address = sums;
  lanes_.emit_chunk(sources_, sinks_, {});
}

void EpilogueEmitter::apply(const Xmm& sums) {
  sums_.address.reset();
  sums_.vector = sums;
  lanes_.emit_chunk(sources_, sinks_, {});
}

void EpilogueEmitter::flush() {
  for (PackedSink& packed : packed_sinks_) packed.flush(lanes_);
}

int EpilogueEmitter::group_rows() const {
  constexpr int chunks = PackedSink::chunks_of_pack;
  return packed_sinks_.empty() ? 1 : chunks / std::gcd(chunks, use_.row_vectors);
}

void EpilogueEmitter::apply_rows(const Xbyak::RegExp& sums, int rows, const Address& operands) {
  row_operands_ = operands;
  for (row_ = 0; row_ < rows; ++row_) {
    begin_row();
    for (vector_ = 0; vector_ < use_.row_vectors; ++vector_) {
      apply(code_.ptr[sums + (row_ * use_.row_vectors + vector_) * vector_bytes]);
    }
    lanes_.release_hoisted(LoopLevel::row);
    if (row_ + 1 == rows) flush();
    next_row(operands);
  }
}

void EpilogueEmitter::Sums::emit_load(LaneEmitter& emitter, const LaneInst&, const Xmm& to) {
  address ? emitter.code().vmovups(to, *address) : emitter.code().vmovaps(to, vector);
}

void EpilogueEmitter::Repeated::emit_load(LaneEmitter& emitter, const LaneInst&, const Xmm& to) {
  const Reg64 address = locator.emit_chunk_address(operand, 0).base;
  emitter.code().vpbroadcastd(to, emitter.code().ptr[address]);
}

}  // namespace castor::jit
