// SPDX-License-Identifier: Apache-2.0
// The dense microkernel: stores of its accumulators as they are.
#include <cstddef>

#include "jit/conv/dense/tile_emitter.hpp"

namespace castor::jit::dense {

namespace {

/// The lanes that a compression keeps; without opmasks their order.
const Xbyak::Opmask kept_lanes(2);
constexpr int kept_lanes_vector = 14;

}  // namespace

/// By row groups where the lanes that are not stored are the last ones of a row, else vector by
/// vector.
void RowStores::emit(KLoopEmitter& products) {
  if (compresses()) {
    return products.emit_row_groups([&](const TileRows&) {
      for (int vector = 0; vector < vectors_; ++vector) emit_compressed(vector);
    });
  }
  emit_row_output();
  products.emit_row_groups([&](const TileRows& group) { emit_group(group); });
}

/// Vectors of channels are whole but for the last one. Which pixels are stored, a call decides.
void RowStores::emit_group(const TileRows& group) {
  const Section stores = code_.section(CodeSection::stores);
  if (by_pixels()) {
    return emit_if_whole(
        vectors_ - 1, [&] { emit_rows(group, false); },
        [&] { target_.has_avx512() ? emit_rows(group, true) : emit_until_partial(group); });
  }
  const bool is_masked = last_lanes() < lanes_;
  if (is_masked && !keeps_stored_lanes()) emit_stored_lanes(vectors_ - 1);
  emit_rows(group, is_masked);
}

void RowStores::emit_rows(const TileRows& group, bool is_masked) {
  for (int row = group.begin; row < group.end; ++row) {
    for (int vector = 0; vector < vectors_; ++vector) {
      const bool masks_vector = is_masked && (by_pixels() || vector + 1 == vectors_);
      if (masks_vector && by_pixels()) emit_stored_lanes(vector);
      emit_store(reg::row_output, row, vector, masks_vector);
    }
    emit_add_output_step(reg::row_output);
  }
}

/// One vector of a row of the tile, whose first one goes to that address.
void RowStores::emit_store(const Reg64& row_output, int row, int vector, bool is_masked) {
  const int offset = vector * vector_bytes();
  const Xmm from = sum(row, vector);
  if (!is_masked) return code_.vmovups(code_.ptr[row_output + offset], from);
  by_pixels() ? emit_masked_store(row_output, from, offset)
              : emit_partial_store(row_output, from, last_lanes(), offset);
}

/// The last vector is not whole. Vector by vector, as a store under a mask takes 16 cycles on Zen 3
/// whatever it stores: those before the one that has only some lanes are whole, those after it have
/// none.
void RowStores::emit_until_partial(const TileRows& group) {
  Xbyak::Label done;
  for (int vector = 0; vector < vectors_; ++vector) {
    const auto emit_all = [&](bool is_masked) {
      if (is_masked) emit_stored_lanes(vector);
      code_.mov(reg::output, reg::row_output);
      for (int row = group.begin; row < group.end; ++row) {
        emit_store(reg::output, row, vector, is_masked);
        emit_add_output_step(reg::output);
      }
    };
    if (vector > 0) {
      code_.cmp(lanes_of(vector), 0);
      code_.je(done, Xbyak::CodeGenerator::T_NEAR);
    }
    if (vector + 1 == vectors_) {
      emit_all(true);
    } else {
      emit_if_whole(
          vector, [&] { emit_all(false); }, [&] { emit_all(true); });
    }
  }
  code_.L(done);
  code_.mov(reg::row_output, reg::output);
}

/// One vector of pixels of all channels. Without opmasks most vectors, which are whole, are stored
/// as they are: a store under a mask takes 16 cycles on Zen 3.
void RowStores::emit_compressed(int vector) {
  const Section stores = code_.section(CodeSection::stores);
  const auto emit_stored = [&] {
    emit_compression(vector);
    emit_vector(vector, true);
  };
  if (target_.has_avx512()) return emit_stored();
  emit_if_whole(
      vector, [&] { emit_vector(vector, false); }, emit_stored);
}

void RowStores::emit_vector(int vector, bool is_masked) {
  emit_output_of(vector);
  if (is_masked) emit_stored_lanes(vector);
  for (int row = 0; row < rows_; ++row) {
    if (row > 0) emit_add_output_step(reg::output);
    is_masked ? emit_masked_store(reg::output, sum(row, vector))
              : code_.vmovups(code_.ptr[reg::output], sum(row, vector));
  }
}

void RowStores::emit_compression(int vector) {
  const Section compression = code_.section(CodeSection::compression);
  const Xbyak::Ymm order(kept_lanes_vector);
  Xbyak::Label done;
  code_.mov(reg::scratch.cvt32(), store(vector, offsetof(ConvStore, lanes)));
  code_.cmp(reg::scratch.cvt32(), store(vector, offsetof(ConvStore, first_lanes)));
  code_.je(done, Xbyak::CodeGenerator::T_NEAR);
  target_.has_avx512() ? code_.kmovd(kept_lanes, reg::scratch.cvt32())
                       : code_.vmovups(order, store(vector, offsetof(ConvStore, order)));
  for (int row = 0; row < rows_; ++row) {
    const Xmm lanes = sum(row, vector);
    target_.has_avx512()
        ? code_.vpcompressd(lanes | kept_lanes | Xbyak::util::T_z, lanes)
        : code_.vpermd(Xbyak::Ymm(lanes.getIdx()), order, Xbyak::Ymm(lanes.getIdx()));
  }
  code_.L(done);
}

}  // namespace castor::jit::dense
