// SPDX-License-Identifier: Apache-2.0
// Requantizations as steps of a bound kernel, but for those that an elementwise step does: all
// parameters in the types, and no tables.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "ir/types/quantization.hpp"
#include "jit/requantize/byte_table_kernel.hpp"
#include "jit/requantize/method.hpp"
#include "runtime/bind/elementwise_step.hpp"

namespace castor::detail {

/// Where the parameters of one side come from.
struct BoundSide {
  QuantizationPtr quantization{};  ///< null: f32
  /// The operand of the step that is a parameter, in the order of quantization_rules; -1: it is in
  /// the type.
  std::array<int, 3> operands = {-1, -1, -1};
  std::array<int64_t, 3> strides = {1, 1, 1};  ///< strides of those operands, in elements
};

/// A method with its code; the constants of slices are operands after x, each an array.
struct BoundMethod {
  const jit::RequantizeMethod* method = nullptr;
  ElementwiseStep step;
  std::array<size_t, jit::max_slice_constants> constants = {};  ///< in scratch, in bytes
};

/// How calls requantize by parameters of which some are given at run time.
struct BoundRequantization {
  jit::RequantizeForm form;
  BoundSide from;
  BoundSide to;
  int64_t slices = 1;
  int64_t copies = 1;                ///< consecutive copies of all slices' constants
  std::vector<BoundMethod> methods;  ///< the fastest first; the last one takes all parameters
};

/// Requantizes by a method that each call chooses. Operands: x, the parameters given at run time,
/// y.
struct RequantizeStep : StepBase {
  BoundRequantization requantization;
};

/// Tables of types that have all parameters.
struct ConstantTables {
  std::vector<std::byte> bytes;
};

/// Tables that each call makes.
struct CallTables {
  BoundRequantization requantization;  ///< its methods requantize every byte
  size_t scratch = 0;                  ///< where the tables are stored, in bytes
};

/// Looks up bytes in a table of 256 for each slice; both tensors are cut into runs of one slice.
/// Operands: x, the parameters given at run time, y.
struct TableStep : StepBase {
  KernelCodePtr<jit::ByteTableSpec> code;
  int64_t nanoseconds = 0;  ///< that one thread takes, as estimated
  int64_t run = 0;          ///< consecutive elements in both tensors
  Dims extents;             ///< extents of the axes along which runs are repeated
  Dims source_strides;
  Dims destination_strides;
  Dims slice_steps;  ///< 1 along the axis of quantization
  std::variant<ConstantTables, CallTables> tables;
};

}  // namespace castor::detail
