// SPDX-License-Identifier: Apache-2.0
// The dense microkernel: its frame, and its epilogues.
#include "jit/conv/dense/tile_emitter.hpp"

#include <array>
#include <cassert>
#include <cstddef>

#include "jit/emit/tile_config.hpp"

namespace castor::jit {

namespace dense {

namespace {

/// Vector registers besides accumulators and vectors: a broadcast operand, and a product.
constexpr int work_registers = 2;

const std::array saved_registers = {reg::input, reg::tiles, reg::callers_stack, reg::row_output};
/// Saved as well where the code uses all registers (`uses_all_registers`).
const std::array more_saved_registers = {Reg64(Operand::R14), Reg64(Operand::R15)};

}  // namespace

// ---- frame

DenseEmitter::DenseEmitter(const DenseTile& tile, const Target& target,
                           const TileEpilogue* epilogue, const CodeBuffer& buffer)
    : KLoopEmitter(tile, target, buffer) {
  if (epilogue == nullptr) return;
  assert(!tile.has_idle_products && !tile.transposes_registers);
  EpilogueUse use = {.frame = staging_bytes(),
                     .taken = {.vectors = transposes() ? transposed_vectors : 0}};
  epilogue_ = std::make_unique<EpilogueEmitter>(code_, target_, *epilogue, use);
  if (tile.store != StorePolicy::rows || tile.has_dead_positions()) return;
  if (!by_pixels() && last_lanes() < lanes_) return;
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
  if (epilogue_ && by_pixels()) emit_prefetch_of_operands();
  emit_start();
  emit_loop();
  if (tile_.transposes_registers) {
    emit_row_groups([&](const TileRows&) { emit_register_stores(); });
  } else if (!is_staged()) {
    emit_stores();
  } else {
    emit_row_groups([&](const TileRows& group) { emit_staging(group); });
    transposes() ? emit_transposed() : emit_rows_epilogue();
  }
  code_.add(reg::stores,
            static_cast<int>(by_pixels() ? vectors_ * sizeof(ConvStore) : sizeof(TileOrigin)));
  code_.dec(reg::loop_bound(code_));
  code_.jnz(next_tile, Xbyak::CodeGenerator::T_NEAR);
}

void DenseEmitter::emit_entry() {
  const Section entry = code_.section(CodeSection::entry);
  code_.push_all(saved_registers);
  if (uses_all_registers()) code_.push_all(more_saved_registers);
  if (frame_bytes() > 0) {
    code_.enter_aligned_frame(reg::callers_stack, frame_bytes());
  }
  if (tile_.has_tiles()) emit_enter_tiles(code_, tile_configuration(tile_), kept_config());
  if (epilogue_) epilogue_->emit_enter(argument(offsetof(DenseArguments, epilogue)));
  if (keeps_stored_lanes()) emit_stored_lanes(vectors_ - 1);
  if (!tile_.has_tiles()) {
    code_.mov(reg::stores, argument(by_pixels() ? offsetof(DenseArguments, stores)
                                                : offsetof(DenseArguments, places)));
    code_.mov(reg::loop_bound(code_), argument(offsetof(DenseArguments, tiles)));
  }
  code_.mov(reg::output_step, argument(offsetof(DenseArguments, output_step)));
  if (tile_.has_tiles()) return;
  if (tile_.prefetches_weights) {
    code_.mov(reg::prefetched, argument(offsetof(DenseArguments, prefetched)));
  }
  code_.mov(reg::k_steps_end, argument(offsetof(DenseArguments, k_step_count)));
  code_.lea(reg::k_steps_end, code_.ptr[reg::k_steps_end * 4 - 4 * tile_.peeled_k_steps]);
  code_.add(reg::k_steps_end, argument(offsetof(DenseArguments, k_steps)));
}

void DenseEmitter::emit_exit() {
  const Section exit = code_.section(CodeSection::exit);
  if (epilogue_) epilogue_->emit_leave();
  if (tile_.has_tiles()) emit_leave_tiles(code_, tile_configuration(tile_), kept_config());
  if (frame_bytes() > 0) code_.leave_aligned_frame(reg::callers_stack);
  if (uses_all_registers()) code_.pop_all(more_saved_registers);
  code_.vzeroupper();
  code_.pop_all(saved_registers);
  code_.emit_return();
}

// ---- epilogues

/// What is added pixel by pixel comes from memory where tensors are large, and no hardware
/// prefetcher sees the rows of several channels: it has the time of the products to arrive.
void DenseEmitter::emit_prefetch_of_operands() {
  epilogue_->emit_prefetch_of_rows(rows_, vectors_ * lanes_, pixel_of(0), reg::scratch);
}

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
    epilogue_->emit_store_folds();
  };
  if (!whole_rows_) return emit_vectors();
  emit_if_whole([&] { emit_whole_rows_epilogue(); }, emit_vectors);
}

/// All vectors of a row at a time, in a loop over groups of rows.
void DenseEmitter::emit_whole_rows_epilogue() {
  whole_rows_->emit_begin();
  emit_point(*whole_rows_, 0);
  const RegExp sums = Xbyak::util::rsp + reg::staged;
  const int group = whole_rows_->group_rows();
  const int remainder = rows_ % group;
  emit_staging_loop(0, group * row_bytes(), (rows_ - remainder) * row_bytes(),
                    [&] { whole_rows_->emit_apply_rows(sums, group); });
  if (remainder > 0) whole_rows_->emit_apply_rows(sums, remainder);
  whole_rows_->emit_store_folds();
}

/// One vector of every row, in a loop over the rows.
void DenseEmitter::emit_vector_epilogue(int vector) {
  emit_stored_lanes(vector);
  emit_point(*epilogue_, vector);
  emit_pixel_loop(vector * vector_bytes(), [&] {
    epilogue_->emit_apply(code_.ptr[Xbyak::util::rsp + reg::staged]);
    epilogue_->emit_next_row();
  });
}

/// Goes to the operands of a vector in the first row: a channel's pixels, or a pixel's channels.
/// Transposed pixels begin with any row of the tile.
void DenseEmitter::emit_point(EpilogueEmitter& epilogue, int vector, int first_row) {
  const Section operands = code_.section(CodeSection::epilogue_operands);
  const bool rows_of_pixels = by_pixels() || transposes();
  rows_of_pixels ? code_.mov(reg::staged, pixel_of(vector))
                 : code_.mov(reg::staged.cvt32(), vector * lanes_);
  if (first_row > 0) code_.add(reg::staged, first_row);
  if (!rows_of_pixels && tile_.has_tiles()) {
    code_.add(reg::staged, tile_loop_->result_channel());
  }
  epilogue.emit_point(reg::staged);
  if (rows_of_pixels && !tile_.has_tiles()) return;
  rows_of_pixels ? code_.mov(reg::staged, tile_loop_->result_channel())
                 : code_.mov(reg::staged, pixel_of(0));
  epilogue.emit_skip_rows(reg::staged);
}

/// Emits loops in which `staged` goes from `first` of one row of the register tile to that of the
/// next one; rows of pixels with dead positions between them have a loop each.
void DenseEmitter::emit_pixel_loop(int first, const std::function<void()>& emit_body) {
  const int count = tile_.has_dead_positions() ? tile_.columns : rows_;
  for (int row = 0; row < rows_; row += count) {
    const int begin = first + tile_.position_of(row) * row_bytes();
    emit_staging_loop(begin, row_bytes(), begin + count * row_bytes(), emit_body);
  }
}

/// Emits a loop in which `staged` counts from `first` to `end`; nothing where these are the same.
void DenseEmitter::emit_staging_loop(int first, int step, int end,
                                     const std::function<void()>& emit_body) {
  const Section loop = code_.section(CodeSection::staging_loop);
  Xbyak::Label next;
  code_.mov(reg::staged.cvt32(), first);
  if (first == end) return;
  code_.align_to(32);
  code_.L(next);
  emit_body();
  if (results_) results_->emit_yield((end - first) / step);
  code_.add(reg::staged.cvt32(), step);
  code_.cmp(reg::staged.cvt32(), end);
  code_.jb(next, Xbyak::CodeGenerator::T_NEAR);
}

}  // namespace dense

namespace {

bool fits_tile_registers(const DenseTile& tile, const Target& target) {
  const bool has_k_groups = tile.step_bytes > 0 && tile.step_bytes % 4 == 0 &&
                            tile.step_bytes <= DenseTile::max_step_bytes;
  const bool is_plain = tile.vectorised == Vectorised::channels &&
                        tile.source == PixelSource::packed && tile.peeled_k_steps == 0 &&
                        !tile.loops_k_groups && !tile.has_sign_flip;
  const int pixels = tile.pixel_tiles();
  const int vectors = tile.vectors_of(DenseTile::tile_rows);
  return target.supports(Feature::amx_int8) && has_k_groups && is_plain &&
         pixels <= DenseTile::max_pixel_tiles &&
         pixels * vectors + tile.pixel_registers() + vectors <= DenseTile::tile_registers;
}

bool fits_register_transposition(const DenseTile& tile, const Target& target) {
  return tile.store == StorePolicy::transposed && tile.peeled_k_steps == 0 && target.has_avx512();
}

}  // namespace

bool fits(const DenseTile& tile, const Target& target) {
  const int lanes = target.vector_bits() / 32;
  if (std::min({tile.channels, tile.vectors, tile.pixel_rows, tile.columns}) < 1) return false;
  if (tile.has_tiles()) return fits_tile_registers(tile, target);
  if (tile.store == StorePolicy::transposed && tile.pixels() > lanes) return false;
  if (tile.transposes_registers && !fits_register_transposition(tile, target)) return false;
  const bool has_engine = tile.engine == ProductEngine::i16_pairs ||
                          product_engine_of(target) == ProductEngine::u8_i8_dot;
  const bool sums_pixels = tile.window_sums == WindowSums::own;
  const bool stores_sums = tile.window_sums == WindowSums::own_products;
  const bool wants_input = sums_pixels || stores_sums || tile.reads_input_once;
  if (tile.source == PixelSource::packed && wants_input) return false;
  const bool has_whole_rows = tile.store != StorePolicy::compressed && !tile.reads_input_once;
  if (stores_sums && !(has_whole_rows && takes_u8_by_i8(tile.engine))) return false;
  if (tile.reads_input_once && tile.peeled_k_steps > 0) return false;
  const bool takes_sign_flip = tile.vectorised == Vectorised::channels &&
                               tile.source == PixelSource::packed && takes_u8_by_i8(tile.engine);
  if (tile.has_sign_flip && !takes_sign_flip) return false;
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
