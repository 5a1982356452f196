// SPDX-License-Identifier: Apache-2.0
// The frame of kernels with pixels in the lanes, and their taps.
#include "jit/conv/conv_kernel.hpp"

#include <fmt/format.h>

#include <cstddef>

#include "jit/conv/conv_emitter.hpp"
#include "jit/conv/emit_dot_product.hpp"
#include "jit/conv/tap_loop.hpp"
#include "jit/emit/vector_constant.hpp"

namespace castor::jit {

namespace conv {

void ConvKernelEmitter::emit_entry() {
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
  code_.mov(reg::taps_end, argument(offsetof(ConvArguments, tap_count)));
  code_.lea(reg::taps_end, code_.ptr[reg::taps_end * 4 - 4 * tile_.last_taps]);
  code_.add(reg::taps_end, argument(offsetof(ConvArguments, taps)));
}

/// Accumulators begin with their channel's value.
void ConvKernelEmitter::emit_start() {
  code_.mov(reg::planes, argument(offsetof(ConvArguments, planes)));
  code_.add(reg::planes, of_store(0, offsetof(ConvStore, source)));
  if (tile_.prefetches_output) emit_prefetch_of_output();
  code_.mov(reg::scratch, argument(offsetof(ConvArguments, start)));
  for (int channel = 0; channel < tile_.channels; ++channel) {
    for (int vector = 0; vector < tile_.vectors; ++vector) {
      code_.vpbroadcastd(sum(channel, vector), code_.ptr[reg::scratch + 4 * channel]);
    }
  }
  code_.mov(reg::weights, argument(offsetof(ConvArguments, weights)));
  if (takes_input()) emit_start_of_input();
}

void ConvKernelEmitter::emit_start_of_input() {
  code_.mov(reg::input, of_store(0, offsetof(ConvStore, source)));
  code_.shr(reg::input, 2);  // bytes of planes
  code_.add(reg::input, argument(offsetof(ConvArguments, input)));
  code_.mov(reg::input_step, argument(offsetof(ConvArguments, input_step)));
  code_.lea(reg::input_steps_3, code_.ptr[reg::input_step + reg::input_step * 2]);
  code_.vmovups(order(), code_.constant(vector_constant<uint8_t>(
                             512, [](int i) { return i % 4 * 16 + i / 4; })));
}

void ConvKernelEmitter::emit_prefetch_of_output() {
  code_.mov(reg::output, argument(offsetof(ConvArguments, output)));
  code_.add(reg::output, of_store(0, offsetof(ConvStore, offset)));
  for (int channel = 0; channel < tile_.channels; ++channel) {
    for (int vector = 0; vector < tile_.vectors; ++vector) {
      code_.prefetchw(code_.ptr[reg::output + vector * vector_bytes()]);
    }
    if (channel + 1 < tile_.channels) emit_next_channel(reg::output);
  }
}

void ConvKernelEmitter::emit_loop() {
  if (!tile_.loops_k_groups) return emit_taps();
  Xbyak::Label next_group;
  code_.mov(reg::k_groups, argument(offsetof(ConvArguments, k_groups)));
  code_.L(next_group);
  emit_taps();
  code_.add(reg::planes, argument(offsetof(ConvArguments, k_group_step)));
  code_.dec(reg::k_groups);
  code_.jnz(next_group, Xbyak::CodeGenerator::T_NEAR);
}

void ConvKernelEmitter::emit_taps() {
  code_.mov(reg::tap, argument(offsetof(ConvArguments, taps)));
  code_.sub(reg::tap, reg::taps_end);
  emit_tap_loop(
      code_, {reg::tap, reg::weights}, 4 * tile_.channels, tile_.last_taps > 0,
      [&](int position) { emit_tap(reg::taps_end + reg::tap, position, all_channels()); });
}

/// The tap that is `position` behind the one whose offset is at `tap`.
void ConvKernelEmitter::emit_tap(const Xbyak::RegExp& tap, int position, const TileRows& channels) {
  code_.movsxd(reg::pixel, code_.dword[tap + 4 * position]);
  code_.add(reg::pixel, reg::planes);
  if (takes_input() && channels.begin == 0) {
    emit_pixels_of_input();
  } else {
    for (int vector = 0; vector < tile_.vectors; ++vector) {
      code_.vmovups(pixels(vector), code_.ptr[reg::pixel + vector * vector_bytes()]);
    }
    if (channels.begin == 0) emit_prefetch_of_next_tile();
  }
  for (int channel = channels.begin; channel < channels.end; ++channel) {
    emit_products(channel, position);
  }
}

/// The pixels of four channels, to the registers and to the tap's plane.
void ConvKernelEmitter::emit_pixels_of_input() {
  constexpr int lanes = ConvStore::max_lanes;
  const std::array rows = {Xbyak::RegExp(reg::input), reg::input + reg::input_step,
                           reg::input + reg::input_step * 2, reg::input + reg::input_steps_3};
  for (int vector = 0; vector < tile_.vectors; ++vector) {
    const Xbyak::Zmm to(pixels(vector).getIdx());
    code_.vmovdqu32(Xmm(to.getIdx()), code_.ptr[rows[0] + vector * lanes]);
    for (int row = 1; row < 4; ++row) {
      code_.vinserti32x4(to, to, code_.ptr[rows[static_cast<size_t>(row)] + vector * lanes], row);
    }
    code_.vpermb(to, Xbyak::Zmm(order().getIdx()), to);
    if (tile_.source == PixelSource::signed_input) {
      code_.vpxord(to, to, code_.constant(vector_constant<uint8_t>(512, [](int) { return 0x80; })));
    }
    code_.vmovups(code_.ptr[reg::pixel + vector * vector_bytes()], to);
  }
  constexpr int line_bytes = 64;
  for (const Xbyak::RegExp& row : rows) code_.prefetcht0(code_.ptr[row + line_bytes]);
  code_.lea(reg::input, code_.ptr[reg::input + reg::input_step * 4]);
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

/// To the next tile; sets the flag that the loop ends by.
void ConvKernelEmitter::emit_step() {
  code_.add(reg::stores, tile_.vectors * static_cast<int>(sizeof(ConvStore)));
  code_.dec(reg::tiles);
}

void ConvKernelEmitter::emit_exit() {
  if (epilogue_) {
    epilogue_->leave();
    code_.mov(Xbyak::util::rsp, reg::callers_stack);
    code_.pop_all(saved_for_epilogue);
  }
  code_.vzeroupper();
  code_.pop_all(saved_registers);
  code_.ret();
}

}  // namespace conv

bool fits(const ConvTile& tile, const Target& target) {
  const int used = (tile.channels + 1) * tile.vectors + conv::work_registers;
  return tile.channels >= 1 && tile.vectors >= 1 && used <= target.vector_registers();
}

Result<MachineCode> emit_kernel(const ConvTile& tile, const Target& target,
                                const TileEpilogue* epilogue) {
  return assemble_with_epilogue<conv::ConvKernelEmitter>(tile, target, epilogue);
}

}  // namespace castor::jit
