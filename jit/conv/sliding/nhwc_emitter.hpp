// SPDX-License-Identifier: Apache-2.0
// The code of grouped kernels in NHWC: output channels in the lanes. Inside jit/conv only.
#pragma once

#include <array>
#include <memory>

#include "jit/conv/epilogue/epilogue_emitter.hpp"
#include "jit/conv/sliding/sliding_emitter.hpp"

namespace castor::jit::sliding {

/// Registers with one meaning throughout the code.
namespace reg {
inline const Reg64 arguments(Operand::RDI);
inline const Reg64 from(Operand::RSI);  ///< the next row at the place
inline const Reg64 to(Operand::RDX);    ///< the next output row at the place
inline const Reg64 output_step(Operand::R8);
inline const Reg64 place(Operand::RBP);
inline const Reg64 vector(Operand::R10);
inline const Reg64 row_step(Operand::R15);
inline const Reg64 thrice_output_step(Operand::RCX);
inline const Reg64 prefetched(Operand::RBX);
inline const Reg64 scratch(Operand::RAX);
// Only with an epilogue, which has RAX besides.
inline const Reg64 pixel(Operand::RCX);    ///< of the sums
inline const Reg64 channel(Operand::RBX);  ///< their first one
}  // namespace reg

/// One, three, five and seven times the step from a pixel to the next.
inline const std::array odd_steps = {Reg64(Operand::R11), Reg64(Operand::R12), Reg64(Operand::R13),
                                     Reg64(Operand::R14)};
inline const std::array saved_registers = {reg::channel, reg::place,   odd_steps[1],
                                           odd_steps[2], odd_steps[3], reg::row_step};

/// Masks: of pixels, where there are enough for all of a place; else of the one at hand. An
/// epilogue leaves only one as it is, that of its lanes.
inline constexpr int max_pixel_masks = 6;
inline const Opmask pixel_at_hand(2);
inline const Opmask stored(7);
inline const Opmask epilogue_lanes(1);

/// Of the stack, with an epilogue: where the caller's stack is; then the epilogue's frame. In its
/// routine there is a return address below all.
inline constexpr int stack_bytes = 64;
inline constexpr int return_bytes = 8;

/// The vector registers of one kernel, given out in the order of the members.
class NhwcRegisters : public VectorPool {
 public:
  /// `spare`: registers that are left for an epilogue.
  NhwcRegisters(const GroupedNhwcForm& form, const Target& target, int spare)
      : VectorPool(target, spare), form_(form) {
    const bool has_avx512 = target.has_avx512();
    quad = take();
    if (has_avx512) padding = take();
    if (has_avx512 && form.parts == 0) order = take();
    if (has_avx512 && form.parts == 0 && !has_vbmi(target)) transposed = take();
    if (form.flips_input) flip = take();
    if (form.parts > 0 || form.is_partial || !has_avx512) pixel = take();
    if (form.vectors_of_weight() > 1) {
      odd_taps = take();
      even_bytes = take();
    }
    if (form.has_words() || form.signed_input) product = take();
    if (form.subtracts_window_sums) first_window_sum_ = take(form.outputs);
    first_sum_ = take(form.outputs * form.sum_rows());
    fit = room() >= 0;
    panel = form.panel_vectors();
    if (!form.subtracts_window_sums && !form.has_words()) panel -= form.zero_points();
    kept_ = fit ? std::min(panel, room()) : 0;
    if (kept_ > 0) first_kept_ = take(kept_);
  }

  Xmm quad, padding, order, transposed, flip, pixel, odd_taps, even_bytes, product;
  bool fit = false;
  int panel = 0;  ///< vectors of a panel that the code reads

  Xmm window_sum(int output) const { return vector(first_window_sum_.getIdx() + output); }
  Xmm row_sum(int output) const { return window_sum(output); }
  /// Of an output row with that number; they take turns.
  Xmm sum(int row, int output) const {
    return vector(first_sum_.getIdx() + row % form_.sum_rows() * form_.outputs + output);
  }
  /// Some vectors of the panel stay in registers, others are read each time.
  bool keeps(int index) const { return index < kept_; }
  Xmm kept(int index) const { return vector(first_kept_.getIdx() + index); }

 private:
  const GroupedNhwcForm& form_;
  Xmm first_window_sum_, first_sum_, first_kept_;
  int kept_ = 0;
};

/// Emits one kernel. The methods are in the order of the code that they emit.
class NhwcEmitter final : SlidingEmitter<GroupedNhwcForm, NhwcRegisters> {
 public:
  NhwcEmitter(const GroupedNhwcForm& form, const Target& target, const TileEpilogue* epilogue,
              std::span<uint8_t> buffer)
      : SlidingEmitter(form, target, vectors_for(epilogue), buffer) {
    if (epilogue == nullptr) return;
    epilogue_ =
        std::make_unique<EpilogueEmitter>(code_, target, *epilogue,
                                          EpilogueUse{.frame = stack_bytes + return_bytes,
                                                      .taken = {.vectors = vectors_.taken()},
                                                      .addresses = AddressesIn::pixels,
                                                      .element = reg::channel,
                                                      .position = reg::pixel});
  }

  bool fits_frame() const { return !epilogue_ || epilogue_->fits_frame(); }

  MachineCode emit() {
    emit_entry();
    emit_any_block(argument(offsetof(GroupedNhwcArguments, block)), [&] { emit_places(); });
    emit_exit();
    return code_.finish();
  }

 private:
  void emit_entry();
  void enter_epilogue();
  void emit_constants();
  void emit_orders();
  void emit_places();
  void emit_masks();
  void emit_channels();
  void emit_vector_begin();
  void load_panel();
  void emit_first_sum(const Xmm& sum, int output) override;
  void emit_row(int row) override;
  void emit_pixels_of_channel(int row);
  void emit_channels_of_pixels(int row);
  void load_padding(const Xmm& to);
  void load_quad(int quad);
  void load_inner_pixel(int pixel);
  void load_guarded_pixel(int pixel);
  void load_halves(int quad);
  Opmask loaded_mask(int pixel);
  void load_partial_pixel(int pixel);
  Xbyak::RegExp guarded_address(int pixel);
  void transpose();
  void transpose_halves();
  void load_channels(int pixel);
  void prepare_taps(const Xmm& quad);
  void emit_stores(int row) override;
  void emit_store(const Xmm& sum, int output);
  void emit_stored_lanes(int output);
  void emit_whole_store(const Xmm& sum, const Xbyak::Address& to);
  void emit_masked_store_of_8(const Xmm& sum, const Xbyak::Address& to);
  void emit_store_by_epilogue(const Xmm& sum, int output);
  void emit_exit();

  bool keeps_masks() const {
    return has_avx512() && !epilogue_ && form_.pixels() <= max_pixel_masks;
  }
  bool is_outside(int row) const {
    return row < block_.above || row >= form_.input_rows(block_) - block_.below;
  }
  int vector_bytes() const { return target_.vector_bits() / 8; }
  Xbyak::Address argument(size_t offset) { return code_.qword[reg::arguments + offset]; }
  Xbyak::Address of_place(size_t offset) { return code_.ptr[reg::place + offset]; }
  Xbyak::Address of_vector(size_t offset) { return code_.ptr[reg::vector + offset]; }
  Xbyak::Address of_panel(int index) { return code_.ptr[weights + vector_bytes() * index]; }
  static size_t loaded_at(int pixel) {
    return offsetof(NhwcPlace, loaded) + 2 * static_cast<size_t>(pixel);
  }
  static size_t stored_at(int output) {
    return offsetof(NhwcPlace, stored) + 2 * static_cast<size_t>(output);
  }
  static Xbyak::RegExp pixel_place(int pixel) {
    if (pixel == 0) return reg::from;
    int times = 1;
    while (pixel % (2 * times) == 0) times *= 2;
    return reg::from + odd_steps[static_cast<size_t>(pixel / times / 2)] * times;
  }
  Xbyak::Address pixel_address(int pixel) { return code_.ptr[pixel_place(pixel)]; }
  Xbyak::Address output_address(int output) {
    if (output == 0) return code_.ptr[reg::to];
    if (output == 3) return code_.ptr[reg::to + reg::thrice_output_step];
    return code_.ptr[reg::to + reg::output_step * output];
  }
  /// Pixels of a quad.
  int pixels_of(int quad) const { return std::min(form_.pixels() - 4 * quad, 4); }
  static Xmm low(const Xmm& vector) { return Xmm(vector.getIdx()); }

  bool guards_ = false;                        ///< whether code leaves out pixels and outputs
  std::unique_ptr<EpilogueEmitter> epilogue_;  ///< null where there is none
  Xbyak::Label channels_routine_;              ///< of the epilogue
  Xbyak::Label routine_;                       ///< the same for a vector of sums
};

}  // namespace castor::jit::sliding
