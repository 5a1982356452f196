// SPDX-License-Identifier: Apache-2.0
// The emitter of the dense microkernel, inside jit/conv/dense only: k_loop.hpp names the files of
// its products; tile_emitter.cpp has its frame and epilogues, tile_stores.cpp and transposition.cpp
// its stores. With tile registers tile_loop.hpp has the products, tile_registers.cpp what follows
// them.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>

#include "jit/conv/dense/coroutine.hpp"
#include "jit/conv/dense/k_loop.hpp"
#include "jit/conv/dense/tile_loop.hpp"
#include "jit/conv/epilogue/epilogue_emitter.hpp"

namespace castor::jit::dense {

/// The lanes that are stored next, as epilogues have them; without opmasks a vector has them, free
/// once all products are done.
inline const Xbyak::Opmask stored_lanes(1);
inline constexpr int stored_lanes_vector = 15;
/// Vectors that a transposition works with; the first four hold its results.
inline constexpr uint32_t transposed_vectors = 0xff;

/// Emits one microkernel: a loop over tiles.
///
/// Accumulators are stored as they are, or transposed in registers, or go through a staging buffer
/// on the stack, so that a transposition or an epilogue has all registers.
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
  void emit_prefetch_of_operands();
  void emit_staging(const TileRows& rows);
  void emit_rows_epilogue();
  void emit_whole_rows_epilogue();
  void emit_vector_epilogue(int vector);
  void emit_point(EpilogueEmitter& epilogue, int vector, int first_row = 0);
  void emit_tile_registers();
  void emit_tile_results();
  void emit_output_of_results();
  void emit_staged_compensation();
  void emit_staged_rows();
  void emit_transposed();
  void emit_transposed_epilogue();
  void emit_transposed_stores();
  void emit_channel_blocks(const std::function<void(int)>& emit_block);
  void emit_transposition(const TileRows& pixels, int count, int first, int others);
  void emit_block_loads(const TileRows& pixels, int row, int first);
  void emit_register_stores();
  void emit_register_transposition(int vector,
                                   const std::function<void(int, const Xmm&)>& emit_result);
  std::vector<int> free_registers(int vector) const;
  void emit_pixel_loop(int first, const std::function<void()>& emit_body);
  void emit_staging_loop(int first, int step, int end, const std::function<void()>& emit_body);

  bool compresses() const { return tile_.store == StorePolicy::compressed; }
  bool transposes() const { return tile_.store == StorePolicy::transposed; }
  bool transposes_memory() const { return transposes() && !tile_.transposes_registers; }
  /// Whether the mask of channels, the same for all tiles, stays in its opmask.
  bool keeps_stored_lanes() const { return !by_pixels() && target_.has_avx512() && !epilogue_; }
  bool is_staged() const {
    return epilogue_ || transposes_memory() || (tile_.has_tiles() && !stores_tiles());
  }
  /// Whether tile registers are stored to the output.
  bool stores_tiles() const {
    return tile_.has_tiles() && !epilogue_ && !transposes() && last_lanes() == lanes_ &&
           tile_.window_sums == WindowSums::none && !tile_.has_dead_positions();
  }
  bool uses_all_registers() const { return epilogue_ || tile_.has_tiles() || stores_window_sums(); }
  int staging_bytes() const {
    return (tile_.has_dead_positions() ? tile_.line_positions() : rows_) * row_bytes();
  }
  /// The frame: the staging buffer, the epilogue's part; with tile registers the caller's
  /// configuration, the context of their results, and the state of the loop over tiles.
  int end_of_epilogue() const {
    return (is_staged() ? staging_bytes() : 0) + (epilogue_ ? epilogue_->frame_bytes() : 0);
  }
  int kept_config_at() const { return (end_of_epilogue() + 63) / 64 * 64; }
  RegExp kept_config() const { return Xbyak::util::rsp + kept_config_at(); }
  int results_context() const { return kept_config_at() + 64; }
  int frame_bytes() const {
    if (!tile_.has_tiles()) return end_of_epilogue();
    return results_context() + Coroutine::frame_bytes + TileLoopEmitter::frame_bytes;
  }
  /// Vectors of pixels that are transposed one by one, and the pixels of each.
  int pixel_vectors() const { return (rows_ + lanes_ - 1) / lanes_; }
  int transposed_pixels() const { return (rows_ + pixel_vectors() - 1) / pixel_vectors(); }
  TileRows pixel_vector(int index) const {
    return {index * transposed_pixels(), std::min((index + 1) * transposed_pixels(), rows_)};
  }
  /// The first pixel that a vector stores.
  Xbyak::Address pixel_of(int vector) {
    return tile_loop_ ? tile_loop_->result_pixel() : store(vector, offsetof(TileOrigin, pixel));
  }
  /// Channels in the last vector of channels.
  int last_lanes() const { return tile_.channels - (vectors_ - 1) * lanes_; }

  std::unique_ptr<EpilogueEmitter> epilogue_;    ///< vector by vector; null where there is none
  std::unique_ptr<EpilogueEmitter> whole_rows_;  ///< of tiles all of whose lanes are stored
  // With tile registers:
  std::optional<Coroutine> results_;  ///< staged: all that follows the stores of accumulators
  std::optional<TileLoopEmitter> tile_loop_;
};

}  // namespace castor::jit::dense
