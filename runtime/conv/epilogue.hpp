// SPDX-License-Identifier: Apache-2.0
// An elementwise nest that takes a convolution's result piece by piece, ready to run.
#pragma once

#include <algorithm>

#include "jit/conv/epilogue/epilogue.hpp"
#include "runtime/bind/elementwise_step.hpp"

namespace castor::detail {

/// Its code is called for a slice at a time; its source has no origin.
struct BoundEpilogue : LaneStep {
  jit::EpilogueWalk walk;
  size_t source = 0;  ///< the operand that the pieces are
  /// From where the convolution's scratch begins to the piece that a task is at, in bytes.
  ptrdiff_t piece_offset = 0;
};

/// Results of a piece at the most: pieces stay in the first cache.
inline constexpr int64_t max_piece_elements = 4096;

/// Elements from one row of a piece to the next in scratch. Long rows begin at lines of the cache.
constexpr int64_t row_pitch(int64_t elements) {
  constexpr int64_t line = 16;
  return elements < 4 * line ? elements : (elements + line - 1) / line * line;
}

/// Bytes of scratch for a piece: all channels of a pixel are one at times, and rows grow by a
/// quarter at the most.
inline size_t piece_bytes(int64_t out_channels) {
  const int64_t elements = std::max(max_piece_elements, out_channels);
  return static_cast<size_t>(elements) * sizeof(int32_t) / 4 * 5;
}

}  // namespace castor::detail
