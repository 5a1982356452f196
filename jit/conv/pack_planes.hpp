// SPDX-License-Identifier: Apache-2.0
// Filling of planes: rows of bytes of four input channels become rows of dwords, with padding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>

#include "ir/support/result.hpp"
#include "jit/code.hpp"
#include "jit/kernel/spec.hpp"
#include "jit/target.hpp"

namespace castor::jit {

struct PlaneFilling;

/// Everything that the code depends on besides the target.
struct PlaneForm {
  static constexpr std::string_view name = "pack_input";
  using Arguments = const PlaneFilling;

  int column_stride = 1;  ///< bytes from one pixel to the next: 1 or 2
  /// Whether pixels are all that there is, without padding: one row, of any number of pixels.
  bool is_plain = false;
  /// Whether a dword holds four neighbouring columns of one channel; then there are no others, and
  /// `column_stride` may be up to 4.
  bool holds_columns = false;

  static constexpr auto fields() {
    return std::tuple(field("column_stride", &PlaneForm::column_stride),
                      field("plain", &PlaneForm::is_plain),
                      field("columns4", &PlaneForm::holds_columns));
  }
};

/// Whether there is code for it.
bool can_fill(const PlaneForm& form, const Target& target);

/// Sixteen dwords of a row of a plane.
struct PlaneVector {
  int64_t source = 0;       ///< bytes from the row's first pixel to that of the first lane with one
  int32_t destination = 0;  ///< bytes from the row's beginning
  /// A bit for each lane with a pixel, which follow each other in the source; others are padding.
  /// Above, from bit 16 on, one for each lane that is stored.
  uint32_t lanes = 0;
  /// Where dwords hold columns, or taps (jit/conv/pack_windows.hpp), instead of the low bits of
  /// `lanes`: a bit for each byte from `source` on that is input, which may begin in front of the
  /// row; others are padding.
  uint64_t bytes = 0;
};

/// The bits of the first bytes, for PlaneVector::bytes; `count` is 0 to 64.
constexpr uint64_t first_bytes(int64_t count) {
  return count == 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
}

/// The argument of the code.
struct PlaneFilling {
  const std::byte* source = nullptr;  ///< the first row's first pixel, first channel
  int64_t channels[3] = {};           ///< bytes from there to the other channels
  int64_t source_part_step = 0;       ///< bytes from four channels to the next four
  int64_t source_row_step = 0;        ///< bytes from a row's first pixel to the next row's
  std::byte* planes = nullptr;        ///< the first row
  int64_t part_step = 0;              ///< bytes from one plane to the next
  int64_t row_step = 0;               ///< bytes from one row of a plane to the next
  int64_t parts = 0;                  ///< planes; at least 1
  int64_t rows = 0;                   ///< at least 1
  const PlaneVector* vectors = nullptr;
  int64_t vector_count = 0;  ///< at least 1
  int64_t pixels = 0;        ///< of a plain form, instead of rows and vectors; at least 1
  uint32_t flips = 0;        ///< xored to every pixel; where dwords hold columns to padding as well
  uint32_t padding = 0;
};

/// Bytes of a channel that the code reads from the first pixel of a vector on.
constexpr int64_t bytes_read(const PlaneForm& form) { return int64_t{16} * form.column_stride; }

/// Emits the code. A pure function of its arguments.
Result<MachineCode> emit_kernel(const PlaneForm& form, const Target& target);

}  // namespace castor::jit
