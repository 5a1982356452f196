// SPDX-License-Identifier: Apache-2.0
// The rows of a block in depthwise kernels: loads, shuffles, products, stores.
#include "jit/conv/depthwise_emitter.hpp"

namespace castor::jit::depthwise {

/// How far ahead lines of the input are asked for, where few sums are made of a row: bytes.
constexpr int prefetched_input = 4096;

/// All rows at one column position.
void DepthwiseEmitter::emit_block() {
  if (form_.sums_windows()) {
    code_.vpxord(vectors_.window_sum, vectors_.window_sum, vectors_.window_sum);
  }
  for (int row = 0; row < form_.input_rows(block_); ++row) {
    if (walk().first_output(row) <= walk().last_output(row)) emit_row(row);
    code_.add(reg::from, reg::row_step);
    if (const int output = walk().done_by(row); output >= 0) emit_store(output);
  }
  if (epilogue_) epilogue_->flush();
}

/// One input row: into the sums of all outputs that take it.
void DepthwiseEmitter::emit_row(int row) {
  const bool outside = place_of(row) == Place::outside;
  begin_sums(row);
  if (form_.sums_windows()) code_.vmovdqa64(vectors_.row_sum, vectors_.row_start);
  if (outside) split_words(vectors_.padding);
  for (int dword = 0; dword < form_.dwords; ++dword) {
    if (!outside) {
      if (dword < sources()) load_source(dword, row);
      shuffle(dword);
    }
    const bool takes_padding = outside && !has_words(target_);
    multiply(row, takes_padding ? vectors_.padding : vectors_.taps, dword);
  }
  if (form_.sums_windows()) {
    code_.vpaddd(vectors_.window_sum, vectors_.window_sum, vectors_.row_sum);
  }
}

/// The sum of the output that this row is the first one of. What window sums have added up to is
/// added here and subtracted at the end, so that the rows between remain.
void DepthwiseEmitter::begin_sums(int row) {
  const int output = walk().begun_by(row);
  if (output < 0) return;
  const Zmm sum = vectors_.sum(output);
  if (form_.starts_by_row()) return code_.vmovdqa64(sum, vectors_.window_sum);
  if (!vectors_.keeps_start) code_.vpbroadcastd(sum, code_.ptr[reg::start]);
  const Zmm start = vectors_.keeps_start ? vectors_.start : sum;
  if (form_.sums_windows()) {
    code_.vpaddd(sum, start, vectors_.window_sum);
  } else if (vectors_.keeps_start) {
    code_.vmovdqa64(sum, start);
  }
}

void DepthwiseEmitter::load_source(int dword, int row) {
  if (form_.source_bytes == 64) {
    return load_source(vectors_.source, vectors_.padding, vectors_.flip, dword, row);
  }
  const auto half = [](const Zmm& vector) { return Xbyak::Ymm(vector.getIdx()); };
  load_source(half(vectors_.source), half(vectors_.padding), half(vectors_.flip), dword, row);
}

template <class Vector>
void DepthwiseEmitter::load_source(const Vector& source, const Vector& padding, const Vector& flip,
                                   int dword, int row) {
  const Xbyak::Address address = code_.ptr[reg::from + dword * form_.dword_step];
  if (form_.row_stride > 1) code_.prefetcht0(code_.ptr[reg::from + prefetched_input]);
  if (place_of(row) == Place::inside) {
    if (form_.flips_input) return code_.vpxord(source, flip, address);
    return code_.vmovups(source, address);
  }
  set_guard(dword, row);
  if (!form_.flips_input) {
    code_.vmovdqa64(source, padding);
    return code_.vmovdqu8(source | guard, address);
  }
  code_.vpxord(source, padding, flip);
  code_.vmovdqu8(source | guard, address);
  code_.vpxord(source, source, flip);
}

/// The bytes of a source that lie in the image.
void DepthwiseEmitter::set_guard(int source, int row) {
  const size_t at = offsetof(DepthwiseColumns, loaded) + 8 * static_cast<size_t>(source);
  code_.kmovq(guard, of_columns(at));
  if (!block_.masks_rows) return;
  code_.mov(reg::scratch, of_blocks(offsetof(DepthwiseBlocks, rows_loaded)));
  code_.kmovq(in_row, code_.ptr[reg::scratch + 8 * guarded_index(row)]);
  code_.kandq(guard, guard, in_row);
}

/// The four taps of each lane's pixel; those outside the row are padding.
void DepthwiseEmitter::shuffle(int dword) {
  const Zmm& taps = vectors_.taps;
  if (has_vbmi(target_)) {
    code_.vmovdqa64(taps, vectors_.padding);
    code_.vpermb(taps | taken(dword), vectors_.shuffle(dword), vectors_.source);
  } else {
    const Zmm& moved = vectors_.moved;
    code_.vpermd(moved, vectors_.pieces(dword), vectors_.source);
    code_.vmovdqa64(taps, vectors_.padding);
    code_.vpshufb(taps | taken(dword), moved, vectors_.shuffle(dword));
  }
  split_words(taps);
}

/// Without VNNI: bytes as words, the even ones and the odd ones.
void DepthwiseEmitter::split_words(const Zmm& taps) {
  if (!has_words(target_)) return;
  code_.vpsrlw(vectors_.odd_taps, taps, 8);
  code_.vpandd(vectors_.taps, taps, vectors_.even_bytes);
}

/// `taps` of a row: into the sums of outputs, and into the row's own.
void DepthwiseEmitter::multiply(int row, const Zmm& taps, int dword) {
  if (dword < form_.summed_dwords()) {
    multiply_add(vectors_.row_sum, taps, form_.rows * form_.dwords + dword);
  }
  for (int output = walk().first_output(row); output <= walk().last_output(row); ++output) {
    const int tap = row - output * form_.row_stride;
    multiply_add(vectors_.sum(output), taps, tap * form_.dwords + dword);
  }
}

/// sum += taps times the weights of that number.
void DepthwiseEmitter::multiply_add(const Zmm& sum, const Zmm& taps, int weight) {
  if (has_words(target_)) {
    multiply_add_words(sum, taps, 2 * weight);
    multiply_add_words(sum, vectors_.odd_taps, 2 * weight + 1);
  } else if (form_.signed_input) {
    if (!vectors_.keeps_weights) code_.vpbroadcastd(vectors_.product, weight_address(weight));
    code_.vpdpbusd(sum, vectors_.keeps_weights ? vectors_.weight(weight) : vectors_.product, taps);
  } else if (vectors_.keeps_weights) {
    code_.vpdpbusd(sum, taps, vectors_.weight(weight));
  } else {
    code_.vpdpbusd(sum, taps, code_.ptr_b[reg::weights + 4 * weight]);
  }
}

void DepthwiseEmitter::multiply_add_words(const Zmm& sum, const Zmm& taps, int weight) {
  const Zmm& product = vectors_.product;
  if (!vectors_.keeps_weights) code_.vpbroadcastd(product, weight_address(weight));
  code_.vpmaddwd(product, taps, vectors_.keeps_weights ? vectors_.weight(weight) : product);
  code_.vpaddd(sum, sum, product);
}

void DepthwiseEmitter::emit_store(int output) {
  const Zmm sum = vectors_.sum(output);
  if (form_.sums_windows()) code_.vpsubd(sum, sum, vectors_.window_sum);
  if (epilogue_) {
    epilogue_->apply(sum);
    epilogue_->prefetch(of_blocks(offsetof(DepthwiseBlocks, prefetched)), reg::scratch);
  } else {
    if (form_.adds) code_.vpaddd(sum | stored, sum, code_.ptr[reg::to]);
    code_.vmovdqu32(code_.ptr[reg::to] | stored, sum);
    code_.prefetchw(code_.ptr[reg::to + reg::prefetched]);
  }
  code_.add(reg::to, reg::output_step);
}

}  // namespace castor::jit::depthwise
