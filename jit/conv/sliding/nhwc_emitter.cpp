// SPDX-License-Identifier: Apache-2.0
// The code of grouped kernels in NHWC: lanes are output channels.
#include <algorithm>
#include <array>

#include "jit/conv/sliding/sliding_emitter.hpp"

namespace castor::jit {

using namespace sliding;

namespace {

/// Registers with one meaning throughout the code.
namespace reg {
const Reg64 from(Operand::RSI);  ///< the next row at the place
const Reg64 to(Operand::RDX);    ///< the next output row at the place
const Reg64 output_step(Operand::R8);
const Reg64 place(Operand::RBP);  ///< elsewhere with a frame pointer
const Reg64 vector(Operand::R10);
const Reg64 start(Operand::R14);     ///< of the vector
const Reg64 row_step(Operand::R15);  ///< without a frame pointer
const Reg64 thrice_output_step(Operand::RCX);
const Reg64 prefetched(Operand::RBX);
const Reg64 scratch(Operand::RAX);
// Only with an epilogue, which has RAX besides.
const Reg64 pixel(Operand::RCX);    ///< of the sums
const Reg64 channel(Operand::RBX);  ///< their first one
}  // namespace reg

/// One, three and five times the step from a pixel to the next.
const std::array odd_steps = {Reg64(Operand::R11), Reg64(Operand::R12), Reg64(Operand::R13)};
const std::array saved_registers = {reg::channel, reg::place, odd_steps[1],
                                    odd_steps[2], reg::start, reg::row_step};

/// Masks: of pixels, where there are enough for all of a place; else of the one at hand. An
/// epilogue leaves only one as it is, that of its lanes.
constexpr int max_pixel_masks = 6;
const Opmask pixel_at_hand(2);
const Opmask stored(7);
const Opmask epilogue_lanes(1);

/// Epilogues are applied in a routine, with its return address below their frame.
constexpr int return_bytes = 8;

/// Within 128 bits: four i16, then four of the next pixels; to pairs of them.
constexpr std::array<uint8_t, 16> paired_i16 = {0, 1, 8,  9,  2, 3, 10, 11,
                                                4, 5, 12, 13, 6, 7, 14, 15};
/// Within 128 bits: eight bytes of a pixel, then of the next one; to pairs of them.
constexpr std::array<uint8_t, 16> paired_bytes = {0, 8,  1, 9,  2, 10, 3, 11,
                                                  4, 12, 5, 13, 6, 14, 7, 15};

std::array<uint8_t, 32> twice(const std::array<uint8_t, 16>& order) {
  std::array<uint8_t, 32> both;
  std::ranges::copy(order, both.begin());
  std::ranges::copy(order, both.begin() + 16);
  return both;
}

/// Transposes a 4 x `count` table of T.
template <class T, size_t count>
std::array<T, count> transposing_order() {
  std::array<T, count> order;
  for (size_t i = 0; i < count; ++i) order[i] = static_cast<T>(i % 4 * (count / 4) + i / 4);
  return order;
}

Xmm low(const Xmm& vector) { return Xmm(vector.getIdx()); }

/// The vector registers of one kernel, given out in the order of the members.
class NhwcRegisters : public VectorPool {
 public:
  /// `spare`: registers that are left for an epilogue.
  NhwcRegisters(const GroupedNhwcSpec& spec, const Target& target, int spare)
      : VectorPool(target, spare), spec_(spec) {
    const bool has_avx512 = target.has_avx512();
    taps = take();
    if (has_avx512) padding = take();
    if (has_avx512 && spec.is_depthwise()) order = take();
    if (has_avx512 && spec.is_depthwise() && !has_vbmi(target)) transposed = take();
    if (spec.flips_input) flip = take();
    if (!spec.is_depthwise() || spec.is_partial || !has_avx512) pixel = take();
    if (spec.weight_parts() > 1) {
      odd_taps = take();
      even_bytes = take();
    }
    if (spec.has_pairs() || spec.signed_input) product = take();
    if (spec.subtracts_window_sums) first_window_sum_ = take(spec.outputs);
    first_sum_ = take(spec.outputs * spec.sum_rows());
    keep(read_panel_size(spec));
  }

  Xmm taps, padding, order, transposed, flip, pixel, odd_taps, even_bytes, product;

  Xmm window_sum(int output) const { return vector(first_window_sum_.getIdx() + output); }
  /// Of an output row with that number; they take turns.
  Xmm sum(int row, int output) const {
    return vector(first_sum_.getIdx() + row % spec_.sum_rows() * spec_.outputs + output);
  }

 private:
  const GroupedNhwcSpec& spec_;
  Xmm first_window_sum_, first_sum_;
};

/// The gather: the k groups of a row at a place.
class NhwcGather : public SlidingEmitter<GroupedNhwcSpec, NhwcRegisters> {
 protected:
  using SlidingEmitter::SlidingEmitter;
  ~NhwcGather() = default;

  /// With a frame pointer it is where row steps are otherwise, which the arguments have.
  const Reg64& place_register() const {
    return code_.has_frame_pointer() ? reg::row_step : reg::place;
  }
  Xbyak::Address row_step_argument() { return argument(offsetof(GroupedNhwcArguments, row_step)); }
  Xbyak::Address place_field(size_t offset) { return code_.ptr[place_register() + offset]; }

  void emit_gather_constants() {
    const Section constants = code_.section(CodeSection::constants);
    emit_flip_constant();
    emit_split_constant();
    if (!has_avx512()) return;
    code_.mov(reg::scratch, argument(offsetof(GroupedNhwcArguments, padding)));
    code_.vbroadcasti32x4(Zmm(vectors_.padding.getIdx()), code_.ptr[reg::scratch]);
    if (!spec_.is_depthwise()) return;
    if (has_vbmi(target_)) {
      return code_.vmovups(vectors_.order, code_.constant_of(transposing_order<uint8_t, 64>()));
    }
    code_.vmovups(vectors_.order, code_.constant_of(transposing_order<uint32_t, 16>()));
    code_.vbroadcasti32x4(Zmm(vectors_.transposed.getIdx()),
                          code_.constant_of(transposing_order<uint8_t, 16>()));
  }

  void emit_pixel_masks() {
    const Section masks = code_.section(CodeSection::gather);
    for (int pixel = 0; keeps_masks() && pixel < spec_.pixels(); ++pixel) {
      code_.kmovw(Opmask(1 + pixel), pixel_mask(pixel));
    }
  }

  void emit_row(int row) override {
    const Section gather = code_.section(CodeSection::gather);
    const bool outside = is_outside(row);
    const bool as_it_is = !spec_.flips_input && !spec_.has_pairs() && has_avx512();
    const Xmm& loaded = spec_.is_depthwise() ? vectors_.taps : vectors_.pixel;
    const bool takes_padding = outside && as_it_is && spec_.is_depthwise();
    if (outside && !takes_padding) {
      emit_padding(loaded);
      emit_signs(loaded);
    }
    const int loads = spec_.is_depthwise() ? spec_.row_k_groups() : spec_.pixels();
    for (int i = 0; i < loads; ++i) {
      if (!spec_.is_depthwise() && !spec_.is_taken(i)) continue;
      if (!outside) {
        spec_.is_depthwise() ? emit_load_pixels(i) : emit_load_channels(i);
        emit_signs(loaded);
      }
      if (spec_.is_depthwise()) {
        emit_products(row, takes_padding ? vectors_.padding : vectors_.taps, i);
        continue;
      }
      for (int k_group = 0; k_group < spec_.k_groups; ++k_group) {
        emit_order(vectors_.taps, vectors_.pixel, k_group);
        emit_products(row, vectors_.taps, i * spec_.k_groups + k_group);
      }
    }
  }

  bool is_masked_ = false;  ///< whether code leaves out pixels and outputs

 private:
  bool keeps_masks() const {
    return has_avx512() && !epilogue_ && spec_.pixels() <= max_pixel_masks;
  }
  Xbyak::Address pixel_mask(int pixel) {
    return code_
        .word[place_register() + offsetof(NhwcPlace, loaded) + 2 * static_cast<size_t>(pixel)];
  }
  /// Overwrites the scratch register for the last of max_pixels.
  Xbyak::RegExp emit_pixel_offset(int pixel) {
    if (pixel == 0) return reg::from;
    if (pixel == 7) {
      code_.lea(reg::scratch, code_.ptr[reg::from + odd_steps[1]]);
      return reg::scratch + odd_steps[0] * 4;
    }
    int times = 1;
    while (pixel % (2 * times) == 0) times *= 2;
    return reg::from + odd_steps[static_cast<size_t>(pixel / times / 2)] * times;
  }
  Xbyak::Address emit_pixel_address(int pixel) { return code_.ptr[emit_pixel_offset(pixel)]; }

  void emit_padding(const Xmm& to) {
    if (has_avx512()) return code_.vmovdqa64(to, vectors_.padding);
    code_.mov(reg::scratch, argument(offsetof(GroupedNhwcArguments, padding)));
    code_.vbroadcasti128(Ymm(to.getIdx()), code_.ptr[reg::scratch]);
  }

  /// What is multiplied: u8; without VNNI, of neighbouring pixels, i16.
  void emit_signs(const Xmm& taps) {
    if (spec_.flips_input) emit_xor(taps, vectors_.flip);
    emit_split(taps, taps);
  }

  /// The bytes that an order of the panel says.
  void emit_order(const Xmm& to, const Xmm& from, int order) {
    vectors_.keeps(order) ? code_.vpshufb(to, from, vectors_.kept(order))
                          : code_.vpshufb(to, from, panel_vector(order));
  }

  /// The mask of a pixel's bytes or lanes that there are.
  Opmask emit_pixel_mask(int pixel) {
    if (keeps_masks()) return Opmask(1 + pixel);
    code_.kmovw(pixel_at_hand, pixel_mask(pixel));
    return pixel_at_hand;
  }

  /// The bytes that there are.
  void emit_load_partial(int pixel) {
    const Opmask mask = emit_pixel_mask(pixel);
    code_.vmovdqa64(low(vectors_.pixel), low(vectors_.padding));
    code_.vmovdqu8(low(vectors_.pixel) | mask, emit_pixel_address(pixel));
  }

  /// Without AVX-512: a pixel, or padding instead of one that is outside the image.
  Xbyak::RegExp emit_address(int pixel) {
    if (!is_masked_) return emit_pixel_offset(pixel);
    code_.lea(reg::scratch, emit_pixel_address(pixel));
    code_.cmp(pixel_mask(pixel), 0);
    code_.cmove(reg::scratch, argument(offsetof(GroupedNhwcArguments, padding)));
    return reg::scratch;
  }

  /// Four pixels; then channel by channel.
  void emit_load_pixels(int k_group) {
    const int first = 4 * k_group;
    const int end = std::min(first + 4, spec_.pixels());
    if (!has_avx512()) {
      emit_load_halves(first, end);
      return emit_transpose_halves();
    }
    if (is_masked_ && !spec_.is_partial) emit_padding(vectors_.taps);
    for (int pixel = first; pixel < end; ++pixel) emit_insert_pixel(pixel);
    emit_transpose();
  }

  void emit_insert_pixel(int pixel) {
    const Section load = code_.section(CodeSection::load_pixels);
    const Zmm taps(vectors_.taps.getIdx());
    const auto place = static_cast<uint8_t>(pixel % 4);
    if (is_masked_ && !spec_.is_partial) {
      const Opmask mask = emit_pixel_mask(pixel);
      return code_.vbroadcasti32x4(taps | mask, emit_pixel_address(pixel));
    }
    if (is_masked_) {
      emit_load_partial(pixel);
      place == 0 ? code_.vmovdqa64(low(taps), low(vectors_.pixel))
                 : code_.vinserti32x4(taps, taps, low(vectors_.pixel), place);
    } else {
      place == 0 ? code_.vmovdqu(low(taps), emit_pixel_address(pixel))
                 : code_.vinserti32x4(taps, taps, emit_pixel_address(pixel), place);
    }
  }

  /// Eight channels of each pixel, two pixels in 128 bits.
  void emit_load_halves(int first, int end) {
    const Section load = code_.section(CodeSection::load_pixels);
    for (int pixel = first; pixel < end; ++pixel) {
      const Xmm to = low(pixel < first + 2 ? vectors_.taps : vectors_.pixel);
      const Xbyak::Address from = code_.ptr[emit_address(pixel)];
      pixel % 2 == 0 ? code_.vmovq(to, from) : code_.vmovhps(to, to, from);
    }
    const Ymm both(vectors_.taps.getIdx());
    if (end - first > 2) code_.vinserti128(both, both, low(vectors_.pixel), 1);
  }

  /// Bytes of pixels to bytes of channels.
  void emit_transpose() {
    const Xmm& taps = vectors_.taps;
    const Xmm& order = vectors_.order;
    if (has_vbmi(target_)) {
      const bool keeps = spec_.repeats && vectors_.keeps(0);
      if (spec_.repeats && !keeps) code_.vmovups(order, panel_vector(0));
      return code_.vpermb(taps, keeps ? vectors_.kept(0) : order, taps);
    }
    if (spec_.repeats) emit_order(taps, taps, 0);
    code_.vpermd(Zmm(taps.getIdx()), Zmm(order.getIdx()), taps);
    code_.vpshufb(taps, taps, vectors_.transposed);
  }

  /// Gathers two pixels in each 128 bits alike.
  void emit_transpose_halves() {
    const Ymm taps(vectors_.taps.getIdx());
    spec_.repeats ? emit_order(taps, taps, 0)
                  : code_.vpshufb(taps, taps, code_.constant_of(twice(paired_bytes)));
    constexpr uint8_t halves_of_both = 0b11'01'10'00;
    code_.vpermq(taps, taps, halves_of_both);
    code_.vpshufb(taps, taps, code_.constant_of(twice(paired_i16)));
  }

  /// Channels of a pixel, the same in every 128 bits.
  void emit_load_channels(int pixel) {
    const Section load = code_.section(CodeSection::load_pixels);
    const Zmm to(vectors_.pixel.getIdx());
    if (!has_avx512()) {
      code_.vbroadcasti128(Ymm(to.getIdx()), code_.ptr[emit_address(pixel)]);
    } else if (spec_.is_partial) {
      emit_load_partial(pixel);
      code_.vshufi32x4(to, to, to, 0);
    } else if (is_masked_) {
      const Opmask mask = emit_pixel_mask(pixel);
      emit_padding(to);
      code_.vbroadcasti32x4(to | mask, emit_pixel_address(pixel));
    } else {
      code_.vbroadcasti32x4(to, emit_pixel_address(pixel));
    }
  }
};

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
      emit_each(CodeSection::column_loop, place_register(), sizeof(NhwcPlace),
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
    emit_each(CodeSection::channel_loop, reg::vector, sizeof(NhwcVector),
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
    if (!has_avx512() && spec_.masks_lanes) return emit_masked_store_of_8(sum, to);
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

  /// Without AVX-512.
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
