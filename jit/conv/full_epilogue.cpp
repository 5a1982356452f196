// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/full_epilogue.hpp"

#include <algorithm>
#include <numeric>

#include "jit/emit/frame.hpp"

namespace castor::jit {

namespace {

constexpr int lanes = 16;
constexpr int vector_bytes = 64;

}  // namespace

FullEpilogueEmitter::FullEpilogueEmitter(Assembler& code, const Target& target,
                                         const TileEpilogue& epilogue, int frame, int row_vectors)
    : TileEpilogueEmitter(code, target, epilogue, {}, frame,
                          levels_of_chunks(epilogue, &TileOperand::repeats),
                          epilogue.packs ? vectors_of_packs(epilogue) : 0),
      row_vectors_(row_vectors) {
  replace_packable(epilogue, sinks_, packed_, *this);
}

int FullEpilogueEmitter::group_rows() const {
  constexpr int chunks = PackedSink::chunks_of_pack;
  return packed_.empty() ? 1 : chunks / std::gcd(chunks, row_vectors_);
}

void FullEpilogueEmitter::begin() {
  emit_constants();
  emit_hoisted(LoopLevel::nest);
}

void FullEpilogueEmitter::apply_rows(const Xbyak::RegExp& sums, int rows,
                                     const Xbyak::Address& operands) {
  row_operands_ = operands;
  for (row_ = 0; row_ < rows; ++row_) {
    emit_hoisted(LoopLevel::row);
    for (vector_ = 0; vector_ < row_vectors_; ++vector_) {
      apply(code_.ptr[sums + (row_ * row_vectors_ + vector_) * vector_bytes]);
    }
    lanes_.release_hoisted(LoopLevel::row);
    if (row_ + 1 == rows) {
      for (PackedVectors& packed : packed_) packed.flush(lanes_);
    }
    next_row(operands);
  }
}

ChunkAddress FullEpilogueEmitter::emit_chunk_address(size_t operand, int) {
  const TileOperand& of = epilogue_.operands[operand];
  const int bytes = of.repeats ? 0 : lanes * bits_of(of.element) / 8;
  return {.base = pointer(operand), .displacement = int64_t{vector_} * bytes};
}

/// Moves the operand's pointer to the next row, or to the one before.
void FullEpilogueEmitter::add_row_step(size_t operand, int sign) {
  const size_t at = operand * sizeof(EpilogueOperand) + offsetof(EpilogueOperand, row_step);
  code_.mov(gpr::scratch, *row_operands_);
  const Xbyak::Address step = code_.qword[gpr::scratch + static_cast<int>(at)];
  sign > 0 ? code_.add(pointer(operand), step) : code_.sub(pointer(operand), step);
}

/// From the current row back to the one that the pack's first chunk belongs to.
void FullEpilogueEmitter::PackedVectors::put(LaneEmitter&, const OwnedVector& pack, int chunks,
                                             bool is_flush) {
  const int row_vectors = full_.row_vectors_;
  const Xbyak::Zmm vector(pack.as(512).getIdx());
  // In the group, counted in chunks.
  const int end = full_.row_ * row_vectors + full_.vector_ + (is_flush ? 0 : 1);
  const int begin = end - chunks;
  int row = full_.row_;
  for (int last = end; last > begin;) {
    const int first = std::max(begin, row * row_vectors);
    full_.put_parts(full_.pointer(operand_), vector, first - begin, last - begin,
                    first - row * row_vectors);
    last = first;
    if (last == begin) break;
    full_.add_row_step(operand_, -1);
    --row;
  }
  for (; row < full_.row_; ++row) full_.add_row_step(operand_, 1);
}

/// Stores chunks of a pack side by side, from a vector of the row on: in parts as large as lie
/// where they can be taken out.
void FullEpilogueEmitter::put_parts(const Xbyak::Reg64& row, const Xbyak::Zmm& pack, int first,
                                    int end, int vector) {
  for (int chunk = first; chunk < end;) {
    const Xbyak::Address to = code_.ptr[row + (vector + chunk - first) * lanes];
    if (chunk == 0 && end == PackedSink::chunks_of_pack) {
      code_.vmovups(to, pack);
      chunk += 4;
    } else if (chunk % 2 == 0 && end - chunk >= 2) {
      chunk == 0 ? code_.vmovups(to, Xbyak::Ymm(pack.getIdx()))
                 : code_.vextracti64x4(to, pack, static_cast<uint8_t>(chunk / 2));
      chunk += 2;
    } else {
      chunk == 0 ? code_.vmovups(to, Xbyak::Xmm(pack.getIdx()))
                 : code_.vextracti32x4(to, pack, static_cast<uint8_t>(chunk));
      chunk += 1;
    }
  }
}

}  // namespace castor::jit
