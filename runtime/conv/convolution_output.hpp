// SPDX-License-Identifier: Apache-2.0
// Where convolutions leave their results, piece by piece.
//
// Kernels of every form write i32 results of a piece where `begin` says, and then call `end`.
// Without an epilogue that is y itself. With one a piece lies in the task's scratch, and `end` runs
// the epilogue on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "ir/shape/convolution.hpp"
#include "jit/conv/epilogue/epilogue.hpp"

namespace castor::detail {

struct BoundEpilogue;
struct CallMemory;
struct ConvolutionStep;

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

/// The output of one call. Tasks that run at the same time share it.
class ConvolutionOutput {
 public:
  /// Of the step of a convolution with that geometry.
  ConvolutionOutput(const ConvolutionGeometry& geometry, const ConvolutionStep& step,
                    const CallMemory& memory);

  /// Results of a piece at the most.
  int64_t max_elements() const;
  /// Where the piece is to be written. `scratch` is the task's own, where the convolution's begins.
  PieceMemory begin(const OutputPiece& piece, std::byte* scratch) const;
  /// Where the epilogue's operands lie at a piece, for kernels that apply it themselves.
  void find_operands(const OutputPiece& piece, jit::EpilogueOperand* operands) const;
  /// The piece has been written.
  void end(const OutputPiece& piece, std::byte* scratch) const;

 private:
  struct Rows;
  Rows rows_of(const OutputPiece& piece) const;
  bool splits_bytes(const OutputPiece& piece, const Rows& rows) const;
  int64_t element_of(size_t operand, const OutputPiece& piece, const Rows& rows) const;
  void run_epilogue(const OutputPiece& piece, const Rows& rows, std::byte* scratch) const;

  int32_t* piece_data(std::byte* scratch) const;

  const BoundEpilogue* epilogue_;  ///< null: y is written
  const CallMemory& memory_;
  int32_t* y_ = nullptr;
  int64_t image_step_ = 0;
  int64_t channel_step_ = 0;
  int64_t pixel_step_ = 0;
  mutable std::mutex shared_bytes_;  ///< held where a piece begins or ends inside a byte
};

}  // namespace castor::detail
