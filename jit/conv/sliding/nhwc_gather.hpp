// SPDX-License-Identifier: Apache-2.0
// What grouped kernels in NHWC take from a row of pixels: registers, addresses and k groups. Inside
// jit/conv only.
#pragma once

#include <algorithm>
#include <array>

#include "jit/conv/sliding/sliding_emitter.hpp"

namespace castor::jit::sliding {

/// Registers with one meaning throughout the code.
namespace nhwc_reg {
inline const Reg64 from(Operand::RSI);  ///< the next row at the place
inline const Reg64 to(Operand::RDX);    ///< the next output row at the place
inline const Reg64 output_step(Operand::R8);
inline const Reg64 place(Operand::RBP);  ///< elsewhere with a frame pointer
inline const Reg64 vector(Operand::R10);
inline const Reg64 start(Operand::R14);     ///< of the vector
inline const Reg64 row_step(Operand::R15);  ///< without a frame pointer
inline const Reg64 thrice_output_step(Operand::RCX);
inline const Reg64 prefetched(Operand::RBX);
inline const Reg64 scratch(Operand::RAX);
// Only with an epilogue, which has RAX besides.
inline const Reg64 pixel(Operand::RCX);    ///< of the sums
inline const Reg64 channel(Operand::RBX);  ///< their first one
}  // namespace nhwc_reg

/// One, three and five times the step from a pixel to the next.
inline const std::array odd_steps = {Reg64(Operand::R11), Reg64(Operand::R12), Reg64(Operand::R13)};
/// Masks: of pixels, where there are enough for all; else of the one at hand. An
/// epilogue leaves only one as it is, that of its lanes.
inline constexpr int max_pixel_masks = 6;
inline const Opmask pixel_at_hand(2);

/// Within 128 bits: four i16, then four of the next pixels; to pairs of them.
inline constexpr std::array<uint8_t, 16> paired_i16 = {0, 1, 8,  9,  2, 3, 10, 11,
                                                       4, 5, 12, 13, 6, 7, 14, 15};
/// Within 128 bits: eight bytes of a pixel, then of the next one; to pairs of them.
inline constexpr std::array<uint8_t, 16> paired_bytes = {0, 8,  1, 9,  2, 10, 3, 11,
                                                         4, 12, 5, 13, 6, 14, 7, 15};

inline std::array<uint8_t, 32> twice(const std::array<uint8_t, 16>& order) {
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

inline Xmm low(const Xmm& vector) { return Xmm(vector.getIdx()); }

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

/// Addresses of a row's pixels, and their masks.
class NhwcPixels : public SlidingEmitter<GroupedNhwcSpec, NhwcRegisters> {
 protected:
  using SlidingEmitter::SlidingEmitter;
  ~NhwcPixels() = default;

  /// With a frame pointer it is where row steps are otherwise, which the arguments have.
  const Reg64& place_register() const {
    return code_.has_frame_pointer() ? nhwc_reg::row_step : nhwc_reg::place;
  }
  Xbyak::Address row_step_argument() { return argument(offsetof(GroupedNhwcArguments, row_step)); }
  Xbyak::Address place_field(size_t offset) { return code_.ptr[place_register() + offset]; }

  void emit_pixel_masks() {
    const Section masks = code_.section(CodeSection::gather);
    for (int pixel = 0; keeps_masks() && pixel < spec_.pixels(); ++pixel) {
      code_.kmovw(Opmask(1 + pixel), pixel_mask(pixel));
    }
  }

  /// Overwrites the scratch register for the last of max_pixels.
  Xbyak::RegExp emit_pixel_offset(int pixel) {
    if (pixel == 0) return nhwc_reg::from;
    if (pixel == 7) {
      code_.lea(nhwc_reg::scratch, code_.ptr[nhwc_reg::from + odd_steps[1]]);
      return nhwc_reg::scratch + odd_steps[0] * 4;
    }
    int times = 1;
    while (pixel % (2 * times) == 0) times *= 2;
    return nhwc_reg::from + odd_steps[static_cast<size_t>(pixel / times / 2)] * times;
  }
  Xbyak::Address emit_pixel_address(int pixel) { return code_.ptr[emit_pixel_offset(pixel)]; }
  /// Where a mask says what there is: the address is in the image, whatever the pixel. Overwrites
  /// the scratch register.
  Xbyak::Address emit_masked_address(int pixel) {
    const size_t offset = offsetof(NhwcPlace, offsets) + 8 * static_cast<size_t>(pixel);
    code_.mov(nhwc_reg::scratch, place_field(offset));
    return code_.ptr[nhwc_reg::from + nhwc_reg::scratch];
  }

  /// The mask of a pixel's bytes or lanes that there are.
  Opmask emit_pixel_mask(int pixel) {
    if (keeps_masks()) return Opmask(1 + pixel);
    code_.kmovw(pixel_at_hand, pixel_mask(pixel));
    return pixel_at_hand;
  }

  /// Without AVX-512: a pixel, or padding instead of one that is outside the image.
  Xbyak::RegExp emit_address(int pixel) {
    if (!is_masked_) return emit_pixel_offset(pixel);
    code_.lea(nhwc_reg::scratch, emit_pixel_address(pixel));
    code_.cmp(pixel_mask(pixel), 0);
    code_.cmove(nhwc_reg::scratch, argument(offsetof(GroupedNhwcArguments, padding)));
    return nhwc_reg::scratch;
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
};

/// The gather: the k groups of a row at a place.
class NhwcGather : public NhwcPixels {
 protected:
  using NhwcPixels::NhwcPixels;
  ~NhwcGather() = default;

  void emit_gather_constants() {
    const Section constants = code_.section(CodeSection::constants);
    emit_flip_constant();
    emit_split_constant();
    if (!has_avx512()) return;
    code_.mov(nhwc_reg::scratch, argument(offsetof(GroupedNhwcArguments, padding)));
    code_.vbroadcasti32x4(Zmm(vectors_.padding.getIdx()), code_.ptr[nhwc_reg::scratch]);
    if (!spec_.is_depthwise()) return;
    if (has_vbmi(target_)) {
      return code_.vmovups(vectors_.order, code_.constant_of(transposing_order<uint8_t, 64>()));
    }
    code_.vmovups(vectors_.order, code_.constant_of(transposing_order<uint32_t, 16>()));
    code_.vbroadcasti32x4(Zmm(vectors_.transposed.getIdx()),
                          code_.constant_of(transposing_order<uint8_t, 16>()));
  }

  void emit_row(int row) override {
    const Section gather = code_.section(CodeSection::gather);
    const bool outside = spec_.is_outside(range_, row);
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

 private:
  void emit_padding(const Xmm& to) {
    if (has_avx512()) return code_.vmovdqa64(to, vectors_.padding);
    code_.mov(nhwc_reg::scratch, argument(offsetof(GroupedNhwcArguments, padding)));
    code_.vbroadcasti128(Ymm(to.getIdx()), code_.ptr[nhwc_reg::scratch]);
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

  /// The bytes that there are.
  void emit_load_partial(int pixel) {
    const Opmask mask = emit_pixel_mask(pixel);
    code_.vmovdqa64(low(vectors_.pixel), low(vectors_.padding));
    code_.vmovdqu8(low(vectors_.pixel) | mask, emit_masked_address(pixel));
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
      return code_.vbroadcasti32x4(taps | mask, emit_masked_address(pixel));
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
      code_.vbroadcasti32x4(to | mask, emit_masked_address(pixel));
    } else {
      code_.vbroadcasti32x4(to, emit_pixel_address(pixel));
    }
  }
};

}  // namespace castor::jit::sliding
