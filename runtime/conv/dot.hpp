// SPDX-License-Identifier: Apache-2.0
// Convolutions by dot products, ready to run: planned, with code.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "jit/conv/dot/dot_plan.hpp"
#include "runtime/cache/code_cache.hpp"
#include "runtime/conv/convolution_step.hpp"
#include "runtime/memory/weight_store.hpp"

namespace castor::detail {

/// Offsets, in bytes, of what a task keeps in its scratch.
struct DotScratch {
  size_t pixels = 0;       ///< a block's, packed
  size_t pixel_sums = 0;   ///< see DotArguments
  size_t zero_points = 0;  ///< a group's, by output channel
};

/// A convolution with a dot plan.
struct BoundDot {
  jit::DotPlan plan;
  ConvolutionOperands operands;
  KernelCodePtr<jit::DotTile> code;
  PackedDwords weights;                      ///< constant ones, as they are stored; else empty
  std::array<std::byte, 64> tail_ones = {};  ///< see DotArguments
  DotScratch offsets;
  size_t scratch_bytes = 0;

  /// What is xored to elements of x, so that products of bytes take them.
  uint8_t sign_flip() const;
};

/// Binds a convolution by its plan. Throws std::bad_alloc.
Result<std::shared_ptr<const BoundDot>> bind_plan(const jit::DotPlan& plan,
                                                  const ConvolutionBinding& by);

/// Runs a convolution whose scratch begins at that offset. Allocates nothing.
void run_plan(const BoundDot& bound, size_t scratch, const ConvolutionStep& step,
              const CallMemory& memory);

}  // namespace castor::detail
