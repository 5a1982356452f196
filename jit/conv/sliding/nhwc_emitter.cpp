// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/sliding/nhwc_emitter.hpp"

#include <algorithm>

namespace castor::jit {

namespace sliding {

void NhwcEmitter::emit_entry() {
  code_.push_all(saved_registers);
  if (epilogue_) enter_epilogue();
  const Reg64& step = odd_steps[0];
  code_.mov(step, argument(offsetof(GroupedNhwcArguments, pixel_step)));
  code_.lea(odd_steps[1], code_.ptr[step + step * 2]);
  code_.lea(odd_steps[2], code_.ptr[step + step * 4]);
  code_.lea(odd_steps[3], code_.ptr[odd_steps[2] + step * 2]);
  code_.mov(reg::row_step, argument(offsetof(GroupedNhwcArguments, row_step)));
  code_.mov(reg::output_step, argument(offsetof(GroupedNhwcArguments, output_step)));
  if (!epilogue_) {
    code_.mov(reg::prefetched, argument(offsetof(GroupedNhwcArguments, prefetched)));
    code_.lea(reg::thrice_output_step, code_.ptr[reg::output_step + reg::output_step * 2]);
  }
  code_.mov(reg::place, argument(offsetof(GroupedNhwcArguments, places)));
  emit_constants();
}

void NhwcEmitter::enter_epilogue() {
  const Reg64& stack = Xbyak::util::rsp;
  enter_frame(reg::pixel, stack_bytes + EpilogueEmitter::frame_bytes);
  code_.sub(stack, return_bytes);
  epilogue_->enter();
  epilogue_->begin(argument(offsetof(GroupedNhwcArguments, epilogue)));
  code_.add(stack, return_bytes);
}

void NhwcEmitter::emit_constants() {
  emit_flip_constant();
  emit_split_constant();
  if (!has_avx512()) return;
  code_.mov(reg::scratch, argument(offsetof(GroupedNhwcArguments, padding)));
  code_.vbroadcasti32x4(Zmm(vectors_.padding.getIdx()), code_.ptr[reg::scratch]);
  if (form_.parts == 0) emit_orders();
}

/// Of a quad's pixels, 16 bytes each.
void NhwcEmitter::emit_orders() {
  std::array<uint8_t, 64> bytes;    // to channel c: byte c of each pixel
  std::array<uint32_t, 16> dwords;  // to four channels: their dword of each pixel
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i % 4 * 16 + i / 4);
  for (uint32_t i = 0; i < dwords.size(); ++i) dwords[i] = i % 4 * 4 + i / 4;
  if (has_vbmi(target_)) return code_.vmovups(vectors_.order, code_.constant_of(bytes));
  code_.vmovups(vectors_.order, code_.constant_of(dwords));
  std::array<uint8_t, 16> of_dwords;
  for (size_t i = 0; i < of_dwords.size(); ++i) {
    of_dwords[i] = static_cast<uint8_t>(i % 4 * 4 + i / 4);
  }
  code_.vbroadcasti32x4(Zmm(vectors_.transposed.getIdx()), code_.constant_of(of_dwords));
}

/// All places of a block.
void NhwcEmitter::emit_places() {
  Xbyak::Label next;
  Xbyak::Label guarded;
  Xbyak::Label done;
  code_.L(next);
  if (!form_.always_guards()) {
    code_.cmp(code_.qword[reg::place + offsetof(NhwcPlace, is_inner)], 0);
    code_.je(guarded, Xbyak::CodeGenerator::T_NEAR);
    guards_ = false;
    emit_channels();
    code_.jmp(done, Xbyak::CodeGenerator::T_NEAR);
  }
  code_.L(guarded);
  guards_ = true;
  emit_masks();
  emit_channels();
  code_.L(done);
  code_.add(reg::place, static_cast<int>(sizeof(NhwcPlace)));
  code_.cmp(reg::place, argument(offsetof(GroupedNhwcArguments, places_end)));
  code_.jb(next, Xbyak::CodeGenerator::T_NEAR);
}

void NhwcEmitter::emit_masks() {
  if (!keeps_masks()) return;
  for (int pixel = 0; pixel < form_.pixels(); ++pixel) {
    code_.kmovw(Opmask(1 + pixel), of_place(loaded_at(pixel)));
  }
}

/// All channels of a place, vector by vector.
void NhwcEmitter::emit_channels() {
  Xbyak::Label next;
  code_.mov(weights, argument(offsetof(GroupedNhwcArguments, weights)));
  code_.mov(reg::vector, argument(offsetof(GroupedNhwcArguments, vectors)));
  code_.align_to(32);
  code_.L(next);
  emit_vector_begin();
  load_panel();
  emit_rows(reg::from, reg::row_step);
  code_.add(weights, vector_bytes() * form_.panel_vectors());
  code_.add(reg::vector, static_cast<int>(sizeof(NhwcVector)));
  code_.cmp(reg::vector, argument(offsetof(GroupedNhwcArguments, vectors_end)));
  code_.jb(next, Xbyak::CodeGenerator::T_NEAR);
}

/// Where the place's channels are read and written.
void NhwcEmitter::emit_vector_begin() {
  code_.mov(reg::from, of_place(offsetof(NhwcPlace, input)));
  code_.add(reg::from, argument(offsetof(GroupedNhwcArguments, input)));
  code_.add(reg::from, of_vector(offsetof(NhwcVector, input)));
  code_.mov(reg::to, of_place(offsetof(NhwcPlace, output)));
  code_.imul(reg::to, argument(offsetof(GroupedNhwcArguments, output_pixel_step)));
  code_.add(reg::to, argument(offsetof(GroupedNhwcArguments, output)));
  if (!epilogue_) {
    code_.mov(reg::scratch, of_vector(offsetof(NhwcVector, channel)));
    code_.lea(reg::to, code_.ptr[reg::to + reg::scratch * 4]);
    return;
  }
  code_.mov(reg::channel, of_vector(offsetof(NhwcVector, channel)));
  code_.sub(reg::channel, argument(offsetof(GroupedNhwcArguments, first_channel)));
  code_.kmovw(epilogue_lanes, of_vector(offsetof(NhwcVector, lanes)));
  code_.call(channels_routine_);
}

void NhwcEmitter::load_panel() {
  for (int i = 0; i < vectors_.panel && vectors_.keeps(i); ++i) {
    code_.vmovups(vectors_.kept(i), of_panel(i));
  }
}

/// One input row: into the sums of all outputs that take it.
void NhwcEmitter::emit_row(int row) {
  form_.parts == 0 ? emit_pixels_of_channel(row) : emit_channels_of_pixels(row);
}

void NhwcEmitter::emit_first_sum(const Xmm& sum, int output) {
  const Xbyak::Address start = of_vector(offsetof(NhwcVector, start));
  form_.subtracts_window_sums ? code_.vpaddd(sum, vectors_.window_sum(output), start)
                              : code_.vmovups(sum, start);
}

/// Quads are four neighbouring pixels.
void NhwcEmitter::emit_pixels_of_channel(int row) {
  const bool as_it_is = !form_.flips_input && !form_.has_words() && has_avx512();
  const Xmm& taps = is_outside(row) && as_it_is ? vectors_.padding : vectors_.quad;
  if (is_outside(row) && !as_it_is) {
    load_padding(vectors_.quad);
    prepare_taps(vectors_.quad);
  }
  for (int quad = 0; quad < form_.quads(); ++quad) {
    if (!is_outside(row)) {
      load_quad(quad);
      prepare_taps(vectors_.quad);
    }
    emit_products(row, taps, quad);
  }
}

/// Quads are channels of one pixel.
void NhwcEmitter::emit_channels_of_pixels(int row) {
  const Xmm& channels = vectors_.pixel;
  if (is_outside(row)) {
    load_padding(channels);
    prepare_taps(channels);
  }
  for (int pixel = 0; pixel < form_.pixels(); ++pixel) {
    if (!form_.is_taken(pixel)) continue;
    if (!is_outside(row)) {
      load_channels(pixel);
      prepare_taps(channels);
    }
    for (int part = 0; part < form_.parts; ++part) {
      vectors_.keeps(part) ? code_.vpshufb(vectors_.quad, channels, vectors_.kept(part))
                           : code_.vpshufb(vectors_.quad, channels, of_panel(part));
      emit_products(row, vectors_.quad, pixel * form_.parts + part);
    }
  }
}

/// What is multiplied: bytes flipped to unsigned ones; without VNNI, of neighbouring pixels words.
void NhwcEmitter::prepare_taps(const Xmm& taps) {
  if (form_.flips_input) {
    has_avx512() ? code_.vpxord(taps, taps, vectors_.flip) : code_.vpxor(taps, taps, vectors_.flip);
  }
  emit_split(taps, taps);
}

/// An output row.
void NhwcEmitter::emit_stores(int row) {
  for (int output = 0; output < form_.outputs; ++output) {
    const Xmm sum = vectors_.sum(row, output);
    if (form_.subtracts_window_sums) code_.vpsubd(sum, sum, vectors_.window_sum(output));
    if (epilogue_) {
      emit_store_by_epilogue(sum, output);
    } else {
      emit_store(sum, output);
    }
  }
  code_.add(reg::to, argument(offsetof(GroupedNhwcArguments, output_row_step)));
}

void NhwcEmitter::emit_store(const Xmm& sum, int output) {
  Xbyak::Label done;
  if (has_avx512() && (guards_ || form_.masks_lanes)) emit_stored_lanes(output);
  if (!has_avx512() && guards_) {
    code_.cmp(code_.word[reg::place + stored_at(output)], 0);
    code_.je(done, Xbyak::CodeGenerator::T_NEAR);
  }
  if (output > 0) code_.lea(reg::scratch, output_address(output));
  const Xbyak::Address to = code_.ptr[output > 0 ? reg::scratch : reg::to];
  if (!has_avx512()) {
    form_.masks_lanes ? emit_masked_store_of_8(sum, to) : emit_whole_store(sum, to);
  } else if (guards_ || form_.masks_lanes) {
    if (form_.adds) code_.vpaddd(sum | stored, sum, to);
    code_.vmovdqu32(to | stored, sum);
  } else {
    emit_whole_store(sum, to);
  }
  if (has_avx512()) {
    code_.prefetchw(code_.ptr[(output > 0 ? reg::scratch : reg::to) + reg::prefetched]);
  }
  code_.L(done);
}

/// Sets the mask of the lanes of an output that are stored.
void NhwcEmitter::emit_stored_lanes(int output) {
  const Xbyak::Address lanes = of_vector(offsetof(NhwcVector, lanes));
  if (!guards_) return code_.kmovw(stored, lanes);
  if (!form_.masks_lanes) return code_.kmovw(stored, of_place(stored_at(output)));
  code_.movzx(reg::scratch.cvt32(), code_.word[reg::place + stored_at(output)]);
  code_.and_(reg::scratch.cvt32(), code_.dword[reg::vector + offsetof(NhwcVector, lanes)]);
  code_.kmovw(stored, reg::scratch.cvt32());
}

void NhwcEmitter::emit_whole_store(const Xmm& sum, const Xbyak::Address& to) {
  if (form_.adds) code_.vpaddd(sum, sum, to);
  code_.vmovups(to, sum);
}

/// Without AVX-512.
void NhwcEmitter::emit_masked_store_of_8(const Xmm& sum, const Xbyak::Address& to) {
  const Xbyak::Ymm mask(vectors_.quad.getIdx());
  const Xbyak::Ymm there(vectors_.pixel.getIdx());
  code_.vmovups(mask, of_vector(offsetof(NhwcVector, lanes_mask)));
  if (form_.adds) {
    code_.vpmaskmovd(there, mask, to);
    code_.vpaddd(sum, sum, there);
  }
  code_.vpmaskmovd(to, mask, Xbyak::Ymm(sum.getIdx()));
}

/// By a call of the routine, where the output is there.
void NhwcEmitter::emit_store_by_epilogue(const Xmm& sum, int output) {
  Xbyak::Label done;
  if (guards_) {
    code_.cmp(code_.word[reg::place + stored_at(output)], 0);
    code_.je(done, Xbyak::CodeGenerator::T_NEAR);
  }
  code_.vmovdqa64(vectors_.quad, sum);
  code_.mov(reg::pixel, reg::to);
  for (int i = 0; i < output; ++i) code_.add(reg::pixel, reg::output_step);
  code_.call(routine_);
  code_.L(done);
}

void NhwcEmitter::emit_exit() {
  if (epilogue_) {
    code_.sub(Xbyak::util::rsp, return_bytes);
    epilogue_->leave();
    code_.mov(Xbyak::util::rsp, code_.qword[Xbyak::util::rsp + return_bytes]);
  }
  code_.vzeroupper();
  code_.pop_all(saved_registers);
  code_.ret();
  if (!epilogue_) return;
  code_.L(channels_routine_);
  epilogue_->begin_row();
  code_.ret();
  code_.align_to(32);
  code_.L(routine_);
  epilogue_->apply(vectors_.quad);
  epilogue_->prefetch(argument(offsetof(GroupedNhwcArguments, prefetched)));
  code_.ret();
}

}  // namespace sliding

using namespace sliding;

bool fits(const GroupedNhwcForm& form, const Target& target) {
  constexpr size_t max_blocks = 16;  // beyond which code gets long
  const bool is_sane =
      has_short_code(form, max_blocks) && form.outputs <= GroupedNhwcForm::max_outputs &&
      form.pixels() <= GroupedNhwcForm::max_pixels && form.parts <= GroupedNhwcForm::max_parts;
  return is_sane && (target.has_avx512() || !form.is_partial) && has_engine(target, form.engine) &&
         NhwcRegisters(form, target, 0).fit;
}

bool may_apply(const TileEpilogue& epilogue, const GroupedNhwcForm& form, const Target& target) {
  return epilogue.rows_of_channels && !form.adds &&
         NhwcRegisters(form, target, vectors_for(&epilogue)).fit;
}

Result<MachineCode> emit_kernel(const GroupedNhwcForm& form, const Target& target,
                                const TileEpilogue* epilogue) {
  if (epilogue != nullptr && !may_apply(*epilogue, form, target)) return epilogue_refused();
  return assemble_with_epilogue<NhwcEmitter>(form, target, epilogue);
}

}  // namespace castor::jit
