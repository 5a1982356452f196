// SPDX-License-Identifier: Apache-2.0
// The dense microkernel: its frame, and what becomes of the accumulators.
#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <memory>

#include "jit/conv/dense/k_loop.hpp"
#include "jit/conv/epilogue/epilogue_emitter.hpp"

namespace castor::jit {

namespace dense {

namespace {

/// Vector registers besides accumulators and vectors: a broadcast operand, and a product.
constexpr int work_registers = 2;
/// Vectors that a transposition works with; the first four hold its results.
constexpr uint32_t transposed_vectors = 0xff;
constexpr int transposition_registers = 8;
/// Channels that are transposed at a time.
constexpr int block_channels = 4;

/// The lanes that are stored next, as epilogues have them; without opmasks a vector has them, free
/// once all products are done.
const Xbyak::Opmask stored_lanes(1);
constexpr int stored_lanes_vector = 15;
/// The lanes that a compression keeps; without opmasks their order.
const Xbyak::Opmask kept_lanes(2);
constexpr int kept_lanes_vector = 14;
/// With tile registers: the lanes of a tile's last transposed pixels, where these are fewer.
const Xbyak::Opmask last_stored_lanes(2);

const std::array saved_registers = {reg::input, reg::tiles, reg::callers_stack, reg::row_output};
/// With an epilogue or tile registers.
const std::array more_saved_registers = {Reg64(Operand::R14), Reg64(Operand::R15)};

/// Emits one microkernel: a loop over tiles.
///
/// Accumulators are stored as they are, or go through a staging buffer on the stack, so that a
/// transposition or an epilogue has all registers.
class DenseEmitter final : KLoopEmitter {
 public:
  DenseEmitter(const DenseTile& tile, const Target& target, const TileEpilogue* epilogue,
               const CodeBuffer& buffer);

  MachineCode emit();

 private:
  void emit_entry();
  void emit_register_tiles();
  void emit_exit();

  // Stores of accumulators as they are.
  void emit_stores();
  void emit_row_output();
  void emit_row_stores(const TileRows& group);
  void emit_rows(const TileRows& group, bool is_masked);
  void emit_compressed_stores(int vector);
  void emit_compression(int vector);
  void emit_stored_lanes(int vector);
  void emit_stored_lane_count(const Xbyak::Opmask& mask, int count);
  void emit_masked_store(const Reg64& to, const Xmm& from, int offset = 0);
  void emit_if_whole(const std::function<void()>& emit_whole,
                     const std::function<void()>& emit_masked);

  // By way of the staging buffer.
  void emit_staging(const TileRows& rows);
  void emit_rows_epilogue();
  void emit_whole_rows_epilogue();
  void emit_vector_epilogue(int vector);
  void emit_point(EpilogueEmitter& epilogue, int vector, int first_row = 0);
  void emit_tile_registers();
  void emit_tile_results();
  void emit_staged_compensation();
  void emit_staged_rows();
  void emit_transposed();
  void emit_transposed_epilogue();
  void emit_transposed_stores();
  void emit_channel_blocks(const std::function<void(int)>& emit_block);
  void emit_transposition(const TileRows& pixels, int count, int first);
  void emit_block_loads(const TileRows& pixels, int row, int first);
  void emit_stage_loop(int first, int step, int end, const std::function<void()>& emit_body);

  bool compresses() const { return tile_.store == StorePolicy::compressed; }
  bool transposes() const { return tile_.store == StorePolicy::transposed; }
  /// Whether the mask of channels, the same for all tiles, stays in its opmask.
  bool keeps_stored_lanes() const { return !by_pixels() && target_.has_avx512() && !epilogue_; }
  bool is_staged() const {
    return epilogue_ || transposes() || (tile_.has_tiles() && !stores_tiles());
  }
  /// Whether tile registers are stored to the output.
  bool stores_tiles() const {
    return tile_.has_tiles() && !epilogue_ && !transposes() && last_lanes() == lanes_ &&
           tile_.window_sums == WindowSums::none;
  }
  bool uses_all_registers() const { return epilogue_ || tile_.has_tiles(); }
  int stage_bytes() const { return rows_ * row_bytes(); }
  /// The frame: the staging buffer, the epilogue's part; with tile registers the caller's
  /// configuration and the context of their results.
  int end_of_epilogue() const {
    return (is_staged() ? stage_bytes() : 0) + (epilogue_ ? epilogue_->frame_bytes() : 0);
  }
  int kept_config() const { return (end_of_epilogue() + 63) / 64 * 64; }
  int results_context() const { return kept_config() + 64; }
  int frame_bytes() const {
    return tile_.has_tiles() ? results_context() + Coroutine::frame_bytes : end_of_epilogue();
  }
  /// Vectors of pixels that are transposed one by one, and the pixels of each.
  int pixel_vectors() const { return (rows_ + lanes_ - 1) / lanes_; }
  int transposed_pixels() const { return (rows_ + pixel_vectors() - 1) / pixel_vectors(); }
  TileRows pixel_vector(int index) const {
    return {index * transposed_pixels(), std::min((index + 1) * transposed_pixels(), rows_)};
  }
  /// Channels in the last vector of channels.
  int last_lanes() const { return tile_.channels - (vectors_ - 1) * lanes_; }

  std::unique_ptr<EpilogueEmitter> epilogue_;    ///< vector by vector; null where there is none
  std::unique_ptr<EpilogueEmitter> whole_rows_;  ///< of tiles all of whose lanes are stored
};

// ---- frame

DenseEmitter::DenseEmitter(const DenseTile& tile, const Target& target,
                           const TileEpilogue* epilogue, const CodeBuffer& buffer)
    : KLoopEmitter(tile, target, buffer) {
  if (epilogue == nullptr) return;
  EpilogueUse use = {.frame = stage_bytes(),
                     .taken = {.vectors = transposes() ? transposed_vectors : 0}};
  epilogue_ = std::make_unique<EpilogueEmitter>(code_, target_, *epilogue, use);
  if (tile.store != StorePolicy::rows || (!by_pixels() && last_lanes() < lanes_)) return;
  use.order = EpilogueOrder::rows;
  use.row_vectors = vectors_;
  whole_rows_ = std::make_unique<EpilogueEmitter>(code_, target_, *epilogue, use);
}

MachineCode DenseEmitter::emit() {
  emit_entry();
  tile_.has_tiles() ? emit_tile_registers() : emit_register_tiles();
  emit_exit();
  return code_.finish();
}

void DenseEmitter::emit_register_tiles() {
  const Section tiles = code_.section(CodeSection::tile_loop);
  Xbyak::Label next_tile;
  code_.align_to(32);
  code_.L(next_tile);
  emit_start();
  emit_loop();
  if (!is_staged()) {
    emit_stores();
  } else {
    emit_row_groups([&](const TileRows& group) { emit_staging(group); });
    transposes() ? emit_transposed() : emit_rows_epilogue();
  }
  code_.add(reg::stores,
            static_cast<int>(by_pixels() ? vectors_ * sizeof(ConvStore) : sizeof(TilePlace)));
  code_.dec(tiles_left());
  code_.jnz(next_tile, Xbyak::CodeGenerator::T_NEAR);
}

void DenseEmitter::emit_entry() {
  const Section entry = code_.section(CodeSection::entry);
  code_.push_all(saved_registers);
  if (uses_all_registers()) code_.push_all(more_saved_registers);
  if (frame_bytes() > 0) {
    code_.enter_aligned_frame(reg::callers_stack, frame_bytes());
  }
  if (tile_.has_tiles()) emit_enter_tiles(code_, tile_config(), Xbyak::util::rsp + kept_config());
  if (epilogue_) epilogue_->emit_enter(argument(offsetof(DenseArguments, epilogue)));
  if (keeps_stored_lanes()) emit_stored_lanes(vectors_ - 1);
  code_.mov(reg::stores, argument(by_pixels() ? offsetof(DenseArguments, stores)
                                              : offsetof(DenseArguments, places)));
  code_.mov(tiles_left(), argument(offsetof(DenseArguments, tiles)));
  code_.mov(reg::output_step, argument(offsetof(DenseArguments, output_step)));
  code_.mov(reg::k_steps_end, argument(offsetof(DenseArguments, k_step_count)));
  code_.lea(reg::k_steps_end, code_.ptr[reg::k_steps_end * 4 - 4 * tile_.peeled_k_steps]);
  code_.add(reg::k_steps_end, argument(offsetof(DenseArguments, k_steps)));
}

void DenseEmitter::emit_exit() {
  const Section exit = code_.section(CodeSection::exit);
  if (epilogue_) epilogue_->emit_leave();
  if (tile_.has_tiles()) emit_leave_tiles(code_, tile_config(), Xbyak::util::rsp + kept_config());
  if (frame_bytes() > 0) code_.leave_aligned_frame(reg::callers_stack);
  if (uses_all_registers()) code_.pop_all(more_saved_registers);
  code_.vzeroupper();
  code_.pop_all(saved_registers);
  code_.emit_return();
}

// ---- stores of the accumulators as they are

/// The output at the tile's first row.
void DenseEmitter::emit_row_output() {
  const Section address = code_.section(CodeSection::output_address);
  code_.mov(reg::row_output, store(0, offsetof(TilePlace, pixel)));
  by_pixels() ? code_.shl(reg::row_output, 2) : code_.imul(reg::row_output, reg::output_step);
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

// ---- epilogues

void DenseEmitter::emit_staging(const TileRows& rows) {
  const Section staging = code_.section(CodeSection::staging);
  for (int vector = 0; compresses() && vector < vectors_; ++vector) emit_compression(vector);
  for (int row = rows.begin; row < rows.end; ++row) {
    for (int vector = 0; vector < vectors_; ++vector) {
      const int offset = row * row_bytes() + vector * vector_bytes();
      code_.vmovaps(code_.ptr[Xbyak::util::rsp + offset], sum(row, vector));
    }
  }
}

void DenseEmitter::emit_rows_epilogue() {
  const Section epilogue = code_.section(CodeSection::epilogue);
  const auto emit_vectors = [&] {
    epilogue_->emit_begin();
    for (int vector = 0; vector < vectors_; ++vector) emit_vector_epilogue(vector);
  };
  if (!whole_rows_) return emit_vectors();
  emit_if_whole([&] { emit_whole_rows_epilogue(); }, emit_vectors);
}

/// All vectors of a row at a time, in a loop over groups of rows.
void DenseEmitter::emit_whole_rows_epilogue() {
  whole_rows_->emit_begin();
  emit_point(*whole_rows_, 0);
  const RegExp sums = Xbyak::util::rsp + reg::stage;
  const int group = whole_rows_->group_rows();
  const int remainder = rows_ % group;
  emit_stage_loop(0, group * row_bytes(), (rows_ - remainder) * row_bytes(),
                  [&] { whole_rows_->emit_apply_rows(sums, group); });
  if (remainder > 0) whole_rows_->emit_apply_rows(sums, remainder);
}

/// One vector of every row, in a loop over the rows.
void DenseEmitter::emit_vector_epilogue(int vector) {
  emit_stored_lanes(vector);
  emit_point(*epilogue_, vector);
  const int first = vector * vector_bytes();
  emit_stage_loop(first, row_bytes(), first + rows_ * row_bytes(), [&] {
    epilogue_->emit_apply(code_.ptr[Xbyak::util::rsp + reg::stage]);
    epilogue_->emit_next_row();
  });
}

/// Goes to the operands of a vector in the first row: a channel's pixels, or a pixel's channels.
/// Transposed pixels begin with any row of the tile.
void DenseEmitter::emit_point(EpilogueEmitter& epilogue, int vector, int first_row) {
  const Section operands = code_.section(CodeSection::epilogue_operands);
  const bool rows_of_pixels = by_pixels() || transposes();
  rows_of_pixels ? code_.mov(reg::stage, store(vector, offsetof(TilePlace, pixel)))
                 : code_.mov(reg::stage.cvt32(), vector * lanes_);
  if (first_row > 0) code_.add(reg::stage, first_row);
  epilogue.emit_point(reg::stage);
  if (rows_of_pixels) return;
  code_.mov(reg::stage, store(0, offsetof(TilePlace, pixel)));
  epilogue.emit_skip_rows(reg::stage);
}

/// Emits a loop in which `stage` counts from `first` to `end`; nothing where these are the same.
void DenseEmitter::emit_stage_loop(int first, int step, int end,
                                   const std::function<void()>& emit_body) {
  const Section loop = code_.section(CodeSection::staging_loop);
  Xbyak::Label next;
  code_.mov(reg::stage.cvt32(), first);
  if (first == end) return;
  code_.align_to(32);
  code_.L(next);
  emit_body();
  if (results_) results_->emit_yield((end - first) / step);
  code_.add(reg::stage.cvt32(), step);
  code_.cmp(reg::stage.cvt32(), end);
  code_.jb(next, Xbyak::CodeGenerator::T_NEAR);
}

// ---- tile registers

/// Their accumulators go to the output, or to the staging buffer.
void DenseEmitter::emit_tile_registers() {
  const Section loop = code_.section(CodeSection::tile_loop);
  if (!is_staged())
    return emit_tiles(
        reg::output_step, [&] { emit_row_output(); }, false);
  Xbyak::Label tiles;
  results_.emplace(code_, results_context());
  code_.jmp(tiles, Xbyak::CodeGenerator::T_NEAR);
  results_->emit_begin();
  emit_tile_results();
  results_->emit_end();
  code_.L(tiles);
  emit_tiles(
      reg::row_bytes, [&] { code_.mov(reg::row_output, Xbyak::util::rsp); }, epilogue_ != nullptr);
}

void DenseEmitter::emit_tile_results() {
  if (!epilogue_) code_.mov(reg::output_step, argument(offsetof(DenseArguments, output_step)));
  if (tile_.window_sums != WindowSums::none) emit_staged_compensation();
  if (transposes()) return emit_transposed();
  epilogue_ ? emit_rows_epilogue() : emit_staged_rows();
}

/// In a loop over pixels, whose window sums follow each other.
void DenseEmitter::emit_staged_compensation() {
  const Section compensation = code_.section(CodeSection::compensation);
  const Reg64 next_sum = reg::row_output;
  const Xmm window_sum = reg(vectors_);
  const Xmm sums = reg(vectors_ + 1);
  const Xmm product = reg(vectors_ + 2);
  code_.mov(reg::scratch, argument(offsetof(DenseArguments, weight_zero_points)));
  for (int v = 0; v < vectors_; ++v) {
    code_.vmovups(reg(v), code_.ptr[reg::scratch + v * vector_bytes()]);
  }
  emit_window_sums_of_rows(next_sum);
  emit_stage_loop(0, row_bytes(), stage_bytes(), [&] {
    const Section subtraction = code_.section(CodeSection::compensation);
    code_.vpbroadcastd(window_sum, code_.ptr[next_sum]);
    code_.add(next_sum, 4);
    for (int v = 0; v < vectors_; ++v) {
      const Xbyak::Address at = code_.ptr[Xbyak::util::rsp + reg::stage + v * vector_bytes()];
      code_.vmovups(sums, at);
      emit_subtract_window_sums(sums, window_sum, reg(v), product);
      code_.vmovups(at, sums);
    }
  });
}

void DenseEmitter::emit_staged_rows() {
  const Section stores = code_.section(CodeSection::stores);
  emit_row_output();
  emit_stage_loop(0, row_bytes(), stage_bytes(), [&] {
    const Section rows = code_.section(CodeSection::stores);
    for (int v = 0; v < vectors_; ++v) {
      const int offset = v * vector_bytes();
      const bool is_whole = v + 1 < vectors_ || last_lanes() == lanes_;
      code_.vmovups(reg(v), code_.ptr[Xbyak::util::rsp + reg::stage + offset]);
      is_whole ? code_.vmovups(code_.ptr[reg::row_output + offset], reg(v))
               : emit_masked_store(reg::row_output, reg(v), offset);
    }
    emit_add_output_step(reg::row_output);
  });
}

// ---- transposition

/// Four channels at a time are transposed, and stored or go through the epilogue.
void DenseEmitter::emit_transposed() {
  const Section transposed = code_.section(CodeSection::transposition);
  epilogue_ ? emit_transposed_epilogue() : emit_transposed_stores();
}

/// One vector of pixels after the other.
void DenseEmitter::emit_transposed_epilogue() {
  epilogue_->emit_begin();
  for (int index = 0; index < pixel_vectors(); ++index) {
    const TileRows pixels = pixel_vector(index);
    emit_stored_lane_count(stored_lanes, pixels.end - pixels.begin);
    emit_point(*epilogue_, 0, pixels.begin);
    emit_channel_blocks([&](int channels) {
      emit_transposition(pixels, channels, 0);
      for (int channel = 0; channel < channels; ++channel) {
        epilogue_->emit_apply(reg(channel));
        epilogue_->emit_next_row();
      }
    });
  }
}

/// All pixels of a channel after each other: they are on one page, those of other channels are not.
void DenseEmitter::emit_transposed_stores() {
  if (!keeps_stored_lanes()) emit_stored_lanes(0);
  const TileRows last = pixel_vector(pixel_vectors() - 1);
  const bool has_shorter_vector = last.end - last.begin < transposed_pixels();
  if (has_shorter_vector) emit_stored_lane_count(last_stored_lanes, last.end - last.begin);
  emit_output_of(0);
  emit_channel_blocks([&](int channels) {
    for (int index = 0; index < pixel_vectors(); ++index) {
      emit_transposition(pixel_vector(index), channels, index * transposition_registers);
    }
    const Section stores = code_.section(CodeSection::stores);
    for (int channel = 0; channel < channels; ++channel) {
      for (int index = 0; index < pixel_vectors(); ++index) {
        const TileRows pixels = pixel_vector(index);
        const Xmm from = reg(index * transposition_registers + channel);
        const Xbyak::Address to = code_.ptr[reg::output + 4 * pixels.begin];
        if (pixels.end - pixels.begin == lanes_) {
          code_.vmovups(to, from);
        } else if (has_shorter_vector && index + 1 == pixel_vectors()) {
          code_.vmovdqu32(to | last_stored_lanes, from);
        } else {
          emit_masked_store(reg::output, from, 4 * pixels.begin);
        }
      }
      emit_add_output_step(reg::output);
    }
  });
}

/// A loop over blocks of channels, and the remainder.
void DenseEmitter::emit_channel_blocks(const std::function<void(int)>& emit_block) {
  const int remainder = tile_.channels % block_channels;
  emit_stage_loop(0, 4 * block_channels, 4 * (tile_.channels - remainder),
                  [&] { emit_block(block_channels); });
  if (remainder > 0) emit_block(remainder);
}

/// Up to four channels: 4 by 4 blocks, one in each 128 bits.
void DenseEmitter::emit_transposition(const TileRows& pixels, int count, int first) {
  const Section transposition = code_.section(CodeSection::transposition);
  for (int row = 0; row < block_channels; ++row) emit_block_loads(pixels, row, first);
  const Xmm low_ab = reg(first + 4);
  const Xmm high_ab = reg(first + 5);
  const Xmm low_cd = reg(first + 6);
  const Xmm high_cd = reg(first + 7);
  code_.vpunpckldq(low_ab, reg(first), reg(first + 1));
  code_.vpunpckldq(low_cd, reg(first + 2), reg(first + 3));
  code_.vpunpckhdq(high_ab, reg(first), reg(first + 1));
  code_.vpunpckhdq(high_cd, reg(first + 2), reg(first + 3));
  code_.vpunpcklqdq(reg(first), low_ab, low_cd);
  if (count > 1) code_.vpunpckhqdq(reg(first + 1), low_ab, low_cd);
  if (count > 2) code_.vpunpcklqdq(reg(first + 2), high_ab, high_cd);
  if (count > 3) code_.vpunpckhqdq(reg(first + 3), high_ab, high_cd);
}

/// Four channels of pixels row, row + 4, row + 8, row + 12, as far as there are any.
void DenseEmitter::emit_block_loads(const TileRows& pixels, int row, int first) {
  const int count = pixels.end - pixels.begin;
  const auto block = [&](int pixel) {
    return code_.ptr[Xbyak::util::rsp + reg::stage + (pixels.begin + pixel) * row_bytes()];
  };
  const int to = first + row;
  code_.vmovups(Xmm(to), block(std::min(row, count - 1)));
  for (uint8_t lane = 1; row + 4 * lane < count; ++lane) {
    const Xbyak::Address from = block(row + 4 * lane);
    target_.has_avx512() ? code_.vinserti32x4(Xbyak::Zmm(to), Xbyak::Zmm(to), from, lane)
                         : code_.vinserti128(Xbyak::Ymm(to), Xbyak::Ymm(to), from, lane);
  }
}

}  // namespace

}  // namespace dense

namespace {

bool fits_tile_registers(const DenseTile& tile, const Target& target) {
  const bool has_k_groups = tile.step_bytes > 0 && tile.step_bytes % 4 == 0 &&
                            tile.step_bytes <= DenseTile::max_step_bytes;
  const bool is_plain = tile.vectorised == Vectorised::channels &&
                        tile.source == PixelSource::packed && tile.peeled_k_steps == 0 &&
                        !tile.loops_k_groups;
  const int pixels = tile.pixel_tiles();
  const int vectors = tile.vectors_of(DenseTile::tile_rows);
  return target.supports(Feature::amx_int8) && has_k_groups && is_plain &&
         pixels <= DenseTile::max_pixel_tiles &&
         pixels * vectors + pixels + vectors <= DenseTile::tile_registers;
}

}  // namespace

bool fits(const DenseTile& tile, const Target& target) {
  const int lanes = target.vector_bits() / 32;
  if (std::min({tile.channels, tile.vectors, tile.pixel_rows, tile.columns}) < 1) return false;
  if (tile.has_tiles()) return fits_tile_registers(tile, target);
  if (tile.store == StorePolicy::transposed && tile.pixels() > lanes) return false;
  const bool has_engine = tile.engine == ProductEngine::i16_pairs ||
                          product_engine_of(target) == ProductEngine::u8_i8_dot;
  const bool sums_pixels = tile.window_sums == WindowSums::own;
  if (tile.source == PixelSource::packed && (sums_pixels || tile.reads_input_once)) return false;
  if (tile.reads_input_once && tile.peeled_k_steps > 0) return false;
  const int rows = tile.rows() + (sums_pixels ? 1 : 0);
  const int used =
      (rows + 1) * tile.vectors_of(lanes) + dense::work_registers + (sums_pixels ? 1 : 0);
  return has_engine && used <= target.vector_registers();
}

Result<MachineCode> emit_kernel(const DenseTile& tile, const Target& target,
                                const TileEpilogue* epilogue, const EmitOptions& options) {
  return assemble_with_epilogue<dense::DenseEmitter>(tile, target, epilogue, options);
}

}  // namespace castor::jit
