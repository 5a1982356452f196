// SPDX-License-Identifier: Apache-2.0
// The results of kernels with pixels in the lanes: the last taps, window sums, stores, epilogues.
#include <cstddef>

#include "jit/conv/conv_emitter.hpp"
#include "jit/conv/emit_dot_product.hpp"
#include "jit/conv/tap_loop.hpp"

namespace castor::jit::conv {

void ConvKernelEmitter::emit_window_sums(const TileRows& channels) {
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
  if (stores_groups()) return emit_stores_by_group();
  emit_window_sums(all_channels());
  for (int vector = 0; vector < tile_.vectors; ++vector) emit_stores_of(vector);
}

void ConvKernelEmitter::emit_stores_by_group() {
  if (!takes_input()) emit_mask_of_last_vector();
  code_.mov(reg::group_output, argument(offsetof(ConvArguments, output)));
  code_.add(reg::group_output, of_store(0, offsetof(ConvStore, offset)));
  emit_all_groups([&](const TileRows& group) { emit_stores(group); });
}

/// Its lanes are all stored if all of the tile's are.
void ConvKernelEmitter::emit_mask_of_last_vector() {
  code_.kmovw(Xbyak::Opmask(1), of_store(tile_.vectors - 1, offsetof(ConvStore, first_lanes)));
}

void ConvKernelEmitter::emit_jump_if_full(Xbyak::Label& full) {
  code_.kortestw(Xbyak::Opmask(1), Xbyak::Opmask(1));  // the carry: all ones
  code_.jc(full, Xbyak::CodeGenerator::T_NEAR);
}

/// The last taps and all that follows them, group by group.
template <class EmitStores>
void ConvKernelEmitter::emit_all_groups(EmitStores emit_stores) {
  const auto emit_last_tap = [&](const TileRows& group) {
    emit_tap(reg::taps_end + reg::tap + 4 * tile_.last_taps, 0, group);
  };
  emit_groups(code_, {reg::tap, reg::weights}, 4 * tile_.channels, tile_.channels, tile_.vectors,
              tile_.last_taps, emit_last_tap, [&](const TileRows& group) {
                emit_window_sums(group);
                emit_stores(group);
              });
}

/// Vectors side by side. (Stores without a mask are faster.)
void ConvKernelEmitter::emit_stores(const TileRows& group) {
  if (takes_input()) return emit_full_stores(group);
  Xbyak::Label full;
  Xbyak::Label done;
  emit_jump_if_full(full);
  emit_masked_stores(group);
  code_.jmp(done, Xbyak::CodeGenerator::T_NEAR);
  code_.L(full);
  emit_full_stores(group);
  code_.L(done);
}

void ConvKernelEmitter::emit_full_stores(const TileRows& group) {
  for (int channel = group.begin; channel < group.end; ++channel) {
    for (int vector = 0; vector < tile_.vectors; ++vector) {
      code_.vmovups(code_.ptr[reg::group_output + vector * vector_bytes()], sum(channel, vector));
    }
    emit_next_channel(reg::group_output);
  }
}

void ConvKernelEmitter::emit_masked_stores(const TileRows& group) {
  const Xbyak::Opmask stored(2);
  for (int channel = group.begin; channel < group.end; ++channel) {
    for (int vector = 0; vector < tile_.vectors; ++vector) {
      code_.kmovw(stored, of_store(vector, offsetof(ConvStore, first_lanes)));
      code_.vmovdqu32(code_.ptr[reg::group_output + vector * vector_bytes()] | stored,
                      sum(channel, vector));
    }
    emit_next_channel(reg::group_output);
  }
}

void ConvKernelEmitter::emit_next_channel(const Reg64& output) {
  if (takes_input()) {
    code_.add(output, argument(offsetof(ConvArguments, channel_step)));
  } else {
    code_.add(output, reg::channel_step);
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
    emit_all_groups([&](const TileRows& group) { emit_stage(group); });
  }
  if (takes_input()) return emit_full_epilogue();
  Xbyak::Label full;
  Xbyak::Label done;
  if (full_epilogue_) {
    emit_mask_of_last_vector();
    emit_jump_if_full(full);
  }
  epilogue_->emit_constants();
  for (int vector = 0; vector < tile_.vectors; ++vector) emit_epilogue_of(vector);
  if (full_epilogue_) {
    code_.jmp(done, Xbyak::CodeGenerator::T_NEAR);
    code_.L(full);
    emit_full_epilogue();
    code_.L(done);
  }
}

/// All vectors of a channel at a time, in a loop over the channels, or over groups of them.
void ConvKernelEmitter::emit_full_epilogue() {
  full_epilogue_->begin();
  code_.mov(reg::stage, of_store(0, offsetof(ConvStore, offset)));
  code_.shr(reg::stage, 2);
  code_.mov(reg::output, argument(offsetof(ConvArguments, epilogue)));
  full_epilogue_->point(reg::output, reg::stage);
  const auto sums = Xbyak::util::rsp + reg::stage;
  const Xbyak::Address operands = argument(offsetof(ConvArguments, epilogue));
  const int group = full_epilogue_->group_rows();
  const int group_bytes = group * tile_.vectors * vector_bytes();
  const int groups = tile_.channels / group;
  code_.xor_(reg::stage.cvt32(), reg::stage.cvt32());
  if (groups > 0) {
    Xbyak::Label next;
    code_.align_to(32);
    code_.L(next);
    full_epilogue_->apply_rows(sums, group, operands);
    code_.add(reg::stage.cvt32(), group_bytes);
    code_.cmp(reg::stage.cvt32(), groups * group_bytes);
    code_.jb(next, Xbyak::CodeGenerator::T_NEAR);
  }
  const int rest = tile_.channels % group;
  if (rest > 0) full_epilogue_->apply_rows(sums, rest, operands);
}

void ConvKernelEmitter::emit_stage(const TileRows& channels) {
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

}  // namespace castor::jit::conv
