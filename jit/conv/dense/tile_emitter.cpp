// SPDX-License-Identifier: Apache-2.0
// The dense microkernel: its frame, and the loop over its tiles.
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
    : DenseCode(buffer, target.frame_pointers),
      ResultEmitter(RegisterTile(tile, target, assembler), shared),
      products_(*this),
      stores_(*this, shared),
      row_epilogue_(*this, shared),
      transposition_(*this, shared),
      staged_tiles_(*this, shared, row_epilogue_, transposition_) {
  if (epilogue != nullptr) make_epilogues(*epilogue);
  if (!tile.has_tiles()) return;
  if (is_staged()) results_.slices.emplace(code_, results_context());
  results_.tile_loop.emplace(tile_, code_, results_context() + Coroutine::frame_bytes,
                             results_.slices ? &*results_.slices : nullptr);
}

void DenseEmitter::make_epilogues(const TileEpilogue& epilogue) {
  assert(!tile_.has_idle_products && !tile_.transposes_registers);
  EpilogueUse use = {.frame = staging_bytes(),
                     .taken = {.vectors = transposes() ? transposed_vectors : 0}};
  results_.epilogue = std::make_unique<EpilogueEmitter>(code_, target_, epilogue, use);
  if (tile_.store != StorePolicy::rows || tile_.has_dead_positions()) return;
  if (!by_pixels() && last_lanes() < lanes_) return;
  use.order = EpilogueOrder::rows;
  use.row_vectors = vectors_;
  results_.whole_rows = std::make_unique<EpilogueEmitter>(code_, target_, epilogue, use);
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
  if (results_.epilogue && by_pixels()) emit_prefetch_of_operands();
  products_.emit_start();
  products_.emit_loop();
  if (tile_.transposes_registers) {
    products_.emit_row_groups([&](const TileRows&) { transposition_.emit_in_registers(); });
  } else if (!is_staged()) {
    stores_.emit(products_);
  } else {
    products_.emit_row_groups([&](const TileRows& group) { emit_staging(group); });
    transposes() ? transposition_.emit() : row_epilogue_.emit();
  }
  code_.add(reg::stores,
            static_cast<int>(by_pixels() ? vectors_ * sizeof(ConvStore) : sizeof(TileOrigin)));
  code_.dec(reg::loop_bound(code_));
  code_.jnz(next_tile, Xbyak::CodeGenerator::T_NEAR);
}

/// Accumulators that are tile registers go to the output, or to the staging buffer.
void DenseEmitter::emit_tile_registers() {
  const Section loop = code_.section(CodeSection::tile_loop);
  TileLoopEmitter& tile_loop = *results_.tile_loop;
  if (!results_.slices) return tile_loop.emit(reg::output_step, [&] { emit_row_output(); });
  Xbyak::Label tiles;
  code_.jmp(tiles, Xbyak::CodeGenerator::T_NEAR);
  results_.slices->emit_begin();
  staged_tiles_.emit();
  results_.slices->emit_end();
  code_.L(tiles);
  tile_loop.emit(reg::row_bytes, [&] { code_.mov(reg::row_output, Xbyak::util::rsp); });
}

void DenseEmitter::emit_entry() {
  const Section entry = code_.section(CodeSection::entry);
  code_.push_all(saved_registers);
  if (uses_all_registers()) code_.push_all(more_saved_registers);
  if (frame_bytes() > 0) {
    code_.enter_aligned_frame(reg::callers_stack, frame_bytes());
  }
  if (tile_.has_tiles()) emit_enter_tiles(code_, tile_configuration(tile_), kept_config());
  if (results_.epilogue)
    results_.epilogue->emit_enter(argument(offsetof(DenseArguments, epilogue)));
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
  if (results_.epilogue) results_.epilogue->emit_leave();
  if (tile_.has_tiles()) emit_leave_tiles(code_, tile_configuration(tile_), kept_config());
  if (frame_bytes() > 0) code_.leave_aligned_frame(reg::callers_stack);
  if (uses_all_registers()) code_.pop_all(more_saved_registers);
  code_.vzeroupper();
  code_.pop_all(saved_registers);
  code_.emit_return();
}

// ---- before and after products

/// What is added pixel by pixel comes from memory where tensors are large, and no hardware
/// prefetcher sees the rows of several channels: it has the time of the products to arrive.
void DenseEmitter::emit_prefetch_of_operands() {
  results_.epilogue->emit_prefetch_of_rows(rows_, vectors_ * lanes_, pixel_of(0), reg::scratch);
}

void DenseEmitter::emit_staging(const TileRows& rows) {
  const Section staging = code_.section(CodeSection::staging);
  for (int vector = 0; compresses() && vector < vectors_; ++vector) {
    stores_.emit_compression(vector);
  }
  for (int row = rows.begin; row < rows.end; ++row) {
    for (int vector = 0; vector < vectors_; ++vector) {
      const int offset = row * row_bytes() + vector * vector_bytes();
      code_.vmovaps(code_.ptr[Xbyak::util::rsp + offset], sum(row, vector));
    }
  }
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
  if (tile.has_first_values_by_pixel && tile.has_dead_positions()) return false;
  return target.supports(Feature::amx_int8) && has_k_groups && is_plain &&
         pixels <= DenseTile::max_pixel_tiles &&
         pixels * vectors + tile.pixel_registers() + vectors <= DenseTile::tile_registers;
}

bool fits_register_transposition(const DenseTile& tile, const Target& target) {
  return tile.store == StorePolicy::transposed && tile.peeled_k_steps == 0 && target.has_avx512();
}

}  // namespace

bool may_take_input(const DenseTile& tile, const Target& target) {
  if (!target.has_avx512()) return true;
  if (!multiplies_bytes(tile.engine)) return false;
  return target.supports(Feature::avx512_vbmi) || reorders_sums(tile);
}

bool fits(const DenseTile& tile, const Target& target) {
  const int lanes = target.vector_bits() / 32;
  if (std::min({tile.channels, tile.vectors, tile.pixel_rows, tile.columns}) < 1) return false;
  if (tile.has_tiles()) return fits_tile_registers(tile, target);
  if (tile.has_first_values_by_pixel) return false;
  if (tile.store == StorePolicy::transposed && tile.pixels() > lanes) return false;
  if (tile.transposes_registers && !fits_register_transposition(tile, target)) return false;
  const bool has_engine = tile.engine == ProductEngine::i16_pairs ||
                          product_engine_of(target) == ProductEngine::u8_i8_dot;
  const bool sums_pixels = tile.window_sums == WindowSums::own;
  const bool stores_sums = tile.window_sums == WindowSums::own_products;
  const bool wants_input = sums_pixels || stores_sums || tile.reads_input_once;
  if (tile.source == PixelSource::packed && wants_input) return false;
  if (tile.source != PixelSource::packed && !may_take_input(tile, target)) return false;
  if (sums_pixels && !multiplies_bytes(tile.engine)) return false;
  if (tile.passes_pixels() && tile.window_sums != WindowSums::none) return false;
  const bool has_whole_rows = tile.store != StorePolicy::compressed && !tile.reads_input_once;
  if (stores_sums && !(has_whole_rows && takes_u8_by_i8(tile.engine))) return false;
  if (tile.reads_input_once && tile.peeled_k_steps > 0) return false;
  const bool takes_sign_flip = tile.vectorised == Vectorised::channels &&
                               tile.source == PixelSource::packed && takes_u8_by_i8(tile.engine);
  if (tile.has_sign_flip && !takes_sign_flip) return false;
  const int rows = tile.rows() + (sums_pixels ? 1 : 0);
  const int used = rows * tile.vectors_of(lanes) + tile.held_vectors(lanes) +
                   dense::work_registers + (sums_pixels ? 1 : 0);
  return has_engine && used <= target.vector_registers();
}

Result<MachineCode> emit_kernel(const DenseTile& tile, const Target& target,
                                const TileEpilogue* epilogue, const EmitOptions& options) {
  return assemble_with_epilogue<dense::DenseEmitter>(tile, target, epilogue, options);
}

}  // namespace castor::jit
