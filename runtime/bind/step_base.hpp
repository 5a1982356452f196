// SPDX-License-Identifier: Apache-2.0
// What all steps of a bound kernel have: the tensors that they read and write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/types/element_type.hpp"

namespace castor::detail {

/// Where an operand comes from at each run.
struct OperandOrigin {
  enum class Kind : uint8_t { input, output, constant, scratch } kind;
  size_t index = 0;                     ///< the view's index among inputs or outputs
  const std::byte* constant = nullptr;  ///< data owned by the function, or by the step
  size_t offset = 0;                    ///< in the call's scratch, in bytes
  /// Bytes from there to the operand's first element; 0 where elements are narrower than a byte.
  int64_t displacement = 0;
};

/// A tensor that a step reads or writes.
struct StepOperand {
  OperandOrigin origin;
  ElementType element = ElementType::f32;
  /// Whether it is the tensor of its origin element by element: not broadcast, not reshaped.
  bool matches_space = false;
};

struct StepBase {
  /// Index in Compiled::nests: the nest that the step does, or the one that it copies a tensor for.
  size_t nest = 0;
  std::vector<StepOperand> operands;  ///< what is read, then what is written
};

}  // namespace castor::detail
