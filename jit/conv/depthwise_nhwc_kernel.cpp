// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/depthwise_nhwc_kernel.hpp"

#include <algorithm>

#include "jit/conv/depthwise_nhwc_emitter.hpp"

namespace castor::jit {

namespace depthwise_nhwc {

void NhwcEmitter::emit_prologue() {
  code_.push_all(saved_registers);
  if (epilogue_) enter_epilogue();
  const Reg64& step = odd_steps[0];
  code_.mov(step, argument(offsetof(DepthwiseNhwcArguments, pixel_step)));
  code_.lea(odd_steps[1], code_.ptr[step + step * 2]);
  code_.lea(odd_steps[2], code_.ptr[step + step * 4]);
  code_.lea(odd_steps[3], code_.ptr[odd_steps[2] + step * 2]);
  code_.mov(reg::row_step, argument(offsetof(DepthwiseNhwcArguments, row_step)));
  code_.mov(reg::output_step, argument(offsetof(DepthwiseNhwcArguments, output_step)));
  if (!epilogue_) {
    code_.mov(reg::prefetched, argument(offsetof(DepthwiseNhwcArguments, prefetched)));
    code_.lea(reg::thrice_output_step, code_.ptr[reg::output_step + reg::output_step * 2]);
  }
  code_.mov(reg::place, argument(offsetof(DepthwiseNhwcArguments, places)));
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
  epilogue_->begin(argument(offsetof(DepthwiseNhwcArguments, epilogue)));
  code_.add(stack, return_bytes);
}

void NhwcEmitter::emit_constants() {
  code_.vpbroadcastq(vectors_.padding, argument(offsetof(DepthwiseNhwcArguments, padding)));
  if (form_.flips_input) {
    code_.vpbroadcastd(vectors_.flip, code_.constant_of(uint32_t{0x80808080}));
  }
  if (has_words(target_)) {
    code_.vpbroadcastd(vectors_.even_bytes, code_.constant_of(uint32_t{0x00ff00ff}));
  }
  std::array<uint8_t, 64> bytes;    // to channel c: byte c of each pixel
  std::array<uint32_t, 16> dwords;  // to four channels: their dword of each pixel
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i % 4 * 16 + i / 4);
  for (uint32_t i = 0; i < dwords.size(); ++i) dwords[i] = i % 4 * 4 + i / 4;
  if (has_vbmi(target_)) return code_.vmovdqa64(vectors_.order, code_.constant_of(bytes));
  code_.vmovdqa64(vectors_.order, code_.constant_of(dwords));
  std::array<uint8_t, 16> of_dwords;
  for (size_t i = 0; i < of_dwords.size(); ++i) {
    of_dwords[i] = static_cast<uint8_t>(i % 4 * 4 + i / 4);
  }
  code_.vbroadcasti32x4(vectors_.transposed, code_.constant_of(of_dwords));
}

/// All places of a block.
void NhwcEmitter::emit_places() {
  Xbyak::Label next;
  Xbyak::Label guarded;
  Xbyak::Label done;
  code_.L(next);
  emit_place_begin();
  if (!form_.is_partial) {
    code_.cmp(code_.qword[reg::place + offsetof(DepthwisePlace, is_inner)], 0);
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
  code_.add(reg::place, static_cast<int>(sizeof(DepthwisePlace)));
  code_.cmp(reg::place, argument(offsetof(DepthwiseNhwcArguments, places_end)));
  code_.jb(next, Xbyak::CodeGenerator::T_NEAR);
}

void NhwcEmitter::emit_place_begin() {
  code_.mov(reg::from, of_place(offsetof(DepthwisePlace, input)));
  code_.add(reg::from, argument(offsetof(DepthwiseNhwcArguments, input)));
  code_.mov(reg::to, of_place(offsetof(DepthwisePlace, output)));
  code_.imul(reg::to, argument(offsetof(DepthwiseNhwcArguments, output_pixel_step)));
  code_.add(reg::to, argument(offsetof(DepthwiseNhwcArguments, output)));
  code_.mov(reg::weights, argument(offsetof(DepthwiseNhwcArguments, weights)));
  code_.mov(reg::start, argument(offsetof(DepthwiseNhwcArguments, start)));
  if (!epilogue_) return;
  code_.xor_(reg::channel.cvt32(), reg::channel.cvt32());
  code_.kmovw(epilogue_lanes, argument(offsetof(DepthwiseNhwcArguments, lanes)));
}

void NhwcEmitter::emit_masks() {
  if (!keeps_masks()) return;
  for (int pixel = 0; pixel < form_.pixels(); ++pixel) {
    const size_t at = offsetof(DepthwisePlace, loaded) + 2 * static_cast<size_t>(pixel);
    code_.kmovw(Opmask(1 + pixel), of_place(at));
  }
}

/// All channels of a place, 16 at a time.
void NhwcEmitter::emit_channels() {
  Xbyak::Label next;
  Xbyak::Label adjust;
  Xbyak::Label done;
  code_.align_to(32);
  code_.L(next);
  if (epilogue_) code_.call(channels_routine_);
  load_weights();
  emit_block();
  code_.add(reg::from, argument(offsetof(DepthwiseNhwcArguments, input_vector_step)));
  code_.add(reg::to, argument(offsetof(DepthwiseNhwcArguments, output_vector_step)));
  code_.add(reg::weights, 64 * weight_vectors(form_, target_));
  code_.add(reg::start, 64);
  if (epilogue_) code_.add(reg::channel, DepthwiseNhwcForm::lanes);
  code_.cmp(reg::start, argument(offsetof(DepthwiseNhwcArguments, last_start)));
  code_.jb(next, Xbyak::CodeGenerator::T_NEAR);
  code_.ja(done, Xbyak::CodeGenerator::T_NEAR);
  code_.add(reg::from, argument(offsetof(DepthwiseNhwcArguments, input_last_step)));
  code_.add(reg::to, argument(offsetof(DepthwiseNhwcArguments, output_last_step)));
  if (epilogue_) {
    code_.add(reg::channel, argument(offsetof(DepthwiseNhwcArguments, input_last_step)));
    code_.kmovw(epilogue_lanes, argument(offsetof(DepthwiseNhwcArguments, last_lanes)));
  }
  code_.jmp(next, Xbyak::CodeGenerator::T_NEAR);
  code_.L(done);
}

void NhwcEmitter::load_weights() {
  for (int i = 0; i < vectors_.weights && vectors_.keeps(i); ++i) {
    code_.vmovups(vectors_.weight(i), weight_address(i));
  }
}

void NhwcEmitter::emit_epilogue() {
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
  epilogue_->emit_routine(vectors_.quad);
}

}  // namespace depthwise_nhwc

bool fits(const DepthwiseNhwcForm& form, const Target& target) {
  constexpr int most_rows = 16;
  constexpr int most_input_rows = 64;  // beyond which code gets long
  constexpr size_t most_blocks = 16;   // likewise
  const bool is_sane = form.rows >= 1 && form.rows <= most_rows && form.row_stride <= most_rows &&
                       form.outputs <= DepthwiseNhwcForm::most_outputs &&
                       form.pixels() <= DepthwiseNhwcForm::most_pixels &&
                       form.blocks.size() <= most_blocks;
  return is_sane && target.has_avx512() && NhwcRegisters(form, target, 0).fit &&
         std::ranges::all_of(form.blocks, [&](const DepthwiseNhwcBlock& block) {
           return form.input_rows(block) <= most_input_rows;
         });
}

int weight_vectors(const DepthwiseNhwcForm& form, const Target& target) {
  const int products = form.rows * form.products() * vectors_of_product(target);
  return products + (has_words(target) ? 0 : form.products());
}

bool may_apply(const TileEpilogue& epilogue, const DepthwiseNhwcForm& form, const Target& target) {
  return epilogue.rows_of_channels && NhwcRegisters(form, target, vectors_for(&epilogue)).fit;
}

Result<MachineCode> emit_depthwise_nhwc_kernel(const DepthwiseNhwcForm& form, const Target& target,
                                               const TileEpilogue* epilogue) {
  if (epilogue != nullptr && !may_apply(*epilogue, form, target)) return epilogue_refused();
  return assemble_with_epilogue<depthwise_nhwc::NhwcEmitter>(form, target, epilogue);
}

}  // namespace castor::jit
