// SPDX-License-Identifier: Apache-2.0
// The K loop of the dense microkernel: zero-point compensation, by window sums that were made
// before or that the tile adds up itself.
#include <cstddef>

#include "jit/conv/dense/k_loop.hpp"

namespace castor::jit::dense {

/// The address of the window sums of the register tile's pixels.
void Compensation::emit_window_sums_of_rows(const Reg64& to) {
  code_.mov(to, store(0, by_pixels() ? offsetof(TileOrigin, source) : offsetof(TileOrigin, pixel)));
  if (!by_pixels()) code_.shl(to, 2);
  code_.add(to, argument(offsetof(DenseArguments, window_sums)));
}

/// scratch = the address of the window sums of the register tile's pixels, or else an argument.
void Compensation::emit_sums_or_argument(bool of_sums, size_t else_argument) {
  if (of_sums) return emit_window_sums_of_rows(reg::scratch);
  code_.mov(reg::scratch, argument(else_argument));
}

void Compensation::emit_first_values() {
  constexpr size_t start = offsetof(DenseArguments, start);
  emit_sums_or_argument(by_pixels(), start);
  for (int i = 0; i < vectors_; ++i) {
    code_.vmovups(vector(i), code_.ptr[reg::scratch + i * vector_bytes()]);
  }
  emit_sums_or_argument(!by_pixels(), start);
  for (int row = 0; row < rows_; ++row) {
    code_.vpbroadcastd(broadcast(), code_.ptr[reg::scratch + 4 * row]);
    for (int i = 0; i < vectors_; ++i) {
      by_pixels() ? code_.vpsubd(sum(row, i), broadcast(), vector(i))
                  : code_.vpsubd(sum(row, i), vector(i), broadcast());
    }
  }
}

void Compensation::emit_start_of_sums() {
  const Section sums = code_.section(CodeSection::window_sums);
  emit_window_sums_of_rows(reg::window_sums);
  for (int i = 0; i < vectors_; ++i) {
    const Xmm& zero = has_row_of_sums() ? sum(rows_, i) : broadcast();
    emit_zero(zero);
    if (!has_row_of_sums()) code_.vmovups(code_.ptr[reg::window_sums + i * vector_bytes()], zero);
  }
}

/// Times the zero point. In memory a sum takes some 17 cycles from one k step to the next, a little
/// longer than the products of a tile that has no registers for it.
void Compensation::emit_added_pixels() {
  const Section sums = code_.section(CodeSection::window_sums);
  const RegExp zero_point = reg::arguments + offsetof(DenseArguments, zero_point_bytes);
  if (!target_.has_avx512()) code_.vpbroadcastd(product(), code_.ptr[zero_point]);
  const auto emit_product = [&](const Xmm& to, const Xmm& pixels) {
    target_.has_avx512() ? code_.vpdpbusd(to, pixels, code_.ptr_b[zero_point])
                         : code_.vpdpbusd(to, pixels, product(), Xbyak::VexEncoding);
  };
  for (int i = 0; i < vectors_; ++i) {
    if (has_row_of_sums()) {
      emit_product(sum(rows_, i), vector(i));
      continue;
    }
    const Xbyak::Address in_memory = code_.ptr[reg::window_sums + i * vector_bytes()];
    code_.vmovups(broadcast(), in_memory);
    emit_product(broadcast(), vector(i));
    code_.vmovups(in_memory, broadcast());
  }
}

/// Subtracts window sums times zero points: those along the vectors are loaded once. Products of
/// both are part of the first values.
void Compensation::emit(const TileRows& rows) {
  const bool is_done = tile_.window_sums == WindowSums::products;
  if (is_done || tile_.window_sums == WindowSums::none) return;
  const Section compensation = code_.section(CodeSection::compensation);
  if (stores_window_sums()) return emit_own(rows);
  constexpr size_t zero_points = offsetof(DenseArguments, weight_zero_points);
  if (!sums_pixels()) emit_sums_or_argument(by_pixels(), zero_points);
  for (int i = 0; !sums_pixels() && i < vectors_; ++i) {
    code_.vmovups(vector(i), code_.ptr[reg::scratch + i * vector_bytes()]);
  }
  emit_sums_or_argument(!by_pixels(), zero_points);
  for (int row = rows.begin; row < rows.end; ++row) {
    code_.vpbroadcastd(broadcast(), code_.ptr[reg::scratch + 4 * row]);
    for (int i = 0; i < vectors_; ++i) {
      const Xmm along = sums_pixels() ? sum(rows_, i) : vector(i);
      emit_subtract(sum(row, i), along, broadcast(), product());
    }
  }
}

/// Subtracts the window sums that the tile has added up, which are complete with the first group's
/// last k step.
void Compensation::emit_own(const TileRows& rows) {
  for (int i = 0; i < vectors_; ++i) {
    const Xbyak::Address in_memory = code_.ptr[reg::window_sums + i * vector_bytes()];
    const Xmm& sums = has_row_of_sums() ? sum(rows_, i) : vector(i);
    if (!has_row_of_sums()) {
      code_.vmovups(sums, in_memory);
    } else if (rows.begin == 0) {
      code_.vmovups(in_memory, sums);
    }
    for (int row = rows.begin; row < rows.end; ++row) {
      code_.vpsubd(sum(row, i), sum(row, i), sums);
    }
  }
}

void Compensation::emit_subtract(const Xmm& sum, const Xmm& window_sums, const Xmm& zero_points,
                                 const Xmm& product) {
  if (tile_.window_sums == WindowSums::products) {
    code_.vpsubd(sum, sum, window_sums);
  } else if (tile_.window_sums != WindowSums::i16_pairs) {
    code_.vpmulld(product, window_sums, zero_points);
    code_.vpsubd(sum, sum, product);
  } else if (target_.has_avx512()) {
    code_.vpdpwssd(sum, window_sums, zero_points);
  } else {
    code_.vpdpwssd(sum, window_sums, zero_points, Xbyak::VexEncoding);
  }
}

}  // namespace castor::jit::dense
