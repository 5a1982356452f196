// SPDX-License-Identifier: Apache-2.0
// The rows of a place in depthwise kernels of channels-last layouts: loads, products, stores.
#include "jit/conv/depthwise_nhwc_emitter.hpp"

namespace castor::jit::depthwise_nhwc {

/// All rows of a place and of 16 channels.
void NhwcEmitter::emit_block() {
  if (form_.subtracts_window_sums) {
    for (int output = 0; output < form_.outputs; ++output) {
      const Zmm sum = vectors_.window_sum(output);
      code_.vpxord(sum, sum, sum);
    }
  }
  for (int row = 0; row < form_.input_rows(block_); ++row) {
    if (walk().first_output(row) <= walk().last_output(row)) emit_row(row);
    code_.add(reg::from, reg::row_step);
    if (const int output_row = walk().done_by(row); output_row >= 0) emit_stores(output_row);
  }
}

/// One input row: into the sums of all outputs that take it.
void NhwcEmitter::emit_row(int row) {
  begin_sums(row);
  if (is_outside(row)) prepare_taps(vectors_.padding);
  const bool as_it_is = !form_.flips_input && !has_words(target_);
  const Zmm& taps = is_outside(row) && as_it_is ? vectors_.padding : vectors_.quad;
  for (int quad = 0; quad < form_.quads(); ++quad) {
    if (!is_outside(row)) {
      load_quad(quad);
      prepare_taps(vectors_.quad);
    }
    multiply(row, taps, quad);
  }
}

/// Sums of the output row that this row is the first one of. What window sums have added up to is
/// added here and subtracted at the end, so that the rows between remain.
void NhwcEmitter::begin_sums(int row) {
  const int output_row = walk().begun_by(row);
  if (output_row < 0) return;
  for (int output = 0; output < form_.outputs; ++output) {
    const Zmm sum = vectors_.sum(output_row, output);
    if (form_.subtracts_window_sums) {
      code_.vpaddd(sum, vectors_.window_sum(output), code_.ptr[reg::start]);
    } else {
      code_.vmovups(sum, code_.ptr[reg::start]);
    }
  }
}

/// Four pixels, 16 bytes each; then channel by channel.
void NhwcEmitter::load_quad(int quad) {
  if (guards_ && !form_.is_partial) code_.vmovdqa64(vectors_.quad, vectors_.padding);
  for (int i = 0; i < pixels_of(quad); ++i) load_pixel(4 * quad + i);
  transpose();
}

void NhwcEmitter::load_pixel(int pixel) {
  if (guards_) {
    load_guarded_pixel(pixel);
  } else {
    load_inner_pixel(pixel);
  }
}

void NhwcEmitter::load_inner_pixel(int pixel) {
  const Zmm& quad = vectors_.quad;
  const auto place = static_cast<uint8_t>(pixel % 4);
  if (place == 0) return code_.vmovdqu(low(quad), pixel_address(pixel));
  code_.vinserti32x4(quad, quad, pixel_address(pixel), place);
}

void NhwcEmitter::load_guarded_pixel(int pixel) {
  const Zmm& quad = vectors_.quad;
  const Opmask mask = keeps_masks() ? Opmask(1 + pixel) : pixel_at_hand;
  const size_t at = offsetof(DepthwisePlace, loaded) + 2 * static_cast<size_t>(pixel);
  if (!keeps_masks()) code_.kmovw(mask, of_place(at));
  if (!form_.is_partial) return code_.vbroadcasti32x4(quad | mask, pixel_address(pixel));
  code_.vmovdqa64(low(vectors_.pixel), low(vectors_.padding));
  code_.vmovdqu8(low(vectors_.pixel) | mask, pixel_address(pixel));
  const auto place = static_cast<uint8_t>(pixel % 4);
  if (place == 0) return code_.vmovdqa64(low(quad), low(vectors_.pixel));
  code_.vinserti32x4(quad, quad, low(vectors_.pixel), place);
}

/// Bytes of pixels to bytes of channels.
void NhwcEmitter::transpose() {
  const Zmm& quad = vectors_.quad;
  if (has_vbmi(target_)) return code_.vpermb(quad, vectors_.order, quad);
  code_.vpermd(quad, vectors_.order, quad);
  code_.vpshufb(quad, quad, vectors_.transposed);
}

/// What is multiplied: bytes flipped to unsigned ones; without VNNI words, the even bytes and the
/// odd ones.
void NhwcEmitter::prepare_taps(const Zmm& quad) {
  const Zmm& taps = vectors_.quad;
  if (form_.flips_input) code_.vpxord(taps, quad, vectors_.flip);
  if (!has_words(target_)) return;
  const Zmm& bytes = form_.flips_input ? taps : quad;
  code_.vpsrlw(vectors_.odd_taps, bytes, 8);
  code_.vpandd(taps, bytes, vectors_.even_bytes);
}

/// A quad of a row: into the sums of outputs, and into window sums.
void NhwcEmitter::multiply(int row, const Zmm& taps, int quad) {
  const int products = form_.products();
  for (int output = 0; output < form_.outputs; ++output) {
    if (!form_.takes(output, quad)) continue;
    const int product = form_.products_before(quad, output);
    if (form_.subtracts_window_sums) {
      multiply_add(vectors_.window_sum(output), taps, form_.rows * products + product);
    }
    for (int i = walk().first_output(row); i <= walk().last_output(row); ++i) {
      const int tap = row - i * form_.row_stride;
      multiply_add(vectors_.sum(i, output), taps, tap * products + product);
    }
  }
}

/// sum += taps times the weights of that number.
void NhwcEmitter::multiply_add(const Zmm& sum, const Zmm& taps, int weight) {
  if (!has_words(target_)) return multiply_add_vector(sum, taps, weight);
  multiply_add_vector(sum, taps, 2 * weight);
  multiply_add_vector(sum, vectors_.odd_taps, 2 * weight + 1);
}

void NhwcEmitter::multiply_add_vector(const Zmm& sum, const Zmm& taps, int weight) {
  const bool keeps = vectors_.keeps(weight);
  const Zmm& product = vectors_.product;
  if (form_.signed_input) {
    if (!keeps) code_.vmovups(product, weight_address(weight));
    code_.vpdpbusd(sum, keeps ? vectors_.weight(weight) : product, taps);
  } else if (keeps) {
    emit_dot_product(code_, target_, sum, taps, vectors_.weight(weight), product);
  } else if (has_words(target_)) {
    code_.vpmaddwd(product, taps, weight_address(weight));
    code_.vpaddd(sum, sum, product);
  } else {
    code_.vpdpbusd(sum, taps, weight_address(weight));
  }
}

/// An output row.
void NhwcEmitter::emit_stores(int row) {
  for (int output = 0; output < form_.outputs; ++output) {
    const Zmm sum = vectors_.sum(row, output);
    if (form_.subtracts_window_sums) code_.vpsubd(sum, sum, vectors_.window_sum(output));
    if (epilogue_) {
      emit_store_by_epilogue(sum, output);
    } else {
      emit_store(sum, output);
    }
  }
  code_.add(reg::to, argument(offsetof(DepthwiseNhwcArguments, output_row_step)));
}

void NhwcEmitter::emit_store(const Zmm& sum, int output) {
  if (output > 0) code_.lea(reg::stored_at, output_address(output));
  const Reg64& to = output > 0 ? reg::stored_at : reg::to;
  if (guards_) {
    const size_t at = offsetof(DepthwisePlace, stored) + 2 * static_cast<size_t>(output);
    code_.kmovw(stored, of_place(at));
    code_.vmovdqu32(code_.ptr[to] | stored, sum);
  } else {
    code_.vmovups(code_.ptr[to], sum);
  }
  code_.prefetchw(code_.ptr[to + reg::prefetched]);
}

/// By a call of the routine, where the output is there.
void NhwcEmitter::emit_store_by_epilogue(const Zmm& sum, int output) {
  Xbyak::Label done;
  if (guards_) {
    const size_t at = offsetof(DepthwisePlace, stored) + 2 * static_cast<size_t>(output);
    code_.cmp(code_.word[reg::place + at], 0);
    code_.je(done, Xbyak::CodeGenerator::T_NEAR);
  }
  code_.vmovdqa64(vectors_.quad, sum);
  code_.mov(reg::pixel, reg::to);
  for (int i = 0; i < output; ++i) code_.add(reg::pixel, reg::output_step);
  code_.call(routine_);
  code_.L(done);
}

}  // namespace castor::jit::depthwise_nhwc
