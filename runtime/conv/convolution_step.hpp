// SPDX-License-Identifier: Apache-2.0
// A convolution as a step of a bound kernel, and what all calls of convolutions have in common.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <span>

#include "jit/conv/epilogue/epilogue.hpp"
#include "jit/conv/problem.hpp"
#include "runtime/bind/step_base.hpp"
#include "runtime/cache/code_cache.hpp"
#include "runtime/call/nest_call.hpp"
#include "runtime/memory/weight_store.hpp"

namespace castor::detail {

struct BoundConvolution;
struct BoundEpilogue;

/// What is known of a convolution's operands besides their extents. They are those of its nest: x,
/// w, then the zero points that there are, and y.
struct ConvolutionOperands {
  bool x_is_signed = false;
  bool w_is_signed = false;
  int x_zero_point = -1;  ///< which operand; -1: none
  int w_zero_point = -1;
  bool zero_points_per_channel = false;
};

/// What a convolution is bound with.
struct ConvolutionBinding {
  const jit::ConvolutionProblem& problem;
  const ConvolutionOperands& operands;
  std::span<const std::byte* const> constants;  ///< the data of constant operands, else null
  const jit::Target& target;
  CodeCache& cache;
  const jit::TileEpilogue* epilogue;  ///< that kernels apply, or null
  bool has_residual;                  ///< see ConvolutionChoice
  const WeightSharing& weights;
};

/// The data of an operand with that number, which may be -1; null where it is not there. Of
/// constants, null as well where it is not one.
inline const std::byte* data_of(int operand, std::span<const std::byte* const> operands) {
  return operand < 0 ? nullptr : operands[static_cast<size_t>(operand)];
}

/// Whether an operand that may not be there is known to be what `data_of` gives.
inline bool is_known(int operand, std::span<const std::byte* const> constants) {
  return operand < 0 || constants[static_cast<size_t>(operand)] != nullptr;
}

/// A convolution, with the elementwise nest that takes its result where there is one. Operands are
/// those of the convolution.
struct ConvolutionStep : StepBase {
  std::shared_ptr<const BoundConvolution> convolution;
  /// Takes the result slice by slice (see runtime/conv/convolution_output.hpp); null: the last
  /// operand is written.
  std::shared_ptr<const BoundEpilogue> epilogue;
  int64_t nanoseconds = 0;  ///< that one thread takes, as estimated
};

/// Where the operands of a call lie, y last; null behind it.
using CallOperands = std::array<const std::byte*, 5>;

inline CallOperands operands_of(const ConvolutionStep& step, const CallMemory& memory) {
  CallOperands operands = {};
  for (size_t k = 0; k < step.operands.size(); ++k) {
    operands[k] = reinterpret_cast<const std::byte*>(address(step.operands[k], memory));
  }
  return operands;
}

/// The number that a byte is.
inline int32_t value_of(std::byte byte, bool is_signed) {
  return is_signed ? static_cast<int8_t>(byte) : static_cast<uint8_t>(byte);
}
/// The zero point of the input, which `data` is; 0 where there is none.
inline int32_t input_zero_point(const ConvolutionOperands& operands, const std::byte* data) {
  return data == nullptr ? 0 : value_of(*data, operands.x_is_signed);
}
/// The zero point of an output channel's weights; the same for `data` and where there is none.
inline int32_t weight_zero_point(const ConvolutionOperands& operands, const std::byte* data,
                                 int64_t channel) {
  if (data == nullptr) return 0;
  return value_of(data[operands.zero_points_per_channel ? channel : 0], operands.w_is_signed);
}

/// Appends bytes to a scratch, at a cache line: where they begin.
inline size_t append_to_scratch(size_t& scratch_bytes, int64_t bytes) {
  constexpr size_t line = 64;
  const size_t begin = scratch_bytes;
  scratch_bytes += (static_cast<size_t>(bytes) + line - 1) / line * line;
  return begin;
}

/// For profiles: packing all weights of a convolution in a call.
inline WorkAmount packing_amount(const ConvolutionGeometry& geometry, int64_t packed_i32) {
  return {.bytes_read = geometry.out_channels * jit::products_of_output(geometry),
          .bytes_written = 4 * packed_i32};
}

/// Shares out `parts` to at most `max` tasks: each calls run.run(begin, end, scratch) once,
/// `scratch` being that offset of a scratch of its own.
template <class Run>
void share_out(const Run& run, int64_t parts, int64_t max, const CallMemory& memory,
               size_t offset) {
  const int64_t tasks = std::min(max, parts);
  if (tasks <= 1) return run.run(0, parts, memory.scratch + offset);
  memory.tasks->run(tasks, [&](int64_t index) {
    run.run(parts * index / tasks, parts * (index + 1) / tasks, scratch_of(memory, index) + offset);
  });
}

}  // namespace castor::detail
