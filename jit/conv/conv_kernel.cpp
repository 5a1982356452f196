// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/conv_kernel.hpp"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <memory>

#include "jit/conv/last_taps.hpp"
#include "jit/conv/tap_loop.hpp"
#include "jit/emit/assembler.hpp"

namespace castor::jit {

namespace {

using Xbyak::Operand;
using Xbyak::Reg64;
using Xbyak::Xmm;

/// Registers with one meaning throughout the code.
namespace reg {
const Reg64 arguments(Operand::RDI);
const Reg64 planes(Operand::R8);     ///< of the tile's first pixel
const Reg64 weights(Operand::R9);    ///< of the next tap
const Reg64 tap(Operand::RSI);       ///< end of the offsets, or one to come: counts up to 0
const Reg64 taps_end(Operand::R11);  ///< behind the last offset of the loop
const Reg64 stores(Operand::R10);
const Reg64 window_sums(Operand::RBX);
const Reg64 tiles(Operand::RBP);
const Reg64 pixel(Operand::RAX);  ///< the tap's dword of the first pixel
const Reg64 output(Operand::RAX);
const Reg64 group_output(Operand::RSI);  ///< behind the loop
const Reg64 scratch(Operand::RCX);
const Reg64 channel_step(Operand::RDX);
}  // namespace reg

const std::array saved_registers = {reg::window_sums, reg::tiles};

// Only with an epilogue, which has registers of its own.
namespace reg {
const Reg64 callers_stack(Operand::R12);
const Reg64 stage(Operand::RCX);  ///< counts bytes of the stage
}  // namespace reg
const std::array saved_for_epilogue = {Reg64(Operand::R12), Reg64(Operand::R13),
                                       Reg64(Operand::R14), Reg64(Operand::R15)};

/// Registers beside accumulators and pixels: a weight, and a product.
constexpr int work_registers = 2;

/// Emits one kernel. The methods are in the order of the code that they emit.
class ConvKernelEmitter {
 public:
  ConvKernelEmitter(const ConvTile& tile, const Target& target, const TileEpilogue* epilogue,
                    std::span<uint8_t> buffer)
      : tile_(tile), target_(target), code_(buffer) {
    if (epilogue != nullptr)
      epilogue_ = std::make_unique<TileEpilogueEmitter>(code_, target, *epilogue, 0, stage_bytes());
  }

  bool fits_frame() const { return !epilogue_ || epilogue_->fits_frame(); }

  MachineCode emit() {
    emit_prologue();
    Xbyak::Label next_tile;
    code_.align_to(32);
    code_.L(next_tile);
    emit_start();
    emit_loop();
    emit_results();
    emit_step();
    code_.jnz(next_tile, Xbyak::CodeGenerator::T_NEAR);
    emit_epilogue();
    return code_.finish();
  }

 private:
  /// Some channels of the tile.
  struct Channels {
    int begin = 0;
    int end = 0;
  };
  Channels all_channels() const { return {0, tile_.channels}; }
  /// Whether tiles whose lanes are all stored are told from the others.
  bool may_be_full() const { return target_.has_avx512() && !tile_.has_gaps && !epilogue_; }

  void emit_prologue();
  void emit_start();
  void emit_end_of_loop_if_full();
  void emit_prefetch_of_output();
  void emit_jump_if_full(Xbyak::Label& full);
  void emit_end_of_loop(int last_taps);
  void emit_loop();
  void emit_tap(const Xbyak::RegExp& tap, int position, const Channels& channels);
  void emit_prefetch_of_next_tile();
  void emit_products(int channel, int position);
  void emit_window_sums(const Channels& channels);
  void emit_results();
  template <class EmitStores>
  void emit_groups(EmitStores emit_stores);
  void emit_full_stores(const Channels& group);
  void emit_stores_of(int vector);
  void emit_compression(int vector);
  void store_lanes(int channel, int vector);
  void emit_tile_epilogue();
  void emit_stage(const Channels& channels);
  void emit_epilogue_of(int vector);
  void emit_step();
  void emit_epilogue();

  Xmm sum(int channel, int vector) const { return reg(channel * tile_.vectors + vector); }
  Xmm pixels(int vector) const { return reg(tile_.channels * tile_.vectors + vector); }
  Xmm weight() const { return reg((tile_.channels + 1) * tile_.vectors); }
  Xmm product() const { return reg((tile_.channels + 1) * tile_.vectors + 1); }
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
  std::unique_ptr<TileEpilogueEmitter> epilogue_;  ///< null where there is none
};

void ConvKernelEmitter::emit_prologue() {
  code_.push_all(saved_registers);
  if (epilogue_) {
    code_.push_all(saved_for_epilogue);
    code_.mov(reg::callers_stack, Xbyak::util::rsp);
    code_.sub(Xbyak::util::rsp, stage_bytes() + TileEpilogueEmitter::frame_bytes);
    code_.and_(Xbyak::util::rsp, -64);
    epilogue_->enter();
  }
  code_.mov(reg::stores, argument(offsetof(ConvArguments, stores)));
  code_.mov(reg::tiles, argument(offsetof(ConvArguments, tiles)));
  code_.mov(reg::channel_step, argument(offsetof(ConvArguments, channel_step)));
  if (!may_be_full()) emit_end_of_loop(tile_.last_taps);
}

/// Accumulators begin with their channel's value.
void ConvKernelEmitter::emit_start() {
  if (may_be_full()) emit_end_of_loop_if_full();
  code_.mov(reg::planes, argument(offsetof(ConvArguments, planes)));
  code_.add(reg::planes, of_store(0, offsetof(ConvStore, source)));
  if (tile_.prefetches_output && !epilogue_) emit_prefetch_of_output();
  code_.mov(reg::scratch, argument(offsetof(ConvArguments, start)));
  for (int channel = 0; channel < tile_.channels; ++channel) {
    for (int vector = 0; vector < tile_.vectors; ++vector) {
      code_.vpbroadcastd(sum(channel, vector), code_.ptr[reg::scratch + 4 * channel]);
    }
  }
  code_.mov(reg::weights, argument(offsetof(ConvArguments, weights)));
}

/// Where lanes are left out, if at all, they are the last ones of the tile; then all taps are done
/// in the loop.
void ConvKernelEmitter::emit_end_of_loop_if_full() {
  emit_end_of_loop(tile_.last_taps);
  code_.kmovw(Xbyak::Opmask(1), of_store(tile_.vectors - 1, offsetof(ConvStore, first_lanes)));
  if (tile_.last_taps == 0) return;
  Xbyak::Label full;
  emit_jump_if_full(full);
  code_.add(reg::taps_end, 4 * tile_.last_taps);
  code_.L(full);
}

void ConvKernelEmitter::emit_prefetch_of_output() {
  code_.mov(reg::output, argument(offsetof(ConvArguments, output)));
  code_.add(reg::output, of_store(0, offsetof(ConvStore, offset)));
  for (int channel = 0; channel < tile_.channels; ++channel) {
    for (int vector = 0; vector < tile_.vectors; ++vector) {
      code_.prefetchw(code_.ptr[reg::output + vector * vector_bytes()]);
    }
    if (channel + 1 < tile_.channels) code_.add(reg::output, reg::channel_step);
  }
}

void ConvKernelEmitter::emit_jump_if_full(Xbyak::Label& full) {
  code_.kortestw(Xbyak::Opmask(1), Xbyak::Opmask(1));  // the carry: all ones
  code_.jc(full, Xbyak::CodeGenerator::T_NEAR);
}

/// `last_taps` are not done in the loop.
void ConvKernelEmitter::emit_end_of_loop(int last_taps) {
  code_.mov(reg::taps_end, argument(offsetof(ConvArguments, tap_count)));
  code_.lea(reg::taps_end, code_.ptr[reg::taps_end * 4 - 4 * last_taps]);
  code_.add(reg::taps_end, argument(offsetof(ConvArguments, taps)));
}

void ConvKernelEmitter::emit_loop() {
  Xbyak::Label done;
  code_.mov(reg::tap, argument(offsetof(ConvArguments, taps)));
  code_.sub(reg::tap, reg::taps_end);
  if (tile_.last_taps > 0) code_.jz(done, Xbyak::CodeGenerator::T_NEAR);
  emit_tap_loop(code_, {reg::tap, reg::weights}, 4 * tile_.channels, [&](int position) {
    emit_tap(reg::taps_end + reg::tap, position, all_channels());
  });
  code_.L(done);
}

/// The tap that is `position` behind the one whose offset is at `tap`.
void ConvKernelEmitter::emit_tap(const Xbyak::RegExp& tap, int position, const Channels& channels) {
  code_.movsxd(reg::pixel, code_.dword[tap + 4 * position]);
  code_.add(reg::pixel, reg::planes);
  for (int vector = 0; vector < tile_.vectors; ++vector) {
    code_.vmovups(pixels(vector), code_.ptr[reg::pixel + vector * vector_bytes()]);
  }
  if (channels.begin == 0) emit_prefetch_of_next_tile();
  for (int channel = channels.begin; channel < channels.end; ++channel) {
    emit_products(channel, position);
  }
}

/// Planes come from the second cache; which lines the next tile needs, no predictor sees.
void ConvKernelEmitter::emit_prefetch_of_next_tile() {
  if (!target_.has_avx512()) return;
  for (int vector = 0; vector < tile_.vectors; ++vector) {
    const int offset = (tile_.vectors + vector) * vector_bytes();
    code_.prefetcht0(code_.ptr[reg::pixel + offset]);
  }
}

void ConvKernelEmitter::emit_products(int channel, int position) {
  const int offset = 4 * (position * tile_.channels + channel);
  code_.vpbroadcastd(weight(), code_.ptr[reg::weights + offset]);
  for (int vector = 0; vector < tile_.vectors; ++vector) {
    emit_dot_product(code_, target_, sum(channel, vector), pixels(vector), weight(), product());
  }
}

void ConvKernelEmitter::emit_window_sums(const Channels& channels) {
  if (tile_.window_sums == WindowSums::none) return;
  code_.mov(reg::scratch, argument(offsetof(ConvArguments, weight_zero_points)));
  code_.mov(reg::window_sums, argument(offsetof(ConvArguments, window_sums)));
  code_.add(reg::window_sums, of_store(0, offsetof(ConvStore, source)));
  for (int vector = 0; vector < tile_.vectors; ++vector) {
    code_.vmovups(pixels(vector), code_.ptr[reg::window_sums + vector * vector_bytes()]);
  }
  for (int channel = channels.begin; channel < channels.end; ++channel) {
    code_.vpbroadcastd(weight(), code_.ptr[reg::scratch + 4 * channel]);
    for (int vector = 0; vector < tile_.vectors; ++vector) {
      emit_subtract_window_sums(code_, target_, tile_.window_sums, sum(channel, vector),
                                pixels(vector), weight(), product());
    }
  }
}

void ConvKernelEmitter::emit_results() {
  if (epilogue_) return emit_tile_epilogue();
  Xbyak::Label full;
  Xbyak::Label done;
  if (may_be_full()) emit_jump_if_full(full);
  emit_window_sums(all_channels());
  for (int vector = 0; vector < tile_.vectors; ++vector) emit_stores_of(vector);
  if (may_be_full()) {
    code_.jmp(done, Xbyak::CodeGenerator::T_NEAR);
    code_.L(full);
    code_.mov(reg::group_output, argument(offsetof(ConvArguments, output)));
    code_.add(reg::group_output, of_store(0, offsetof(ConvStore, offset)));
    emit_groups([&](const Channels& group) { emit_full_stores(group); });
    code_.L(done);
  }
}

/// The last taps and all that follows them, group by group.
template <class EmitStores>
void ConvKernelEmitter::emit_groups(EmitStores emit_stores) {
  const int count = tile_.last_taps > 0 ? rows_of_group(tile_.vectors) : tile_.channels;
  for (int first = 0; first < tile_.channels; first += count) {
    const Channels group = {first, std::min(first + count, tile_.channels)};
    for (int tap = 0; tap < tile_.last_taps; ++tap) emit_tap(reg::taps_end, tap, group);
    emit_window_sums(group);
    emit_stores(group);
  }
}

/// Vectors side by side. (Stores without a mask are faster.)
void ConvKernelEmitter::emit_full_stores(const Channels& group) {
  for (int channel = group.begin; channel < group.end; ++channel) {
    for (int vector = 0; vector < tile_.vectors; ++vector) {
      code_.vmovups(code_.ptr[reg::group_output + vector * vector_bytes()], sum(channel, vector));
    }
    code_.add(reg::group_output, reg::channel_step);
  }
}

/// One vector of pixels of every channel.
void ConvKernelEmitter::emit_stores_of(int vector) {
  if (tile_.has_gaps) emit_compression(vector);
  code_.mov(reg::output, argument(offsetof(ConvArguments, output)));
  code_.add(reg::output, of_store(vector, offsetof(ConvStore, offset)));
  if (target_.has_avx512()) {
    code_.kmovd(Xbyak::Opmask(1), of_store(vector, offsetof(ConvStore, first_lanes)));
  } else {
    code_.vmovups(weight(), of_store(vector, offsetof(ConvStore, stored)));
  }
  for (int channel = 0; channel < tile_.channels; ++channel) {
    store_lanes(channel, vector);
    if (channel + 1 < tile_.channels) code_.add(reg::output, reg::channel_step);
  }
}

/// Puts the lanes that are stored side by side; of most vectors they are.
void ConvKernelEmitter::emit_compression(int vector) {
  Xbyak::Label done;
  code_.mov(reg::scratch.cvt32(), of_store(vector, offsetof(ConvStore, lanes)));
  code_.cmp(reg::scratch.cvt32(), of_store(vector, offsetof(ConvStore, first_lanes)));
  code_.je(done, Xbyak::CodeGenerator::T_NEAR);
  if (target_.has_avx512()) {
    code_.kmovd(Xbyak::Opmask(2), reg::scratch.cvt32());
  } else {
    code_.vmovups(product(), of_store(vector, offsetof(ConvStore, order)));
  }
  for (int channel = 0; channel < tile_.channels; ++channel) {
    const Xmm lanes = sum(channel, vector);
    if (target_.has_avx512()) {
      code_.vpcompressd(lanes | Xbyak::Opmask(2) | Xbyak::util::T_z, lanes);
    } else {
      code_.vpermd(Xbyak::Ymm(lanes.getIdx()), Xbyak::Ymm(product().getIdx()),
                   Xbyak::Ymm(lanes.getIdx()));
    }
  }
  code_.L(done);
}

void ConvKernelEmitter::store_lanes(int channel, int vector) {
  const Xmm from = sum(channel, vector);
  if (target_.has_avx512()) {
    code_.vmovdqu32(code_.ptr[reg::output] | Xbyak::Opmask(1), from);
  } else {
    code_.vpmaskmovd(code_.ptr[reg::output], Xbyak::Ymm(weight().getIdx()),
                     Xbyak::Ymm(from.getIdx()));
  }
}

/// Sums go through a stage on the stack, so that the epilogue has all registers.
void ConvKernelEmitter::emit_tile_epilogue() {
  if (tile_.has_gaps) {
    emit_window_sums(all_channels());
    for (int vector = 0; vector < tile_.vectors; ++vector) emit_compression(vector);
    emit_stage(all_channels());
  } else {
    emit_groups([&](const Channels& group) { emit_stage(group); });
  }
  epilogue_->load_constants();
  for (int vector = 0; vector < tile_.vectors; ++vector) emit_epilogue_of(vector);
}

void ConvKernelEmitter::emit_stage(const Channels& channels) {
  for (int channel = channels.begin; channel < channels.end; ++channel) {
    for (int vector = 0; vector < tile_.vectors; ++vector) {
      const int at = (channel * tile_.vectors + vector) * vector_bytes();
      code_.vmovaps(code_.ptr[Xbyak::util::rsp + at], sum(channel, vector));
    }
  }
}

/// One vector of pixels of every channel, in a loop over the channels.
void ConvKernelEmitter::emit_epilogue_of(int vector) {
  code_.kmovd(Xbyak::Opmask(1), of_store(vector, offsetof(ConvStore, first_lanes)));
  code_.mov(reg::stage, of_store(vector, offsetof(ConvStore, offset)));
  code_.shr(reg::stage, 2);
  code_.mov(reg::output, argument(offsetof(ConvArguments, epilogue)));
  epilogue_->point(reg::output, reg::stage);
  const int first = vector * vector_bytes();
  const int step = tile_.vectors * vector_bytes();
  Xbyak::Label next;
  code_.mov(reg::stage.cvt32(), first);
  code_.L(next);
  epilogue_->apply(code_.ptr[Xbyak::util::rsp + reg::stage]);
  epilogue_->next_row(argument(offsetof(ConvArguments, epilogue)));
  code_.add(reg::stage.cvt32(), step);
  code_.cmp(reg::stage.cvt32(), first + step * tile_.channels);
  code_.jb(next, Xbyak::CodeGenerator::T_NEAR);
}

/// To the next tile; sets the flag that the loop ends by.
void ConvKernelEmitter::emit_step() {
  code_.add(reg::stores, tile_.vectors * static_cast<int>(sizeof(ConvStore)));
  code_.dec(reg::tiles);
}

void ConvKernelEmitter::emit_epilogue() {
  if (epilogue_) {
    epilogue_->leave();
    code_.mov(Xbyak::util::rsp, reg::callers_stack);
    code_.pop_all(saved_for_epilogue);
  }
  code_.vzeroupper();
  code_.pop_all(saved_registers);
  code_.ret();
}

}  // namespace

bool fits(const ConvTile& tile, const Target& target) {
  const int used = (tile.channels + 1) * tile.vectors + work_registers;
  return tile.channels >= 1 && tile.vectors >= 1 && used <= target.vector_registers();
}

Result<MachineCode> emit_conv_kernel(const ConvTile& tile, const Target& target,
                                     const TileEpilogue* epilogue) {
  return assemble_with_epilogue<ConvKernelEmitter>(tile, target, epilogue);
}

}  // namespace castor::jit
