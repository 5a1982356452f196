// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/channel_kernel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>

#include "jit/conv/emit_dot_product.hpp"
#include "jit/conv/tap_loop.hpp"
#include "jit/conv/tile_epilogue_emitter.hpp"
#include "jit/emit/assembler.hpp"

namespace castor::jit {

namespace {

using Xbyak::Operand;
using Xbyak::Reg64;
using Xbyak::Xmm;

/// Registers with one meaning throughout the code.
namespace reg {
const Reg64 arguments(Operand::RDI);
const Reg64 source(Operand::R8);     ///< the tile's first pixel
const Reg64 weights(Operand::R9);    ///< of the next tap
const Reg64 tap(Operand::RSI);       ///< end of the offsets, or one to come: counts up to 0
const Reg64 taps_end(Operand::R11);  ///< behind the last offset of the loop
const Reg64 places(Operand::R10);
const Reg64 tiles(Operand::RBP);
const Reg64 pixel(Operand::RAX);  ///< the tap's dword of the tile's first pixel
const Reg64 output(Operand::RAX);
const Reg64 group_output(Operand::R13);  ///< where results are stored as they are
const Reg64 output_step(Operand::RDX);
const Reg64 scratch(Operand::RCX);
const Reg64 callers_stack(Operand::R12);
}  // namespace reg

const std::array saved_registers = {reg::tiles, reg::callers_stack, reg::group_output};

// Only with an epilogue, which has registers of its own.
namespace reg {
const Reg64 epilogue(Operand::RBX);
const Reg64 stage(Operand::RCX);  ///< counts bytes of the stage
}  // namespace reg
const std::array saved_for_epilogue = {Reg64(Operand::RBX), Reg64(Operand::R13),
                                       Reg64(Operand::R14), Reg64(Operand::R15)};
/// Vectors that turning a tile around works with; the first four hold what was turned.
constexpr uint32_t vectors_of_turning = 0xff;

/// Registers beside accumulators and weights: a pixel, and a product.
constexpr int work_registers = 2;
constexpr int quad = 4;

/// Emits one kernel. The methods are in the order of the code that they emit.
class ChannelKernelEmitter {
 public:
  ChannelKernelEmitter(const ChannelTile& tile, const Target& target, const TileEpilogue* epilogue,
                       std::span<uint8_t> buffer)
      : tile_(tile),
        target_(target),
        vectors_(channel_vectors(tile.channels, target)),
        lanes_(target.vector_bits() / 32),
        code_(buffer) {
    if (epilogue == nullptr) return;
    epilogue_ = std::make_unique<TileEpilogueEmitter>(
        code_, target, *epilogue, tile.turns ? vectors_of_turning : 0, stage_bytes());
  }

  bool fits_frame() const { return !epilogue_ || epilogue_->fits_frame(); }

  MachineCode emit() {
    emit_entry();
    Xbyak::Label next_tile;
    code_.align_to(32);
    code_.L(next_tile);
    emit_start();
    emit_loop();
    emit_results();
    code_.add(reg::places, static_cast<int>(sizeof(TilePlace)));
    code_.dec(reg::tiles);
    code_.jnz(next_tile, Xbyak::CodeGenerator::T_NEAR);
    emit_exit();
    return code_.finish();
  }

 private:
  void emit_entry();
  void emit_start();
  void emit_loop();
  void emit_tap(const Xbyak::RegExp& tap, int position, const TileRows& pixels);
  void emit_products(int pixel);
  void emit_window_sums(const TileRows& pixels);
  template <class EmitStores>
  void emit_all_groups(EmitStores emit_stores);
  void emit_results();
  void emit_stores();
  void emit_store(const Xmm& from, int vector);
  void emit_stage(const TileRows& pixels);
  void emit_turned_stores();
  void emit_turned_epilogue();
  void emit_turned_quad_epilogue(int count);
  void emit_tile_epilogue();
  void emit_epilogue_of(int vector);
  void emit_lanes_mask(int count);
  void emit_turned_channels(const Xbyak::RegExp& stage, int count);
  void emit_piece_loads(const Xbyak::RegExp& stage, int row);
  void emit_turned_store(int channel);
  void emit_exit();

  Xmm sum(int pixel, int vector) const { return reg(pixel * vectors_ + vector); }
  Xmm weight(int vector) const { return reg(tile_.pixels() * vectors_ + vector); }
  Xmm input() const { return reg((tile_.pixels() + 1) * vectors_); }
  Xmm product() const { return reg((tile_.pixels() + 1) * vectors_ + 1); }
  Xmm reg(int index) const { return vector_register(index, target_.vector_bits()); }
  int vector_bytes() const { return target_.vector_bits() / 8; }
  int stage_pitch() const { return vectors_ * vector_bytes(); }
  /// Sums lie there pixel by pixel, of as many pixels as a vector has lanes.
  int stage_bytes() const { return std::max(lanes_, tile_.pixels()) * stage_pitch(); }
  /// Channels in the last vector.
  int last_lanes() const { return tile_.channels - (vectors_ - 1) * lanes_; }
  Xbyak::Address argument(size_t offset) { return code_.qword[reg::arguments + offset]; }
  Xbyak::Address place(size_t offset) { return code_.qword[reg::places + offset]; }
  Xbyak::Address lanes_mask(int count);

  const ChannelTile& tile_;
  const Target& target_;
  const int vectors_;
  const int lanes_;
  Assembler code_;
  std::unique_ptr<TileEpilogueEmitter> epilogue_;  ///< null where there is none
};

void ChannelKernelEmitter::emit_entry() {
  code_.push_all(saved_registers);
  if (epilogue_) code_.push_all(saved_for_epilogue);
  code_.mov(reg::callers_stack, Xbyak::util::rsp);
  if (tile_.turns || epilogue_) {
    code_.sub(Xbyak::util::rsp, stage_bytes() + (epilogue_ ? TileEpilogueEmitter::frame_bytes : 0));
    code_.and_(Xbyak::util::rsp, -64);
  }
  if (epilogue_) epilogue_->enter();
  code_.mov(reg::places, argument(offsetof(ChannelArguments, places)));
  code_.mov(reg::tiles, argument(offsetof(ChannelArguments, tiles)));
  code_.mov(reg::output_step, argument(offsetof(ChannelArguments, output_step)));
  code_.mov(reg::taps_end, argument(offsetof(ChannelArguments, tap_count)));
  code_.lea(reg::taps_end, code_.ptr[reg::taps_end * 4 - 4 * tile_.last_taps]);
  code_.add(reg::taps_end, argument(offsetof(ChannelArguments, taps)));
  if (target_.has_avx512()) emit_lanes_mask(tile_.turns ? tile_.pixels() : last_lanes());
}

/// Opmask 1 names the first lanes.
void ChannelKernelEmitter::emit_lanes_mask(int count) {
  code_.mov(reg::scratch.cvt32(), static_cast<uint32_t>((uint64_t{1} << count) - 1));
  code_.kmovd(Xbyak::Opmask(1), reg::scratch.cvt32());
}

/// Accumulators begin with their channel's value.
void ChannelKernelEmitter::emit_start() {
  code_.mov(reg::scratch, argument(offsetof(ChannelArguments, start)));
  for (int vector = 0; vector < vectors_; ++vector) {
    code_.vmovups(sum(0, vector), code_.ptr[reg::scratch + vector * vector_bytes()]);
  }
  for (int pixel = 1; pixel < tile_.pixels(); ++pixel) {
    for (int vector = 0; vector < vectors_; ++vector) {
      code_.vmovaps(sum(pixel, vector), sum(0, vector));
    }
  }
  code_.mov(reg::source, argument(offsetof(ChannelArguments, source)));
  code_.add(reg::source, place(offsetof(TilePlace, source)));
  code_.mov(reg::weights, argument(offsetof(ChannelArguments, weights)));
}

void ChannelKernelEmitter::emit_loop() {
  code_.mov(reg::tap, argument(offsetof(ChannelArguments, taps)));
  code_.sub(reg::tap, reg::taps_end);
  emit_tap_loop(code_, {reg::tap, reg::weights}, stage_pitch(), tile_.last_taps > 0,
                [&](int position) {
                  emit_tap(reg::taps_end + reg::tap, position, {0, tile_.pixels()});
                });
}

/// The tap that is `position` behind the one whose offset is at `tap`.
void ChannelKernelEmitter::emit_tap(const Xbyak::RegExp& tap, int position,
                                    const TileRows& pixels) {
  code_.movsxd(reg::pixel, code_.dword[tap + 4 * position]);
  code_.add(reg::pixel, reg::source);
  for (int vector = 0; vector < vectors_; ++vector) {
    const int offset = (position * vectors_ + vector) * vector_bytes();
    code_.vmovups(weight(vector), code_.ptr[reg::weights + offset]);
  }
  for (int pixel = pixels.begin; pixel < pixels.end; ++pixel) emit_products(pixel);
}

void ChannelKernelEmitter::emit_products(int pixel) {
  const int offset =
      pixel / tile_.columns * tile_.row_step + pixel % tile_.columns * tile_.pixel_step;
  code_.vpbroadcastd(input(), code_.ptr[reg::pixel + offset]);
  for (int vector = 0; vector < vectors_; ++vector) {
    emit_dot_product(code_, target_, sum(pixel, vector), input(), weight(vector), product());
  }
}

void ChannelKernelEmitter::emit_window_sums(const TileRows& pixels) {
  if (tile_.window_sums == WindowSums::none) return;
  code_.mov(reg::scratch, argument(offsetof(ChannelArguments, weight_zero_points)));
  for (int vector = 0; vector < vectors_; ++vector) {
    code_.vmovups(weight(vector), code_.ptr[reg::scratch + vector * vector_bytes()]);
  }
  code_.mov(reg::scratch, place(offsetof(TilePlace, pixel)));
  code_.shl(reg::scratch, 2);
  code_.add(reg::scratch, argument(offsetof(ChannelArguments, window_sums)));
  for (int pixel = pixels.begin; pixel < pixels.end; ++pixel) {
    code_.vpbroadcastd(input(), code_.ptr[reg::scratch + 4 * pixel]);
    for (int vector = 0; vector < vectors_; ++vector) {
      emit_subtract_window_sums(code_, target_, tile_.window_sums, sum(pixel, vector), input(),
                                weight(vector), product());
    }
  }
}

/// The last taps and all that follows them, group by group.
template <class EmitStores>
void ChannelKernelEmitter::emit_all_groups(EmitStores emit_stores) {
  const auto emit_last_tap = [&](const TileRows& group) {
    emit_tap(reg::taps_end + reg::tap + 4 * tile_.last_taps, 0, group);
  };
  emit_groups(code_, {reg::tap, reg::weights}, stage_pitch(), tile_.pixels(), vectors_,
              tile_.last_taps, emit_last_tap, [&](const TileRows& group) {
                emit_window_sums(group);
                emit_stores(group);
              });
}

void ChannelKernelEmitter::emit_results() {
  if (!tile_.turns && !epilogue_) return emit_stores();
  emit_all_groups([&](const TileRows& group) { emit_stage(group); });
  if (!tile_.turns) {
    emit_tile_epilogue();
  } else {
    epilogue_ ? emit_turned_epilogue() : emit_turned_stores();
  }
}

/// A mask for vpmaskmovd of the first lanes.
Xbyak::Address ChannelKernelEmitter::lanes_mask(int count) {
  std::array<int32_t, 8> mask = {};
  std::fill_n(mask.begin(), count, -1);
  return code_.constant_of(mask);
}

/// The channels of a pixel lie side by side.
void ChannelKernelEmitter::emit_stores() {
  code_.mov(reg::group_output, place(offsetof(TilePlace, pixel)));
  code_.imul(reg::group_output, reg::output_step);
  code_.add(reg::group_output, argument(offsetof(ChannelArguments, output)));
  emit_all_groups([&](const TileRows& group) {
    if (!target_.has_avx512() && last_lanes() < lanes_) {
      code_.vmovups(input(), lanes_mask(last_lanes()));
    }
    for (int pixel = group.begin; pixel < group.end; ++pixel) {
      for (int vector = 0; vector < vectors_; ++vector) emit_store(sum(pixel, vector), vector);
      code_.add(reg::group_output, reg::output_step);
    }
  });
}

void ChannelKernelEmitter::emit_store(const Xmm& from, int vector) {
  const Xbyak::Address to = code_.ptr[reg::group_output + vector * vector_bytes()];
  const bool is_whole = vector + 1 < vectors_ || last_lanes() == lanes_;
  if (is_whole) {
    code_.vmovups(to, from);
  } else if (target_.has_avx512()) {
    code_.vmovdqu32(to | Xbyak::Opmask(1), from);
  } else {
    code_.vpmaskmovd(to, input(), Xbyak::Ymm(from.getIdx()));
  }
}

void ChannelKernelEmitter::emit_stage(const TileRows& pixels) {
  for (int pixel = pixels.begin; pixel < pixels.end; ++pixel) {
    for (int vector = 0; vector < vectors_; ++vector) {
      const int offset = pixel * stage_pitch() + vector * vector_bytes();
      code_.vmovaps(code_.ptr[Xbyak::util::rsp + offset], sum(pixel, vector));
    }
  }
}

/// The pixels of a channel lie side by side: four channels at a time are taken from the stage.
void ChannelKernelEmitter::emit_turned_stores() {
  code_.mov(reg::output, place(offsetof(TilePlace, pixel)));
  code_.shl(reg::output, 2);
  code_.add(reg::output, argument(offsetof(ChannelArguments, output)));
  if (!target_.has_avx512()) code_.vmovups(reg(15), lanes_mask(tile_.pixels()));
  for (int first = 0; first < tile_.channels; first += quad) {
    const int count = std::min(quad, tile_.channels - first);
    emit_turned_channels(Xbyak::util::rsp + 4 * first, count);
    for (int channel = 0; channel < count; ++channel) emit_turned_store(channel);
  }
}

void ChannelKernelEmitter::emit_turned_store(int channel) {
  const Xbyak::Address to = code_.ptr[reg::output];
  if (target_.has_avx512()) {
    code_.vmovdqu32(to | Xbyak::Opmask(1), reg(channel));
  } else {
    code_.vpmaskmovd(to, Xbyak::Ymm(15), Xbyak::Ymm(channel));
  }
  code_.add(reg::output, reg::output_step);
}

/// Up to four channels: 4 by 4 blocks, one in each 128 bits.
void ChannelKernelEmitter::emit_turned_channels(const Xbyak::RegExp& stage, int count) {
  for (int row = 0; row < quad; ++row) emit_piece_loads(stage, row);
  const Xmm low_ab = reg(4);
  const Xmm high_ab = reg(5);
  const Xmm low_cd = reg(6);
  const Xmm high_cd = reg(7);
  code_.vpunpckldq(low_ab, reg(0), reg(1));
  code_.vpunpckldq(low_cd, reg(2), reg(3));
  code_.vpunpckhdq(high_ab, reg(0), reg(1));
  code_.vpunpckhdq(high_cd, reg(2), reg(3));
  code_.vpunpcklqdq(reg(0), low_ab, low_cd);
  if (count > 1) code_.vpunpckhqdq(reg(1), low_ab, low_cd);
  if (count > 2) code_.vpunpcklqdq(reg(2), high_ab, high_cd);
  if (count > 3) code_.vpunpckhqdq(reg(3), high_ab, high_cd);
}

/// Four channels of pixels row, row + 4, row + 8, row + 12, as far as there are any.
void ChannelKernelEmitter::emit_piece_loads(const Xbyak::RegExp& stage, int row) {
  const auto piece = [&](int pixel) { return code_.ptr[stage + pixel * stage_pitch()]; };
  const int pixels = tile_.pixels();
  code_.vmovups(Xmm(row), piece(std::min(row, pixels - 1)));
  for (int lane = 1; row + quad * lane < pixels; ++lane) {
    if (target_.has_avx512()) {
      code_.vinserti32x4(Xbyak::Zmm(row), Xbyak::Zmm(row), piece(row + quad * lane), lane);
    } else {
      code_.vinserti128(Xbyak::Ymm(row), Xbyak::Ymm(row), piece(row + quad * lane), lane);
    }
  }
}

/// Rows are channels: four at a time are turned around and go through the epilogue.
void ChannelKernelEmitter::emit_turned_epilogue() {
  epilogue_->emit_constants();
  code_.mov(reg::epilogue, argument(offsetof(ChannelArguments, epilogue)));
  code_.mov(reg::stage, place(offsetof(TilePlace, pixel)));
  epilogue_->point(reg::epilogue, reg::stage);
  code_.xor_(reg::stage.cvt32(), reg::stage.cvt32());
  const int whole = tile_.channels / quad * quad;
  if (whole > 0) {
    Xbyak::Label next;
    code_.L(next);
    emit_turned_quad_epilogue(quad);
    code_.add(reg::stage.cvt32(), 4 * quad);
    code_.cmp(reg::stage.cvt32(), 4 * whole);
    code_.jb(next, Xbyak::CodeGenerator::T_NEAR);
  }
  if (tile_.channels > whole) emit_turned_quad_epilogue(tile_.channels - whole);
}

void ChannelKernelEmitter::emit_turned_quad_epilogue(int count) {
  emit_turned_channels(Xbyak::util::rsp + reg::stage, count);
  for (int channel = 0; channel < count; ++channel) {
    epilogue_->apply(reg(channel));
    epilogue_->next_row(argument(offsetof(ChannelArguments, epilogue)));
  }
}

/// Rows are pixels. Sums go through the stage, so that the epilogue has all registers.
void ChannelKernelEmitter::emit_tile_epilogue() {
  epilogue_->emit_constants();
  for (int vector = 0; vector < vectors_; ++vector) emit_epilogue_of(vector);
}

/// One vector of channels of every pixel, in a loop over the pixels.
void ChannelKernelEmitter::emit_epilogue_of(int vector) {
  emit_lanes_mask(vector + 1 < vectors_ ? lanes_ : last_lanes());
  code_.mov(reg::epilogue, argument(offsetof(ChannelArguments, epilogue)));
  code_.mov(reg::stage.cvt32(), vector * lanes_);
  epilogue_->point(reg::epilogue, reg::stage);
  code_.mov(reg::stage, place(offsetof(TilePlace, pixel)));
  epilogue_->skip_rows(reg::epilogue, reg::stage);
  Xbyak::Label next;
  const int first = vector * vector_bytes();
  code_.mov(reg::stage.cvt32(), first);
  code_.L(next);
  epilogue_->apply(code_.ptr[Xbyak::util::rsp + reg::stage]);
  epilogue_->next_row(argument(offsetof(ChannelArguments, epilogue)));
  code_.add(reg::stage.cvt32(), stage_pitch());
  code_.cmp(reg::stage.cvt32(), first + stage_pitch() * tile_.pixels());
  code_.jb(next, Xbyak::CodeGenerator::T_NEAR);
}

void ChannelKernelEmitter::emit_exit() {
  if (epilogue_) epilogue_->leave();
  code_.mov(Xbyak::util::rsp, reg::callers_stack);
  if (epilogue_) code_.pop_all(saved_for_epilogue);
  code_.vzeroupper();
  code_.pop_all(saved_registers);
  code_.ret();
}

}  // namespace

int channel_vectors(int channels, const Target& target) {
  const int lanes = target.vector_bits() / 32;
  return (channels + lanes - 1) / lanes;
}

bool fits(const ChannelTile& tile, const Target& target) {
  if (tile.channels < 1 || tile.rows < 1 || tile.columns < 1) return false;
  if (tile.turns && tile.pixels() > target.vector_bits() / 32) return false;
  const int used = (tile.pixels() + 1) * channel_vectors(tile.channels, target) + work_registers;
  return used <= target.vector_registers();
}

Result<MachineCode> emit_kernel(const ChannelTile& tile, const Target& target,
                                const TileEpilogue* epilogue) {
  return assemble_with_epilogue<ChannelKernelEmitter>(tile, target, epilogue);
}

}  // namespace castor::jit
