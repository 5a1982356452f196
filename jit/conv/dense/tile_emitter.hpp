// SPDX-License-Identifier: Apache-2.0
// The emitter of the dense microkernel, inside jit/conv/dense only: tile_emitter.cpp has its frame
// and its loop. k_loop.hpp names the files of its products, with tile registers tile_loop.hpp.
// What becomes of them: tile_results.cpp and tile_registers.cpp, tile_stores.cpp,
// transposition.cpp.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "jit/conv/dense/coroutine.hpp"
#include "jit/conv/dense/k_loop.hpp"
#include "jit/conv/dense/tile_loop.hpp"
#include "jit/conv/epilogue/epilogue_emitter.hpp"

namespace castor::jit::dense {

/// The lanes that are stored next, as epilogues have them; without opmasks a vector has them, or
/// the upper half of one that is stored by several stores. That vector is free once all products
/// are done.
inline const Xbyak::Opmask stored_lanes(1);
inline constexpr int stored_lanes_vector = 15;
/// Vectors that a transposition works with; the first four hold its results.
inline constexpr uint32_t transposed_vectors = 0xff;

/// The emitters that those below share; empty where there is nothing for them.
struct TileResults {
  std::unique_ptr<EpilogueEmitter> epilogue;    ///< vector by vector
  std::unique_ptr<EpilogueEmitter> whole_rows;  ///< for tiles all of whose lanes are stored
  // With tile registers:
  std::optional<Coroutine> slices;  ///< staged: all that follows the stores of accumulators
  std::optional<TileLoopEmitter> tile_loop;
};

/// What the emitters of stores and epilogues have in common: which lanes and pixels are stored, and
/// where.
///
/// Accumulators are stored as they are, or transposed in registers, or go through a staging buffer
/// on the stack, so that a transposition or an epilogue has all registers.
class ResultEmitter : protected RegisterTile {
 protected:
  ResultEmitter(const RegisterTile& tile, TileResults& results)
      : RegisterTile(tile), results_(results) {}

  void emit_row_output();
  void emit_stored_lanes(int vector);
  void emit_stored_lane_count(const Xbyak::Opmask& mask, int count);
  void emit_masked_store(const Reg64& to, const Xmm& from, int offset = 0);
  void emit_partial_store(const Reg64& to, const Xmm& from, int lanes, int offset);
  void emit_if_whole(int vector, const std::function<void()>& emit_whole,
                     const std::function<void()>& emit_masked);
  void emit_point(EpilogueEmitter& epilogue, int vector, int first_row = 0);
  void emit_pixel_loop(int first, const std::function<void()>& emit_body);
  void emit_staging_loop(int first, int step, int end, const std::function<void()>& emit_body);

  bool compresses() const { return tile_.store == StorePolicy::compressed; }
  bool transposes() const { return tile_.store == StorePolicy::transposed; }
  /// Whether the mask of channels, the same for all tiles, stays in its opmask.
  bool keeps_stored_lanes() const {
    return !by_pixels() && target_.has_avx512() && !results_.epilogue;
  }
  /// Vectors of pixels that are transposed one by one, and the pixels of each.
  int pixel_vectors() const { return (rows_ + lanes_ - 1) / lanes_; }
  int transposed_pixels() const { return (rows_ + pixel_vectors() - 1) / pixel_vectors(); }
  /// The first pixel that a vector stores.
  Xbyak::Address pixel_of(int vector) {
    return results_.tile_loop ? results_.tile_loop->result_pixel()
                              : store(vector, offsetof(TileOrigin, pixel));
  }
  /// How many lanes a vector of pixels stores: that many bits.
  Xbyak::Address lanes_of(int vector) {
    const size_t offset = static_cast<size_t>(vector) * sizeof(ConvStore);
    return code_.dword[reg::stores + (offset + offsetof(ConvStore, first_lanes))];
  }
  /// Channels in the last vector of channels.
  int last_lanes() const { return tile_.channels - (vectors_ - 1) * lanes_; }

  TileResults& results_;
};

/// Stores accumulators as they are.
class RowStores final : ResultEmitter {
 public:
  RowStores(const RegisterTile& tile, TileResults& results) : ResultEmitter(tile, results) {}

  void emit(KLoopEmitter& products);
  /// Makes the lanes of a vector that are stored the first ones; in most vectors they are.
  void emit_compression(int vector);

 private:
  void emit_group(const TileRows& group);
  void emit_rows(const TileRows& group, bool is_masked);
  void emit_until_partial(const TileRows& group);
  void emit_store(const Reg64& row_output, int row, int vector, bool is_masked);
  void emit_compressed(int vector);
  void emit_vector(int vector, bool is_masked);
};

/// Applies an epilogue to staged rows.
class RowEpilogue final : ResultEmitter {
 public:
  RowEpilogue(const RegisterTile& tile, TileResults& results) : ResultEmitter(tile, results) {}

  void emit();

 private:
  void emit_whole_rows();
  void emit_vector(int vector);
};

/// Transposes register tiles whose pixels are consecutive in the output.
class Transposition final : ResultEmitter {
 public:
  Transposition(const RegisterTile& tile, TileResults& results) : ResultEmitter(tile, results) {}

  /// Transposes staged rows, four channels at a time, which are stored or go through the epilogue.
  void emit();
  /// Transposes accumulators, and stores them.
  void emit_in_registers();

 private:
  void emit_apply();
  void emit_stores();
  void emit_output_of_results();
  void emit_channel_blocks(const std::function<void(int)>& emit_channels);
  void emit_block(const TileRows& pixels, int count, int first, int others);
  void emit_block_loads(const TileRows& pixels, int row, int first);
  void emit_vector(int vector, const std::function<void(int, const Xmm&)>& emit_result);
  std::vector<int> free_registers(int vector) const;
  TileRows pixel_vector(int index) const {
    return {index * transposed_pixels(), std::min((index + 1) * transposed_pixels(), rows_)};
  }
};

/// Looks after accumulators that were tile registers and are staged.
class StagedTiles final : ResultEmitter {
 public:
  StagedTiles(const RegisterTile& tile, TileResults& results, RowEpilogue& row_epilogue,
              Transposition& transposition)
      : ResultEmitter(tile, results), row_epilogue_(row_epilogue), transposition_(transposition) {}

  void emit();

 private:
  void emit_compensation();
  void emit_rows();

  RowEpilogue& row_epilogue_;
  Transposition& transposition_;
};

/// A base, so that the assembler and the shared emitters exist before those that refer to them.
struct DenseCode {
  DenseCode(const CodeBuffer& buffer, bool frame_pointers) : assembler(buffer, frame_pointers) {}
  Assembler assembler;
  TileResults shared;
};

/// Emits one microkernel: a loop over tiles.
class DenseEmitter final : DenseCode, ResultEmitter {
 public:
  DenseEmitter(const DenseTile& tile, const Target& target, const TileEpilogue* epilogue,
               const CodeBuffer& buffer);

  MachineCode emit();

 private:
  void make_epilogues(const TileEpilogue& epilogue);
  void emit_entry();
  void emit_register_tiles();
  void emit_prefetch_of_operands();
  void emit_staging(const TileRows& rows);
  void emit_exit();

  void emit_tile_registers();

  bool is_staged() const {
    const bool transposes_memory = transposes() && !tile_.transposes_registers;
    return results_.epilogue || transposes_memory || (tile_.has_tiles() && !stores_tiles());
  }
  /// Whether tile registers are stored to the output.
  bool stores_tiles() const {
    return tile_.has_tiles() && !results_.epilogue && !transposes() && last_lanes() == lanes_ &&
           tile_.window_sums == WindowSums::none && !tile_.has_dead_positions();
  }
  bool uses_all_registers() const {
    return results_.epilogue || tile_.has_tiles() || stores_window_sums();
  }
  int staging_bytes() const {
    return (tile_.has_dead_positions() ? tile_.line_positions() : rows_) * row_bytes();
  }
  /// The frame: the staging buffer, the epilogue's part; with tile registers the caller's
  /// configuration, the context of their results, and the state of the loop over tiles.
  int end_of_epilogue() const {
    return (is_staged() ? staging_bytes() : 0) +
           (results_.epilogue ? results_.epilogue->frame_bytes() : 0);
  }
  int kept_config_at() const { return (end_of_epilogue() + 63) / 64 * 64; }
  RegExp kept_config() const { return Xbyak::util::rsp + kept_config_at(); }
  int results_context() const { return kept_config_at() + 64; }
  int frame_bytes() const {
    if (!tile_.has_tiles()) return end_of_epilogue();
    return results_context() + Coroutine::frame_bytes + TileLoopEmitter::frame_bytes;
  }

  KLoopEmitter products_;
  RowStores stores_;
  RowEpilogue row_epilogue_;
  Transposition transposition_;
  StagedTiles staged_tiles_;
};

}  // namespace castor::jit::dense
