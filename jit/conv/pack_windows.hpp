// SPDX-License-Identifier: Apache-2.0
// Filling of planes that hold windows: of each output pixel the bytes that all taps of a small
// filter take, four neighbouring taps a dword, with padding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>

#include "ir/support/result.hpp"
#include "jit/code.hpp"
#include "jit/conv/pack_planes.hpp"
#include "jit/kernel/spec.hpp"
#include "jit/target.hpp"

namespace castor::jit {

struct WindowFilling;

/// Everything that the code depends on besides the target.
struct WindowForm {
  static constexpr std::string_view name = "pack_im2col";
  using Arguments = const WindowFilling;

  static constexpr int64_t max_rows = 28;

  int rows = 1;           ///< of the filter, of all input channels; at most `max_rows`
  int columns = 1;        ///< taps of each
  int column_stride = 1;  ///< bytes from one output pixel's first tap to the next's
  int dilation = 1;       ///< bytes from one tap to the next

  static constexpr auto fields() {
    return std::tuple(field("rows", &WindowForm::rows), field("columns", &WindowForm::columns),
                      field("column_stride", &WindowForm::column_stride),
                      field("dilation", &WindowForm::dilation));
  }

  int taps() const { return rows * columns; }
  /// Planes: the last one may have bytes that no tap takes, which may hold anything.
  int dwords() const { return (taps() + 3) / 4; }
  /// Bytes of an input row that so many output pixels take.
  int span(int pixels) const { return (pixels - 1) * column_stride + (columns - 1) * dilation + 1; }
};

/// Whether there is code for it: sixteen pixels take at most 64 bytes of each row, and there is a
/// register for each.
bool can_fill(const WindowForm& form, const Target& target);

/// The argument of the code.
struct WindowFilling {
  /// Of each row of the filter the input row that it meets at the first output row; null: padding.
  const std::byte* const* sources = nullptr;
  int64_t source_step = 0;  ///< bytes from one output row's input to the next one's
  std::byte* planes = nullptr;
  int64_t plane_step = 0;  ///< bytes from one plane to the next
  int64_t row_step = 0;    ///< bytes from one row of a plane to the next
  int64_t rows = 0;        ///< output rows, at least 1
  /// Of a row; their `source` counts from column 0 and may be negative, their `bytes` say what is
  /// input, their `lanes` only which are stored.
  const PlaneVector* vectors = nullptr;
  int64_t vector_count = 0;  ///< at least 1
  uint32_t flips = 0;        ///< xored to every dword
  uint32_t padding = 0;      ///< as it is before
};

/// Emits the code. A pure function of its arguments.
Result<MachineCode> emit_kernel(const WindowForm& form, const Target& target);

}  // namespace castor::jit
