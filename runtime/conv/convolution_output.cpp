// SPDX-License-Identifier: Apache-2.0
#include "runtime/conv/convolution_output.hpp"

#include <atomic>
#include <bit>
#include <cmath>
#include <limits>

#include "runtime/call/nest_call.hpp"
#include "runtime/conv/convolution_step.hpp"

namespace castor::detail {

namespace {

uint32_t* folded_number(const BoundFold& fold, const CallMemory& memory) {
  return reinterpret_cast<uint32_t*>(origin_of(fold.origin, memory).data);
}

/// An integer in the order of the floats.
int32_t float_key(uint32_t bits) {
  const auto number = static_cast<int32_t>(bits);
  return number < 0 ? number ^ std::numeric_limits<int32_t>::max() : number;
}

uint32_t folded(jit::Fold fold, uint32_t a, uint32_t b) {
  const auto is_less = [](auto x, auto y) { return x < y; };
  const auto as_signed = [](uint32_t bits) { return static_cast<int32_t>(bits); };
  const auto is_nan = [](uint32_t bits) { return std::isnan(std::bit_cast<float>(bits)); };
  switch (fold) {
    case jit::Fold::float_min: return is_nan(a) || is_less(float_key(b), float_key(a)) ? b : a;
    case jit::Fold::float_max: return is_nan(a) || is_less(float_key(a), float_key(b)) ? b : a;
    case jit::Fold::any_nan: return !is_nan(a) && is_nan(b) ? b : a;
    case jit::Fold::min_signed: return is_less(as_signed(b), as_signed(a)) ? b : a;
    case jit::Fold::max_signed: return is_less(as_signed(a), as_signed(b)) ? b : a;
    case jit::Fold::min_unsigned: return is_less(b, a) ? b : a;
    default: return is_less(a, b) ? b : a;
  }
}

}  // namespace

ConvolutionOutput::ConvolutionOutput(const ConvolutionGeometry& geometry,
                                     const ConvolutionStep& step, const CallMemory& memory)
    : epilogue_(step.epilogue.get()), memory_(memory), nest_(step.nest) {
  if (epilogue_ != nullptr) {
    for (const BoundFold& each : epilogue_->folds) *folded_number(each, memory) = each.initial;
    return;
  }
  int64_t pixels = 1;
  for (const ConvolutionAxis& axis : geometry.axes) pixels *= axis.output;
  const bool nhwc = geometry.layout == ConvolutionLayout::nhwc;
  y_ = reinterpret_cast<int32_t*>(address(step.operands.back(), memory));
  image_step_ = pixels * geometry.out_channels;
  channel_step_ = nhwc ? 1 : pixels;
  pixel_step_ = nhwc ? geometry.out_channels : 1;
}

int64_t ConvolutionOutput::max_elements() const {
  return epilogue_ == nullptr ? std::numeric_limits<int64_t>::max() : epilogue_->max_elements;
}

int64_t ConvolutionOutput::result_bits() const {
  if (epilogue_ == nullptr) return 32;
  int64_t bits = 0;
  for (size_t k = epilogue_->first_output; k < epilogue_->operands.size(); ++k) {
    bits += bits_of(epilogue_->operands[k].element);
  }
  return bits;
}

PieceMemory ConvolutionOutput::begin(const OutputPiece& piece, std::byte* scratch) const {
  if (epilogue_ == nullptr) {
    int32_t* data =
        y_ + piece.image * image_step_ + piece.channel * channel_step_ + piece.pixel * pixel_step_;
    return {data, channel_step_, pixel_step_};
  }
  auto* data = reinterpret_cast<int32_t*>(scratch + epilogue_->piece_offset);
  const int64_t pitch = rows_of(piece).pitch;
  const bool of_channels = epilogue_->walk.rows_of_channels;
  return {data, of_channels || piece.channels == 1 ? 1 : pitch,
          of_channels && piece.pixels > 1 ? pitch : 1};
}

ConvolutionOutput::Rows ConvolutionOutput::rows_of(const OutputPiece& piece) const {
  const bool of_channels = epilogue_->walk.rows_of_channels;
  const int64_t count = of_channels ? piece.pixels : piece.channels;
  const int64_t length = of_channels ? piece.channels : piece.pixels;
  if (length == epilogue_->walk.joining_row) return {1, count * length, length};
  return {count, length, row_pitch(length)};
}

/// Number of the operand's first element in the piece.
int64_t ConvolutionOutput::element_of(size_t operand, const OutputPiece& piece) const {
  const jit::PieceSteps& steps = epilogue_->walk.operands[operand];
  const bool of_channels = epilogue_->walk.rows_of_channels;
  const int64_t row = of_channels ? piece.pixel : piece.channel;
  const int64_t element = of_channels ? piece.channel : piece.pixel;
  return origin_of(epilogue_->operands[operand].origin, memory_).offset +
         piece.image * steps.image + row * steps.row + element * steps.element;
}

EpilogueOperands ConvolutionOutput::find_operands(const OutputPiece& piece) const {
  EpilogueOperands operands;
  for (size_t k = 0; k < epilogue_->operands.size(); ++k) {
    if (k == epilogue_->source) continue;
    const auto& [origin, element, matches_space] = epilogue_->operands[k];
    const Origin first = {origin_of(origin, memory_).data, element_of(k, piece)};
    operands[k] = {address(first, element),
                   epilogue_->walk.operands[k].row * (bits_of(element) / 8)};
  }
  return operands;
}

/// Tasks come here at the same time; the order of folds makes no difference.
void ConvolutionOutput::fold(const FoldedLanes& lanes) const {
  for (size_t i = 0; i < epilogue_->folds.size(); ++i) {
    const BoundFold& each = epilogue_->folds[i];
    uint32_t all = lanes.of_fold[i][0];
    for (const uint32_t lane : lanes.of_fold[i]) all = folded(each.fold, all, lane);
    const std::atomic_ref number(*folded_number(each, memory_));
    uint32_t before = number.load(std::memory_order_relaxed);
    while (folded(each.fold, before, all) != before &&
           !number.compare_exchange_weak(before, all, std::memory_order_relaxed)) {
    }
  }
}

/// Whether sub-byte elements of the piece begin inside a byte, or those that are written end there.
bool ConvolutionOutput::splits_bytes(const OutputPiece& piece, const Rows& rows) const {
  const std::vector<StepOperand>& operands = epilogue_->operands;
  for (size_t k = 0; k < operands.size(); ++k) {
    const int64_t aligned = aligned_elements(operands[k].element);
    if (aligned == 1 || epilogue_->main.access[k] != jit::Access::contiguous) continue;
    const bool is_output = k >= epilogue_->first_output;
    if (element_of(k, piece) % aligned != 0) return true;
    if (is_output && rows.length % aligned != 0) return true;
  }
  return false;
}

void ConvolutionOutput::end(const OutputPiece& piece, std::byte* scratch) const {
  if (epilogue_ == nullptr) return;
  const WorkTimer timer(memory_.profile, nest_, Work::epilogue);
  run_epilogue(piece, scratch);
  timer.done_within_block([&] { return epilogue_amount(piece); });
}

/// Results, and what has an element for each of them.
WorkAmount ConvolutionOutput::epilogue_amount(const OutputPiece& piece) const {
  const int64_t elements = piece.channels * piece.pixels;
  int64_t bits = 32;
  for (size_t k = 0; k < epilogue_->first_output; ++k) {
    const StepOperand& operand = epilogue_->operands[k];
    if (k != epilogue_->source && operand.matches_space) bits += bits_of(operand.element);
  }
  return {.bytes_read = elements * bits / 8, .bytes_written = elements * result_bits() / 8};
}

void ConvolutionOutput::run_epilogue(const OutputPiece& piece, std::byte* scratch) const {
  const Rows rows = rows_of(piece);
  const std::vector<StepOperand>& operands = epilogue_->operands;
  const bool splits = epilogue_->sub_byte && splits_bytes(piece, rows);
  const BoundCode& code = splits ? *epilogue_->any_start : epilogue_->main;
  int64_t arguments[jit::max_argument_words];
  std::copy(code.arguments.begin(), code.arguments.end(), arguments);
  for (size_t k = 0; k < operands.size(); ++k) {
    if (k == epilogue_->source) continue;
    const ElementType element = operands[k].element;
    const int64_t data = origin_of(operands[k].origin, memory_).data;
    const int64_t first = element_of(k, piece);
    const bool by_number = jit::counts_elements(code.access[k], element);
    arguments[k] = by_number ? first : address(Origin{data, first}, element);
    if (by_number) arguments[epilogue_->first_base + k] = data;
  }
  const jit::ArgumentLayout layout(operands.size(), 2);
  arguments[layout.extent(0)] = rows.length;
  arguments[layout.extent(1)] = rows.count;
  arguments[epilogue_->source] = number_of(scratch + epilogue_->piece_offset);
  arguments[layout.step(epilogue_->source, 1)] = rows.pitch * static_cast<int64_t>(sizeof(int32_t));
  std::unique_lock<std::mutex> lock(shared_bytes_, std::defer_lock);
  if (splits) lock.lock();
  code.code->entry()(arguments);
}

}  // namespace castor::detail
