// SPDX-License-Identifier: Apache-2.0
// The code of kernels with pixels in the lanes: inside jit/conv only.
#pragma once

#include <array>
#include <memory>

#include "jit/conv/conv_kernel.hpp"
#include "jit/conv/full_epilogue.hpp"
#include "jit/conv/last_taps.hpp"
#include "jit/emit/assembler.hpp"

namespace castor::jit::conv {

using Xbyak::Operand;
using Xbyak::Reg64;
using Xbyak::Xmm;

/// Registers with one meaning throughout the code.
namespace reg {
inline const Reg64 arguments(Operand::RDI);
inline const Reg64 planes(Operand::R8);     ///< of the tile's first pixel
inline const Reg64 weights(Operand::R9);    ///< of the next tap
inline const Reg64 tap(Operand::RSI);       ///< end of the offsets, or one to come: counts up to 0
inline const Reg64 taps_end(Operand::R11);  ///< behind the last offset of the loop
inline const Reg64 stores(Operand::R10);
inline const Reg64 window_sums(Operand::RBX);
inline const Reg64 tiles(Operand::RBP);
inline const Reg64 pixel(Operand::RAX);  ///< the tap's dword of the first pixel
inline const Reg64 output(Operand::RAX);
inline const Reg64 group_output(Operand::R12);  ///< without an epilogue
inline const Reg64 scratch(Operand::RCX);
inline const Reg64 k_groups(Operand::RCX);  ///< that are left, in the loop over them
inline const Reg64 channel_step(Operand::RDX);
}  // namespace reg

// Where pixels come from the input.
namespace reg {
inline const Reg64 input(Operand::RBX);       ///< of the tap's four channels
inline const Reg64 input_step(Operand::RCX);  ///< behind the start, in the loop and the last taps
inline const Reg64 input_steps_3(Operand::RDX);
}  // namespace reg

inline const std::array saved_registers = {reg::window_sums, reg::tiles, reg::group_output};

// Only with an epilogue, which has registers of its own.
namespace reg {
inline const Reg64 callers_stack(Operand::R12);
inline const Reg64 stage(Operand::RCX);  ///< counts bytes of the stage
}  // namespace reg
inline const std::array saved_for_epilogue = {Reg64(Operand::R12), Reg64(Operand::R13),
                                              Reg64(Operand::R14), Reg64(Operand::R15)};

/// Registers beside accumulators and pixels: a weight, and a product.
constexpr int work_registers = 2;

/// Emits one kernel. The methods are in the order of the code that they emit.
class ConvKernelEmitter {
 public:
  ConvKernelEmitter(const ConvTile& tile, const Target& target, const TileEpilogue* epilogue,
                    std::span<uint8_t> buffer)
      : tile_(tile), target_(target), code_(buffer) {
    if (epilogue == nullptr) return;
    epilogue_ = std::make_unique<TileEpilogueEmitter>(code_, target, *epilogue, 0, stage_bytes());
    if (tile.has_gaps) return;
    packed_ = packed_epilogue(*epilogue);
    full_epilogue_ = std::make_unique<FullEpilogueEmitter>(
        code_, target, packed_ ? *packed_ : *epilogue, stage_bytes(), tile.vectors);
  }

  bool fits_frame() const {
    return !epilogue_ ||
           (epilogue_->fits_frame() && (!full_epilogue_ || full_epilogue_->fits_frame()));
  }

  MachineCode emit() {
    emit_entry();
    Xbyak::Label next_tile;
    code_.align_to(32);
    code_.L(next_tile);
    emit_start();
    emit_loop();
    emit_results();
    emit_step();
    code_.jnz(next_tile, Xbyak::CodeGenerator::T_NEAR);
    emit_exit();
    return code_.finish();
  }

 private:
  TileRows all_channels() const { return {0, tile_.channels}; }
  /// Whether results are stored group by group: where lanes are left out, if at all, they are the
  /// last ones of the tile.
  bool stores_groups() const { return target_.has_avx512() && !tile_.has_gaps; }
  bool takes_input() const { return tile_.source != PixelSource::planes; }

  void emit_entry();
  void emit_start();
  void emit_prefetch_of_output();
  void emit_start_of_input();
  void emit_mask_of_last_vector();
  void emit_jump_if_full(Xbyak::Label& full);
  void emit_loop();
  void emit_taps();
  void emit_tap(const Xbyak::RegExp& tap, int position, const TileRows& channels);
  void emit_pixels_of_input();
  void emit_prefetch_of_next_tile();
  void emit_products(int channel, int position);
  void emit_window_sums(const TileRows& channels);
  void emit_results();
  void emit_stores_by_group();
  void emit_next_channel(const Reg64& output);
  template <class EmitStores>
  void emit_all_groups(EmitStores emit_stores);
  void emit_stores(const TileRows& group);
  void emit_full_stores(const TileRows& group);
  void emit_masked_stores(const TileRows& group);
  void emit_stores_of(int vector);
  void emit_compression(int vector);
  void store_lanes(int channel, int vector);
  void emit_tile_epilogue();
  void emit_stage(const TileRows& channels);
  void emit_full_epilogue();
  void emit_epilogue_of(int vector);
  void emit_step();
  void emit_exit();

  Xmm sum(int channel, int vector) const { return reg(channel * tile_.vectors + vector); }
  Xmm pixels(int vector) const { return reg(tile_.channels * tile_.vectors + vector); }
  Xmm weight() const { return reg((tile_.channels + 1) * tile_.vectors); }
  Xmm product() const { return reg((tile_.channels + 1) * tile_.vectors + 1); }
  /// Of bytes, where pixels come from the input; there are no products then.
  Xmm order() const { return product(); }
  Xmm reg(int index) const { return vector_register(index, target_.vector_bits()); }
  int vector_bytes() const { return target_.vector_bits() / 8; }
  /// What an epilogue takes the sums from: for each channel the vectors of pixels.
  int stage_bytes() const { return tile_.channels * tile_.vectors * vector_bytes(); }
  Xbyak::Address argument(size_t offset) { return code_.qword[reg::arguments + offset]; }
  Xbyak::Address of_store(int vector, size_t offset) {
    return code_.ptr[reg::stores + static_cast<size_t>(vector) * sizeof(ConvStore) + offset];
  }

  const ConvTile& tile_;
  const Target& target_;
  Assembler code_;
  std::unique_ptr<TileEpilogueEmitter> epilogue_;       ///< null where there is none
  std::optional<TileEpilogue> packed_;                  ///< the full one, where its stores pack
  std::unique_ptr<FullEpilogueEmitter> full_epilogue_;  ///< likewise, or where there are gaps
};

}  // namespace castor::jit::conv
