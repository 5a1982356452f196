// SPDX-License-Identifier: Apache-2.0
// The rows of a place in grouped kernels of channels-last layouts: products and stores.
#include "jit/conv/emit_dot_product.hpp"
#include "jit/conv/grouped_nhwc_emitter.hpp"

namespace castor::jit::grouped_nhwc {

/// All rows of a place and of a vector of channels.
void NhwcEmitter::emit_block() {
  if (form_.subtracts_window_sums) {
    for (int output = 0; output < form_.outputs; ++output) {
      const Xmm sum = vectors_.window_sum(output);
      has_avx512() ? code_.vpxord(sum, sum, sum) : code_.vpxor(sum, sum, sum);
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
  form_.parts == 0 ? emit_pixels_of_channel(row) : emit_channels_of_pixels(row);
}

/// Sums of the output row that this row is the first one of. What window sums have added up to is
/// added here and subtracted at the end, so that the rows between remain.
void NhwcEmitter::begin_sums(int row) {
  const int output_row = walk().begun_by(row);
  if (output_row < 0) return;
  for (int output = 0; output < form_.outputs; ++output) {
    const Xmm sum = vectors_.sum(output_row, output);
    const Xbyak::Address start = of_vector(offsetof(NhwcVector, start));
    if (form_.subtracts_window_sums) {
      code_.vpaddd(sum, vectors_.window_sum(output), start);
    } else {
      code_.vmovups(sum, start);
    }
  }
}

/// Quads are four neighbouring pixels.
void NhwcEmitter::emit_pixels_of_channel(int row) {
  const bool as_it_is = !form_.flips_input && !has_words(target_) && has_avx512();
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
    multiply(row, taps, quad);
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
                           : code_.vpshufb(vectors_.quad, channels, of_record(part));
      multiply(row, vectors_.quad, pixel * form_.parts + part);
    }
  }
}

/// What is multiplied: bytes flipped to unsigned ones; without VNNI, of neighbouring pixels words,
/// the even bytes and the odd ones.
void NhwcEmitter::prepare_taps(const Xmm& taps) {
  if (form_.flips_input) {
    has_avx512() ? code_.vpxord(taps, taps, vectors_.flip) : code_.vpxor(taps, taps, vectors_.flip);
  }
  if (vectors_of_weight(form_, target_) == 1) return;
  code_.vpsrlw(vectors_.odd_taps, taps, 8);
  has_avx512() ? code_.vpandd(taps, taps, vectors_.even_bytes)
               : code_.vpand(taps, taps, vectors_.even_bytes);
}

/// A quad of a row: into the sums of outputs, and into window sums.
void NhwcEmitter::multiply(int row, const Xmm& taps, int quad) {
  const int weights = form_.row_weights();
  for (int output = 0; output < form_.outputs; ++output) {
    if (!form_.takes(output, quad)) continue;
    const int weight = form_.weight_of(output, quad);
    if (form_.subtracts_window_sums) {
      multiply_add(vectors_.window_sum(output), taps,
                   form_.rows * weights + form_.zero_point_of(output, quad));
    }
    for (int i = walk().first_output(row); i <= walk().last_output(row); ++i) {
      const int tap = row - i * form_.row_stride;
      multiply_add(vectors_.sum(i, output), taps, tap * weights + weight);
    }
  }
}

/// sum += taps times the weights of that number.
void NhwcEmitter::multiply_add(const Xmm& sum, const Xmm& taps, int weight) {
  const int orders = form_.orders();
  if (vectors_of_weight(form_, target_) == 1)
    return multiply_add_vector(sum, taps, orders + weight);
  multiply_add_vector(sum, taps, orders + 2 * weight);
  multiply_add_vector(sum, vectors_.odd_taps, orders + 2 * weight + 1);
}

/// `index` in the record.
void NhwcEmitter::multiply_add_vector(const Xmm& sum, const Xmm& taps, int index) {
  const bool keeps = vectors_.keeps(index);
  const Xmm& product = vectors_.product;
  const auto encoding = has_avx512() ? Xbyak::EvexEncoding : Xbyak::VexEncoding;
  if (form_.signed_input) {
    if (!keeps) code_.vmovups(product, of_record(index));
    code_.vpdpbusd(sum, keeps ? vectors_.kept(index) : product, taps, encoding);
  } else if (keeps) {
    emit_dot_product(code_, target_, sum, taps, vectors_.kept(index), product);
  } else if (has_words(target_)) {
    code_.vpmaddwd(product, taps, of_record(index));
    code_.vpaddd(sum, sum, product);
  } else {
    code_.vpdpbusd(sum, taps, of_record(index), encoding);
  }
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

}  // namespace castor::jit::grouped_nhwc
