// SPDX-License-Identifier: Apache-2.0
// Requantizations ready to run: by methods (jit/requantize), or by a table of bytes for each slice.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "jit/requantize/byte_table_kernel.hpp"
#include "jit/requantize/plan.hpp"
#include "runtime/bind/nest_codes.hpp"
#include "runtime/state.hpp"

namespace castor::detail {

struct CallMemory;

/// Where the parameters of one side come from.
struct BoundSide {
  QuantizationPtr quantization{};  ///< null: f32
  /// The operand of the nest that is a parameter, in the order of quantization_rules; -1: it is in
  /// the type.
  std::array<int, 3> operands = {-1, -1, -1};
  std::array<int64_t, 3> strides = {1, 1, 1};  ///< strides of those operands, in elements
};

/// A method with its code; the constants of slices are operands after x, each an array.
struct BoundMethod {
  const jit::RequantizeMethod* method = nullptr;
  BoundNest nest;
  std::array<size_t, jit::most_slice_constants> constants = {};  ///< in scratch, in bytes
};

/// A table of 256 bytes for each slice, and the access pattern of a tensor in runs of one slice.
struct BoundByteTables {
  KernelCodePtr<jit::ByteTableSpec> code;
  int64_t run = 0;  ///< elements contiguous in both tensors
  Dims extents;     ///< extents of the axes along which runs are repeated
  Dims source_strides;
  Dims destination_strides;
  Dims slice_steps;                        ///< 1 along the axis of quantization
  std::shared_ptr<const std::byte[]> own;  ///< the tables, where the types have all parameters
  size_t scratch = 0;                      ///< else where a call makes them
};

/// One requantization whose parameters, or some of them, are given at run time.
struct BoundRequantization {
  jit::RequantizeForm form;
  BoundSide from;
  BoundSide to;
  int64_t slices = 1;
  int64_t copies = 1;                ///< consecutive copies of all slices' constants
  std::vector<BoundMethod> methods;  ///< the fastest first; with tables, these make them
};

/// Completes a nest that has its operands: x, parameters given at run time, y. May generate code,
/// and computes constants of slices where the types have all parameters. Throws std::bad_alloc.
Status bind_requantization(const jit::RequantizeForm& form, const BoundSide& from,
                           const BoundSide& to, const jit::RequantizedTensors& tensors,
                           const Compiled& compiled, ScratchPlan& scratch, BoundNest& nest);

/// Computes the constants of slices of one call: the nest to run for it, which reads them from the
/// call's scratch.
const BoundNest& prepare_requantization(const BoundNest& nest, const CallMemory& memory);

/// Looks bytes up run by run, in the tables of the types or those that `prepare_requantization` has
/// made.
void run_byte_tables(const BoundNest& nest, const CallMemory& memory);

}  // namespace castor::detail
