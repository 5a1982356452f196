// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/epilogue/packed_sink.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "jit/emit/frame.hpp"

namespace castor::jit {

namespace {

using Xbyak::Address;
using Xbyak::Xmm;
using Xbyak::Ymm;
using Xbyak::Zmm;

constexpr int chunk_bytes = 16;  ///< bytes that a vector of results takes

}  // namespace

void PackedSink::reserve_constants(LaneEmitter& emitter) {
  packer_ = Packer(emitter, bits_of(store_.type), 8, store_.narrowing);
  assert(packer_.chunks() == chunks_of_pack);
  packer_.reserve_constants(emitter);
}

void PackedSink::emit_store(LaneEmitter& emitter, const LaneInst& inst) {
  ++waiting_;
  OwnedVector pack;
  if (!packer_.emit_push(emitter, emitter.take(inst.a), pack)) return;
  emit_put(emitter, pack, addresses_.current_vector() + 1);
}

/// What fills the rest of the vector is not stored.
void PackedSink::emit_flush(LaneEmitter& emitter, int stored_of_row) {
  if (waiting_ == 0) return;
  OwnedVector pack;
  for (int i = waiting_; i < chunks_of_pack; ++i) {
    packer_.emit_push(emitter, emitter.scratch(), pack);
  }
  emit_put(emitter, pack, stored_of_row);
}

/// Stores the first chunks of a pack, which end with the first `stored_of_row` vectors of the
/// current row. Parts of a vector can be stored by themselves, but not under a mask.
void PackedSink::emit_put(LaneEmitter& emitter, const OwnedVector& pack, int stored_of_row) {
  const int chunks = std::exchange(waiting_, 0);
  const Zmm vector(pack.as(512).getIdx());
  if (addresses_.mode(operand_) == ChunkMode::whole) {
    return emit_put_rows(vector, chunks, stored_of_row, nullptr);
  }
  const OwnedVector copied = emitter.scratch();
  const Xmm part = copied.as(128);
  Xbyak::Label whole;
  Xbyak::Label done;
  code_.kortestw(tail_mask, tail_mask);
  code_.jc(whole, Xbyak::CodeGenerator::T_NEAR);
  emit_put_rows(vector, chunks, stored_of_row, &part);
  code_.jmp(done, Xbyak::CodeGenerator::T_NEAR);
  code_.L(whole);
  emit_put_rows(vector, chunks, stored_of_row, nullptr);
  code_.L(done);
}

/// The same from the last row to the first, under the mask where there is a `part` to copy chunks
/// to.
void PackedSink::emit_put_rows(const Zmm& pack, int chunks, int stored_of_row, const Xmm* part) {
  addresses_.emit_result(operand_);
  while (chunks > 0) {
    if (stored_of_row == 0) {
      addresses_.emit_previous_row(operand_);
      stored_of_row = addresses_.row_vectors();
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
void PackedSink::emit_put_parts(const Zmm& pack, int first, int end, int vector) {
  for (int chunk = first; chunk < end;) {
    const Address to = code_.ptr[gpr::scratch + (vector + chunk - first) * chunk_bytes];
    const int left = end - chunk;
    const int count = left == chunks_of_pack ? left : chunk % 2 == 0 && left > 1 ? 2 : 1;
    if (count == chunks_of_pack) {
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
void PackedSink::emit_put_masked(const Zmm& pack, int chunk, const Xmm& part) {
  if (chunk > 0) code_.vextracti32x4(part, pack, static_cast<uint8_t>(chunk));
  code_.vmovdqu8(code_.ptr[gpr::scratch] | tail_mask, chunk > 0 ? part : Xmm(pack.getIdx()));
}

}  // namespace castor::jit
