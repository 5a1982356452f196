// SPDX-License-Identifier: Apache-2.0
// What grouped kernels of channels-last layouts read: pixels, as quads.
#include "jit/conv/sliding/nhwc_emitter.hpp"

namespace castor::jit::sliding {

namespace {

/// Within 128 bits: four words, then four of the next pixels; to pairs of them.
constexpr std::array<uint8_t, 16> paired_words = {0, 1, 8,  9,  2, 3, 10, 11,
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

}  // namespace

void NhwcEmitter::load_padding(const Xmm& to) {
  if (has_avx512()) return code_.vmovdqa64(to, vectors_.padding);
  code_.mov(reg::scratch, argument(offsetof(GroupedNhwcArguments, padding)));
  code_.vbroadcasti128(Ymm(to.getIdx()), code_.ptr[reg::scratch]);
}

/// Four pixels; then channel by channel.
void NhwcEmitter::load_quad(int quad) {
  if (!has_avx512()) {
    load_halves(quad);
    return transpose_halves();
  }
  if (guards_ && !form_.is_partial) load_padding(vectors_.quad);
  for (int i = 0; i < pixels_of(quad); ++i) {
    guards_ ? load_guarded_pixel(4 * quad + i) : load_inner_pixel(4 * quad + i);
  }
  transpose();
}

void NhwcEmitter::load_inner_pixel(int pixel) {
  const Zmm quad(vectors_.quad.getIdx());
  const auto place = static_cast<uint8_t>(pixel % 4);
  if (place == 0) return code_.vmovdqu(low(quad), pixel_address(pixel));
  code_.vinserti32x4(quad, quad, pixel_address(pixel), place);
}

void NhwcEmitter::load_guarded_pixel(int pixel) {
  const Zmm quad(vectors_.quad.getIdx());
  if (!form_.is_partial) {
    const Opmask mask = loaded_mask(pixel);
    return code_.vbroadcasti32x4(quad | mask, pixel_address(pixel));
  }
  load_partial_pixel(pixel);
  const auto place = static_cast<uint8_t>(pixel % 4);
  if (place == 0) return code_.vmovdqa64(low(quad), low(vectors_.pixel));
  code_.vinserti32x4(quad, quad, low(vectors_.pixel), place);
}

/// The mask of a pixel's bytes that there are.
Opmask NhwcEmitter::loaded_mask(int pixel) {
  if (keeps_masks()) return Opmask(1 + pixel);
  code_.kmovw(pixel_at_hand, of_place(loaded_at(pixel)));
  return pixel_at_hand;
}

/// The bytes that there are.
void NhwcEmitter::load_partial_pixel(int pixel) {
  const Opmask mask = loaded_mask(pixel);
  code_.vmovdqa64(low(vectors_.pixel), low(vectors_.padding));
  code_.vmovdqu8(low(vectors_.pixel) | mask, pixel_address(pixel));
}

/// Of a pixel, or of padding instead of one that is outside the image.
Xbyak::RegExp NhwcEmitter::guarded_address(int pixel) {
  if (!guards_) return pixel_place(pixel);
  code_.lea(reg::scratch, pixel_address(pixel));
  code_.cmp(code_.word[reg::place + loaded_at(pixel)], 0);
  code_.cmove(reg::scratch, argument(offsetof(GroupedNhwcArguments, padding)));
  return reg::scratch;
}

/// Eight channels of each pixel, two pixels in 128 bits.
void NhwcEmitter::load_halves(int quad) {
  const int pixels = pixels_of(quad);
  for (int i = 0; i < pixels; ++i) {
    const Xmm to = low(i < 2 ? vectors_.quad : vectors_.pixel);
    const Xbyak::Address from = code_.ptr[guarded_address(4 * quad + i)];
    i % 2 == 0 ? code_.vmovq(to, from) : code_.vmovhps(to, to, from);
  }
  if (pixels > 2) {
    const Ymm both(vectors_.quad.getIdx());
    code_.vinserti128(both, both, low(vectors_.pixel), 1);
  }
}

/// Bytes of pixels to bytes of channels.
void NhwcEmitter::transpose() {
  const Xmm& quad = vectors_.quad;
  const Xmm& order = vectors_.order;
  if (has_vbmi(target_)) {
    if (!form_.repeats) return code_.vpermb(quad, order, quad);
    if (vectors_.keeps(0)) return code_.vpermb(quad, vectors_.kept(0), quad);
    code_.vmovups(order, of_panel(0));
    return code_.vpermb(quad, order, quad);
  }
  if (form_.repeats) {
    vectors_.keeps(0) ? code_.vpshufb(quad, quad, vectors_.kept(0))
                      : code_.vpshufb(quad, quad, of_panel(0));
  }
  code_.vpermd(Zmm(quad.getIdx()), Zmm(order.getIdx()), quad);
  code_.vpshufb(quad, quad, vectors_.transposed);
}

/// The same of two pixels in each 128 bits.
void NhwcEmitter::transpose_halves() {
  const Ymm quad(vectors_.quad.getIdx());
  if (!form_.repeats) {
    code_.vpshufb(quad, quad, code_.constant_of(twice(paired_bytes)));
  } else if (vectors_.keeps(0)) {
    code_.vpshufb(quad, quad, vectors_.kept(0));
  } else {
    code_.vpshufb(quad, quad, of_panel(0));
  }
  constexpr uint8_t halves_of_both = 0b11'01'10'00;
  code_.vpermq(quad, quad, halves_of_both);
  code_.vpshufb(quad, quad, code_.constant_of(twice(paired_words)));
}

/// Channels of a pixel, the same in every 128 bits.
void NhwcEmitter::load_channels(int pixel) {
  const Zmm to(vectors_.pixel.getIdx());
  if (!has_avx512()) {
    code_.vbroadcasti128(Ymm(to.getIdx()), code_.ptr[guarded_address(pixel)]);
  } else if (form_.is_partial) {
    load_partial_pixel(pixel);
    code_.vshufi32x4(to, to, to, 0);
  } else if (guards_) {
    const Opmask mask = loaded_mask(pixel);
    load_padding(to);
    code_.vbroadcasti32x4(to | mask, pixel_address(pixel));
  } else {
    code_.vbroadcasti32x4(to, pixel_address(pixel));
  }
}

}  // namespace castor::jit::sliding
