// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/grouped_nhwc_kernel.hpp"

#include <algorithm>

#include "jit/conv/grouped_nhwc_emitter.hpp"

namespace castor::jit {

namespace grouped_nhwc {

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
  code_.mov(reg::pixel, stack);
  code_.sub(stack,
            stack_bytes + PixelEpilogueEmitter::operand_bytes + TileEpilogueEmitter::frame_bytes);
  code_.and_(stack, -64);
  code_.mov(code_.qword[stack], reg::pixel);
  code_.sub(stack, return_bytes);
  epilogue_->begin(argument(offsetof(GroupedNhwcArguments, epilogue)));
  code_.add(stack, return_bytes);
}

void NhwcEmitter::emit_constants() {
  if (form_.flips_input) {
    code_.vpbroadcastd(vectors_.flip, code_.constant_of(uint32_t{0x80808080}));
  }
  if (vectors_of_weight(form_, target_) > 1) {
    code_.vpbroadcastd(vectors_.even_bytes, code_.constant_of(uint32_t{0x00ff00ff}));
  }
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
  code_.mov(reg::weights, argument(offsetof(GroupedNhwcArguments, weights)));
  code_.mov(reg::vector, argument(offsetof(GroupedNhwcArguments, vectors)));
  code_.align_to(32);
  code_.L(next);
  emit_vector_begin();
  load_record();
  emit_block();
  code_.add(reg::weights, vector_bytes() * record_vectors(form_, target_));
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

void NhwcEmitter::load_record() {
  for (int i = 0; i < vectors_.record && vectors_.keeps(i); ++i) {
    code_.vmovups(vectors_.kept(i), of_record(i));
  }
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
  epilogue_->emit_channels_routine();
  code_.align_to(32);
  code_.L(routine_);
  epilogue_->emit_routine(vectors_.quad, argument(offsetof(GroupedNhwcArguments, prefetched)));
}

}  // namespace grouped_nhwc

bool fits(const GroupedNhwcForm& form, const Target& target) {
  constexpr int max_rows = 16;
  constexpr int max_input_rows = 64;  // beyond which code gets long
  constexpr size_t max_blocks = 16;   // likewise
  const bool is_sane = form.rows >= 1 && form.rows <= max_rows && form.row_stride <= max_rows &&
                       form.outputs <= GroupedNhwcForm::max_outputs &&
                       form.pixels() <= GroupedNhwcForm::max_pixels &&
                       form.parts <= GroupedNhwcForm::max_parts && form.blocks.size() <= max_blocks;
  return is_sane && (target.has_avx512() || !form.is_partial) &&
         NhwcRegisters(form, target, 0).fit &&
         std::ranges::all_of(form.blocks, [&](const GroupedNhwcBlock& block) {
           return form.input_rows(block) <= max_input_rows;
         });
}

int vectors_of_weight(const GroupedNhwcForm& form, const Target& target) {
  return has_words(target) && form.parts == 0 ? 2 : 1;
}

int record_vectors(const GroupedNhwcForm& form, const Target& target) {
  const int weights = form.rows * form.row_weights() * vectors_of_weight(form, target);
  return form.orders() + weights + (has_words(target) ? 0 : form.zero_points());
}

bool may_apply(const TileEpilogue& epilogue, const GroupedNhwcForm& form, const Target& target) {
  return epilogue.rows_of_channels && !form.adds &&
         NhwcRegisters(form, target, vectors_for(&epilogue)).fit;
}

Result<MachineCode> emit_kernel(const GroupedNhwcForm& form, const Target& target,
                                const TileEpilogue* epilogue) {
  if (epilogue != nullptr && !may_apply(*epilogue, form, target)) return epilogue_refused();
  return assemble_with_epilogue<grouped_nhwc::NhwcEmitter>(form, target, epilogue);
}

}  // namespace castor::jit
