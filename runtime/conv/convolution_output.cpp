// SPDX-License-Identifier: Apache-2.0
#include "runtime/conv/convolution_output.hpp"

#include <limits>

#include "runtime/call/nest_call.hpp"
#include "runtime/conv/convolution_step.hpp"
#include "runtime/conv/epilogue.hpp"

namespace castor::detail {

/// A piece as the epilogue's code walks it.
struct ConvolutionOutput::Rows {
  int64_t first = 0;  ///< row, of the whole result
  int64_t count = 0;
  int64_t first_element = 0;  ///< of each row
  int64_t length = 0;
  int64_t pitch = 0;  ///< of the piece in scratch
};

ConvolutionOutput::ConvolutionOutput(const ConvolutionGeometry& geometry,
                                     const ConvolutionStep& step, const CallMemory& memory)
    : epilogue_(step.epilogue.get()), memory_(memory) {
  if (epilogue_ != nullptr) return;
  int64_t pixels = 1;
  for (const ConvolutionAxis& axis : geometry.axes) pixels *= axis.output;
  const bool nhwc = geometry.layout == ConvolutionLayout::nhwc;
  y_ = reinterpret_cast<int32_t*>(address(step.operands.back(), memory));
  image_step_ = pixels * geometry.out_channels;
  channel_step_ = nhwc ? 1 : pixels;
  pixel_step_ = nhwc ? geometry.out_channels : 1;
}

int64_t ConvolutionOutput::max_elements() const {
  return epilogue_ == nullptr ? std::numeric_limits<int64_t>::max() : max_piece_elements;
}

PieceMemory ConvolutionOutput::begin(const OutputPiece& piece, std::byte* scratch) const {
  if (epilogue_ == nullptr) {
    int32_t* data =
        y_ + piece.image * image_step_ + piece.channel * channel_step_ + piece.pixel * pixel_step_;
    return {data, channel_step_, pixel_step_};
  }
  const int64_t pitch = rows_of(piece).pitch;
  const bool of_channels = epilogue_->walk.rows_of_channels;
  return {piece_data(scratch), of_channels || piece.channels == 1 ? 1 : pitch,
          of_channels && piece.pixels > 1 ? pitch : 1};
}

void ConvolutionOutput::end(const OutputPiece& piece, std::byte* scratch) const {
  if (epilogue_ != nullptr) run_epilogue(piece, rows_of(piece), scratch);
}

int32_t* ConvolutionOutput::piece_data(std::byte* scratch) const {
  return reinterpret_cast<int32_t*>(scratch + epilogue_->piece_offset);
}

/// Rows that are one for all operands are joined: `count` is 1 then, and `pitch` what one of them
/// takes.
ConvolutionOutput::Rows ConvolutionOutput::rows_of(const OutputPiece& piece) const {
  Rows rows;
  if (epilogue_->walk.rows_of_channels) {
    rows = {piece.pixel, piece.pixels, piece.channel, piece.channels};
  } else {
    rows = {piece.channel, piece.channels, piece.pixel, piece.pixels};
  }
  if (rows.length != epilogue_->walk.joining_row) {
    rows.pitch = row_pitch(rows.length);
    return rows;
  }
  rows.pitch = rows.length;
  rows.length *= rows.count;
  rows.count = 1;
  return rows;
}

/// Number of the operand's first element in the piece.
int64_t ConvolutionOutput::element_of(size_t operand, const OutputPiece& piece,
                                      const Rows& rows) const {
  const jit::PieceSteps& steps = epilogue_->walk.operands[operand];
  return origin_of(epilogue_->operands[operand].origin, memory_).offset +
         piece.image * steps.image + rows.first * steps.row + rows.first_element * steps.element;
}

void ConvolutionOutput::find_operands(const OutputPiece& piece,
                                      jit::EpilogueOperand* operands) const {
  const Rows rows = rows_of(piece);
  for (size_t k = 0; k < epilogue_->operands.size(); ++k) {
    if (k == epilogue_->source) continue;
    const auto& [origin, element, matches_space] = epilogue_->operands[k];
    const Origin first = {origin_of(origin, memory_).data, element_of(k, piece, rows)};
    operands[k] = {address(first, element),
                   epilogue_->walk.operands[k].row * (bits_of(element) / 8)};
  }
}

/// Whether sub-byte elements of the piece begin inside a byte, or those that are written end there.
bool ConvolutionOutput::splits_bytes(const OutputPiece& piece, const Rows& rows) const {
  const std::vector<StepOperand>& operands = epilogue_->operands;
  for (size_t k = 0; k < operands.size(); ++k) {
    const int64_t aligned = aligned_elements(operands[k].element);
    if (aligned == 1 || epilogue_->main.access[k] != jit::Access::contiguous) continue;
    const int64_t first = element_of(k, piece, rows);
    const bool is_output = k >= epilogue_->first_output;
    if (first % aligned != 0 || (is_output && rows.length % aligned != 0)) return true;
  }
  return false;
}

void ConvolutionOutput::run_epilogue(const OutputPiece& piece, const Rows& rows,
                                     std::byte* scratch) const {
  const std::vector<StepOperand>& operands = epilogue_->operands;
  const bool splits = epilogue_->sub_byte && splits_bytes(piece, rows);
  const BoundCode& code = splits ? *epilogue_->any_start : epilogue_->main;
  int64_t arguments[jit::max_argument_words];
  std::copy(code.arguments.begin(), code.arguments.end(), arguments);
  for (size_t k = 0; k < operands.size(); ++k) {
    if (k == epilogue_->source) continue;
    const ElementType element = operands[k].element;
    const int64_t data = origin_of(operands[k].origin, memory_).data;
    const int64_t first = element_of(k, piece, rows);
    const bool by_number = jit::counts_elements(code.access[k], element);
    arguments[k] = by_number ? first : address(Origin{data, first}, element);
    if (by_number) arguments[epilogue_->first_base + k] = data;
  }
  const jit::ArgumentLayout layout(operands.size(), 2);
  arguments[layout.extent(0)] = rows.length;
  arguments[layout.extent(1)] = rows.count;
  arguments[epilogue_->source] = number_of(piece_data(scratch));
  arguments[layout.step(epilogue_->source, 1)] = rows.pitch * static_cast<int64_t>(sizeof(int32_t));
  std::unique_lock<std::mutex> lock(shared_bytes_, std::defer_lock);
  if (splits) lock.lock();
  code.code->entry()(arguments);
}

}  // namespace castor::detail
