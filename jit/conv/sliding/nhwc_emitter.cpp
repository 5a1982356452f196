// SPDX-License-Identifier: Apache-2.0
// The code of grouped kernels in NHWC: lanes are output channels.
#include <array>

#include "jit/conv/sliding/nhwc_gather.hpp"

namespace castor::jit {

using namespace sliding;

namespace {

namespace reg = nhwc_reg;

const std::array saved_registers = {reg::channel, reg::place, odd_steps[1],
                                    odd_steps[2], reg::start, reg::row_step};

/// Masks of stores: an epilogue leaves only that of its lanes as it is.
const Opmask stored(7);
const Opmask epilogue_lanes(1);

/// Epilogues are applied in a routine, with its return address below their frame.
constexpr int return_bytes = 8;

/// Emits one kernel: loops over places, and at each over vectors of channels.
class NhwcEmitter final : public NhwcGather {
 public:
  NhwcEmitter(const GroupedNhwcSpec& spec, const Target& target, const TileEpilogue* epilogue,
              const CodeBuffer& buffer)
      : NhwcGather(spec, target, vectors_for(epilogue), buffer) {
    if (epilogue == nullptr) return;
    epilogue_ =
        std::make_unique<EpilogueEmitter>(code_, target, *epilogue,
                                          EpilogueUse{.frame = stack_bytes + return_bytes,
                                                      .taken = {.vectors = vectors_.taken()},
                                                      .order = EpilogueOrder::pixels,
                                                      .element = reg::channel,
                                                      .position = reg::pixel});
  }

  MachineCode emit() {
    emit_entry();
    emit_any_range(argument(offsetof(GroupedNhwcArguments, range)), [&] {
      emit_each(code_, CodeSection::column_loop, place_register(), sizeof(NhwcPlace),
                argument(offsetof(GroupedNhwcArguments, places_end)), [&] { emit_place(); });
    });
    const FrameState body = code_.frame_state();
    emit_exit(saved_registers, return_bytes);
    if (epilogue_) emit_routines(body);
    return code_.finish();
  }

 private:
  Xbyak::Address vector_field(size_t offset) { return code_.ptr[reg::vector + offset]; }
  Xbyak::Address stored_field(int output) {
    return code_
        .word[place_register() + offsetof(NhwcPlace, stored) + 2 * static_cast<size_t>(output)];
  }

  void emit_entry() {
    const Section entry = code_.section(CodeSection::entry);
    code_.push_all(saved_registers);
    if (epilogue_) {
      emit_enter_epilogue(reg::pixel, return_bytes, offsetof(GroupedNhwcArguments, epilogue));
    }
    const Reg64& step = odd_steps[0];
    code_.mov(step, argument(offsetof(GroupedNhwcArguments, pixel_step)));
    code_.lea(odd_steps[1], code_.ptr[step + step * 2]);
    code_.lea(odd_steps[2], code_.ptr[step + step * 4]);
    if (!code_.has_frame_pointer()) code_.mov(reg::row_step, row_step_argument());
    code_.mov(reg::output_step, argument(offsetof(GroupedNhwcArguments, output_step)));
    if (!epilogue_) {
      code_.mov(reg::prefetched, argument(offsetof(GroupedNhwcArguments, prefetched)));
      code_.lea(reg::thrice_output_step, code_.ptr[reg::output_step + reg::output_step * 2]);
    }
    code_.mov(place_register(), argument(offsetof(GroupedNhwcArguments, places)));
    emit_gather_constants();
  }

  void emit_place() {
    Xbyak::Label masked;
    Xbyak::Label done;
    if (!spec_.always_masks()) {
      code_.cmp(code_.qword[place_register() + offsetof(NhwcPlace, is_inner)], 0);
      code_.je(masked, Xbyak::CodeGenerator::T_NEAR);
      is_masked_ = false;
      emit_vectors();
      code_.jmp(done, Xbyak::CodeGenerator::T_NEAR);
    }
    code_.L(masked);
    is_masked_ = true;
    emit_pixel_masks();
    emit_vectors();
    code_.L(done);
  }

  /// All channels of a place, vector by vector.
  void emit_vectors() {
    code_.mov(weights, argument(offsetof(GroupedNhwcArguments, weights)));
    code_.mov(reg::vector, argument(offsetof(GroupedNhwcArguments, vectors)));
    code_.align_to(32);
    const uint32_t begin = code_.position();
    emit_each(code_, CodeSection::channel_loop, reg::vector, sizeof(NhwcVector),
              argument(offsetof(GroupedNhwcArguments, vectors_end)), [&] {
                emit_vector_begin();
                emit_kept();
                code_.has_frame_pointer() ? emit_rows(reg::from, row_step_argument())
                                          : emit_rows(reg::from, reg::row_step);
                code_.add(weights, target_.vector_bits() / 8 * panel_size(spec_));
              });
    note_range(begin);
  }

  /// Where the place's channels are read and written.
  void emit_vector_begin() {
    code_.mov(reg::from, place_field(offsetof(NhwcPlace, input)));
    code_.add(reg::from, argument(offsetof(GroupedNhwcArguments, input)));
    code_.add(reg::from, vector_field(offsetof(NhwcVector, input)));
    code_.mov(reg::to, place_field(offsetof(NhwcPlace, output)));
    code_.imul(reg::to, argument(offsetof(GroupedNhwcArguments, output_pixel_step)));
    code_.add(reg::to, argument(offsetof(GroupedNhwcArguments, output)));
    const Reg64& channel = epilogue_ ? reg::channel : reg::scratch;
    code_.mov(channel, vector_field(offsetof(NhwcVector, channel)));
    code_.mov(reg::start, argument(offsetof(GroupedNhwcArguments, start)));
    code_.lea(reg::start, code_.ptr[reg::start + channel * 4]);
    if (!epilogue_) return code_.lea(reg::to, code_.ptr[reg::to + channel * 4]);
    code_.sub(channel, argument(offsetof(GroupedNhwcArguments, first_channel)));
    code_.kmovw(epilogue_lanes, vector_field(offsetof(NhwcVector, lanes)));
    code_.call(begin_routine_);
  }

  void emit_first_sum(const Xmm& sum, int output) override {
    const Xbyak::Address start = code_.ptr[reg::start];
    spec_.subtracts_window_sums ? code_.vpaddd(sum, vectors_.window_sum(output), start)
                                : code_.vmovups(sum, start);
  }

  void emit_stores(int row) override {
    for (int output = 0; output < spec_.outputs; ++output) {
      const Xmm sum = vectors_.sum(row, output);
      if (spec_.subtracts_window_sums) {
        const Section compensation = code_.section(CodeSection::compensation);
        code_.vpsubd(sum, sum, vectors_.window_sum(output));
      }
      const Section stores = code_.section(CodeSection::stores);
      Xbyak::Label done;
      if (is_masked_ && (epilogue_ || !has_avx512())) {
        code_.cmp(stored_field(output), 0);
        code_.je(done, Xbyak::CodeGenerator::T_NEAR);
      }
      epilogue_ ? emit_apply(sum, output) : emit_store(sum, output);
      code_.L(done);
    }
    const Section next = code_.section(CodeSection::next_row);
    code_.add(reg::to, argument(offsetof(GroupedNhwcArguments, output_row_step)));
  }

  void emit_store(const Xmm& sum, int output) {
    const bool has_mask = has_avx512() && (is_masked_ || spec_.masks_lanes);
    if (has_mask) emit_stored_lanes(output);
    const Reg64& at = output > 0 ? reg::scratch : reg::to;
    if (output == 3) {
      code_.lea(at, code_.ptr[reg::to + reg::thrice_output_step]);
    } else if (output > 0) {
      code_.lea(at, code_.ptr[reg::to + reg::output_step * output]);
    }
    const Xbyak::Address to = code_.ptr[at];
    if (!has_avx512() && spec_.masks_lanes) return emit_store_of_8(sum, to);
    if (spec_.adds) code_.vpaddd(has_mask ? sum | stored : sum, sum, to);
    has_mask ? code_.vmovdqu32(to | stored, sum) : code_.vmovups(to, sum);
    const Section prefetch = code_.section(CodeSection::prefetch);
    if (has_avx512()) code_.prefetchw(code_.ptr[at + reg::prefetched]);
  }

  /// Sets the mask of the lanes of an output that are stored.
  void emit_stored_lanes(int output) {
    const Section lanes_mask = code_.section(CodeSection::stored_lanes);
    const Xbyak::Address lanes = vector_field(offsetof(NhwcVector, lanes));
    if (!is_masked_) return code_.kmovw(stored, lanes);
    if (!spec_.masks_lanes) return code_.kmovw(stored, stored_field(output));
    const Xbyak::Reg32 mask = reg::scratch.cvt32();
    code_.movzx(mask, stored_field(output));
    code_.and_(mask, code_.dword[reg::vector + offsetof(NhwcVector, lanes)]);
    code_.kmovw(stored, mask);
  }

  /// Without AVX-512: a store under a mask takes 16 cycles on Zen 3, and most vectors are whole.
  void emit_store_of_8(const Xmm& sum, const Xbyak::Address& to) {
    Xbyak::Label partial;
    Xbyak::Label done;
    constexpr uint32_t all_lanes = 0xff;
    code_.cmp(code_.dword[reg::vector + offsetof(NhwcVector, lanes)], all_lanes);
    code_.jne(partial);
    if (spec_.adds) code_.vpaddd(sum, sum, to);
    code_.vmovups(to, sum);
    code_.jmp(done);
    code_.L(partial);
    emit_masked_store_of_8(sum, to);
    code_.L(done);
  }

  void emit_masked_store_of_8(const Xmm& sum, const Xbyak::Address& to) {
    const Ymm mask(vectors_.taps.getIdx());
    const Ymm there(vectors_.pixel.getIdx());
    code_.vmovups(mask, vector_field(offsetof(NhwcVector, lanes_mask)));
    if (spec_.adds) {
      code_.vpmaskmovd(there, mask, to);
      code_.vpaddd(sum, sum, there);
    }
    code_.vpmaskmovd(to, mask, Ymm(sum.getIdx()));
  }

  /// Applies the epilogue to an output by a call of its routine.
  void emit_apply(const Xmm& sum, int output) {
    const Section call = code_.section(CodeSection::epilogue);
    code_.vmovdqa64(vectors_.taps, sum);
    code_.mov(reg::pixel, reg::to);
    for (int i = 0; i < output; ++i) code_.add(reg::pixel, reg::output_step);
    code_.call(apply_routine_);
  }

  /// The frame is such where they are called.
  void emit_routines(const FrameState& frame) {
    const Section routine = code_.section(CodeSection::epilogue);
    code_.L(begin_routine_);
    code_.begin_routine(frame);
    epilogue_->emit_begin_row();
    code_.ret();
    code_.align_to(32);
    code_.L(apply_routine_);
    epilogue_->emit_apply(vectors_.taps);
    epilogue_->emit_prefetch(argument(offsetof(GroupedNhwcArguments, prefetched)));
    code_.ret();
  }

  Xbyak::Label begin_routine_;  ///< of the epilogue: for a vector of channels
  Xbyak::Label apply_routine_;
};

}  // namespace

bool fits(const GroupedNhwcSpec& spec, const Target& target) {
  return has_code_for(spec, target) && spec.outputs <= GroupedNhwcSpec::max_outputs &&
         spec.pixels() <= GroupedNhwcSpec::max_pixels &&
         spec.k_groups <= GroupedNhwcSpec::max_k_groups &&
         (target.has_avx512() || !spec.is_partial) && NhwcRegisters(spec, target, 0).fit();
}

bool may_apply(const TileEpilogue& epilogue, const GroupedNhwcSpec& spec, const Target& target) {
  return epilogue.rows_of_channels && !spec.adds &&
         NhwcRegisters(spec, target, vectors_for(&epilogue)).fit();
}

Result<MachineCode> emit_kernel(const GroupedNhwcSpec& spec, const Target& target,
                                const TileEpilogue* epilogue, const EmitOptions& options) {
  return assemble_with_epilogue<NhwcEmitter>(spec, target, epilogue, options);
}

}  // namespace castor::jit
