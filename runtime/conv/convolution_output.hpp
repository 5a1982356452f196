// SPDX-License-Identifier: Apache-2.0
// The outputs of convolutions.
//
// Kernels write i32 results of a piece where `begin` says, and then call `end`. Without an epilogue
// that is y itself. With one a piece is in the task's scratch, and `end` runs the epilogue on it;
// or kernels apply it themselves, called by `apply_in_kernel`.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "ir/shape/convolution.hpp"
#include "jit/conv/epilogue/folded_results.hpp"
#include "runtime/bind/elementwise_step.hpp"
#include "runtime/call/call_profile.hpp"
#include "runtime/call/nest_call.hpp"

namespace castor::detail {

struct CallMemory;
struct ConvolutionStep;

/// A 32-bit number into which kernels that apply an epilogue fold one of its results.
struct BoundFold {
  OperandOrigin origin;
  jit::Fold fold = jit::Fold::none;
  uint32_t initial = 0;  ///< what it is before the first element
};

/// An elementwise nest that takes a convolution's result piece by piece. Its code is called for a
/// piece at a time; its source has no origin.
struct BoundEpilogue : LaneStep {
  jit::EpilogueWalk walk;
  size_t source = 0;         ///< the operand that the pieces are
  int64_t max_elements = 0;  ///< results of a piece at most: pieces stay in L1
  /// From where the convolution's scratch begins to the piece that a task is at, in bytes.
  ptrdiff_t piece_offset = 0;
  std::vector<BoundFold> folds;  ///< at most jit::max_folds
};

/// Elements from one row of a piece to the next in scratch. Long rows begin at cache lines.
constexpr int64_t row_pitch(int64_t elements) {
  constexpr int64_t line = 16;
  return elements < 4 * line ? elements : (elements + line - 1) / line * line;
}

/// Bytes of scratch for a piece: all channels of a pixel are one at times, and rows grow by a
/// quarter at most.
inline size_t piece_bytes(const BoundEpilogue& epilogue, int64_t out_channels) {
  const int64_t elements = std::max(epilogue.max_elements, out_channels);
  return static_cast<size_t>(elements) * sizeof(int32_t) / 4 * 5;
}

/// A part of the result: neighbouring channels by neighbouring pixels of one image.
struct OutputPiece {
  int64_t image = 0;
  int64_t channel = 0;  ///< the first, of all output channels
  int64_t channels = 0;
  int64_t pixel = 0;  ///< the first, of all output positions row-major
  int64_t pixels = 0;
};

/// Where the results of a piece are written; steps in elements, one of them 1.
struct PieceMemory {
  int32_t* data = nullptr;
  int64_t channel_step = 0;
  int64_t pixel_step = 0;
};

/// The operands of an epilogue that kernels apply, by operand of its nest; then what is folded.
using EpilogueOperands = std::array<jit::EpilogueOperand, jit::max_tile_operands + 2>;

/// The output of one call. Tasks that run at the same time share it.
class ConvolutionOutput {
 public:
  /// Of the step of a convolution with that geometry.
  ConvolutionOutput(const ConvolutionGeometry& geometry, const ConvolutionStep& step,
                    const CallMemory& memory);

  /// Results of a piece at most.
  int64_t max_elements() const;
  /// Whether the epilogue takes a pixel's channels as a row.
  bool has_rows_of_channels() const {
    return epilogue_ != nullptr && epilogue_->walk.rows_of_channels;
  }
  /// Bits that the epilogue stores for each result; of i32, where there is none.
  int64_t result_bits() const;
  /// Bits that kernels store for each result: a pass after them finds i32.
  int64_t kernel_result_bits(bool applies_epilogue) const {
    return applies_epilogue ? result_bits() : 32;
  }
  /// Where the piece is to be written. `scratch` is the task's own, where the convolution's begins.
  PieceMemory begin(const OutputPiece& piece, std::byte* scratch) const;
  /// Calls kernels that apply the epilogue themselves: call(the epilogue's operands at the piece).
  template <class Call>
  void apply_in_kernel(const OutputPiece& piece, const Call& call) const {
    EpilogueOperands operands = find_operands(piece);
    if (epilogue_->folds.empty()) return call(operands.data());
    FoldedLanes folded;
    for (size_t i = 0; i < epilogue_->folds.size(); ++i) {
      folded.of_fold[i].fill(epilogue_->folds[i].initial);
    }
    operands[epilogue_->operands.size()].data = number_of(&folded);
    call(operands.data());
    fold(folded);
  }
  /// The piece has been written.
  void end(const OutputPiece& piece, std::byte* scratch) const;

 private:
  /// What a kernel's calls have folded, lane by lane.
  struct FoldedLanes {
    static constexpr size_t lanes = 16;
    alignas(64) std::array<std::array<uint32_t, lanes>, jit::max_folds> of_fold;
  };
  EpilogueOperands find_operands(const OutputPiece& piece) const;
  void fold(const FoldedLanes& folded) const;

  /// A piece in scratch, as the epilogue's code takes it. Rows that are one for all operands are
  /// joined.
  struct Rows {
    int64_t count = 0;
    int64_t length = 0;
    int64_t pitch = 0;
  };
  Rows rows_of(const OutputPiece& piece) const;
  int64_t element_of(size_t operand, const OutputPiece& piece) const;
  bool splits_bytes(const OutputPiece& piece, const Rows& rows) const;
  void run_epilogue(const OutputPiece& piece, std::byte* scratch) const;
  WorkAmount epilogue_amount(const OutputPiece& piece) const;

  const BoundEpilogue* epilogue_;  ///< null: y is written
  const CallMemory& memory_;
  const size_t nest_;  ///< the convolution's
  int32_t* y_ = nullptr;
  int64_t image_step_ = 0;
  int64_t channel_step_ = 0;
  int64_t pixel_step_ = 0;
  mutable std::mutex shared_bytes_;  ///< held where a piece begins or ends inside a byte
};

}  // namespace castor::detail
