// SPDX-License-Identifier: Apache-2.0
// The results of the dense microkernel: stores of its accumulators, and epilogues.
#include <algorithm>
#include <array>
#include <cstddef>

#include "jit/conv/dense/tile_emitter.hpp"

namespace castor::jit::dense {

namespace {

/// Vectors that a transposition works with; the first four hold its results.
constexpr uint32_t transposed_vectors = 0xff;
/// Channels that are transposed at a time.
constexpr int block_channels = 4;

/// The lanes that are stored: of the tile's last vector, or of the current one.
const Xbyak::Opmask stored_lanes(1);
const Xbyak::Opmask vector_lanes(2);

}  // namespace

// ---- stores of the accumulators as they are

/// By row groups where all lanes that are not stored are the last ones of a row; pixel-vectorised
/// tiles without opmasks, and compressed ones, by vectors of all rows.
void StoreEmitter::emit(SumsEmitter& sums) {
  if (t_.by_pixels() && (t_.compresses() || !t_.target.has_avx512())) {
    return sums.emit_groups([&](const TileRows&) {
      for (int vector = 0; vector < t_.vectors; ++vector) emit_stores_of(vector);
    });
  }
  if (t_.by_pixels() && !t_.takes_input()) emit_mask_of_last_vector();
  code_.mov(reg::row_output, t_.store(0, offsetof(TilePlace, pixel)));
  t_.by_pixels() ? code_.shl(reg::row_output, 2) : code_.imul(reg::row_output, reg::output_step);
  code_.add(reg::row_output, t_.argument(offsetof(DenseArguments, output)));
  sums.emit_groups([&](const TileRows& group) { emit_group(group); });
}

/// All lanes of the last vector are stored if all of the tile's are.
void StoreEmitter::emit_mask_of_last_vector() {
  code_.kmovw(stored_lanes, t_.store(t_.vectors - 1, offsetof(ConvStore, first_lanes)));
}

void StoreEmitter::emit_jump_if_full(Xbyak::Label& full) {
  code_.kortestw(stored_lanes, stored_lanes);  // the carry: all ones
  code_.jc(full, Xbyak::CodeGenerator::T_NEAR);
}

/// Where a call decides which lanes are stored, there is code for all of them as well: stores
/// without a mask are faster.
void StoreEmitter::emit_group(const TileRows& group) {
  if (!t_.by_pixels() || t_.takes_input()) return emit_rows(group, !t_.by_pixels());
  Xbyak::Label full;
  Xbyak::Label done;
  emit_jump_if_full(full);
  emit_rows(group, true);
  code_.jmp(done, Xbyak::CodeGenerator::T_NEAR);
  code_.L(full);
  emit_rows(group, false);
  code_.L(done);
}

void StoreEmitter::emit_rows(const TileRows& group, bool is_masked) {
  if (!t_.target.has_avx512() && t_.last_lanes() < t_.lanes) {
    code_.vmovups(t_.broadcast(), lanes_mask(t_.last_lanes()));
  }
  for (int row = group.begin; row < group.end; ++row) {
    for (int vector = 0; vector < t_.vectors; ++vector) {
      emit_store(t_.sum(row, vector), vector, is_masked);
    }
    t_.emit_add_output_step(reg::row_output);
  }
}

/// The mask of a vector of pixels is that of its ConvStore; vectors of channels are whole but for
/// the last one.
void StoreEmitter::emit_store(const Xmm& from, int vector, bool is_masked) {
  const Xbyak::Address to = code_.ptr[reg::row_output + vector * t_.vector_bytes()];
  const bool is_last = vector + 1 == t_.vectors;
  const bool is_partial = t_.by_pixels() || (is_last && t_.last_lanes() < t_.lanes);
  if (!is_masked || !is_partial) {
    code_.vmovups(to, from);
  } else if (t_.by_pixels()) {
    code_.kmovw(vector_lanes, t_.store(vector, offsetof(ConvStore, first_lanes)));
    code_.vmovdqu32(to | vector_lanes, from);
  } else {
    emit_masked_store(to, from, t_.broadcast());
  }
}

/// Under the opmask, or under `mask`, a vector.
void StoreEmitter::emit_masked_store(const Xbyak::Address& to, const Xmm& from, const Xmm& mask) {
  if (t_.target.has_avx512()) {
    code_.vmovdqu32(to | stored_lanes, from);
  } else {
    code_.vpmaskmovd(to, Xbyak::Ymm(mask.getIdx()), Xbyak::Ymm(from.getIdx()));
  }
}

void StoreEmitter::emit_lanes_mask(int count) {
  code_.mov(reg::scratch.cvt32(), static_cast<uint32_t>((uint64_t{1} << count) - 1));
  code_.kmovd(stored_lanes, reg::scratch.cvt32());
}

/// A mask for vpmaskmovd of the first lanes.
Xbyak::Address StoreEmitter::lanes_mask(int count) {
  std::array<int32_t, 8> mask = {};
  std::fill_n(mask.begin(), count, -1);
  return code_.constant_of(mask);
}

/// One vector of pixels of all channels.
void StoreEmitter::emit_stores_of(int vector) {
  if (t_.compresses()) emit_compression(vector);
  t_.emit_output_of(vector);
  if (t_.target.has_avx512()) {
    code_.kmovd(stored_lanes, t_.store(vector, offsetof(ConvStore, first_lanes)));
  } else {
    code_.vmovups(t_.broadcast(), t_.store(vector, offsetof(ConvStore, stored)));
  }
  for (int row = 0; row < t_.rows; ++row) {
    if (row > 0) t_.emit_add_output_step(reg::output);
    emit_masked_store(code_.ptr[reg::output], t_.sum(row, vector), t_.broadcast());
  }
}

/// Makes the lanes that are stored the first ones; in most vectors they are.
void StoreEmitter::emit_compression(int vector) {
  Xbyak::Label done;
  code_.mov(reg::scratch.cvt32(), t_.store(vector, offsetof(ConvStore, lanes)));
  code_.cmp(reg::scratch.cvt32(), t_.store(vector, offsetof(ConvStore, first_lanes)));
  code_.je(done, Xbyak::CodeGenerator::T_NEAR);
  if (t_.target.has_avx512()) {
    code_.kmovd(vector_lanes, reg::scratch.cvt32());
  } else {
    code_.vmovups(t_.product(), t_.store(vector, offsetof(ConvStore, order)));
  }
  for (int row = 0; row < t_.rows; ++row) {
    const Xmm lanes = t_.sum(row, vector);
    if (t_.target.has_avx512()) {
      code_.vpcompressd(lanes | vector_lanes | Xbyak::util::T_z, lanes);
    } else {
      code_.vpermd(Xbyak::Ymm(lanes.getIdx()), Xbyak::Ymm(t_.product().getIdx()),
                   Xbyak::Ymm(lanes.getIdx()));
    }
  }
  code_.L(done);
}

// ---- by way of the staging buffer

StageEmitter::StageEmitter(TileCode& tile, StoreEmitter& stores, const TileEpilogue* epilogue)
    : t_(tile), code_(tile.code), stores_(stores) {
  if (epilogue == nullptr) return;
  EpilogueUse use = {.frame = stage_bytes(),
                     .taken = {.vectors = t_.transposes() ? transposed_vectors : 0}};
  epilogue_ = std::make_unique<EpilogueEmitter>(code_, t_.target, *epilogue, use);
  if (!t_.by_pixels() || t_.compresses()) return;
  use.row_vectors = t_.vectors;
  full_epilogue_ = std::make_unique<EpilogueEmitter>(code_, t_.target, *epilogue, use);
}

bool StageEmitter::fits_frame() const {
  return !epilogue_ ||
         (epilogue_->fits_frame() && (!full_epilogue_ || full_epilogue_->fits_frame()));
}

/// The register tile row by row. What is transposed has as many rows as a vector has lanes.
int StageEmitter::stage_bytes() const {
  return (t_.by_pixels() ? t_.rows : std::max(t_.lanes, t_.rows)) * t_.row_bytes();
}

int StageEmitter::frame_bytes() const {
  return stage_bytes() + (epilogue_ ? EpilogueEmitter::frame_bytes : 0);
}

void StageEmitter::emit_entry() {
  if (epilogue_) epilogue_->enter();
}

void StageEmitter::emit_exit() {
  if (epilogue_) epilogue_->leave();
}

void StageEmitter::emit(SumsEmitter& sums) {
  sums.emit_groups([&](const TileRows& group) { emit_stage(group); });
  if (!t_.transposes()) return emit_rows_epilogue();
  epilogue_ ? emit_transposed_epilogue() : emit_transposed_stores();
}

/// The rows of the tile in the staging buffer, so that what reads it has all registers.
void StageEmitter::emit_stage(const TileRows& rows) {
  if (t_.compresses()) {
    for (int vector = 0; vector < t_.vectors; ++vector) stores_.emit_compression(vector);
  }
  for (int row = rows.begin; row < rows.end; ++row) {
    for (int vector = 0; vector < t_.vectors; ++vector) {
      const int offset = row * t_.row_bytes() + vector * t_.vector_bytes();
      code_.vmovaps(code_.ptr[Xbyak::util::rsp + offset], t_.sum(row, vector));
    }
  }
}

void StageEmitter::emit_transposed_stores() {
  t_.emit_output_of(0);
  if (!t_.target.has_avx512()) code_.vmovups(t_.reg(15), stores_.lanes_mask(t_.rows));
  for (int first = 0; first < t_.tile.channels; first += block_channels) {
    const int count = std::min(block_channels, t_.tile.channels - first);
    emit_transposed_channels(Xbyak::util::rsp + 4 * first, count);
    for (int channel = 0; channel < count; ++channel) {
      stores_.emit_masked_store(code_.ptr[reg::output], t_.reg(channel), t_.reg(15));
      t_.emit_add_output_step(reg::output);
    }
  }
}

/// Up to four channels: 4 by 4 blocks, one in each 128 bits.
void StageEmitter::emit_transposed_channels(const Xbyak::RegExp& stage, int count) {
  for (int row = 0; row < 4; ++row) emit_block_loads(stage, row);
  const Xmm low_ab = t_.reg(4);
  const Xmm high_ab = t_.reg(5);
  const Xmm low_cd = t_.reg(6);
  const Xmm high_cd = t_.reg(7);
  code_.vpunpckldq(low_ab, t_.reg(0), t_.reg(1));
  code_.vpunpckldq(low_cd, t_.reg(2), t_.reg(3));
  code_.vpunpckhdq(high_ab, t_.reg(0), t_.reg(1));
  code_.vpunpckhdq(high_cd, t_.reg(2), t_.reg(3));
  code_.vpunpcklqdq(t_.reg(0), low_ab, low_cd);
  if (count > 1) code_.vpunpckhqdq(t_.reg(1), low_ab, low_cd);
  if (count > 2) code_.vpunpcklqdq(t_.reg(2), high_ab, high_cd);
  if (count > 3) code_.vpunpckhqdq(t_.reg(3), high_ab, high_cd);
}

/// Four channels of pixels row, row + 4, row + 8, row + 12, as far as there are any.
void StageEmitter::emit_block_loads(const Xbyak::RegExp& stage, int row) {
  const auto block = [&](int pixel) { return code_.ptr[stage + pixel * t_.row_bytes()]; };
  code_.vmovups(Xmm(row), block(std::min(row, t_.rows - 1)));
  for (int lane = 1; row + 4 * lane < t_.rows; ++lane) {
    if (t_.target.has_avx512()) {
      code_.vinserti32x4(Xbyak::Zmm(row), Xbyak::Zmm(row), block(row + 4 * lane), lane);
    } else {
      code_.vinserti128(Xbyak::Ymm(row), Xbyak::Ymm(row), block(row + 4 * lane), lane);
    }
  }
}

// ---- epilogues

void StageEmitter::emit_rows_epilogue() {
  if (t_.takes_input()) return emit_full_epilogue();
  Xbyak::Label full;
  Xbyak::Label done;
  if (full_epilogue_) {
    stores_.emit_mask_of_last_vector();
    stores_.emit_jump_if_full(full);
  }
  epilogue_->begin();
  for (int vector = 0; vector < t_.vectors; ++vector) emit_epilogue_of(vector);
  if (full_epilogue_) {
    code_.jmp(done, Xbyak::CodeGenerator::T_NEAR);
    code_.L(full);
    emit_full_epilogue();
    code_.L(done);
  }
}

/// Emits a loop in which `stage` counts from `first` to `end`; nothing where these are the same.
void StageEmitter::emit_loop(int first, int step, int end, const std::function<void()>& emit_body) {
  Xbyak::Label next;
  code_.mov(reg::stage.cvt32(), first);
  if (first == end) return;
  code_.align_to(32);
  code_.L(next);
  emit_body();
  code_.add(reg::stage.cvt32(), step);
  code_.cmp(reg::stage.cvt32(), end);
  code_.jb(next, Xbyak::CodeGenerator::T_NEAR);
}

/// All vectors of a row at a time, in a loop over the rows, or over groups of them.
void StageEmitter::emit_full_epilogue() {
  full_epilogue_->begin();
  emit_operands_of(*full_epilogue_, 0);
  const auto sums = Xbyak::util::rsp + reg::stage;
  const Xbyak::Address operands = t_.argument(offsetof(DenseArguments, epilogue));
  const int group = full_epilogue_->group_rows();
  const int rest = t_.rows % group;
  emit_loop(0, group * t_.row_bytes(), (t_.rows - rest) * t_.row_bytes(),
            [&] { full_epilogue_->apply_rows(sums, group, operands); });
  if (rest > 0) full_epilogue_->apply_rows(sums, rest, operands);
}

/// One vector of every row, in a loop over the rows.
void StageEmitter::emit_epilogue_of(int vector) {
  if (t_.by_pixels()) {
    code_.kmovd(stored_lanes, t_.store(vector, offsetof(ConvStore, first_lanes)));
  } else {
    stores_.emit_lanes_mask(vector + 1 < t_.vectors ? t_.lanes : t_.last_lanes());
  }
  emit_operands_of(*epilogue_, vector);
  const int first = vector * t_.vector_bytes();
  emit_loop(first, t_.row_bytes(), first + t_.row_bytes() * t_.rows, [&] {
    epilogue_->apply(code_.ptr[Xbyak::util::rsp + reg::stage]);
    epilogue_->next_row(t_.argument(offsetof(DenseArguments, epilogue)));
  });
}

/// Points at the operands of a vector in the first row: a channel's pixels, or a pixel's channels.
void StageEmitter::emit_operands_of(EpilogueEmitter& epilogue, int vector) {
  code_.mov(reg::operands, t_.argument(offsetof(DenseArguments, epilogue)));
  if (t_.by_pixels() || t_.transposes()) {
    code_.mov(reg::stage, t_.store(vector, offsetof(TilePlace, pixel)));
    return epilogue.point(reg::operands, reg::stage);
  }
  code_.mov(reg::stage.cvt32(), vector * t_.lanes);
  epilogue.point(reg::operands, reg::stage);
  code_.mov(reg::stage, t_.store(0, offsetof(TilePlace, pixel)));
  epilogue.skip_rows(reg::operands, reg::stage);
}

/// Its rows are channels: four at a time are transposed and go through the epilogue.
void StageEmitter::emit_transposed_epilogue() {
  epilogue_->begin();
  emit_operands_of(*epilogue_, 0);
  const int whole = t_.tile.channels / block_channels * block_channels;
  emit_loop(0, 4 * block_channels, 4 * whole, [&] { emit_block_epilogue(block_channels); });
  if (t_.tile.channels > whole) emit_block_epilogue(t_.tile.channels - whole);
}

void StageEmitter::emit_block_epilogue(int count) {
  emit_transposed_channels(Xbyak::util::rsp + reg::stage, count);
  for (int channel = 0; channel < count; ++channel) {
    epilogue_->apply(t_.reg(channel));
    epilogue_->next_row(t_.argument(offsetof(DenseArguments, epilogue)));
  }
}

}  // namespace castor::jit::dense
