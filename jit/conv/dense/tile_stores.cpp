// SPDX-License-Identifier: Apache-2.0
// The dense microkernel: stores of its accumulators as they are, and masks of stores.
#include <array>
#include <cstddef>

#include "jit/conv/dense/tile_emitter.hpp"

namespace castor::jit::dense {

namespace {

/// The lanes that a compression keeps; without opmasks their order.
const Xbyak::Opmask kept_lanes(2);
constexpr int kept_lanes_vector = 14;

}  // namespace

/// The output at the tile's first row.
void DenseEmitter::emit_row_output() {
  const Section address = code_.section(CodeSection::output_address);
  code_.mov(reg::row_output, pixel_of(0));
  by_pixels() ? code_.shl(reg::row_output, 2) : code_.imul(reg::row_output, reg::output_step);
  if (tile_.has_tiles()) {
    code_.mov(reg::tile_scratch, tile_loop_->result_channel());
    code_.lea(reg::row_output, code_.ptr[reg::row_output + reg::tile_scratch * 4]);
  }
  code_.add(reg::row_output, argument(offsetof(DenseArguments, output)));
}

/// By row groups where the lanes that are not stored are the last ones of a row, else vector by
/// vector.
void DenseEmitter::emit_stores() {
  if (compresses()) {
    return emit_row_groups([&](const TileRows&) {
      for (int vector = 0; vector < vectors_; ++vector) emit_compressed_stores(vector);
    });
  }
  emit_row_output();
  emit_row_groups([&](const TileRows& group) { emit_row_stores(group); });
}

/// Vectors of channels are whole but for the last one. Which pixels are stored, a call decides.
void DenseEmitter::emit_row_stores(const TileRows& group) {
  const Section stores = code_.section(CodeSection::stores);
  if (by_pixels()) {
    return emit_if_whole([&] { emit_rows(group, false); }, [&] { emit_rows(group, true); });
  }
  const bool is_masked = last_lanes() < lanes_;
  if (is_masked && !keeps_stored_lanes()) emit_stored_lanes(vectors_ - 1);
  emit_rows(group, is_masked);
}

void DenseEmitter::emit_rows(const TileRows& group, bool is_masked) {
  for (int row = group.begin; row < group.end; ++row) {
    for (int vector = 0; vector < vectors_; ++vector) {
      const int offset = vector * vector_bytes();
      if (!is_masked || (!by_pixels() && vector + 1 < vectors_)) {
        code_.vmovups(code_.ptr[reg::row_output + offset], sum(row, vector));
        continue;
      }
      if (by_pixels()) emit_stored_lanes(vector);
      emit_masked_store(reg::row_output, sum(row, vector), offset);
    }
    emit_add_output_step(reg::row_output);
  }
}

/// One vector of pixels of all channels.
void DenseEmitter::emit_compressed_stores(int vector) {
  const Section stores = code_.section(CodeSection::stores);
  emit_compression(vector);
  emit_output_of(vector);
  emit_stored_lanes(vector);
  for (int row = 0; row < rows_; ++row) {
    if (row > 0) emit_add_output_step(reg::output);
    emit_masked_store(reg::output, sum(row, vector));
  }
}

/// Makes the lanes that are stored the first ones; in most vectors they are.
void DenseEmitter::emit_compression(int vector) {
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

/// The mask for stores of a vector: of pixels as its ConvStore says, of channels as many as there
/// are, of what is transposed the pixels of a vector.
void DenseEmitter::emit_stored_lanes(int vector) {
  const Section lanes_mask = code_.section(CodeSection::stored_lanes);
  if (by_pixels()) {
    target_.has_avx512()
        ? code_.kmovw(stored_lanes, store(vector, offsetof(ConvStore, first_lanes)))
        : code_.vmovups(reg(stored_lanes_vector), store(vector, offsetof(ConvStore, stored)));
    return;
  }
  const int channels = vector + 1 < vectors_ ? lanes_ : last_lanes();
  emit_stored_lane_count(stored_lanes, transposes() ? transposed_pixels() : channels);
}

void DenseEmitter::emit_stored_lane_count(const Xbyak::Opmask& mask, int count) {
  const Section lanes_mask = code_.section(CodeSection::stored_lanes);
  if (target_.has_avx512()) {
    code_.mov(reg::scratch.cvt32(), (1u << count) - 1);
    code_.kmovw(mask, reg::scratch.cvt32());
  } else {
    std::array<int32_t, 8> lanes = {};
    std::fill_n(lanes.begin(), count, -1);
    code_.vmovups(reg(stored_lanes_vector), code_.constant_of(lanes));
  }
}

void DenseEmitter::emit_masked_store(const Reg64& to, const Xmm& from, int offset) {
  if (target_.has_avx512()) {
    code_.vmovdqu32(code_.ptr[to + offset] | stored_lanes, from);
  } else {
    code_.vpmaskmovd(code_.ptr[to + offset], Xbyak::Ymm(stored_lanes_vector),
                     Xbyak::Ymm(from.getIdx()));
  }
}

/// Stores without a mask are faster. All lanes of pixels are stored if all of the last vector are;
/// those of channels are, or the tile has no code for it.
void DenseEmitter::emit_if_whole(const std::function<void()>& emit_whole,
                                 const std::function<void()>& emit_masked) {
  if (takes_input() || !by_pixels()) return emit_whole();
  Xbyak::Label whole;
  Xbyak::Label done;
  code_.cmp(code_.dword[reg::stores +
                        ((vectors_ - 1) * sizeof(ConvStore) + offsetof(ConvStore, first_lanes))],
            (1u << lanes_) - 1);
  code_.je(whole, Xbyak::CodeGenerator::T_NEAR);
  emit_masked();
  code_.jmp(done, Xbyak::CodeGenerator::T_NEAR);
  code_.L(whole);
  emit_whole();
  code_.L(done);
}

}  // namespace castor::jit::dense
