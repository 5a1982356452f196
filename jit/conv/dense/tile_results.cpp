// SPDX-License-Identifier: Apache-2.0
// The dense microkernel: which of its results are stored and where, and epilogues of staged rows.
#include <cstddef>

#include "jit/conv/dense/tile_emitter.hpp"

namespace castor::jit::dense {

// ---- what is stored

/// The output at the tile's first row.
void ResultEmitter::emit_row_output() {
  const Section address = code_.section(CodeSection::output_address);
  code_.mov(reg::row_output, pixel_of(0));
  by_pixels() ? code_.shl(reg::row_output, 2) : code_.imul(reg::row_output, reg::output_step);
  if (tile_.has_tiles()) {
    code_.mov(reg::tile_scratch, results_.tile_loop->result_channel());
    code_.lea(reg::row_output, code_.ptr[reg::row_output + reg::tile_scratch * 4]);
  }
  code_.add(reg::row_output, argument(offsetof(DenseArguments, output)));
}

/// The mask for stores of a vector: of pixels as its ConvStore says, of channels as many as there
/// are, of what is transposed the pixels of a vector.
void ResultEmitter::emit_stored_lanes(int vector) {
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

/// Nothing without opmasks: see emit_partial_store.
void ResultEmitter::emit_stored_lane_count(const Xbyak::Opmask& mask, int count) {
  if (!target_.has_avx512()) return;
  const Section lanes_mask = code_.section(CodeSection::stored_lanes);
  code_.mov(reg::scratch.cvt32(), (1u << count) - 1);
  code_.kmovw(mask, reg::scratch.cvt32());
}

void ResultEmitter::emit_masked_store(const Reg64& to, const Xmm& from, int offset) {
  if (target_.has_avx512()) {
    code_.vmovdqu32(code_.ptr[to + offset] | stored_lanes, from);
  } else {
    code_.vpmaskmovd(code_.ptr[to + offset], Xbyak::Ymm(stored_lanes_vector),
                     Xbyak::Ymm(from.getIdx()));
  }
}

/// The first lanes of a vector, a number that is known now, whose mask is set where there are
/// opmasks. Without these several shorter stores are faster: one under a vector's signs takes 16
/// cycles on Zen 3.
void ResultEmitter::emit_partial_store(const Reg64& to, const Xmm& from, int lanes, int offset) {
  if (target_.has_avx512()) return emit_masked_store(to, from, offset);
  Xmm half(from.getIdx());
  if (lanes >= 4) {
    code_.vmovups(code_.ptr[to + offset], half);
    offset += 16;
    if (lanes > 4) {
      half = Xmm(stored_lanes_vector);
      code_.vextracti128(half, Xbyak::Ymm(from.getIdx()), 1);
    }
  }
  const int left = lanes % 4;
  if (left >= 2) code_.vmovq(code_.qword[to + offset], half);
  if (left == 3) code_.vpextrd(code_.dword[to + offset + 8], half, 2);
  if (left == 1) code_.vmovd(code_.dword[to + offset], half);
}

/// Stores without a mask are faster. Whole is a vector of pixels all of whose lanes are stored;
/// where lanes that are not are the last ones of a row, so are those before it. Vectors of channels
/// are whole, or the tile has no code for it.
void ResultEmitter::emit_if_whole(int vector, const std::function<void()>& emit_whole,
                                  const std::function<void()>& emit_masked) {
  if (takes_input() || !by_pixels()) return emit_whole();
  Xbyak::Label whole;
  Xbyak::Label done;
  code_.cmp(lanes_of(vector), (1u << lanes_) - 1);
  code_.je(whole, Xbyak::CodeGenerator::T_NEAR);
  emit_masked();
  code_.jmp(done, Xbyak::CodeGenerator::T_NEAR);
  code_.L(whole);
  emit_whole();
  code_.L(done);
}

// ---- loops over the staging buffer

/// Goes to the operands of a vector in the first row: a channel's pixels, or a pixel's channels.
/// Transposed pixels begin with any row of the tile.
void ResultEmitter::emit_point(EpilogueEmitter& epilogue, int vector, int first_row) {
  const Section operands = code_.section(CodeSection::epilogue_operands);
  const bool rows_of_pixels = by_pixels() || transposes();
  rows_of_pixels ? code_.mov(reg::staged, pixel_of(vector))
                 : code_.mov(reg::staged.cvt32(), vector * lanes_);
  if (first_row > 0) code_.add(reg::staged, first_row);
  if (!rows_of_pixels && tile_.has_tiles()) {
    code_.add(reg::staged, results_.tile_loop->result_channel());
  }
  epilogue.emit_point(reg::staged);
  if (rows_of_pixels && !tile_.has_tiles()) return;
  rows_of_pixels ? code_.mov(reg::staged, results_.tile_loop->result_channel())
                 : code_.mov(reg::staged, pixel_of(0));
  epilogue.emit_skip_rows(reg::staged);
}

/// Emits loops in which `staged` goes from `first` of one row of the register tile to that of the
/// next one; rows of pixels with dead positions between them have a loop each.
void ResultEmitter::emit_pixel_loop(int first, const std::function<void()>& emit_body) {
  const int count = tile_.has_dead_positions() ? tile_.columns : rows_;
  for (int row = 0; row < rows_; row += count) {
    const int begin = first + tile_.position_of(row) * row_bytes();
    emit_staging_loop(begin, row_bytes(), begin + count * row_bytes(), emit_body);
  }
}

/// Emits a loop in which `staged` counts from `first` to `end`; nothing where these are the same.
void ResultEmitter::emit_staging_loop(int first, int step, int end,
                                      const std::function<void()>& emit_body) {
  const Section loop = code_.section(CodeSection::staging_loop);
  Xbyak::Label next;
  code_.mov(reg::staged.cvt32(), first);
  if (first == end) return;
  code_.align_to(32);
  code_.L(next);
  emit_body();
  if (results_.slices) results_.slices->emit_yield((end - first) / step);
  code_.add(reg::staged.cvt32(), step);
  code_.cmp(reg::staged.cvt32(), end);
  code_.jb(next, Xbyak::CodeGenerator::T_NEAR);
}

// ---- epilogues of rows

void RowEpilogue::emit() {
  const Section epilogue = code_.section(CodeSection::epilogue);
  const auto emit_vectors = [&] {
    results_.epilogue->emit_begin();
    for (int vector = 0; vector < vectors_; ++vector) emit_vector(vector);
    results_.epilogue->emit_store_folds();
  };
  if (!results_.whole_rows) return emit_vectors();
  emit_if_whole(
      vectors_ - 1, [&] { emit_whole_rows(); }, emit_vectors);
}

/// All vectors of a row at a time, in a loop over groups of rows.
void RowEpilogue::emit_whole_rows() {
  results_.whole_rows->emit_begin();
  emit_point(*results_.whole_rows, 0);
  const RegExp sums = Xbyak::util::rsp + reg::staged;
  const int group = results_.whole_rows->group_rows();
  const int remainder = rows_ % group;
  emit_staging_loop(0, group * row_bytes(), (rows_ - remainder) * row_bytes(),
                    [&] { results_.whole_rows->emit_apply_rows(sums, group); });
  if (remainder > 0) results_.whole_rows->emit_apply_rows(sums, remainder);
  results_.whole_rows->emit_store_folds();
}

/// One vector of every row, in a loop over the rows.
void RowEpilogue::emit_vector(int vector) {
  emit_stored_lanes(vector);
  emit_point(*results_.epilogue, vector);
  emit_pixel_loop(vector * vector_bytes(), [&] {
    results_.epilogue->emit_apply(code_.ptr[Xbyak::util::rsp + reg::staged]);
    results_.epilogue->emit_next_row();
  });
}

}  // namespace castor::jit::dense
